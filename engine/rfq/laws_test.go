package rfq

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"blockdesk/engine/event"
	"blockdesk/internal/runtest"
	"blockdesk/market"
)

// TestLaws runs random requests. After each it checks the invariants of the package
// documentation; a twin that is restored from its snapshot at random moments must write the
// same events; and a refused request must change nothing.
func TestLaws(t *testing.T) {
	runtest.SkipUnderRace(t, "one goroutine")
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
	"payment refunding", "surplus", "revived", "paid in the grace", "seen", "modular released", "abandoned for the price",
	"refused unproven_limit", "refused unproven_share", "refused price_unavailable", "quote ended by a price", "unswept",
}

// game is a desk under random requests, and its twin.
type game struct {
	*desk
	guarded bool
	twin    *Machine
	out2    *event.Sink
	sigs    uint64

	before      map[market.ClaimID]ClaimState
	ended       bool       // quotes may be, by a price
	stateBefore ClaimState // of the claim that the request is about
}

func newGame(t *rapid.T) *game {
	g := &game{desk: newDesk(), out2: event.NewGrowingSink(64), before: map[market.ClaimID]ClaimState{}}
	g.at = testAt
	if rapid.Bool().Draw(t, "small") {
		g.m.limits = memoryLimits{tickets: 3, quotes: 3, claims: 5, payments: 3, refunds: 2}
	}
	g.twin = New()
	g.twin.limits = g.m.limits
	policy := testPolicy()
	if g.guarded = rapid.Bool().Draw(t, "guarded"); g.guarded {
		policy = guardedPolicy()
		policy.UnprovenPerClient, policy.UnprovenShareBps = 500_000_000, 5000
	}
	policy.WalletClaims = 1
	ticket := &PostTicket{Label: "first", Capacities: []market.USD{1_000_000_000, 50_000_000_000}}
	for _, r := range []Request{
		&SetPolicy{Policy: policy}, &SetPair{Pair: g.pair(0)}, &SetPair{Pair: g.pair(1)},
		&SetOperator{Of: Operator{ID: 1, Name: "ann"}}, &SetAnchor{Price: 1_234_567_891}, &SetAnchor{Instrument: 1, Price: 777_777_777},
		&SetRailPrice{Rail: market.RailSOL, Price: 151_234_567_891}, &SetInventory{Atoms: 40_000_000_000},
		&SetInventory{Instrument: 1, Atoms: 1 << 50}, ticket,
	} {
		r.Head().RequestID = g.seq + 1
		g.both(t, AppendRequest(nil, r))
	}
	return g
}

