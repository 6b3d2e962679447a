package rfq

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"blockdesk/engine/event"
	"blockdesk/market"
)

// TestLaws runs random requests. After each it checks the invariants of the package
// documentation; a twin that is restored from its snapshot at random moments must write the
// same events; and a refused request must change nothing.
func TestLaws(t *testing.T) {
	seen := map[string]int{}
	check := func(t *rapid.T) {
		g := newGame(t)
		for range 80 + drawOf(t, 220, "steps") {
			g.step(t, seen)
		}
		if !bytes.Equal(g.m.AppendSnapshot(nil), g.twin.AppendSnapshot(nil)) {
			t.Fatalf("the twin's snapshot differs")
		}
	}
	missing := func() []string {
		return slices.DeleteFunc(slices.Clone(lawCases), func(c string) bool { return seen[c] > 0 })
	}
	for round := 0; round < 20 && !t.Failed() && (round == 0 || len(missing()) > 0); round++ {
		rapid.Check(t, check) // 100 runs, 20 with -short: chance may leave a case out
	}
	if m := missing(); len(m) > 0 {
		t.Errorf("no run saw %q: %v", m, sortedKeys(seen))
	}
}

// lawCases are what TestLaws must have seen.
var lawCases = []string{
	"claim reserved", "claim paid", "claim delivering", "claim settled", "claim expired", "claim cosigned", "claim released",
	"claim refund_due", "payment applied", "payment refund_due", "payment refunded", "honoured late", "abandoned", "ticket open",
	"ticket exhausted", "ticket withdrawn", "ticket expired", "gone 5", "gone 7", "gone 8", "quoted claim",
	"refused desk_full", "refused inventory", "refused locked", "refused capacity_exhausted", "refused wallet_claims",
	"refused price_corridor", "refused price_stale", "refused payment_used",
}

// game is a desk under random requests, and its twin.
type game struct {
	*desk
	twin *Machine
	out2 *event.Sink
	sigs uint64
}

func newGame(t *rapid.T) *game {
	g := &game{desk: newDesk(), out2: event.NewGrowingSink(64)}
	g.at = testAt
	if rapid.Bool().Draw(t, "small") {
		g.m.limits = memoryLimits{tickets: 3, quotes: 3, claims: 5, payments: 3, refunds: 2}
	}
	g.twin = New()
	g.twin.limits = g.m.limits
	policy := testPolicy()
	policy.WalletClaims = 1
	ticket := &PostTicket{Label: "first", Capacities: []market.USD{1_000_000_000, 50_000_000_000}}
	for _, r := range []Request{
		&SetPolicy{Policy: policy}, &SetPair{Pair: testPair(0)}, &SetPair{Pair: testPair(1)},
		&SetOperator{Of: Operator{ID: 1, Name: "ann"}}, &SetAnchor{Price: 1_234_567_891}, &SetAnchor{Instrument: 1, Price: 777_777_777},
		&SetRailPrice{Rail: market.RailSOL, Price: 151_234_567_891}, &SetInventory{Atoms: 40_000_000_000},
		&SetInventory{Instrument: 1, Atoms: 1 << 50}, ticket,
	} {
		r.Head().Token = g.seq + 1
		g.both(t, AppendRequest(nil, r))
	}
	return g
}

// both applies the request to both and compares the events.
func (g *game) both(t *rapid.T, data []byte) []Record {
	records := g.applyBytes(t, data)
	g.out2.Reset()
	g.twin.Apply(data, Stamp{Seq: g.seq, At: g.at}, g.mids, g.out2)
	g.compare(t)
	return records
}

func (g *game) compare(t *rapid.T) {
	if !slices.Equal(g.out.Events(), g.out2.Events()) {
		t.Fatalf("seq %d: the twin writes other events", g.seq)
	}
}

