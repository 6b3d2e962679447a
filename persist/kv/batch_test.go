package kv_test

import (
	"maps"
	"math/rand/v2"
	"testing"

	"blockdesk/persist/kv"
	"blockdesk/persist/kv/kvtest"
)

// TestBatch: a batch does to a store what its calls say, in their order; an emptied
// one does nothing.
func TestBatch(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	key := func() []byte { return []byte{'a' + byte(rng.IntN(4)), 'a' + byte(rng.IntN(4))}[:1+rng.IntN(2)] }
	store, want := kvtest.New(), map[string]string{}
	var b kv.Batch
	for range 200 {
		bytes := 0
		for n := range rng.IntN(6) {
			lo := key()
			switch rng.IntN(3) {
			case 0:
				value := []byte{byte(n)}[:rng.IntN(2)]
				b.Set(lo, value)
				want[string(lo)] = string(value)
				bytes += len(lo) + len(value)
				clear(value) // the batch has a copy
			case 1:
				b.Delete(lo)
				delete(want, string(lo))
				bytes += 2*len(lo) + 1
			case 2:
				hi := key()
				b.DeleteRange(lo, hi)
				maps.DeleteFunc(want, func(k, _ string) bool { return k >= string(lo) && k < string(hi) })
				bytes += len(lo) + len(hi)
			}
			lo[0] = 'x'
			if b.Len() != n+1 || b.Size() != bytes {
				t.Fatalf("%d changes of %d bytes, want %d of %d", b.Len(), b.Size(), n+1, bytes)
			}
		}
		if err := store.Commit(b.Fill, false); err != nil {
			t.Fatal(err)
		}
		if got := store.Content(); !maps.Equal(got, want) {
			t.Fatalf("got %q, want %q", got, want)
		}
		b.Reset()
		if b.Len()+b.Size() != 0 {
			t.Fatal("not empty")
		}
	}
}
