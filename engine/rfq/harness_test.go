package rfq

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"blockdesk/engine/event"
	"blockdesk/market"
)

// fatal is the part of *testing.T, *rapid.T and *testing.F that the helpers need.
type fatal interface {
	Helper()
	Fatalf(format string, args ...any)
}

// desk is a machine with its surroundings: a sequencer, order books, a reader of its
// events, a read model, and a ledger of the records.
type desk struct {
	m      *Machine
	seq    uint64
	at     int64
	mids   books
	out    *event.Sink
	reader Reader
	model  *ReadModel
	ledger *ledger
}

// books are mid prices by instrument.
type books map[market.InstrumentID]market.USDPrice

func (b books) Mid(in market.InstrumentID) (market.USDPrice, bool) {
	mid, ok := b[in]
	return mid, ok
}

func newDesk() *desk {
	return &desk{m: New(), mids: books{}, out: event.NewGrowingSink(64), model: &ReadModel{}, ledger: newLedger()}
}

// apply applies a request and returns its records, the outcome last.
func (d *desk) apply(t fatal, r Request) []Record { return d.applyBytes(t, AppendRequest(nil, r)) }

func (d *desk) applyBytes(t fatal, data []byte) []Record {
	t.Helper()
	d.seq++
	d.out.Reset()
	d.m.Apply(data, Stamp{Seq: d.seq, At: d.at}, d.mids, d.out)
	records := d.read(t)
	if n := len(records); n == 0 || records[n-1].Tag() != TagOutcome {
		t.Fatalf("no outcome at the end of %v", records)
	}
	for _, r := range records[:len(records)-1] {
		if r.Tag() == TagOutcome {
			t.Fatalf("more than one outcome in %v", records)
		}
	}
	return records
}

func (d *desk) expire(t fatal) []Record {
	t.Helper()
	return d.expireSome(t, math.MaxInt)
}

func (d *desk) expireSome(t fatal, steps int) []Record {
	t.Helper()
	d.seq++
	d.out.Reset()
	d.m.Expire(Stamp{Seq: d.seq, At: d.at}, steps, d.out)
	return d.read(t)
}

// read reads the events since the last Reset and updates the followers.
func (d *desk) read(t fatal) []Record {
	t.Helper()
	var records []Record
	for i := range d.out.Events() {
		rec, seq, ok := d.reader.Add(&d.out.Events()[i])
		if !ok {
			continue
		}
		if seq != d.seq {
			t.Fatalf("a record of seq %d in command %d", seq, d.seq)
		}
		records = append(records, rec)
		d.model.Apply(rec, seq)
		if err := d.ledger.follow(rec); err != nil {
			t.Fatalf("seq %d: %v", seq, err)
		}
	}
	return records
}

func outcomeOf(records []Record) *Outcome { return records[len(records)-1].(*Outcome) }

// must applies a request that must succeed.
func (d *desk) must(t fatal, r Request) []Record {
	t.Helper()
	records := d.apply(t, r)
	if o := outcomeOf(records); o.Reason != 0 {
		t.Fatalf("%T: refused: %v (limit %d)", r, o.Reason, o.Limit)
	}
	return records
}

// refuse applies a request that must be refused.
func (d *desk) refuse(t fatal, r Request, why event.Reason, limit int64) {
	t.Helper()
	if o := outcomeOf(d.apply(t, r)); o.Reason != why || o.Limit != limit {
		t.Fatalf("%T: %v (limit %d); want %v (limit %d)", r, o.Reason, o.Limit, why, limit)
	}
}

// check checks the machine's invariants, its followers and its snapshot.
func (d *desk) check(t fatal) {
	t.Helper()
	if err := checkSums(d.m); err != nil {
		t.Fatalf("seq %d: %v", d.seq, err)
	}
	if err := d.ledger.agrees(d.m); err != nil {
		t.Fatalf("seq %d: %v", d.seq, err)
	}
	if err := sameView(d.model.View(), d.m.ReadModel().View()); err != nil {
		t.Fatalf("seq %d: the read model differs: %v", d.seq, err)
	}
}

// restart replaces the machine by one restored from its snapshot.
func (d *desk) restart(t fatal) {
	t.Helper()
	data := d.m.AppendSnapshot(nil)
	m, err := Restore(data)
	if err != nil {
		t.Fatalf("seq %d: %v", d.seq, err)
	}
	if d.m.NextExpiry() != m.NextExpiry() {
		t.Fatalf("seq %d: next expiry %d became %d", d.seq, d.m.NextExpiry(), m.NextExpiry())
	}
	m.limits = d.m.limits
	d.m = m
}