func (g *game) step(t *rapid.T, seen map[string]int) {
	g.at += drawPassing(t)
	if drawOf(t, 10, "restart") == 0 {
		m, err := Restore(g.twin.AppendSnapshot(nil))
		if err != nil {
			t.Fatalf("seq %d: %v", g.seq, err)
		}
		m.limits = g.twin.limits
		g.twin = m
	}
	due := g.m.NextExpiry()
	wanted := due != 0 && due <= g.at
	records := g.expire(t)
	g.out2.Reset()
	g.twin.Expire(Stamp{Seq: g.seq, At: g.at}, g.out2)
	g.compare(t)
	if (len(records) != 0) != wanted {
		t.Fatalf("expiry at %d, due at %d: %v", g.at, due, records)
	}
	g.witness(records, seen)
	before := g.m.AppendSnapshot(nil)
	r := g.request(t)
	if r == nil {
		return
	}
	records = g.both(t, AppendRequest(nil, r))
	g.witness(records, seen)
	g.lateIsNoOption(t, records)
	if o := outcomeOf(records); o.Reason != 0 {
		if !bytes.Equal(before, g.m.AppendSnapshot(nil)) {
			t.Fatalf("%T refused with %v changed something", r, o.Reason)
		}
		if len(records) != 1 {
			t.Fatalf("%T refused with %v: %v", r, o.Reason, records)
		}
	}
	g.check(t)
}

// drawPassing draws the time that passes, mostly little.
func drawPassing(t *rapid.T) int64 {
	return rapid.SampledFrom([]int64{
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		second, second, second, 5 * second, 15 * second, 15 * second, 100 * second, 300 * second, 300 * second, hour, day,
	}).Draw(t, "dt")
}

// drawOf draws one of 0..n-1 uniformly; an IntRange prefers small numbers.
func drawOf(t *rapid.T, n int, what string) int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return rapid.SampledFrom(all).Draw(t, what)
}

// witness records which cases have occurred.
func (g *game) witness(records []Record, seen map[string]int) {
	var late *Payment
	for _, rec := range records {
		switch r := rec.(type) {
		case *Claim:
			seen["claim "+r.State.Word()]++
			if r.Quote != 0 {
				seen["quoted claim"]++
			}
			if late != nil && late.Claim == r.ID && r.State == ClaimPaid && late.At >= r.Deadline {
				seen["honoured late"]++
			}
		case *Payment:
			late = r
			seen["payment "+paymentStates[r.State]]++
			if r.State == PaymentRefundDue && r.Reason == event.ReasonUndeliverable {
				seen["abandoned"]++
			}
		case *Ticket:
			seen["ticket "+ticketStates[r.State]]++
		case *Removed:
			seen[fmt.Sprint("gone ", r.What)]++
		case *Outcome:
			seen["refused "+r.Reason.String()]++
		}
	}
}

// lateIsNoOption checks an accepted late payment against the current prices: reference
// within the corridor, anchor fresh.
func (g *game) lateIsNoOption(t *rapid.T, records []Record) {
	for i, rec := range records {
		p, ok := rec.(*Payment)
		if !ok || p.State != PaymentApplied || i == len(records)-2 { // repeated
			continue
		}
		c := g.ledger.claims[p.Claim]
		if p.At < c.Deadline {
			continue
		}
		pair := g.model.View().Pair(c.Terms.Instrument)
		lowest, highest := Corridor(pair)
		if ref := c.Terms.Reference; ref < lowest || ref > highest || pair.MaxAge != 0 && g.at-pair.AnchorAt > pair.MaxAge {
			t.Fatalf("late for %+v: anchor %d", c.Terms, pair.Anchor)
		}
	}
}

// request draws a request, most of them sensible.
func (g *game) request(t *rapid.T) Request {
	r := g.draw(t)
	if r == nil {
		return nil
	}
	g.sigs++
	r.Head().Token = 1000 + g.sigs
	return r
}

