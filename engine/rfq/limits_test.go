package rfq

import (
	"fmt"
	"strings"
	"testing"

	"blockdesk/engine/event"
	"blockdesk/market"
)

func TestBoundsAreTheLimits(t *testing.T) {
	if want := (memoryLimits{MaxTickets, MaxQuotes, MaxClaims, MaxPayments, MaxRefunds}); New().limits != want {
		t.Errorf("%+v", New().limits)
	}
}

func token(n int) Header { return Header{RequestID: uint64(1000 + n)} }

func TestMaxTickets(t *testing.T) {
	d := openDesk(t, 500)
	for i := 1; i < MaxTickets; i++ {
		d.must(t, &PostTicket{Header: token(i), Label: "more", Capacities: []market.USD{500_000_000}})
	}
	post := &PostTicket{Header: token(0), Label: "one too many", Capacities: []market.USD{500_000_000}}
	d.refuse(t, post, event.ReasonDeskFull, MaxTickets)
	d.must(t, &WithdrawTicket{Header: token(0), Ticket: 7})
	d.refuse(t, post, event.ReasonDeskFull, MaxTickets)
	d.at += TicketRetention
	if id := last[*Ticket](t, d.must(t, post)).ID; id != MaxTickets+1 {
		t.Errorf("ticket %d", id)
	}
	d.check(t)
	d.restart(t)
}

func TestMaxTranches(t *testing.T) {
	d := openDesk(t, 500)
	for i := 2; i <= MaxTranches; i++ {
		d.must(t, &SetTranche{Header: token(i), Ticket: 1, Tranche: market.TrancheID(i), Capacity: 500_000_000})
	}
	d.refuse(t, &SetTranche{Header: token(0), Ticket: 1, Tranche: MaxTranches + 1, Capacity: 500_000_000}, event.ReasonDeskFull, MaxTranches)
	d.check(t)
	d.restart(t)
}

func TestMaxOperators(t *testing.T) {
	d := newDesk()
	for i := 1; i <= MaxOperators; i++ {
		d.must(t, &SetOperator{Header: token(i), Of: Operator{ID: market.OperatorID(i), Name: "x"}})
	}
	d.refuse(t, &SetOperator{Header: token(0), Of: Operator{ID: 1 << 15, Name: "x"}}, event.ReasonDeskFull, MaxOperators)
	d.must(t, &SetOperator{Header: token(0), Of: Operator{ID: 7, Name: "renamed"}})
	d.check(t)
	d.restart(t)
}

func TestMaxText(t *testing.T) {
	d := openDesk(t, 500)
	long, longer := strings.Repeat("x", MaxText), strings.Repeat("x", MaxText+1)
	d.must(t, &SetOperator{Header: token(1), Of: Operator{ID: 2, Name: long}})
	d.refuse(t, &SetOperator{Header: token(2), Of: Operator{ID: 3, Name: longer}}, event.ReasonInvalidCommand, 0)
	d.must(t, &SetLock{Header: token(3), Scope: LockAll, Locked: true, Reason: long})
	d.refuse(t, &SetLock{Header: token(4), Scope: LockAll, Locked: true, Reason: longer}, event.ReasonInvalidCommand, 0)
	d.must(t, &PostTicket{Header: token(5), Label: long, Capacities: []market.USD{500_000_000}})
	for _, bad := range []string{"", "\x1f", "\x7f", "é", "a\nb"} {
		d.refuse(t, &PostTicket{Header: token(6), Label: bad, Capacities: []market.USD{500_000_000}}, event.ReasonInvalidCommand, 0)
	}
	d.check(t)
	d.restart(t)
}

func TestMaxQuotes(t *testing.T) {
	d := openDesk(t, 500)
	r := &RequestQuote{Ticket: 1, Tranche: 1, Fill: 1, Rail: market.RailUSDC}
	for i := range MaxQuotes {
		r.Header = token(i)
		d.must(t, r)
	}
	r.Header = token(MaxQuotes)
	d.refuse(t, r, event.ReasonDeskFull, MaxQuotes)
	d.at += 15 * second
	d.must(t, r)
	d.check(t)
	d.restart(t)
}

// taker takes, pays and settles claims one after the other.
type taker struct {
	*desk
	n int
}

func (d *taker) take(t *testing.T, wallet string) market.ClaimID {
	t.Helper()
	d.n++
	c := &TakeClaim{
		Header: token(d.n), Ticket: 1, Tranche: 1, Fill: 1, Rail: market.RailUSDC, Mode: Modular,
		Wallet: address(wallet),
	}
	return last[*Claim](t, d.must(t, c)).ID
}

