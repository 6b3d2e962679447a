package rfq

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/httpgw/gatewaytest"
	"blockdesk/market"
)

// switchedChain is a settlement that is ready or not.
type switchedChain struct{ down error }

func (c *switchedChain) Ready() error { return c.down }

func (c *switchedChain) Package(context.Context, *rfq.Claim, desk.FeePayer) (desk.Package, error) {
	return desk.Package{}, nil
}

func (c *switchedChain) FreshPackage(context.Context, market.ClaimID) (desk.Package, error) {
	return desk.Package{}, nil
}

func (c *switchedChain) Verify(context.Context, *desk.PaymentProof) (desk.Verdict, error) {
	return desk.Verdict{}, nil
}

func (c *switchedChain) Delivery(market.ClaimID) ([64]byte, bool, error) {
	return [64]byte{}, false, nil
}

// sale is what the documents say about what sells now.
type sale struct {
	accepting bool
	reason    string
	ticket    string // in the status and in current-sellable-ticket; "" = null
}

func saleOf(t *testing.T, p *pages) sale {
	t.Helper()
	var status struct {
		Accepting bool    `json:"accepting"`
		Reason    *string `json:"accepting_reason"`
		Ticket    *string `json:"current_sellable_ticket"`
	}
	var current struct {
		Ticket *struct {
			ID string `json:"order_id"`
		} `json:"ticket"`
	}
	for d, v := range map[document]any{docStatus: &status, docSellable: &current} {
		if err := json.Unmarshal(p.get(d).Body, v); err != nil {
			t.Fatal(err)
		}
	}
	s := sale{accepting: status.Accepting}
	if status.Reason != nil {
		s.reason = *status.Reason
	}
	if status.Ticket != nil {
		s.ticket = *status.Ticket
	}
	if (current.Ticket == nil) != (status.Ticket == nil) || current.Ticket != nil && current.Ticket.ID != s.ticket {
		t.Errorf("current-sellable-ticket %+v, status %+v", current.Ticket, s)
	}
	return s
}

// TestNothingIsSaidToSellThatDoesNot: each condition without which a claim is refused takes
// the ticket out of the documents, or shows the next one that sells.
func TestNothingIsSaidToSellThatDoesNot(t *testing.T) {
	onlyT7 := func(v *rfq.View) { v.Tickets = v.Tickets[:1] }
	for name, c := range map[string]struct {
		change func(v *rfq.View)
		want   sale
	}{
		"all is well":      {func(*rfq.View) {}, sale{true, "", "T7"}},
		"global lock":      {func(v *rfq.View) { v.Locks[0].Locked = true }, sale{false, "locked", ""}},
		"delivery lock":    {func(v *rfq.View) { v.Locks[0] = rfq.Lock{Scope: rfq.LockDeliveries, Locked: true} }, sale{true, "", "T7"}},
		"its pair locked":  {func(v *rfq.View) { v.Locks[0] = rfq.Lock{Scope: rfq.LockPair, Instrument: 0, Locked: true} }, sale{true, "", "T11"}},
		"its rail locked":  {func(v *rfq.View) { v.Locks[1].Rail = market.RailUSDC; onlyT7(v) }, sale{true, "", "T7"}}, // SOL is left
		"both rails":       {func(v *rfq.View) { v.Locks[0] = rfq.Lock{Scope: rfq.LockRail, Rail: market.RailUSDC, Locked: true} }, sale{false, "locked", ""}},
		"no anchor":        {func(v *rfq.View) { v.Pairs[0].Anchor = 0; onlyT7(v) }, sale{false, "price_unavailable", ""}},
		"withdrawn price":  {func(v *rfq.View) { v.Pairs[0].Anchor, v.Pairs[0].Withdrawn = 0, true }, sale{true, "", "T11"}},
		"old anchor":       {func(v *rfq.View) { v.Pairs[0].AnchorAt -= int64(2 * time.Hour); onlyT7(v) }, sale{false, "price_stale", ""}},
		"published before": {func(v *rfq.View) { v.Pairs[0].PublishedAt = v.At - int64(2*time.Hour); onlyT7(v) }, sale{false, "price_stale", ""}},
		"outside corridor": {func(v *rfq.View) { v.Pairs[0].Anchor = 2_000_000_000; onlyT7(v) }, sale{false, "price_corridor", ""}},
		"no inventory":     {func(v *rfq.View) { v.Pairs[0].Inventory = v.Pairs[0].Reserved + v.Pairs[0].Sold; onlyT7(v) }, sale{false, "inventory", ""}},
		"nothing on chain": {func(v *rfq.View) { v.Pairs[0].OnChainAt, v.Pairs[0].OnChain = 1, 0; onlyT7(v) }, sale{false, "inventory", ""}},
		"no payee":         {func(v *rfq.View) { v.Policy.PayTo = [market.RailCount]market.Address{}; onlyT7(v) }, sale{false, "rail_not_accepted", ""}},
		"no ticket":        {func(v *rfq.View) { v.Tickets = nil }, sale{false, noTicket, ""}},
		"expired":          {func(v *rfq.View) { v.Tickets[0].ExpiresAt = v.At - 1; onlyT7(v) }, sale{false, "ticket_expired", ""}},
	} {
		v := gatewaytest.FixedView()
		v.Pairs[1].Inventory = 1 << 60
		c.change(v)
		clock, chain := gatewaytest.NewDeskClock(), &switchedChain{}
		p := pagesOf(t, gatewaytest.NewViewDesk(v), clock)
		p.chain = chain
		if got := saleOf(t, p); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
		chain.down = errors.New("no node answers")
		if got := saleOf(t, p); got != (sale{false, "not_ready", c.want.ticket}) {
			t.Errorf("%s, chain down: %+v", name, got)
		}
		p.chain = nil
		if got := saleOf(t, p); got != (sale{false, "not_configured", c.want.ticket}) {
			t.Errorf("%s, no chain: %+v", name, got)
		}
	}
}

// TestSaleEndsAtOnce: within a cycle, a price that grows too old and a ticket that expires end
// the sale in the same nanosecond as in the engine.
func TestSaleEndsAtOnce(t *testing.T) {
	clock := gatewaytest.NewDeskClock()
	for name, c := range map[string]struct {
		change func(v *rfq.View, at int64) // at: the last nanosecond of the sale
		reason string
	}{
		"price":  {func(v *rfq.View, at int64) { v.Pairs[0].PublishedAt = at - v.Pairs[0].MaxAge }, "price_stale"},
		"ticket": {func(v *rfq.View, at int64) { v.Tickets[0].ExpiresAt = at + 1 }, "ticket_expired"},
	} {
		clock.Ns.Store(gatewaytest.ViewTime + 1e9)
		v := gatewaytest.FixedView()
		v.Tickets = v.Tickets[:1]
		c.change(v, gatewaytest.ViewTime+2e9)
		p := pagesOf(t, gatewaytest.NewViewDesk(v), clock)
		p.chain = &switchedChain{}
		for _, step := range []struct {
			at   int64
			want sale
		}{{2e9, sale{true, "", "T7"}}, {2e9 + 1, sale{false, c.reason, ""}}} {
			clock.Ns.Store(gatewaytest.ViewTime + step.at)
			if got := saleOf(t, p); got != step.want {
				t.Errorf("%s after %d ns: %+v, want %+v", name, step.at, got, step.want)
			}
		}
	}
}