func (g *game) draw(t *rapid.T) Request {
	fill := rapid.SampledFrom([]market.FillUSD{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3, 7}).Draw(t, "fill")
	rail := rapid.SampledFrom([]market.Rail{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3}).Draw(t, "rail")
	ticket := g.drawTicket(t)
	tranche := rapid.SampledFrom([]market.TrancheID{1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3}).Draw(t, "tranche")
	in := market.InstrumentID(rapid.Uint16Range(0, 1).Draw(t, "in"))
	switch drawOf(t, 60, "kind") {
	case 0:
		return &SetAnchor{Instrument: in, Price: market.USDPrice(rapid.Uint64Range(700_000_000, 1_400_000_000).Draw(t, "price"))}
	case 1:
		return &SetInventory{Instrument: in, Atoms: rapid.SampledFrom([]uint64{0, 1_000_000_000, 40_000_000_000}).Draw(t, "atoms")}
	case 2:
		scope := rapid.SampledFrom([]LockScope{LockAll, LockPair, LockRail}).Draw(t, "scope")
		l := &SetLock{Scope: scope, Locked: drawOf(t, 5, "locked") == 0}
		if scope == LockRail {
			l.Rail = rail
		}
		return l
	case 3:
		p := testPair(in)
		p.MaxAge = rapid.SampledFrom([]int64{0, 0, 0, 100 * second}).Draw(t, "max age")
		p.Source = rapid.SampledFrom([]PriceSource{SourceOperator, SourceOperator, SourceBook}).Draw(t, "source")
		if in == 1 && rapid.Bool().Draw(t, "via") {
			p.Via = 0
		}
		return &SetPair{Pair: p}
	case 4:
		g.mids[in] = market.USDPrice(rapid.Uint64Range(700_000_000, 1_400_000_000).Draw(t, "mid"))
		return nil
	case 5, 6:
		post := &PostTicket{Label: "more", Instrument: in, Rails: market.Rails(rapid.Uint8Range(0, 3).Draw(t, "rails"))}
		for range rapid.IntRange(1, 2).Draw(t, "tranches") {
			post.Capacities = append(post.Capacities, rapid.SampledFrom([]market.USD{250_000_000, 1_100_000_000, 30_000_000_000}).Draw(t, "capacity"))
		}
		if drawOf(t, 3, "ends") == 0 {
			post.ExpiresAt = g.at + hour
		}
		return post
	case 7:
		return &AmendTicket{
			Ticket: ticket, Priority: rapid.Uint16Range(0, 3).Draw(t, "priority"),
			Reference: rapid.SampledFrom([]market.USDPrice{0, 0, 1_234_000_000}).Draw(t, "reference"),
			ExpiresAt: rapid.SampledFrom([]int64{0, 0, g.at + hour}).Draw(t, "ends"),
		}
	case 8:
		return &SetTranche{Ticket: ticket, Tranche: tranche, Capacity: rapid.SampledFrom([]market.USD{0, 250_000_000, 2_000_000_000}).Draw(t, "capacity")}
	case 9:
		if rapid.Bool().Draw(t, "really") {
			return &WithdrawTicket{Ticket: ticket}
		}
		return &SetRailPrice{Rail: market.RailSOL, Price: market.USDPrice(rapid.Uint64Range(1, 1<<40).Draw(t, "price"))}
	case 10, 11, 12, 13, 14, 15:
		return &RequestQuote{Ticket: ticket, Tranche: tranche, Fill: fill, Rail: rail}
	case 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35:
		return g.drawClaim(t, &TakeClaim{Ticket: ticket, Tranche: tranche, Fill: fill, Rail: rail})
	}
	return g.drawStep(t)
}

// drawTicket draws a ticket, mostly one that sells.
func (g *game) drawTicket(t *rapid.T) market.TicketID {
	var open []market.TicketID
	for _, it := range g.model.View().Tickets {
		if it.State == TicketOpen {
			open = append(open, it.ID)
		}
	}
	if len(open) != 0 && drawOf(t, 8, "any ticket") != 0 {
		return rapid.SampledFrom(open).Draw(t, "open ticket")
	}
	return market.TicketID(1 + drawOf(t, int(g.m.lastTicket)+1, "ticket"))
}