func (d *taker) pay(t *testing.T, id market.ClaimID, sig string) *Payment {
	t.Helper()
	return last[*Payment](t, d.must(t, &ProvePayment{
		Header: token(0), Claim: id, Rail: market.RailUSDC, Signature: signature(sig), Amount: 250_000_000,
	}))
}

func (d *taker) settle(t *testing.T, id market.ClaimID) {
	t.Helper()
	d.pay(t, id, fmt.Sprint("for ", id))
	d.must(t, &BeginDelivery{Header: token(0), Claim: id})
	d.must(t, &SettleClaim{Header: token(0), Claim: id})
}

func (d *taker) knows(id market.ClaimID) bool { return d.m.claims.get(id) != nil }

// TestMaxClaims, with a lower limit: a new claim evicts the claim that ended first, but
// none that is live or has a refund due.
func TestMaxClaims(t *testing.T) {
	d := &taker{desk: openDesk(t, 1_000_000)}
	d.m.limits.claims = 5
	a := d.take(t, "a")
	b := d.take(t, "b")
	c := d.take(t, "c")
	o := d.take(t, "o")
	d.take(t, "o")
	full := &TakeClaim{Header: token(99), Ticket: 1, Tranche: 1, Fill: 1, Rail: market.RailUSDC, Mode: Modular, Wallet: address("d")}
	d.refuse(t, full, event.ReasonDeskFull, 5)
	d.settle(t, b)
	d.refuse(t, full, event.ReasonDeskFull, 5) // not more than a quarter
	d.at += second
	d.settle(t, a)
	d.settle(t, o)
	d.pay(t, b, "surplus") // b ended first, and owes
	e := d.take(t, "e")    // in place of a
	if d.knows(a) || !d.knows(b) || !d.knows(c) || !d.knows(e) {
		t.Fatal("not a was forgotten")
	}
	if d.m.payments.get(signature(fmt.Sprint("for ", a))) != nil {
		t.Error("a claim is forgotten and its payment is not")
	}
	d.refuse(t, full, event.ReasonDeskFull, 5)
	d.check(t)
	d.restart(t)
	d.must(t, &RefundPayment{Header: token(0), Signature: signature("surplus")})
	d.take(t, "d")
	if d.knows(b) {
		t.Error("b has no refund due any more and was kept")
	}
	d.refuse(t, &ProvePayment{Header: token(0), Claim: b, Rail: 1, Signature: signature("surplus"), Amount: 1}, event.ReasonUnknownClaim, 0)
	d.check(t)
	d.restart(t)
}

// TestFreeClaimsForgetNoPayment: claims that are never paid must not evict a payment, or
// its signature could pay another claim. Paid claims go first only if they are more than a
// quarter.
func TestFreeClaimsForgetNoPayment(t *testing.T) {
	d := &taker{desk: openDesk(t, 1_000_000)}
	d.m.limits.claims = 8
	flood := func() {
		t.Helper()
		for i := range 2 * d.m.limits.claims {
			d.take(t, fmt.Sprint("nobody ", i))
			d.at += 300 * second
		}
		d.expire(t)
	}
	one, two := d.take(t, "a"), d.take(t, "a")
	d.settle(t, one)
	d.settle(t, two)
	flood()
	other := d.take(t, "a")
	again := &ProvePayment{
		Header: token(0), Claim: other, Rail: market.RailUSDC, Signature: signature(fmt.Sprint("for ", one)), Amount: 250_000_000,
	}
	d.refuse(t, again, event.ReasonPaymentUsed, 0)
	d.settle(t, other)
	free := d.take(t, "b")
	d.at += 300 * second
	d.expire(t)
	d.take(t, "c") // for it the first of three with a payment goes, not the free one
	if d.knows(one) || !d.knows(two) || !d.knows(other) || !d.knows(free) {
		t.Error("not the first was forgotten")
	}
	d.check(t)
	d.restart(t)
	flood()
	if !d.knows(two) || !d.knows(other) || d.knows(free) {
		t.Error("not the free one was forgotten")
	}
	d.check(t)
}

