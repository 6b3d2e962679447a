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
		"clock's lock":     {func(v *rfq.View) { v.Locks[0] = rfq.Lock{Scope: rfq.LockClock, Locked: true} }, sale{false, "locked", ""}},
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

// TestEveryListSaysWhetherClaimsAreAccepted: the documents that list tickets repeat the
// status document, and no offer and no row has a price of a ticket that does not sell.
func TestEveryListSaysWhetherClaimsAreAccepted(t *testing.T) {
	for name, change := range map[string]func(v *rfq.View, c *switchedChain){
		"all is well": func(*rfq.View, *switchedChain) {},
		"chain down":  func(_ *rfq.View, c *switchedChain) { c.down = errors.New("no node answers") },
		"no price":    func(v *rfq.View, _ *switchedChain) { v.Pairs[0].Anchor = 0 },
		"pair locked": func(v *rfq.View, _ *switchedChain) { v.Locks[0] = rfq.Lock{Scope: rfq.LockPair, Locked: true} },
		"rails locked": func(v *rfq.View, _ *switchedChain) {
			v.Locks[0] = rfq.Lock{Scope: rfq.LockRail, Rail: market.RailUSDC, Locked: true}
		},
		"everything":       func(v *rfq.View, _ *switchedChain) { v.Locks[0].Locked = true },
		"exhausted":        func(v *rfq.View, _ *switchedChain) { exhaust(v.Tickets[0]) },
		"nothing on chain": func(v *rfq.View, _ *switchedChain) { v.Pairs[0].OnChainAt, v.Pairs[0].OnChain = 1, 0 },
	} {
		v, chain := gatewaytest.FixedView(), &switchedChain{}
		v.Tickets = v.Tickets[:1]
		change(v, chain)
		p := pagesOf(t, gatewaytest.NewViewDesk(v), gatewaytest.NewDeskClock())
		p.chain = chain
		want := saleOf(t, p)
		for _, d := range []document{docSellable, docTickets, docCompact, docBoard} {
			var got struct {
				Accepting *bool   `json:"accepting"`
				Reason    *string `json:"accepting_reason"`
				Rows      [][]any `json:"t"`
				Offers    []struct {
					Best *string `json:"best_price_usd"`
				} `json:"offers"`
			}
			if err := json.Unmarshal(p.get(d).Body, &got); err != nil {
				t.Fatal(err)
			}
			if got.Accepting == nil || *got.Accepting != want.accepting || (got.Reason == nil) != want.accepting || got.Reason != nil && *got.Reason != want.reason {
				t.Errorf("%s, %v: %s, want %+v", name, d, p.get(d).Body, want)
			}
			for _, row := range got.Rows {
				if (row[4] != nil) != (want.ticket != "") {
					t.Errorf("%s, %v: row %v, sellable %q", name, d, row, want.ticket)
				}
			}
			for _, o := range got.Offers {
				if (o.Best != nil) != (want.ticket != "") {
					t.Errorf("%s, %v: offer %+v, sellable %q", name, d, o, want.ticket)
				}
			}
		}
	}
}

// exhaust leaves no capacity in a ticket.
func exhaust(t *rfq.Ticket) {
	for i := range t.Tranches {
		t.Tranches[i].Filled = t.Tranches[i].Capacity - t.Tranches[i].Reserved
	}
}

// TestPriceListHasNoOldPrice: an unusable price is null with the reason, and a usable one has
// its source, age and confidence. The sources of a rule have their own faults.
func TestPriceListHasNoOldPrice(t *testing.T) {
	type price struct {
		Of, Fault, Source string
		Price             *string `json:"price_usd"`
		Age               *int64  `json:"age_s"`
		Confidence        *string `json:"confidence_usd"`
		Sources           []struct{ Name, Fault string }
	}
	for name, c := range map[string]struct {
		change func(v *rfq.View)
		ruled  []desk.AssetPrice
		of     int // index in the list
		want   price
		priced bool
	}{
		"operator": {func(*rfq.View) {}, nil, 1, price{Of: "92C/SLUSD", Source: "operator"}, true},
		"book":     {func(*rfq.View) {}, nil, 0, price{Of: "SLUSD/USDC", Source: "book"}, true},
		"pyth": {
			func(v *rfq.View) {
				v.RailPrices[0].Source, v.RailPrices[0].Confidence = rfq.OriginPyth, 1
			},
			[]desk.AssetPrice{{Asset: "SOL", Sources: []desk.PriceSource{{Name: "pyth", Price: 1}}}},
			2,
			price{Of: "SOL", Source: "pyth"},
			true,
		},
		"stale": {func(v *rfq.View) { v.RailPrices[0].At -= int64(time.Hour) }, nil, 2, price{Of: "SOL", Fault: "price_stale"}, false},
		"published long ago": {
			func(v *rfq.View) { v.RailPrices[0].PublishedAt = v.At - int64(time.Hour) }, nil, 2, price{Of: "SOL", Fault: "price_stale"}, false,
		},
		"sources disagree": {
			func(v *rfq.View) { v.RailPrices[0].Price, v.RailPrices[0].Withdrawn = 0, true },
			[]desk.AssetPrice{{Asset: "SOL", Fault: "price_sources_disagree", Sources: []desk.PriceSource{{Name: "pyth", Price: 1}, {Name: "pool", Price: 2}}}},
			2,
			price{Of: "SOL", Fault: "price_sources_disagree"},
			false,
		},
		"no quorum": {
			func(v *rfq.View) { v.Pairs[1].Anchor, v.Pairs[1].Withdrawn = 0, true },
			[]desk.AssetPrice{{Asset: "92C", Fault: "price_without_quorum", Sources: []desk.PriceSource{{Name: "pyth", Fault: "price_without_quorum"}}}},
			1,
			price{Of: "92C/SLUSD", Fault: "price_without_quorum"},
			false,
		},
		"outside its corridor": {func(v *rfq.View) { v.Pairs[0].Anchor = 2_000_000_000 }, nil, 0, price{Of: "SLUSD/USDC", Fault: "price_corridor"}, false},
	} {
		v := gatewaytest.FixedView()
		c.change(v)
		p := pagesOf(t, gatewaytest.NewViewDesk(v), gatewaytest.NewDeskClock())
		p.prices = func() []desk.AssetPrice { return c.ruled }
		for _, d := range []document{docStatus, docDesk} {
			var got struct{ Prices []price }
			if err := json.Unmarshal(p.get(d).Body, &got); err != nil || len(got.Prices) != 3 {
				t.Fatalf("%s: %v in %s", name, err, p.get(d).Body)
			}
			is := got.Prices[c.of]
			if is.Of != c.want.Of || is.Fault != c.want.Fault || is.Source != c.want.Source || (is.Price != nil) != c.priced {
				t.Errorf("%s, %v: %+v, want %+v", name, d, is, c.want)
			}
			if (is.Age != nil) != (c.priced && is.Source != "book") || (is.Confidence != nil) != (is.Source == "pyth") {
				t.Errorf("%s, %v: age and confidence of %+v", name, d, is)
			}
			if want := len(c.ruled); want > 0 && (len(is.Sources) != len(c.ruled[0].Sources) || is.Sources[0].Fault != c.ruled[0].Sources[0].Fault) {
				t.Errorf("%s, %v: sources of %+v", name, d, is)
			}
		}
	}
}