func (g *game) pair(in market.InstrumentID) Pair {
	p := testPair(in)
	if g.guarded {
		p.FirmBps = [market.RailCount]uint16{1: 1000, 2: 2000}
	}
	return p
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
	steps := rapid.SampledFrom([]int{math.MaxInt, math.MaxInt, 1, CommandSlice}).Draw(t, "steps")
	records := g.expireSome(t, steps)
	g.out2.Reset()
	g.twin.Expire(Stamp{Seq: g.seq, At: g.at}, steps, g.out2)
	g.compare(t)
	if (len(records) != 0) != wanted {
		t.Fatalf("expiry at %d, due at %d: %v", g.at, due, records)
	}
	g.observe(records, seen)
	due = g.m.NextExpiry()
	unswept := due != 0 && due <= g.at
	if unswept {
		seen["unswept"]++
	}
	before := g.m.AppendSnapshot(nil)
	r := g.request(t)
	if r == nil {
		return
	}
	switch r := r.(type) {
	case *BeginDelivery:
		g.stateBefore = g.ledger.claims[r.Claim].State
	case *CosignClaim:
		g.stateBefore = g.ledger.claims[r.Claim].State
	}
	sale := g.quoteByView(r)
	if unswept {
		sale = -1 // the capacity of due claims may return
	}
	quotes := maps.Clone(g.ledger.quotes)
	_, anchor := r.(*SetAnchor)
	_, rail := r.(*SetRailPrice)
	g.ended = anchor || rail
	records = g.both(t, AppendRequest(nil, r))
	g.observe(records, seen)
	g.ended = false
	if why := outcomeOf(records).Reason; sale >= 0 && why != event.ReasonDeskFull && why != event.Reason(sale) {
		t.Fatalf("%+v: %v; the view said %v", r, why, event.Reason(sale))
	}
	if g.guarded {
		g.guardHolds(t, r, records)
	} else {
		g.lateIsNoOption(t, records)
	}
	if o := outcomeOf(records); o.Reason == 0 {
		g.endedIsEnded(t, r, quotes)
	} else if !unswept {
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

// observe records which cases have occurred.
func (g *game) observe(records []Record, seen map[string]int) {
	var late *Payment
	for _, rec := range records {
		switch r := rec.(type) {
		case *Claim:
			seen["claim "+r.State.Word()]++
			if r.State == ClaimReleased && r.Mode == Modular {
				seen["modular released"]++
			}
			if r.State == ClaimReserved && r.Deadline == r.ReservedAt+300*second && r.unproven() {
				seen["seen"]++
			}
			if r.State == ClaimPaid && g.guarded && late != nil && late.Claim == r.ID && late.At >= r.Deadline {
				seen["paid in the grace"]++
			}
			if r.State == ClaimPaid && late != nil && late.Claim == r.ID && g.before[r.ID] == ClaimRefundDue {
				seen["revived"]++
			}
			g.before[r.ID] = r.State
			if r.Quote != 0 {
				seen["quoted claim"]++
			}
			if late != nil && late.Claim == r.ID && r.State == ClaimPaid && late.At >= r.Deadline {
				seen["honoured late"]++
			}
		case *Payment:
			late = r
			seen["payment "+paymentStates[r.State]]++
			switch {
			case r.State != PaymentRefundDue:
			case r.Reason == event.ReasonUndeliverable:
				seen["abandoned"]++
			case r.Reason == event.ReasonPriceCorridor:
				seen["abandoned for the price"]++
			case r.Reason == event.ReasonSurplus:
				seen["surplus"]++
			}
		case *Ticket:
			seen["ticket "+ticketStates[r.State]]++
		case *Removed:
			seen[fmt.Sprint("gone ", r.What)]++
			if r.What == TagQuote && g.ended {
				seen["quote ended by a price"]++
			}
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

// endedIsEnded checks that an accepted request used no quote, claim or ticket that was due.
func (g *game) endedIsEnded(t *rapid.T, r Request, quotes map[market.QuoteID]Quote) {
	ticket := market.TicketID(0)
	switch r := r.(type) {
	case *TakeClaim:
		if q, ok := quotes[r.Quote]; ok && q.ValidUntil <= g.at {
			t.Fatalf("used %+v at %d", q, g.at)
		}
		ticket = r.Ticket
	case *RequestQuote:
		ticket = r.Ticket
	case *AmendTicket:
		return // has set its end
	case *CosignClaim:
		if c := g.ledger.claims[r.Claim]; c.State == ClaimCosigned && c.ChangedAt == g.at && c.Deadline <= g.at {
			t.Fatalf("cosigned %+v", c)
		}
	case *SeePayment:
		if c := g.ledger.claims[r.Claim]; addTime(c.Deadline, g.m.policy.Grace) <= g.at {
			t.Fatalf("seen %+v at %d", c, g.at)
		}
	}
	if i := g.m.tickets.get(ticket); i != nil && i.ExpiresAt != 0 && i.ExpiresAt <= g.at {
		t.Fatalf("%T of ticket %+v at %d", r, i, g.at)
	}
}

// quoteByView returns what SaleRefusal says about a request for a quote of the smallest fill, or
// -1 if it is about something else: another fill, an unknown ticket, one tranche of several.
func (g *game) quoteByView(r Request) int {
	q, ok := r.(*RequestQuote)
	if !ok || q.Fill != smallestFill || !q.Rail.Valid() {
		return -1
	}
	v := g.model.View()
	t := v.Ticket(q.Ticket)
	if t == nil || t.Tranche(q.Tranche) == nil || t.Tranche(q.Tranche).Available() < smallestFill.USD() && t.State != TicketExhausted {
		return -1
	}
	return int(v.SaleRefusal(t, q.Rail, g.mids, g.at))
}

// guardHolds checks with big integers that nothing is delivered or countersigned at a price
// that has moved beyond FirmBps, that a price ends the quotes it must, and that payments are
// checked by the time of their block.
func (g *game) guardHolds(t *rapid.T, r Request, records []Record) {
	if outcomeOf(records).Reason != 0 {
		return
	}
	switch r := r.(type) {
	case *BeginDelivery:
		g.priceHolds(t, r.Claim)
	case *CosignClaim:
		g.priceHolds(t, r.Claim)
	case *ProvePayment:
		c, p := g.ledger.claims[r.Claim], last[*Payment](t, records)
		if p.pays() && p.BlockTime*second >= c.Deadline {
			t.Fatalf("%+v pays %+v", p, c)
		}
	}
}

func (g *game) priceHolds(t *rapid.T, id market.ClaimID) {
	c, v := g.ledger.claims[id], g.model.View()
	if g.stateBefore == c.State { // repeated
		return
	}
	p := v.Pair(c.Terms.Instrument)
	now, why := v.Reference(&Ticket{Instrument: p.Instrument}, g.mids, g.at)
	rail := market.USDPrice(1_000_000_000)
	if c.Terms.Rail == market.RailSOL {
		rail = v.RailPrices[0].Price
	}
	product := func(factors ...uint64) *big.Int {
		n := big.NewInt(1)
		for _, f := range factors {
			n.Mul(n, new(big.Int).SetUint64(f))
		}
		return n
	}
	lhs := product(uint64(now), uint64(c.Terms.RailPrice), 10_000)
	rhs := product(uint64(c.Terms.Market), uint64(rail), 10_000+uint64(p.FirmBps[c.Terms.Rail]))
	if why != 0 || lhs.Cmp(rhs) > 0 || p.OnChainAt != 0 && p.OnChain < c.Terms.Base || deliveriesLocked(v.Locks) {
		t.Fatalf("delivered at %d (%v), SOL %d, pair %+v: %+v", now, why, rail, *p, c)
	}
}

// request draws a request, most of them sensible.
func (g *game) request(t *rapid.T) Request {
	r := g.draw(t)
	if r == nil {
		return nil
	}
	g.sigs++
	r.Head().RequestID = 1000 + g.sigs
	return r
}

func (g *game) draw(t *rapid.T) Request {
	fill := rapid.SampledFrom([]market.FillUSD{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3, 7}).Draw(t, "fill")
	rail := rapid.SampledFrom([]market.Rail{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3}).Draw(t, "rail")
	ticket := g.drawTicket(t)
	tranche := rapid.SampledFrom([]market.TrancheID{1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3}).Draw(t, "tranche")
	in := market.InstrumentID(rapid.Uint16Range(0, 1).Draw(t, "in"))
	if g.guarded && drawOf(t, 12, "new") == 0 {
		return g.drawNew(t, in)
	}
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
		p := g.pair(in)
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
	if g.guarded {
		r.Client, r.Proven = ClientAddress(drawOf(t, 3, "client")), drawOf(t, 3, "proven") != 0
	}
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
	if g.guarded && drawOf(t, 6, "new step") == 0 {
		return g.drawNewStep(t, &c, p)
	}
	step := drawOf(t, 13, "step")
	if drawOf(t, 4, "sensible") != 0 {
		step = sensible(t, &c, g.guarded)
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
	case 10:
		return &ReleaseUnbuilt{Claim: c.ID}
	case 11:
		return &SeePayment{Claim: c.ID}
	case 12:
		return &AbandonDelivery{Claim: c.ID, Reason: event.ReasonPriceCorridor}
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
	if g.guarded {
		pay.BlockTime = rapid.SampledFrom([]int64{0, g.at, g.at - second, g.at - 50*second, c.Deadline - second, c.Deadline}).Draw(t, "block") / second
	}
	switch drawOf(t, 9, "amiss") {
	case 8:
		pay.Amount += 2_000_000 << (8 * (pay.Rail - 1))
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

// drawNew draws a request that version 0.1.0 does not have.
func (g *game) drawNew(t *rapid.T, in market.InstrumentID) Request {
	switch drawOf(t, 6, "of new") {
	case 0:
		return &SetBalance{Instrument: in, Atoms: rapid.SampledFrom([]uint64{0, 500_000_000, 1 << 40, 1 << 40}).Draw(t, "atoms")}
	case 1:
		return &SetLock{Scope: []LockScope{LockDeliveries, LockClock}[drawOf(t, 2, "scope")], Locked: drawOf(t, 3, "locked") == 0}
	case 2:
		return &SetAnchor{Instrument: in, Withdrawn: true, Source: OriginPyth}
	case 3:
		return &SetRailPrice{Rail: market.RailSOL, Price: 151_000_000_000, Source: OriginPool, PublishedAt: g.at - 5*second}
	case 4:
		p := guardedPolicy()
		p.WalletClaims, p.UnprovenPerClient, p.UnprovenShareBps = 1, 500_000_000, 5000
		p.Grace = rapid.SampledFrom([]int64{0, 30 * second, 100 * second}).Draw(t, "grace")
		return &SetPolicy{Policy: p}
	}
	price := market.USDPrice(rapid.Uint64Range(1_000_000_000, 1_400_000_000).Draw(t, "price"))
	return &SetAnchor{Instrument: in, Price: price, Source: OriginPyth, Confidence: 1000, PublishedAt: g.at - second}
}

// drawNewStep draws a request about a claim or payment that version 0.1.0 does not have.
func (g *game) drawNewStep(t *rapid.T, c *Claim, p [32]byte) Request {
	var pending [][64]byte
	for s, pay := range g.ledger.payments {
		if pay.State != PaymentApplied {
			pending = append(pending, s)
		}
	}
	slices.SortFunc(pending, func(a, b [64]byte) int { return bytes.Compare(a[:], b[:]) })
	switch kind := drawOf(t, 6, "of new steps"); {
	case len(pending) == 0:
		return &SeePayment{Claim: c.ID}
	case kind < 3:
		return &BeginRefund{Signature: rapid.SampledFrom(pending).Draw(t, "pending"), Proof: p}
	case kind < 5:
		return &ExpireRefund{Signature: rapid.SampledFrom(pending).Draw(t, "pending"), Proof: p}
	}
	return &RefundPayment{Signature: rapid.SampledFrom(pending).Draw(t, "pending"), Proof: p}
}

// sensible draws a step of drawStep that the claim's state permits.
func sensible(t *rapid.T, c *Claim, guarded bool) int {
	switch c.State {
	case ClaimReserved:
		if c.Mode == Atomic {
			return 5
		}
		if guarded {
			return rapid.SampledFrom([]int{8, 8, 8, 8, 10, 11, 11}).Draw(t, "of reserved")
		}
		return 8
	case ClaimExpired:
		return 8
	case ClaimPaid:
		if guarded {
			return rapid.SampledFrom([]int{0, 0, 0, 9, 12, 12}).Draw(t, "of paid")
		}
		return rapid.SampledFrom([]int{0, 0, 0, 9}).Draw(t, "of paid")
	case ClaimDelivering:
		return rapid.SampledFrom([]int{2, 3}).Draw(t, "of delivering")
	case ClaimCosigned:
		return rapid.SampledFrom([]int{3, 6}).Draw(t, "of cosigned")
	}
	return rapid.SampledFrom([]int{7, 8}).Draw(t, "of ended")
}