// TestMaxPayments, with a lower limit: a payment evicts the claim that ended first among
// those with payments, but never the one being paid.
func TestMaxPayments(t *testing.T) {
	d := &taker{desk: openDesk(t, 1_000_000)}
	d.m.limits.payments = 2
	a, b, c := d.take(t, "a"), d.take(t, "b"), d.take(t, "c")
	expired := d.take(t, "d")
	d.settle(t, a)
	d.settle(t, b)
	pay := &ProvePayment{Header: token(99), Claim: a, Rail: market.RailUSDC, Signature: signature("again"), Amount: 250_000_000}
	d.must(t, pay) // a ended first, but it is the one that is paid: b goes
	if !d.knows(a) || d.knows(b) {
		t.Fatal("not b was forgotten")
	}
	pay.Claim, pay.Signature = c, signature("for c")
	d.refuse(t, pay, event.ReasonDeskFull, 2)
	d.must(t, &RefundPayment{Header: token(0), Signature: signature("again")})
	d.check(t)
	d.restart(t)
	d.must(t, pay)
	if d.knows(a) || !d.knows(c) {
		t.Fatal("not a was forgotten")
	}
	d.at += 300 * second
	d.expire(t)
	if !d.knows(expired) || d.m.payments.len() != 1 {
		t.Fatalf("%d payments", d.m.payments.len())
	}
	if p := d.pay(t, expired, "late"); p.State != PaymentApplied {
		t.Errorf("%+v", p)
	}
	d.check(t)
	d.restart(t)
}

// TestMaxRefunds, with lower limits: refunds that are due never block payments of claims,
// and only until they are refunded block further ones.
func TestMaxRefunds(t *testing.T) {
	d := &taker{desk: openDesk(t, 1_000_000)}
	d.m.limits.payments, d.m.limits.refunds = 4, 2
	dusty, old, honest := d.take(t, "a"), d.take(t, "b"), d.take(t, "c")
	d.settle(t, old)
	dust := &ProvePayment{Header: token(99), Claim: dusty, Rail: market.RailUSDC, Amount: 1}
	for _, sig := range []string{"d1", "d2"} {
		dust.Signature = signature(sig)
		d.must(t, dust)
	}
	d.restart(t)
	dust.Signature = signature("d3")
	d.refuse(t, dust, event.ReasonDeskFull, 2)
	for _, id := range []market.ClaimID{honest, d.take(t, "d")} {
		if p := d.pay(t, id, fmt.Sprint("for ", id)); p.State != PaymentApplied {
			t.Errorf("%+v", p)
		}
	}
	if d.knows(old) {
		t.Error("nothing made room")
	}
	d.must(t, &RefundPayment{Header: token(0), Signature: signature("d1")})
	d.check(t)
	d.restart(t)
	d.at += 300 * second // dusty is over, and still owes
	d.refuse(t, dust, event.ReasonDeskFull, 4)
	d.must(t, &RefundPayment{Header: token(0), Signature: signature("d2")})
	dust.Claim = honest
	d.must(t, dust)
	if d.knows(dusty) {
		t.Error("a claim without a refund due was kept")
	}
	d.check(t)
	d.restart(t)
}

// TestMaxRefundsAbandon: a claim is abandoned only if its refund can be recorded.
func TestMaxRefundsAbandon(t *testing.T) {
	d := &taker{desk: openDesk(t, 1_000_000)}
	d.m.limits.refunds = 1
	dusty, paid := d.take(t, "a"), d.take(t, "b")
	d.pay(t, paid, "whole")
	d.must(t, &ProvePayment{Header: token(0), Claim: dusty, Rail: market.RailUSDC, Amount: 1, Signature: signature("dust")})
	abandon := &AbandonDelivery{Header: token(0), Claim: paid}
	d.refuse(t, abandon, event.ReasonDeskFull, 1)
	d.must(t, &RefundPayment{Header: token(0), Signature: signature("dust")})
	d.must(t, abandon)
	d.must(t, abandon) // again, though it is full
	d.check(t)
	d.restart(t)
	if p := d.m.payments.get(signature("whole")); p.State != PaymentRefundDue || p.Reason != event.ReasonUndeliverable || d.m.refundsDue != 1 {
		t.Errorf("%+v, %d refunds due", p, d.m.refundsDue)
	}
}

func TestWalletLimit(t *testing.T) {
	d := &taker{desk: openDesk(t, 1_000_000)}
	policy := testPolicy()
	policy.WalletClaims = 65535
	d.must(t, &SetPolicy{Header: token(0), Policy: policy})
	for range 100 {
		d.take(t, "a")
	}
	policy.WalletClaims = 100
	d.must(t, &SetPolicy{Header: token(0), Policy: policy})
	full := &TakeClaim{Header: token(999), Ticket: 1, Tranche: 1, Fill: 1, Rail: 1, Mode: Modular, Wallet: address("a")}
	d.refuse(t, full, event.ReasonWalletClaims, 100)
	d.at += 300 * second
	d.must(t, full)
	d.check(t)
}

