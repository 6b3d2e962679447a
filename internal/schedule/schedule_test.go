package schedule

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// item is in two queues at once, which must not mix up its places.
type item struct {
	id    uint64
	place [2]int
}

func newQueues() [2]Queue[*item] {
	return [2]Queue[*item]{
		New(func(x *item) *int { return &x.place[0] }),
		New(func(x *item) *int { return &x.place[1] }),
	}
}

// model is a queue as a sorted list.
type model struct {
	items map[*item]int64 // due
}

func (m *model) sorted() []*item {
	var list []*item
	for x := range m.items {
		list = append(list, x)
	}
	slices.SortFunc(list, func(a, b *item) int {
		return cmp.Or(cmp.Compare(m.items[a], m.items[b]), cmp.Compare(a.id, b.id))
	})
	return list
}

// TestQueue holds two queues of the same items to sorted lists, over any operations.
func TestQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		queues := newQueues()
		models := [2]model{{map[*item]int64{}}, {map[*item]int64{}}}
		items := make([]*item, rapid.IntRange(1, 40).Draw(t, "items"))
		for i := range items {
			items[i] = &item{id: uint64(i)}
		}
		due := rapid.OneOf(rapid.Int64Range(0, 5), rapid.Int64(), rapid.Just(int64(math.MaxInt64)))
		for range rapid.IntRange(0, 200).Draw(t, "operations") {
			which := rapid.IntRange(0, 1).Draw(t, "queue")
			q, m := &queues[which], &models[which]
			x := rapid.SampledFrom(items).Draw(t, "item")
			switch rapid.IntRange(0, 3).Draw(t, "operation") {
			case 0, 1:
				at := due.Draw(t, "due")
				q.Set(x, at, x.id)
				m.items[x] = at
			case 2:
				q.Remove(x)
				delete(m.items, x)
			case 3:
				limit := due.Draw(t, "limit")
				got, ok := q.Pop(limit)
				var want *item
				if list := m.sorted(); len(list) > 0 && m.items[list[0]] <= limit {
					want = list[0]
					delete(m.items, want)
				}
				if got != want || ok != (want != nil) {
					t.Fatalf("Pop(%d) = %v %v, want %v", limit, got, ok, want)
				}
			}
			agrees(t, q, m, which, items)
		}
		for which := range queues { // the whole order
			q, m := &queues[which], &models[which]
			for _, want := range m.sorted() {
				if got, ok := q.Pop(math.MaxInt64); !ok || got != want {
					t.Fatalf("%v, want %v", got, want)
				}
			}
			if q.Len() != 0 {
				t.Fatalf("%d left", q.Len())
			}
		}
	})
}

func agrees(t *rapid.T, q *Queue[*item], m *model, which int, items []*item) {
	if q.Len() != len(m.items) {
		t.Fatalf("%d items, want %d", q.Len(), len(m.items))
	}
	first, due, ok := q.First()
	if list := m.sorted(); ok != (len(list) > 0) || ok && (first != list[0] || due != m.items[first]) {
		t.Fatalf("First() = %v %d %v of %v", first, due, ok, list)
	}
	for _, x := range items {
		_, there := m.items[x]
		if at := x.place[which]; (at > 0) != there || there && q.heap[at-1].item != x {
			t.Fatalf("item %d says place %d", x.id, at)
		}
	}
}

// TestPlain: without an index items are added as often as they are set.
func TestPlain(t *testing.T) {
	q := New[string](nil)
	for i, x := range []string{"c", "a", "b", "a"} {
		q.Set(x, int64(x[0]), uint64(i))
	}
	if _, ok := q.Pop('a' - 1); ok {
		t.Error("something is due")
	}
	var got string
	for x, ok := q.Pop(math.MaxInt64); ok; x, ok = q.Pop(math.MaxInt64) {
		got += x
	}
	if got != "aabc" {
		t.Error(got)
	}
	if x, due, ok := q.First(); ok || x != "" || due != 0 {
		t.Errorf("%q %d %v of an empty queue", x, due, ok)
	}
}

// TestNoAllocation: an operation on a queue that has been as long allocates nothing.
func TestNoAllocation(t *testing.T) {
	q := newQueues()[0]
	items := make([]*item, 1000)
	for i := range items {
		items[i] = &item{id: uint64(i)}
		q.Set(items[i], int64(i), items[i].id)
	}
	n := testing.AllocsPerRun(100, func() {
		for i, x := range items {
			q.Set(x, int64(i*7919%1000), x.id)
		}
		q.Remove(items[500])
		x, _ := q.Pop(math.MaxInt64)
		q.Set(x, 5, x.id)
		q.Set(items[500], 7, 500)
	})
	if n != 0 {
		t.Errorf("%.0f allocations", n)
	}
}

func BenchmarkSet(b *testing.B) {
	q := newQueues()[0]
	items := make([]*item, 10_000)
	for i := range items {
		items[i] = &item{id: uint64(i)}
		q.Set(items[i], int64(i), items[i].id)
	}
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n++
		x := items[n%len(items)]
		q.Set(x, int64(n*7919%100_000), x.id)
	}
}
