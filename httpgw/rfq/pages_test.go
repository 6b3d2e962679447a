package rfq

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"blockdesk/engine"
	"blockdesk/engine/rfq"
	"blockdesk/httpgw/gatewaytest"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// TestCycle: within a cycle a document is one page; after it only documents with times
// change, and the others keep their page and ETag.
func TestCycle(t *testing.T) {
	clock := gatewaytest.NewDeskClock()
	p := pagesOf(t, gatewaytest.NewViewDesk(gatewaytest.FixedView()), clock)
	dated := []document{docStatus, docTickets, docBoard, docDesk}
	first := make([]*wire.Page, documentCount)
	for d := range documentCount {
		first[d] = p.get(d)
	}
	for _, step := range []time.Duration{0, time.Second, 1876543210 * time.Nanosecond} { // to the cycle's last ns
		clock.Move(step)
		for d := range documentCount {
			if p.get(d) != first[d] {
				t.Errorf("%v: made anew %v later", d, step)
			}
		}
	}
	clock.Move(1) // 12:00:10
	for d := range documentCount {
		again := p.get(d)
		if changed := !bytes.Equal(again.ETag, first[d].ETag); changed != slices.Contains(dated, d) || changed != (again != first[d]) {
			t.Errorf("%v: another ETag %t, another page %t", d, changed, again != first[d])
		}
	}
	if ts := tsOf(t, p.get(docTickets)); ts != "2026-11-20T12:00:10.000Z" {
		t.Errorf("ts %s in the next cycle", ts)
	}
	clock.Move(-8 * time.Second) // the wall clock was set back
	if ts := tsOf(t, p.get(docTickets)); ts != "2026-11-20T12:00:04.123Z" {
		t.Errorf("ts %s after the clock fell", ts)
	}
}

func tsOf(t *testing.T, p *wire.Page) string {
	t.Helper()
	var got struct {
		TS string `json:"ts"`
	}
	if err := json.Unmarshal(p.Body, &got); err != nil {
		t.Fatal(err)
	}
	return got.TS
}

// TestStampAge: a page's ts is at most Refresh old and not in the future, and two
// readers of a view and cycle get the same bytes.
func TestStampAge(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		clock := gatewaytest.NewDeskClock()
		desk := gatewaytest.NewViewDesk(gatewaytest.FixedView())
		p, twin := pagesOf(t, desk, clock), pagesOf(t, desk, clock)
		for range rapid.IntRange(1, 8).Draw(rt, "reads") {
			clock.Move(time.Duration(rapid.Int64Range(0, 3*Refresh/2).Draw(rt, "step")))
			if rapid.Bool().Draw(rt, "change") {
				v := gatewaytest.WithClaim(desk.View(), 1)
				v.At = clock.Now() - rapid.Int64Range(0, Refresh).Draw(rt, "ago")
				desk.SetView(v)
			}
			body := p.get(docTickets)
			ts, err := time.Parse(time.RFC3339Nano, tsOf(t, body))
			if err != nil {
				rt.Fatal(err)
			}
			if age := clock.Now() - ts.UnixNano(); age < 0 || age > Refresh+int64(time.Millisecond) {
				rt.Fatalf("ts %v old", time.Duration(age))
			}
			if other := twin.get(docTickets); !bytes.Equal(other.ETag, body.ETag) || !bytes.Equal(other.Body, body.Body) {
				rt.Fatal("two servers differ")
			}
		}
	})
}

// TestChangeShows: a new view is visible at once, and only changed documents have
// another page.
func TestChangeShows(t *testing.T) {
	desk := gatewaytest.NewViewDesk(gatewaytest.FixedView())
	p := pagesOf(t, desk, gatewaytest.NewDeskClock())
	var first [documentCount]*wire.Page
	for d := range documentCount {
		first[d] = p.get(d)
	}
	v := gatewaytest.WithClaim(desk.View(), 0)
	v.At = gatewaytest.ViewTime
	desk.SetView(v)
	for d := range documentCount {
		changes := slices.Contains([]document{docStatus, docSellable, docTickets, docCompact, docBoard, docDesk}, d)
		if again := p.get(d); (again != first[d]) != changes || bytes.Equal(again.ETag, first[d].ETag) == changes {
			t.Errorf("%v: another page %t, want %t", d, again != first[d], changes)
		}
	}
}