// TestAtomsPastAnInt64: with twelve decimals and a price near zero, atoms need all 64 bits;
// a limit is never negative.
func TestAtomsPastAnInt64(t *testing.T) {
	d := &taker{desk: openDesk(t, 1_000_000)}
	p := testPair(1)
	p.BaseDecimals = maxBaseDecimals
	inventory := &SetInventory{Header: token(0), Instrument: 1, Atoms: 1 << 63}
	for _, r := range []Request{
		&SetPair{Header: token(0), Pair: p}, &SetAnchor{Header: token(0), Instrument: 1, Price: 14_000}, inventory,
		&PostTicket{Header: token(0), Label: "dust", Instrument: 1, Capacities: []market.USD{1_000_000_000}},
	} {
		d.must(t, r)
	}
	take := &TakeClaim{Header: token(7), Ticket: 2, Tranche: 1, Fill: 1, Rail: 1, Mode: Atomic, Wallet: address("a")}
	d.refuse(t, take, event.ReasonInventory, 1<<63-1)
	inventory.Atoms = ^uint64(0)
	d.must(t, inventory)
	// Without the ledger, which knows six decimals.
	d.seq++
	d.m.Apply(AppendRequest(nil, take), Stamp{Seq: d.seq, At: d.at}, nil, event.NewGrowingSink(64))
	c := d.m.claims.get(market.ClaimID(take.RequestID))
	if c == nil || c.Terms.Base != 17857142857142857142 {
		t.Fatalf("%+v", c)
	}
	take.RequestID++
	d.refuse(t, take, event.ReasonInventory, 589601216566694473)
	inventory.Atoms = c.Terms.Base - 1
	d.must(t, inventory)
	d.refuse(t, &CosignClaim{Header: token(0), Claim: c.ID}, event.ReasonInventory, 1<<63-1)
	if err := checkSums(d.m); err != nil {
		t.Error(err)
	}
	d.restart(t)
}

// TestTimeEnds: at the largest time nothing overflows.
func TestTimeEnds(t *testing.T) {
	d := &taker{desk: openDesk(t, 1_000_000)}
	d.at = 1<<63 - 1
	d.must(t, &SetAnchor{Header: token(0), Price: 1_250_000_000})
	d.take(t, "a")
	d.must(t, &RequestQuote{Header: token(90), Ticket: 1, Tranche: 1, Fill: 1, Rail: 1})
	d.must(t, &WithdrawTicket{Header: token(0), Ticket: 1})
	d.check(t)
	d.restart(t)
	d.expire(t)
	d.check(t)
}

// TestSlices: under RulesGuarded what is due ends in slices, counts as ended before, and every
// command sweeps more than it can add.
func TestSlices(t *testing.T) {
	const many = 1000
	d := &taker{desk: openDesk(t, 1_000_000)}
	policy := guardedPolicy()
	policy.UnprovenPerClient, policy.UnprovenShareBps = MaxCapacity, market.MaxBps
	d.must(t, &SetPolicy{Header: token(0), Policy: policy})
	quote := &RequestQuote{Ticket: 1, Tranche: 1, Fill: 1, Rail: 1}
	for i := range many {
		quote.RequestID = uint64(1_000_000 + i)
		d.must(t, quote)
		d.take(t, "a")
	}
	d.at += 75 * second
	due := d.m.NextExpiry()
	if n := len(d.expireSome(t, TickSlice)); n != TickSlice {
		t.Fatalf("%d records of %d quotes", n, TickSlice)
	}
	d.refuse(t, &TakeClaim{
		Header: token(1), Ticket: 1, Tranche: 1, Fill: 1, Rail: 1, Mode: Modular, Wallet: address("a"), Quote: 1_000_000 + many - 1,
	}, event.ReasonQuoteExpired, 0)
	if left := d.m.quotes.len(); left != many-TickSlice-CommandSlice || d.m.NextExpiry() != due {
		t.Fatalf("%d quotes are left, next expiry %d", left, d.m.NextExpiry())
	}
	d.check(t)
	d.restart(t)
	for i := 0; d.m.quoteEnds.heap[0].at <= d.at; i++ { // nothing is added faster than it is swept
		quote.RequestID = uint64(2_000_000 + i)
		d.must(t, quote)
		if i > many/(CommandSlice-1) {
			t.Fatalf("%d quotes are left", d.m.quotes.len())
		}
	}
	d.at += 15 * second
	for ticks := 0; d.m.NextExpiry() != 0; ticks++ {
		claims := len(d.m.claimEnds.heap)
		d.expireSome(t, TickSlice)
		if ended := claims - len(d.m.claimEnds.heap); ended > TickSlice/otherSteps || ticks > many {
			t.Fatalf("%d claims in tick %d", ended, ticks)
		}
	}
	d.check(t)
}