// checkSums computes invariants 1 and 2 from the claims, and the content of every index.
func checkSums(m *Machine) error {
	held, sold := map[string]uint64{}, map[string]uint64{}
	wallets, clients, unproven := map[market.Address]uint32{}, map[ClientAddress]market.USD{}, map[trancheKey]market.USD{}
	atoms := map[market.InstrumentID]uint64{}
	for _, slot := range m.claims.slots {
		c := m.claims.at(slot)
		tranche, pair := fmt.Sprint("tranche ", c.Terms.Ticket, c.Terms.Tranche), fmt.Sprint("pair ", c.Terms.Instrument)
		switch {
		case c.State.Live():
			held[tranche] += uint64(c.Terms.Fill.USD())
			held[pair] += c.Terms.Base
		case c.State == ClaimSettled:
			sold[tranche] += uint64(c.Terms.Fill.USD())
			sold[pair] += c.Terms.Base
		}
		switch {
		case c.State != ClaimReserved:
		case c.unproven():
			clients[c.Client] += c.Terms.Fill.USD()
			unproven[trancheKey{c.Terms.Ticket, c.Terms.Tranche}] += c.Terms.Fill.USD()
			atoms[c.Terms.Instrument] += c.Terms.Base
		default:
			wallets[c.Wallet]++
		}
	}
	if !maps.Equal(atoms, m.unprovenAtoms) {
		return fmt.Errorf("unproven atoms: %v; counted %v", m.unprovenAtoms, atoms)
	}
	if !maps.Equal(wallets, m.wallets) || !maps.Equal(clients, m.clients) || !maps.Equal(unproven, m.unproven) {
		return fmt.Errorf("wallets: %v; counted %v; clients: %v; counted %v; unproven: %v; counted %v",
			m.wallets, wallets, m.clients, clients, m.unproven, unproven)
	}
	for _, slot := range m.tickets.slots {
		t := m.tickets.at(slot)
		for i := range t.Tranches {
			tr := &t.Tranches[i]
			name := fmt.Sprint("tranche ", t.ID, tr.ID)
			if tr.Reserved+tr.Filled > tr.Capacity || uint64(tr.Reserved) != held[name] || uint64(tr.Filled) < sold[name] {
				return fmt.Errorf("%s: %+v; held %d, sold %d", name, *tr, held[name], sold[name])
			}
			delete(held, name)
		}
		if !t.Ended() && t.State != t.stateByCapacity() {
			return fmt.Errorf("ticket %d: state %d", t.ID, t.State)
		}
	}
	for i := range m.pairs {
		p := &m.pairs[i]
		name := fmt.Sprint("pair ", p.Instrument)
		if p.Reserved != held[name] || p.Sold < sold[name] {
			return fmt.Errorf("%s: %+v; held %d, sold %d", name, *p, held[name], sold[name])
		}
		if p.OnChainAt != 0 && p.Free() > p.OnChain-min(p.OnChain, p.Reserved) {
			return fmt.Errorf("%s: %+v; free %d", name, *p, p.Free())
		}
		if p.Free() != 0 && p.OnChainAt == 0 && p.Inventory != p.Free()+p.Reserved+p.Sold {
			return fmt.Errorf("%s: %+v; free %d", name, *p, p.Free())
		}
		delete(held, name)
	}
	for name, n := range held {
		if n != 0 {
			return fmt.Errorf("%s: %d is held of nothing", name, n)
		}
	}
	return nil
}

// ledger follows quotes, claims and payments by their records, as an outside reader does,
// and checks them against the state tables.
type ledger struct {
	quotes   map[market.QuoteID]Quote
	claims   map[market.ClaimID]Claim
	payments map[[64]byte]Payment
	// Money by state, in atoms by rail. The money of a forgotten claim stays.
	in, applied, due, refunded [market.RailCount]uint64
}

func newLedger() *ledger {
	return &ledger{quotes: map[market.QuoteID]Quote{}, claims: map[market.ClaimID]Claim{}, payments: map[[64]byte]Payment{}}
}

