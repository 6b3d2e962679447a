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

// ScriptedDesk is a desk that answers with a function of the test and records requests.
type ScriptedDesk struct {
	Current *rfq.View
	Result  func(rfq.Request) (*desk.Result, error) // nil = Grant
	History map[market.ClaimID]*desk.History
	Keys    map[rfq.IdempotencyKey]bool // with a stored answer
	Sold    []desk.Sale                 // of every instrument, newest first

	mu       sync.Mutex
	Requests []rfq.Request
}

// View returns Current.
func (d *ScriptedDesk) View() *rfq.View { return d.Current }

// Do records r and answers with Result, or Grant if it is nil.
func (d *ScriptedDesk) Do(r rfq.Request) (*desk.Result, error) {
	d.mu.Lock()
	d.Requests = append(d.Requests, r)
	d.mu.Unlock()
	if d.Result == nil {
		return Grant(d.Current, r), nil
	}
	return d.Result(r)
}

// Answered reports whether a key is in Keys.
func (d *ScriptedDesk) Answered(key rfq.IdempotencyKey) (bool, error) { return d.Keys[key], nil }

// Claim returns a claim from History.
func (d *ScriptedDesk) Claim(id market.ClaimID) (*desk.History, bool, error) {
	if id == UnreadableClaim {
		return nil, false, errors.New("the store is on fire")
	}
	h, ok := d.History[id]
	return h, ok, nil
}

// Sales returns those of Sold.
func (d *ScriptedDesk) Sales(_ market.InstrumentID, before uint64, limit int) ([]desk.Sale, error) {
	var all []desk.Sale
	for _, s := range d.Sold {
		if (before == 0 || s.Number < before) && len(all) < limit {
			all = append(all, s)
		}
	}
	return all, nil
}

// SalesSummary returns the totals of the newest of Sold, twice.
func (d *ScriptedDesk) SalesSummary(market.InstrumentID, int64) (all, since desk.SalesTotals, err error) {
	if len(d.Sold) > 0 {
		all = d.Sold[0].Totals
	}
	return all, all, nil
}

// UnreadableClaim is a claim whose read fails.
const UnreadableClaim market.ClaimID = 13

// Last returns the newest request, or nil.
func (d *ScriptedDesk) Last() rfq.Request {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.Requests) == 0 {
		return nil
	}
	return d.Requests[len(d.Requests)-1]
}

// Grant returns a quote or a claim with made-up terms.
func Grant(v *rfq.View, r rfq.Request) *desk.Result {
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
				ID: 77, Terms: terms(r.Ticket, r.Tranche, r.Fill, r.Rail), IssuedAt: ViewTime, ValidUntil: ViewTime + 15e9, Indicative: r.Indicative,
			},
		}
	case *rfq.TakeClaim:
		return &desk.Result{
			Outcome: rfq.Outcome{Ticket: r.Ticket}, Ticket: v.Ticket(r.Ticket),
			Claim: &rfq.Claim{
				ID: 78, Quote: r.Quote, Mode: r.Mode, State: rfq.ClaimReserved, Wallet: r.Wallet,
				Terms: terms(r.Ticket, r.Tranche, r.Fill, r.Rail), ReservedAt: ViewTime, ChangedAt: ViewTime, Deadline: ViewTime + 120e9,
			},
		}
	}
	return &desk.Result{Outcome: rfq.Outcome{Reason: event.ReasonInvalidCommand}}
}

// ViewDesk is a desk whose view a test can change. Only View is called.
type ViewDesk struct {
	ScriptedDesk
	view atomic.Pointer[rfq.View]
}

// View returns the view that SetView has set last.
func (d *ViewDesk) View() *rfq.View { return d.view.Load() }

// SetView changes the view.
func (d *ViewDesk) SetView(v *rfq.View) { d.view.Store(v) }

// NewViewDesk returns a desk with the view v.
func NewViewDesk(v *rfq.View) *ViewDesk {
	d := &ViewDesk{}
	d.view.Store(v)
	return d
}