// TestHaltedBookPricesNothing: a pair priced by a halted book has no price, as in the
// engine, from the next cycle until it trades again.
func TestHaltedBookPricesNothing(t *testing.T) {
	clock := gatewaytest.NewDeskClock()
	p := pagesOf(t, gatewaytest.NewViewDesk(gatewaytest.FixedView()), clock)
	for _, c := range []struct {
		status uint8
		want   string
	}{
		{engine.StatusTrading, "active"}, {engine.StatusHalted, "price_unavailable"}, {engine.StatusTrading, "active"},
	} {
		book := gatewaytest.FullView(0, 1042)
		book.Status = c.status
		p.source.Books.(*gatewaytest.Books).Views[0].Store(book)
		clock.Move(time.Duration(Refresh))
		var d struct {
			Pairs []struct {
				Reference *string `json:"reference_price_usd"`
				Status    string
				Reason    *string
			}
		}
		if err := json.Unmarshal(p.get(docPairs).Body, &d); err != nil {
			t.Fatal(err)
		}
		got := d.Pairs[0]
		state := got.Status
		if got.Reason != nil {
			state = *got.Reason
		}
		if state != c.want || (got.Reference != nil) != (c.want == "active") {
			t.Errorf("book in status %d: %s %s", c.status, got.Status, state)
		}
	}
}

// TestPricesGoStale: an anchor that becomes too old stops being a price within one
// cycle.
func TestPricesGoStale(t *testing.T) {
	clock, v := gatewaytest.NewDeskClock(), gatewaytest.FixedView()
	v.Pairs[1].Inventory = 1 << 60
	p := pagesOf(t, gatewaytest.NewViewDesk(v), clock)
	type pairs struct {
		Pairs []struct {
			Pair      string
			Reference *string `json:"reference_price_usd"`
			Status    string
			Reason    *string
		}
	}
	read := func() (d pairs) {
		if err := json.Unmarshal(p.get(docPairs).Body, &d); err != nil {
			t.Fatal(err)
		}
		return d
	}
	if d := read(); d.Pairs[0].Status != "active" || d.Pairs[0].Reference == nil {
		t.Fatalf("at first %+v", d.Pairs[0])
	}
	clock.Move(time.Hour)
	d := read()
	if d.Pairs[0].Status != "unpriced" || d.Pairs[0].Reference != nil || *d.Pairs[0].Reason != "price_stale" {
		t.Errorf("after its anchor's age: %+v", d.Pairs[0])
	}
	if d.Pairs[1].Status != "active" {
		t.Errorf("an anchor of any age: %+v", d.Pairs[1])
	}
	var compact struct{ T [][]any }
	if err := json.Unmarshal(p.get(docCompact).Body, &compact); err != nil {
		t.Fatal(err)
	}
	for _, row := range compact.T {
		if unpriced := row[2] == "SLUSD/USDC"; (row[4] == nil) != unpriced {
			t.Errorf("row %v", row)
		}
	}
}

