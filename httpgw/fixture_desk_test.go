package httpgw

import (
	"errors"
	"sync"
	"sync/atomic"

	"blockdesk/desk"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/market"
)

// scriptedDesk answers as a test tells it to, and remembers what it was asked.
type scriptedDesk struct {
	view    *rfq.View
	result  func(rfq.Request) (*desk.Result, error) // nil = sell
	history map[market.ClaimID]*desk.History

	mu    sync.Mutex
	asked []rfq.Request
}

func (d *scriptedDesk) View() *rfq.View { return d.view }

func (d *scriptedDesk) Do(r rfq.Request) (*desk.Result, error) {
	d.mu.Lock()
	d.asked = append(d.asked, r)
	d.mu.Unlock()
	if d.result == nil {
		return sell(d.view, r), nil
	}
	return d.result(r)
}

func (d *scriptedDesk) Claim(id market.ClaimID) (*desk.History, bool, error) {
	if id == brokenClaim {
		return nil, false, errors.New("the store is on fire")
	}
	h, ok := d.history[id]
	return h, ok, nil
}

// brokenClaim is one that the store cannot read.
const brokenClaim market.ClaimID = 13

// last returns the newest request; nil = none.
func (d *scriptedDesk) last() rfq.Request {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.asked) == 0 {
		return nil
	}
	return d.asked[len(d.asked)-1]
}

// sell grants a quote or a claim at made-up terms.
func sell(v *rfq.View, r rfq.Request) *desk.Result {
	terms := func(ticket market.TicketID, tranche market.TrancheID, fill market.FillUSD, rail market.Rail) rfq.Terms {
		return rfq.Terms{
			Ticket: ticket, Tranche: tranche, Fill: fill, Rail: rail, DiscountBps: 25, FeeBps: 500,
			Reference: 1_000_000_000, Price: 997_500_000, Base: 250_626_566, Payment: uint64(fill.USD()) + 1, PayTo: address(120),
		}
	}
	switch r := r.(type) {
	case *rfq.RequestQuote:
		return &desk.Result{
			Outcome: rfq.Outcome{Ticket: r.Ticket}, Ticket: v.Ticket(r.Ticket),
			Quote: &rfq.Quote{
				ID: 77, Terms: terms(r.Ticket, r.Tranche, r.Fill, r.Rail), IssuedAt: deskDay, ValidUntil: deskDay + 15e9,
			},
		}
	case *rfq.TakeClaim:
		return &desk.Result{
			Outcome: rfq.Outcome{Ticket: r.Ticket}, Ticket: v.Ticket(r.Ticket),
			Claim: &rfq.Claim{
				ID: 78, Quote: r.Quote, Way: r.Way, State: rfq.ClaimReserved, Wallet: r.Wallet,
				Terms: terms(r.Ticket, r.Tranche, r.Fill, r.Rail), ReservedAt: deskDay, ChangedAt: deskDay, Deadline: deskDay + 120e9,
			},
		}
	}
	return &desk.Result{Outcome: rfq.Outcome{Reason: event.ReasonInvalidCommand}}
}

// shownDesk shows a view that a test changes at will. Nothing else is asked of
// it.
type shownDesk struct {
	scriptedDesk
	shown atomic.Pointer[rfq.View]
}

func (d *shownDesk) View() *rfq.View { return d.shown.Load() }

// show changes the view.
func (d *shownDesk) show(v *rfq.View) { d.shown.Store(v) }

func showing(v *rfq.View) *shownDesk {
	d := &shownDesk{}
	d.shown.Store(v)
	return d
}
