package gatewaytest

import (
	"errors"
	"sync"
	"sync/atomic"

	"blockdesk/desk"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/market"
)

// ScriptedDesk answers by a function of the test, and remembers the requests.
type ScriptedDesk struct {
	Shown   *rfq.View
	Result  func(rfq.Request) (*desk.Result, error) // nil = sell
	History map[market.ClaimID]*desk.History

	mu    sync.Mutex
	Asked []rfq.Request
}

// View returns Shown.
func (d *ScriptedDesk) View() *rfq.View { return d.Shown }

// Do answers as Result does, and sells without it.
func (d *ScriptedDesk) Do(r rfq.Request) (*desk.Result, error) {
	d.mu.Lock()
	d.Asked = append(d.Asked, r)
	d.mu.Unlock()
	if d.Result == nil {
		return Sell(d.Shown, r), nil
	}
	return d.Result(r)
}

// Claim returns a claim of History.
func (d *ScriptedDesk) Claim(id market.ClaimID) (*desk.History, bool, error) {
	if id == BrokenClaim {
		return nil, false, errors.New("the store is on fire")
	}
	h, ok := d.History[id]
	return h, ok, nil
}

// BrokenClaim is one that the store cannot read.
const BrokenClaim market.ClaimID = 13

// Last returns the newest request; nil = none.
func (d *ScriptedDesk) Last() rfq.Request {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.Asked) == 0 {
		return nil
	}
	return d.Asked[len(d.Asked)-1]
}

// Sell grants a quote or a claim at made-up terms.
func Sell(v *rfq.View, r rfq.Request) *desk.Result {
	terms := func(ticket market.TicketID, tranche market.TrancheID, fill market.FillUSD, rail market.Rail) rfq.Terms {
		return rfq.Terms{
			Ticket: ticket, Tranche: tranche, Fill: fill, Rail: rail, DiscountBps: 25, FeeBps: 500,
			Reference: 1_000_000_000, Price: 997_500_000, Base: 250_626_566, Payment: uint64(fill.USD()) + 1, PayTo: Address(120),
		}
	}
	switch r := r.(type) {
	case *rfq.RequestQuote:
		return &desk.Result{
			Outcome: rfq.Outcome{Ticket: r.Ticket}, Ticket: v.Ticket(r.Ticket),
			Quote: &rfq.Quote{
				ID: 77, Terms: terms(r.Ticket, r.Tranche, r.Fill, r.Rail), IssuedAt: DeskDay, ValidUntil: DeskDay + 15e9,
			},
		}
	case *rfq.TakeClaim:
		return &desk.Result{
			Outcome: rfq.Outcome{Ticket: r.Ticket}, Ticket: v.Ticket(r.Ticket),
			Claim: &rfq.Claim{
				ID: 78, Quote: r.Quote, Way: r.Way, State: rfq.ClaimReserved, Wallet: r.Wallet,
				Terms: terms(r.Ticket, r.Tranche, r.Fill, r.Rail), ReservedAt: DeskDay, ChangedAt: DeskDay, Deadline: DeskDay + 120e9,
			},
		}
	}
	return &desk.Result{Outcome: rfq.Outcome{Reason: event.ReasonInvalidCommand}}
}

// ShownDesk shows a view that a test changes at will. Nothing else is asked of
// it.
type ShownDesk struct {
	ScriptedDesk
	shown atomic.Pointer[rfq.View]
}

// View returns the view that Show has set last.
func (d *ShownDesk) View() *rfq.View { return d.shown.Load() }

// Show changes the view.
func (d *ShownDesk) Show(v *rfq.View) { d.shown.Store(v) }

// Showing returns a desk that shows v.
func Showing(v *rfq.View) *ShownDesk {
	d := &ShownDesk{}
	d.shown.Store(v)
	return d
}
