package engine

import (
	"errors"
	"math"
	"runtime"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

func newIngress(size int) *ingress {
	r := &ingress{}
	r.init(size, 100)
	return r
}

// TestIngressFull: exactly as many commands as slots are accepted, and a slot is free again
// only when its command is both applied and journaled.
func TestIngressFull(t *testing.T) {
	r := newIngress(8)
	fill := func(want int) {
		t.Helper()
		for i := range want {
			if err := r.put(&Command{}); err != nil {
				t.Fatalf("command %d of %d: %v", i+1, want, err)
			}
		}
		if err := r.put(&Command{}); !errors.Is(err, ErrFull) {
			t.Fatalf("command %d: %v, want ErrFull", want+1, err)
		}
	}
	fill(8)
	r.applied.Store(5)
	fill(0)
	r.journaled.Store(3)
	fill(3)
	r.journaled.Store(math.MaxUint64)
	fill(2)
	if got := r.end(); got != 13 {
		t.Fatalf("%d commands went in, want 13", got)
	}
}

func TestIngressFlags(t *testing.T) {
	r := newIngress(4)
	if err := r.put(&Command{}); err != nil {
		t.Fatal(err)
	}
	r.tail.Or(tailStopped)
	if err := r.put(&Command{}); !errors.Is(err, ErrStopped) {
		t.Fatalf("%v, want ErrStopped", err)
	}
	r.tail.Or(tailFailed)
	if err := r.put(&Command{}); !errors.Is(err, ErrReadOnly) {
		t.Fatalf("%v, want ErrReadOnly", err)
	}
	if r.end() != 1 {
		t.Fatalf("end %d, want 1", r.end())
	}
}

// TestIngressProducers: with many producers at once every accepted command is in the ring
// once, in the order of its producer.
func TestIngressProducers(t *testing.T) {
	const producers, each, size = 4, 5_000, 64
	r := newIngress(size)
	r.journaled.Store(math.MaxUint64)
	var wg sync.WaitGroup
	for p := range producers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for n := uint64(0); n < each; {
				if r.put(&Command{Origin: uint16(p), Arg: n}) == nil {
					n++
				} else {
					runtime.Gosched()
				}
			}
		}()
	}
	var next [producers]uint64
	for pos := uint64(0); pos < producers*each; {
		n := r.countFilled(pos, 16)
		if n == 0 {
			runtime.Gosched() // on one core the producers wait for it
		}
		if n > 16 {
			t.Fatalf("a run of %d, at most 16", n)
		}
		for range n {
			c := r.slots[pos&r.mask]
			if c.Arg != next[c.Origin] {
				t.Fatalf("position %d: command %d of producer %d, want %d", pos, c.Arg, c.Origin, next[c.Origin])
			}
			next[c.Origin]++
			pos++
		}
		r.applied.Store(pos)
	}
	wg.Wait()
	if r.countFilled(producers*each, 1) != 0 || r.end() != producers*each {
		t.Fatalf("%d commands, want %d", r.end(), producers*each)
	}
}

// TestIngressPutAll: all or nothing, up to the last free slot.
func TestIngressPutAll(t *testing.T) {
	r := newIngress(8)
	r.journaled.Store(math.MaxUint64)
	for i, c := range []struct {
		n    int
		free uint64 // by then
		want error
	}{
		{5, 8, nil}, {4, 3, ErrFull}, {3, 3, nil}, {1, 0, ErrFull}, {9, 8, ErrFull}, {8, 8, nil},
	} {
		r.applied.Store(r.end() - (8 - c.free))
		before := r.end()
		if err := r.putAll(make([]Command, c.n)); !errors.Is(err, c.want) {
			t.Fatalf("step %d: %d commands into %d slots: %v", i, c.n, c.free, err)
		}
		if went := r.end() - before; c.want != nil && went != 0 || c.want == nil && went != uint64(c.n) {
			t.Fatalf("step %d: %d of %d commands went in", i, went, c.n)
		}
		if n := r.countFilled(before, 8); c.want == nil && n != c.n {
			t.Fatalf("step %d: %d of %d can be read", i, n, c.n)
		}
	}
	r.tail.Or(tailStopped)
	if err := r.putAll(make([]Command, 2)); !errors.Is(err, ErrStopped) {
		t.Fatalf("%v, want ErrStopped", err)
	}
	r.tail.Or(tailFailed)
	if err := r.putAll(make([]Command, 2)); !errors.Is(err, ErrReadOnly) {
		t.Fatalf("%v, want ErrReadOnly", err)
	}
}

// TestIngressFrames: segments returns positions in order, frameEnd a batch boundary.
func TestIngressFrames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newIngress(1 << rapid.IntRange(1, 6).Draw(t, "bits"))
		size := uint64(len(r.slots))
		from := rapid.Uint64Range(0, 200).Draw(t, "from")
		limit := rapid.IntRange(1, int(size)).Draw(t, "limit")
		to, starts := from, map[uint64]bool{}
		for to < from+size {
			n := rapid.Uint64Range(1, uint64(limit)).Draw(t, "batch")
			n = min(n, from+size-to)
			starts[to] = true
			for p := to; p < to+n; p++ {
				r.slots[p&r.mask] = Command{Seq: p, first: p == to}
			}
			to += n
			if rapid.IntRange(0, 3).Draw(t, "more") == 0 {
				break
			}
		}
		cut := r.frameEnd(from, to, limit)
		if cut <= from || cut > to || cut-from > uint64(limit) || cut != to && !starts[cut] {
			t.Fatalf("cut(%d, %d, %d) = %d; batches start at %v", from, to, limit, cut, starts)
		}
		for p := cut + 1; p <= min(to, from+uint64(limit)); p++ {
			if starts[p] || p == to {
				t.Fatalf("cut %d, but %d is a boundary too", cut, p)
			}
		}
		a, b := r.segments(from, cut)
		if len(a) == 0 || uint64(len(a)+len(b)) != cut-from {
			t.Fatalf("segments of %d and %d, want %d in all", len(a), len(b), cut-from)
		}
		for i, c := range append(append([]Command(nil), a...), b...) {
			if c.Seq != from+uint64(i) {
				t.Fatalf("command %d is %d, want %d", i, c.Seq, from+uint64(i))
			}
		}
	})
}