// claimEdges are the transitions of the claim tables. State 0 is no claim.
var claimEdges = map[SettlementMode]map[ClaimState][]ClaimState{
	Modular: {
		0:               {ClaimReserved},
		ClaimReserved:   {ClaimPaid, ClaimExpired, ClaimReleased},
		ClaimPaid:       {ClaimDelivering, ClaimRefundDue},
		ClaimDelivering: {ClaimPaid, ClaimSettled},
		ClaimExpired:    {ClaimPaid, ClaimRefundDue},
		ClaimRefundDue:  {ClaimPaid}, // by a payment in time, after a late one
	},
	Atomic: {
		0:             {ClaimReserved},
		ClaimReserved: {ClaimCosigned, ClaimExpired, ClaimReleased},
		ClaimCosigned: {ClaimSettled, ClaimReleased},
	},
}

func (l *ledger) follow(rec Record) error {
	switch r := rec.(type) {
	case *Quote:
		if _, ok := l.quotes[r.ID]; ok {
			return fmt.Errorf("quote %d was given twice", r.ID)
		}
		l.quotes[r.ID] = *r
		return checkTerms(&r.Terms)
	case *Claim:
		old := l.claims[r.ID]
		l.claims[r.ID] = *r
		if old.State == ClaimReserved && r.State == ClaimReserved && r.Deadline > old.Deadline { // SeePayment
			old = *r
		}
		if old != *r && !slices.Contains(claimEdges[r.Mode][old.State], r.State) {
			return fmt.Errorf("claim %d went from %d to %d", r.ID, old.State, r.State)
		}
		if old.State != 0 && old.Terms != r.Terms {
			return fmt.Errorf("claim %d has new terms", r.ID)
		}
		return checkTerms(&r.Terms)
	case *Payment:
		return l.pay(r)
	case *Removed:
		return l.forget(r)
	}
	return nil
}

// paymentEdges are the transitions of the payment table. State 0 is no payment.
var paymentEdges = map[PaymentState][]PaymentState{
	0:                {PaymentApplied, PaymentRefundDue},
	PaymentApplied:   {PaymentRefundDue},
	PaymentRefundDue: {PaymentRefundDue, PaymentRefunding, PaymentRefunded},
	PaymentRefunding: {PaymentRefundDue, PaymentRefunded},
	PaymentRefunded:  {PaymentRefundDue},
}

func (l *ledger) pay(p *Payment) error {
	old := l.payments[p.Signature]
	l.payments[p.Signature] = *p
	if old == *p {
		return nil
	}
	abandon := old.Reason != p.Reason && abandoned(p)
	wrong := !slices.Contains(paymentEdges[old.State], p.State) || abandoned(p) && old.State == 0
	if old.State != 0 {
		wrong = wrong || old.Amount != p.Amount || old.Rail != p.Rail || old.Claim != p.Claim || old.Reason != p.Reason && !abandon ||
			abandon != (old.State == PaymentApplied || old.State == p.State || old.State == PaymentRefunded)
		l.count(&old, -1)
	} else {
		l.in[p.Rail] += p.Amount
	}
	l.count(p, +1)
	if wrong || p.AppliedAtoms()+p.RefundAtoms() > p.Amount {
		return fmt.Errorf("payment %x: %+v became %+v", p.Signature[:4], old, *p)
	}
	return nil
}

// count adds the money of a payment, by state, times sign.
func (l *ledger) count(p *Payment, sign int) {
	applied, due := p.AppliedAtoms(), uint64(0)
	if p.State.Pending() {
		due = p.RefundAtoms()
	}
	l.applied[p.Rail] += uint64(sign) * applied
	l.due[p.Rail] += uint64(sign) * due
	l.refunded[p.Rail] += uint64(sign) * (p.Amount - applied - due)
}

func (l *ledger) forget(g *Removed) error {
	switch g.What {
	case TagQuote:
		if _, ok := l.quotes[market.QuoteID(g.ID)]; !ok {
			return fmt.Errorf("unknown quote %d was removed", g.ID)
		}
		delete(l.quotes, market.QuoteID(g.ID))
	case TagClaim:
		c, ok := l.claims[market.ClaimID(g.ID)]
		if !ok || c.State.Live() {
			return fmt.Errorf("claim %d was removed: %+v", g.ID, c)
		}
		delete(l.claims, c.ID)
		for s, p := range l.payments {
			if p.Claim == c.ID {
				if p.State.Pending() {
					return fmt.Errorf("a refund due for claim %d was removed", g.ID)
				}
				delete(l.payments, s)
			}
		}
	case TagTicket:
	default:
		return fmt.Errorf("%+v", *g)
	}
	return nil
}

