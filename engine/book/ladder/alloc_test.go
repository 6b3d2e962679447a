package ladder

import (
	"math/rand/v2"
	"testing"

	"blockdesk/engine/book"
	"blockdesk/market"
)

// TestNoAllocations: once the slabs have grown, no command allocates: neither in the plain
// flow nor in one of all features with wandering prices.
func TestNoAllocations(t *testing.T) {
	t.Run("mix", func(t *testing.T) {
		steps := standard.flow(100_000)
		b := New(book.Options{})
		out := ring(1 << 10)
		for i := range steps {
			apply(b, &steps[i], uint64(i), out)
		}
		// The flow again, under new ids, on a book as large as the last.
		next := 0
		for i := range steps {
			steps[i].order.ID += 1 << 30
		}
		got := testing.AllocsPerRun(1000, func() {
			for range 50 {
				apply(b, &steps[next], 0, out)
				b.Cancel(steps[next].order.ID, 0, 0, 0, out)
				next++
			}
		})
		if got != 0 {
			t.Fatalf("%v allocations in 100 commands", got)
		}
	})
	t.Run("every feature", func(t *testing.T) {
		b := New(book.Options{MaxOrders: 2000})
		out := ring(1 << 10)
		cycle := func() {
			rng := rand.New(rand.NewPCG(5, 6))
			for seq := uint64(1); seq <= 3000; seq++ {
				middle := 1<<20 + market.Price(seq/500)*window
				randomCommand(rng, b, middle, seq, out)
			}
			b.MassCancel(0, 0, 1, 0, 0, out)
		}
		cycle()
		if got := testing.AllocsPerRun(3, cycle); got > 2 {
			t.Fatalf("%v allocations in 3000 commands, want only the generator's", got)
		}
	})
}
