package desk

import (
	"sync/atomic"
	"testing"

	"blockdesk/market"
)

// TestViewed: who is told of a view finds it, and the store has the tickets that
// it shows; no view is left untold, and nothing is told without one.
func TestViewed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var told, last atomic.Uint64 // calls, and the Seq of the newest view at one
	r.o.OnView = func() {
		v := r.View()
		if last.Load() == v.Seq && v.Seq != 0 {
			t.Errorf("told twice of the view of seq %d", v.Seq)
		}
		for _, ticket := range v.Tickets {
			if cursor := r.Cursor(); cursor < ticket.Seq {
				t.Errorf("a ticket of seq %d is shown, the store ends at %d", ticket.Seq, cursor)
			}
		}
		last.Store(v.Seq)
		told.Add(1)
	}
	r.start()
	if told.Load() != 1 {
		t.Fatalf("Start told %d times of the first view", told.Load())
	}
	ticket := r.open(1000, 500)
	for wallet := range byte(3) {
		r.must(take(ticket.ID, 1+wallet))
		if seq := r.View().Seq; last.Load() < seq {
			t.Errorf("nobody was told of the view of seq %d", seq)
		}
	}
	calls := told.Load()
	r.must(quote(ticket.ID)) // shows nothing new
	if _, err := r.Do(quote(market.TicketID(99))); err != nil {
		t.Fatal(err)
	}
	if told.Load() != calls {
		t.Errorf("told %d times of quotes", told.Load()-calls)
	}
}