// agrees compares the records with the machine.
func (l *ledger) agrees(m *Machine) error {
	if len(l.quotes) != m.quotes.len() || len(l.claims) != m.claims.len() || len(l.payments) != m.payments.len() {
		return fmt.Errorf("%d quotes, %d claims, %d payments; recorded %d, %d, %d",
			m.quotes.len(), m.claims.len(), m.payments.len(), len(l.quotes), len(l.claims), len(l.payments))
	}
	for id, q := range l.quotes {
		has := m.quotes.get(id)
		if has != nil && has.ValidUntil < q.ValidUntil { // ended by a price; to be removed
			q.ValidUntil = has.ValidUntil
		}
		if has == nil || *has != q {
			return fmt.Errorf("quote %+v; recorded %+v", has, q)
		}
	}
	applied, lost := map[market.ClaimID]uint64{}, map[market.ClaimID]bool{}
	for s, p := range l.payments {
		if has := m.payments.get(s); has == nil || has.Payment != p {
			return fmt.Errorf("payment %+v; recorded %+v", has, p)
		}
		if p.pays() {
			if applied[p.Claim] != 0 {
				return fmt.Errorf("claim %d is paid twice", p.Claim)
			}
			applied[p.Claim] = p.AppliedAtoms()
		}
		if EndsClaim(p.Reason) {
			lost[p.Claim] = true
		}
	}
	for id, c := range l.claims {
		if has := m.claims.get(id); has == nil || has.Claim != c {
			return fmt.Errorf("claim %+v; recorded %+v", has, c)
		}
		if lost[id] != (c.State == ClaimRefundDue) && (!lost[id] || !c.Terms.guarded()) {
			return fmt.Errorf("claim %d in state %d: money that lost it: %v", id, c.State, lost[id])
		}
		if c.Paid != applied[id] || c.Paid != 0 && c.Paid < c.Terms.Payment {
			return fmt.Errorf("claim %d: %d is paid, %d was applied", id, c.Paid, applied[id])
		}
	}
	if err := l.agreesEach(m); err != nil {
		return err
	}
	for r := range l.in {
		if l.in[r] != l.applied[r]+l.due[r]+l.refunded[r] {
			return fmt.Errorf("rail %d: in %d, applied %d, due %d, refunded %d", r, l.in[r], l.applied[r], l.due[r], l.refunded[r])
		}
	}
	return nil
}

// agreesEach compares the records with EachClaim.
func (l *ledger) agreesEach(m *Machine) (bad error) {
	claims, payments := 0, 0
	m.EachClaim(func(c *Claim, of []Payment) bool {
		claims++
		if l.claims[c.ID] != *c {
			bad = fmt.Errorf("claim %+v; recorded %+v", *c, l.claims[c.ID])
		}
		for i := range of {
			payments++
			if p := &of[i]; p.Claim != c.ID || l.payments[p.Signature] != *p || i > 0 && p.At < of[i-1].At {
				bad = fmt.Errorf("claim %d has payment %+v; recorded %+v", c.ID, *p, l.payments[p.Signature])
			}
		}
		return bad == nil
	})
	if bad == nil && (claims != len(l.claims) || payments != len(l.payments)) {
		bad = fmt.Errorf("shown %d claims, %d payments; recorded %d, %d", claims, payments, len(l.claims), len(l.payments))
	}
	return bad
}

// checkTerms checks invariant 5 in integers: price × whole is at least reference × (whole -
// discount) and less than one unit above it; base × price does not exceed the fill. All
// pairs of the tests have testDecimals.
func checkTerms(t *Terms) error {
	asked := market.Mul(uint64(t.Price), market.MaxBps)
	least := market.Mul(uint64(t.Reference), market.MaxBps-uint64(t.DiscountBps))
	over := market.Mul(uint64(t.Price)-1, market.MaxBps)
	if asked.Cmp(least) < 0 || over.Cmp(least) >= 0 {
		return fmt.Errorf("price %d for reference %d less %d bps", t.Price, t.Reference, t.DiscountBps)
	}
	worth := market.Mul(t.Base, uint64(t.Price))
	fill := market.Mul(uint64(t.Fill.USD()), market.Pow10(testDecimals+3))
	if next, err := worth.Add(market.Uint128{Lo: uint64(t.Price)}); worth.Cmp(fill) > 0 || err == nil && next.Cmp(fill) <= 0 {
		return fmt.Errorf("%d atoms at %d for %v", t.Base, t.Price, t.Fill)
	}
	if t.Rail == market.RailUSDC && t.Payment != uint64(t.Fill.USD()) {
		return fmt.Errorf("%d USDC atoms for %v", t.Payment, t.Fill)
	}
	return nil
}