// TestReferenceFollowsBook: a pair priced by our own book has the mid price of the
// cycle, and none while a side is empty.
func TestReferenceFollowsBook(t *testing.T) {
	clock := gatewaytest.NewDeskClock()
	desk := gatewaytest.NewViewDesk(gatewaytest.FixedView())
	p := pagesOf(t, desk, clock)
	b := p.source.Books.(*gatewaytest.Books)
	reference := func() any {
		var d struct{ Pairs []map[string]any }
		if err := json.Unmarshal(p.get(docPairs).Body, &d); err != nil {
			t.Fatal(err)
		}
		return d.Pairs[0]["reference_price_usd"]
	}
	if got := reference(); got != "0.999550000" { // of 0.9990 and 1.0001
		t.Errorf("reference %v", got)
	}
	v := gatewaytest.FullView(0, 2000)
	v.Bids = []market.Level{{Price: 9_991, Qty: 1}}
	b.Views[0].Store(v)
	desk.SetView(gatewaytest.WithClaim(desk.View(), 0))
	if got := reference(); got != "0.999550000" {
		t.Errorf("reference %v within the cycle", got)
	}
	clock.Move(10 * time.Second)
	if got := reference(); got != "0.999600000" {
		t.Errorf("reference %v in the next cycle", got)
	}
	empty := gatewaytest.FullView(0, 2001)
	empty.Asks = nil
	b.Views[0].Store(empty)
	clock.Move(10 * time.Second)
	if got := reference(); got != nil {
		t.Errorf("reference %v of a one-sided book", got)
	}
}

// TestCachedDocumentsAllocateNothing: from the handler to the page.
func TestCachedDocumentsAllocateNothing(t *testing.T) {
	p := pagesOf(t, gatewaytest.NewViewDesk(gatewaytest.LargeView(50)), gatewaytest.NewDeskClock())
	for d := range documentCount {
		read := p.serve(d)
		if allocs := testing.AllocsPerRun(100, func() {
			if _, problem := read(nil); problem != nil {
				t.Fatal(problem)
			}
		}); allocs != 0 {
			t.Errorf("%v: %.1f allocations", d, allocs)
		}
	}
}

