package desk

import (
	"sync/atomic"
	"testing"

	"blockdesk/market"
)

// TestOnView: OnView is called once for each view, after View returns it and the store
// has its tickets.
func TestOnView(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var calls, last atomic.Uint64 // calls, and the Seq of the newest view at one
	r.o.OnView = func() {
		v := r.View()
		if last.Load() == v.Seq && v.Seq != 0 {
			t.Errorf("OnView was called twice for the view of seq %d", v.Seq)
		}
		for _, ticket := range v.Tickets {
			if cursor := r.Cursor(); cursor < ticket.Seq {
				t.Errorf("a ticket of seq %d is shown, the store ends at %d", ticket.Seq, cursor)
			}
		}
		last.Store(v.Seq)
		calls.Add(1)
	}
	r.start()
	if calls.Load() != 1 {
		t.Fatalf("Start called OnView %d times for the first view", calls.Load())
	}
	ticket := r.open(1000, 500)
	for wallet := range byte(3) {
		r.must(take(ticket.ID, 1+wallet))
		if seq := r.View().Seq; last.Load() < seq {
			t.Errorf("OnView was not called for the view of seq %d", seq)
		}
	}
	before := calls.Load()
	r.must(quote(ticket.ID)) // shows nothing new
	if _, err := r.Do(quote(market.TicketID(99))); err != nil {
		t.Fatal(err)
	}
	if calls.Load() != before {
		t.Errorf("OnView was called %d times for quotes", calls.Load()-before)
	}
}