const testDecimals = 6

// sameView compares two views deeply.
func sameView(a, b *View) error {
	describe := func(v *View) []string {
		lines := []string{
			fmt.Sprintf("seq %d at %d", v.Seq, v.At), fmt.Sprintf("%+v", v.Policy), fmt.Sprintf("%+v", v.Pairs),
			fmt.Sprintf("%+v", v.RailPrices), fmt.Sprintf("%+v", v.Locks), fmt.Sprintf("%+v", v.Operators),
		}
		for _, t := range v.Tickets {
			lines = append(lines, fmt.Sprintf("%+v", *t))
		}
		if t := Sellable(v.Tickets); t != nil {
			lines = append(lines, fmt.Sprintf("sellable %d", t.ID))
		}
		return lines
	}
	x, y := describe(a), describe(b)
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return fmt.Errorf("%s\n%s", x[i], y[i])
		}
	}
	if len(x) != len(y) {
		return fmt.Errorf("%d lines and %d", len(x), len(y))
	}
	return nil
}

// Things that tests name.

const (
	testAt  = int64(1_800_000_000) * second
	testPay = "pay"
)

func address(name string) (a market.Address) {
	copy(a[:], name)
	return a
}

func signature(name string) (s [64]byte) {
	copy(s[:], name)
	return s
}

func proof(name string) (p [32]byte) {
	copy(p[:], name)
	return p
}

func testPolicy() Policy {
	return Policy{
		QuoteTTL: 15 * second, ClaimTTL: 300 * second, LateWindow: hour, FeeBps: 500,
		Discounts: [market.FillCount]uint16{0, 100, 200, 300, 400, 500}, WalletClaims: 3,
		USDCMint: address("usdc"), PayTo: [market.RailCount]market.Address{1: address("pay usdc"), 2: address("pay sol")},
	}
}

// guardedPolicy is testPolicy under RulesGuarded.
func guardedPolicy() Policy {
	p := testPolicy()
	p.Rules, p.LateWindow, p.Grace, p.UnprovenTTL = RulesGuarded, 0, 30*second, 45*second
	p.UnprovenPerClient, p.UnprovenShareBps = 3_000_000_000, 3000
	p.Dust = [market.RailCount]uint64{1: 1_000_000, 2: 5_000_000}
	return p
}

func testPair(in market.InstrumentID) Pair {
	return Pair{
		Instrument: in, BaseMint: address(fmt.Sprint("mint ", in)), BaseDecimals: testDecimals, Rails: market.AllRails,
		Source: SourceOperator, CorridorBps: 1000, Via: NoInstrument,
	}
}

// openDesk returns a desk with one pair at 1.25 dollars, a SOL price of 150, ample
// inventory, and one ticket with the capacities, in dollars.
func openDesk(t testing.TB, capacities ...market.USD) *desk {
	t.Helper()
	d := newDesk()
	d.at = testAt
	for i := range capacities {
		capacities[i] *= 1_000_000
	}
	for _, r := range []Request{
		&SetPolicy{Policy: testPolicy()},
		&SetPair{Pair: testPair(0)},
		&SetOperator{Of: Operator{ID: 1, Name: "ann"}},
		&SetAnchor{Instrument: 0, Price: 1_250_000_000},
		&SetRailPrice{Rail: market.RailSOL, Price: 150_000_000_000},
		&SetInventory{Instrument: 0, Atoms: 1 << 60},
		&PostTicket{Label: "first", Capacities: capacities},
	} {
		r.Head().RequestID = d.seq + 1
		d.must(t, r)
	}
	return d
}

// last returns the last record of type R.
func last[R Record](t fatal, records []Record) R {
	t.Helper()
	for i := len(records) - 1; i >= 0; i-- {
		if r, ok := records[i].(R); ok {
			return r
		}
	}
	var none R
	t.Fatalf("no %T in %v", none, records)
	return none
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