func (g *game) drawClaim(t *rapid.T, r *TakeClaim) Request {
	r.Mode = rapid.SampledFrom([]SettlementMode{Modular, Modular, Atomic}).Draw(t, "mode")
	r.Wallet = address(rapid.SampledFrom([]string{"a", "a", "b", "c"}).Draw(t, "wallet"))
	if ids := sortedKeys(g.ledger.quotes); len(ids) != 0 && rapid.Bool().Draw(t, "quoted") {
		q := g.ledger.quotes[rapid.SampledFrom(ids).Draw(t, "quote")]
		r.Quote = q.ID
		if drawOf(t, 10, "agree") != 0 {
			r.Ticket, r.Tranche, r.Fill, r.Rail = q.Terms.Ticket, q.Terms.Tranche, q.Terms.Fill, q.Terms.Rail
		}
	}
	return r
}

// drawStep draws a request about a known claim or payment.
func (g *game) drawStep(t *rapid.T) Request {
	ids := sortedKeys(g.ledger.claims)
	if len(ids) == 0 {
		return nil
	}
	c := g.ledger.claims[rapid.SampledFrom(ids).Draw(t, "claim")]
	p := proof(rapid.SampledFrom([]string{"p", "p", "q"}).Draw(t, "proof"))
	step := drawOf(t, 13, "step")
	if drawOf(t, 4, "sensible") != 0 {
		step = sensible(t, &c)
	}
	switch step {
	case 0, 1:
		return &BeginDelivery{Claim: c.ID, Proof: p}
	case 2:
		return &ExpireDelivery{Claim: c.ID, Proof: p}
	case 3, 4:
		return &SettleClaim{Claim: c.ID, Proof: p}
	case 5:
		return &CosignClaim{Claim: c.ID, Proof: p}
	case 6:
		return &ReleaseClaim{Claim: c.ID}
	case 9:
		return &AbandonDelivery{Claim: c.ID}
	case 7:
		var known [][64]byte
		for s := range g.ledger.payments {
			known = append(known, s)
		}
		if len(known) == 0 {
			return nil
		}
		slices.SortFunc(known, func(a, b [64]byte) int { return bytes.Compare(a[:], b[:]) })
		return &RefundPayment{Signature: rapid.SampledFrom(known).Draw(t, "refund"), Proof: p}
	}
	pay := &ProvePayment{
		Claim: c.ID, Rail: c.Terms.Rail, Amount: c.Terms.Payment,
		Signature: signature(fmt.Sprint("s", int(g.sigs)+drawOf(t, 12, "signature"))),
	}
	switch drawOf(t, 8, "amiss") {
	case 0:
		pay.Rail = market.RailCount - pay.Rail
	case 1:
		pay.Amount -= rapid.SampledFrom([]uint64{1, pay.Amount}).Draw(t, "short")
	case 2:
		pay.Amount++
	case 3:
		pay.Signature = signature(fmt.Sprint("s", max(int(g.sigs)-drawOf(t, 12, "old signature"), 0)))
	}
	return pay
}

// sensible draws a step of drawStep that the claim's state permits.
func sensible(t *rapid.T, c *Claim) int {
	switch c.State {
	case ClaimReserved:
		if c.Mode == Atomic {
			return 5
		}
		return 8
	case ClaimExpired:
		return 8
	case ClaimPaid:
		return rapid.SampledFrom([]int{0, 0, 0, 9}).Draw(t, "of paid")
	case ClaimDelivering:
		return rapid.SampledFrom([]int{2, 3}).Draw(t, "of delivering")
	case ClaimCosigned:
		return rapid.SampledFrom([]int{3, 6}).Draw(t, "of cosigned")
	}
	return rapid.SampledFrom([]int{7, 8}).Draw(t, "of ended")
}
