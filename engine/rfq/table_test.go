package rfq

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestTimers compares the heap with a list that is sorted each time.
func TestTimers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var heap timers
		var list []timer
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			slot := rapid.Uint32Range(0, 20).Draw(t, "slot")
			removed := slices.DeleteFunc(slices.Clone(list), func(o timer) bool { return o.slot == slot })
			if rapid.IntRange(0, 2).Draw(t, "remove") == 0 {
				heap.remove(slot)
				list = removed
			} else {
				it := timer{rapid.Int64Range(0, 10).Draw(t, "at"), uint64(slot) + 100, slot}
				heap.set(slot, it.at, it.id)
				list = append(removed, it)
			}
			slices.SortFunc(list, func(a, b timer) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.id, b.id)) })
			first, ok := heap.first()
			if ok != (len(list) != 0) || ok && first != list[0].slot {
				t.Fatalf("first %d %v of %v", first, ok, list)
			}
			at := rapid.Int64Range(0, 10).Draw(t, "now")
			if due, ok := heap.due(at); ok != (len(list) != 0 && list[0].at <= at) || ok && due != list[0].slot {
				t.Fatalf("due at %d: %d %v of %v", at, due, ok, list)
			}
		}
		for len(list) != 0 {
			first, _ := heap.first()
			if first != list[0].slot {
				t.Fatalf("%d, want %v", first, list)
			}
			heap.remove(first)
			list = list[1:]
		}
	})
}

// TestTable: items never move, slots are reused, and a removed item is cleared.
func TestTable(t *testing.T) {
	tab := newTable[int, [2]int]()
	first := tab.at(tab.add(0))
	first[0] = 7
	for i := 1; i < 3*chunkItems; i++ {
		tab.at(tab.add(i))[0] = i
	}
	if tab.get(0) != first || first[0] != 7 || tab.len() != 3*chunkItems {
		t.Fatal("the first item moved")
	}
	for i := range 2 * chunkItems {
		tab.remove(i)
		tab.remove(i)
	}
	for i := range 2 * chunkItems {
		if slot := tab.add(-1 - i); *tab.at(slot) != ([2]int{}) {
			t.Fatalf("slot %d is not empty", slot)
		}
	}
	if len(tab.chunks) != 3 || tab.get(0) != nil || tab.get(2 * chunkItems)[0] != 2*chunkItems {
		t.Errorf("%d chunks", len(tab.chunks))
	}
	keys := tab.sorted(func(a, b *[2]int) int { return cmp.Compare(a[0], b[0]) })
	if len(keys) != 3*chunkItems || keys[len(keys)-1][0] != 3*chunkItems-1 {
		t.Errorf("%d items", len(keys))
	}
}