// TestReadersWhileClaiming: with concurrent changes, a body is complete and matches
// its ETag, and no reader sees an older book after a newer one.
func TestReadersWhileClaiming(t *testing.T) {
	desk := gatewaytest.NewViewDesk(gatewaytest.LargeView(20))
	p := pagesOf(t, desk, gatewaytest.NewDeskClock())
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for i := range 4 {
		readers.Go(func() {
			last := uint64(0)
			for {
				got := p.get([]document{docTickets, docCompact, docBoard, docSellable}[i])
				var head struct{ Seq uint64 }
				if err := json.Unmarshal(got.Body, &head); err != nil || head.Seq < last {
					t.Errorf("seq %d after %d: %v", head.Seq, last, err)
					return
				}
				if tag := bookETag(head.Seq, got.Body); i < 3 && !bytes.Equal(tag, got.ETag) {
					t.Errorf("ETag %s of another body", got.ETag)
					return
				}
				last = head.Seq
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	for i := range 300 {
		desk.SetView(gatewaytest.WithClaim(desk.View(), i%20))
	}
	close(stop)
	readers.Wait()
}

// TestUnknownInstrument: a pair and a ticket of an instrument that is not configured
// are left out.
func TestUnknownInstrument(t *testing.T) {
	v := gatewaytest.FixedView()
	v.Pairs = append(v.Pairs, rfq.Pair{Instrument: 99, Anchor: 1})
	v.Tickets = append(v.Tickets, gatewaytest.Ticket(14, 99, rfq.TicketOpen, "strange", rfq.Tranche{Capacity: gatewaytest.Dollar}))
	p := pagesOf(t, gatewaytest.NewViewDesk(v), gatewaytest.NewDeskClock())
	for d := range documentCount {
		if body := p.get(d).Body; !json.Valid(body) || bytes.Contains(body, []byte("strange")) {
			t.Errorf("%v: %s", d, body)
		}
	}
	if body := string(p.get(docSellable).Body); !strings.HasPrefix(body, `{"ok":true,"seq":4711,"accepting":false,"accepting_reason":"not_configured","ticket":{"order_id":"T7"`) {
		t.Errorf("sellable: %s", body)
	}
}

// TestRailReasons: a rail has the reason why it has no quotes.
func TestRailReasons(t *testing.T) {
	clock := gatewaytest.NewDeskClock()
	for _, c := range []struct {
		name   string
		later  time.Duration
		mend   func(*rfq.View)
		active bool
		reason string
	}{
		{"priced", 0, func(v *rfq.View) { v.Locks = nil }, true, ""},
		{"at its age", 4*time.Minute - 3*time.Second, func(v *rfq.View) { v.Locks = nil }, true, ""},
		{"past its age", 4*time.Minute + 10*time.Second, func(v *rfq.View) { v.Locks = nil }, true, "price_stale"},
		{"of any age", time.Hour, func(v *rfq.View) { v.Locks, v.RailPrices[0].MaxAge = nil, 0 }, true, ""},
		{"not priced", 0, func(v *rfq.View) { v.Locks, v.RailPrices = nil, nil }, true, "price_unavailable"},
		{"not accepted", 0, func(v *rfq.View) { v.Locks, v.Policy.PayTo[market.RailSOL] = nil, market.Address{} }, true, "rail_not_accepted"},
		{"locked", 0, func(*rfq.View) {}, false, "locked"},
		{"unlocked", 0, func(v *rfq.View) { v.Locks[1].Locked = false }, true, ""},
	} {
		clock.Ns.Store(gatewaytest.ViewTime + 3e9 + int64(c.later))
		v := gatewaytest.FixedView()
		c.mend(v)
		var d struct {
			Rails []struct {
				Rail   string
				Active bool
				Reason string
			}
		}
		p := pagesOf(t, gatewaytest.NewViewDesk(v), clock)
		if err := json.Unmarshal(p.get(docTokens).Body, &d); err != nil {
			t.Fatal(err)
		}
		if usdc := d.Rails[0]; usdc.Rail != "USDC" || !usdc.Active || usdc.Reason != "" {
			t.Errorf("%s: %+v", c.name, usdc)
		}
		var compact struct{ T [][]any }
		if err := json.Unmarshal(p.get(docCompact).Body, &compact); err != nil {
			t.Fatal(err)
		}
		// The last ticket is sold for SOL alone.
		if row := compact.T[len(compact.T)-1]; (row[4] != nil) != (c.reason == "") && c.later < time.Hour {
			t.Errorf("%s: row %v", c.name, row)
		}
		if sol := d.Rails[1]; sol.Rail != "SOL" || sol.Active != c.active || sol.Reason != c.reason {
			t.Errorf("%s: %+v, want %t %q", c.name, sol, c.active, c.reason)
		}
	}
}

// TestPairStatus: a pair has the reason why no ticket of it is for sale.
func TestPairStatus(t *testing.T) {
	for _, c := range []struct {
		name           string
		mend           func(*rfq.View)
		status, reason string
	}{
		{"for sale", func(*rfq.View) {}, "active", ""},
		{"the desk locked", func(v *rfq.View) { v.Locks[0].Locked = true }, "locked", "locked"},
		{"itself locked", func(v *rfq.View) {
			v.Locks = []rfq.Lock{{Scope: rfq.LockPair, Instrument: 1, Locked: true}}
		}, "locked", "locked"},
		{"another locked", func(v *rfq.View) {
			v.Locks = []rfq.Lock{{Scope: rfq.LockPair, Instrument: 0, Locked: true}}
		}, "active", ""},
		{"no anchor", func(v *rfq.View) { v.Pairs[1].Anchor = 0 }, "unpriced", "price_unavailable"},
		{"its rail locked", func(v *rfq.View) {
			v.Locks = []rfq.Lock{{Scope: rfq.LockRail, Rail: market.RailUSDC, Locked: true}}
		}, "closed", "locked"},
		{"nowhere to pay", func(v *rfq.View) { v.Policy.PayTo = [market.RailCount]market.Address{} }, "closed", "rail_not_accepted"},
	} {
		v := gatewaytest.FixedView()
		c.mend(v)
		var d struct {
			Pairs []struct{ Status, Reason string }
		}
		if err := json.Unmarshal(pagesOf(t, gatewaytest.NewViewDesk(v), gatewaytest.NewDeskClock()).get(docPairs).Body, &d); err != nil {
			t.Fatal(err)
		}
		if got := d.Pairs[1]; got.Status != c.status || got.Reason != c.reason {
			t.Errorf("%s: %+v, want %s %q", c.name, got, c.status, c.reason)
		}
	}
}
