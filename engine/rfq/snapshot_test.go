package rfq

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"testing"

	"blockdesk/engine/event"
	"blockdesk/internal/runtest"
	"blockdesk/market"
)

func TestRestoreNew(t *testing.T) {
	m, err := Restore(New().AppendSnapshot(nil))
	if err != nil || m.NextExpiry() != 0 {
		t.Fatalf("%v, next expiry %d", err, m.NextExpiry())
	}
	data := busyDesk(t).m.AppendSnapshot([]byte("before"))
	if m, err = Restore(data[len("before"):]); err != nil || !m.sameSnapshot(data[len("before"):]) {
		t.Fatal(err)
	}
}

// TestRestoreDamaged flips every bit of a snapshot and truncates it everywhere. A damaged snapshot that is
// accepted is canonical and keeps the invariants.
func TestRestoreDamaged(t *testing.T) {
	runtest.SkipUnderRace(t, "one goroutine")
	for _, d := range []*desk{busyDesk(t), abandonedDesk(t), busyGuardedDesk(t)} {
		damage(t, d.m.AppendSnapshot(nil))
	}
}

func damage(t *testing.T, data []byte) {
	t.Helper()
	for n := range data {
		if _, err := Restore(data[:n]); !errors.Is(err, ErrSnapshot) {
			t.Fatalf("%d of %d bytes: %v", n, len(data), err)
		}
	}
	if _, err := Restore(append(bytes.Clone(data), 0)); !errors.Is(err, ErrSnapshot) {
		t.Fatalf("a byte too many: %v", err)
	}
	taken := 0
	for i := range 8 * len(data) {
		bad := bytes.Clone(data)
		bad[i/8] ^= 1 << (i % 8)
		m, err := Restore(bad)
		if err != nil {
			if !errors.Is(err, ErrSnapshot) {
				t.Fatalf("bit %d: %v", i, err)
			}
			continue
		}
		taken++
		if !m.sameSnapshot(bad) {
			t.Fatalf("bit %d: not canonical", i)
		}
		if err := checkSums(m); err != nil {
			t.Fatalf("bit %d: %v", i, err)
		}
		at := addTime(m.lastShown.At, 40*day)
		m.Expire(Stamp{Seq: m.lastShown.Seq + 1, At: at}, math.MaxInt, event.NewGrowingSink(64))
		if err := checkSums(m); err != nil {
			t.Fatalf("bit %d: after expiry: %v", i, err)
		}
	}
	if refused := 8*len(data) - taken; refused < len(data) {
		t.Errorf("only %d of %d flips were refused", refused, 8*len(data))
	}
}

// TestRestoreRefuses: impossible desks, item by item. Each change is made in a machine,
// whose snapshot must be refused.
func TestRestoreRefuses(t *testing.T) {
	claim := func(m *Machine, id market.ClaimID) *claimItem { return m.claims.get(id) }
	ticket := func(m *Machine, id market.TicketID) *Ticket { return m.tickets.get(id) }
	settle := func(m *Machine) {
		for _, r := range []Request{&BeginDelivery{Header: token(1), Claim: 107}, &SettleClaim{Header: token(2), Claim: 107}} {
			m.Apply(AppendRequest(nil, r), m.lastShown, nil, event.NewGrowingSink(64))
		}
	}
	giveBack := func(m *Machine, id market.ClaimID) {
		m.begin(m.lastShown, event.NewGrowingSink(64))
		m.unreserve(&claim(m, id).Terms)
		m.end()
	}
	for name, change := range map[string]func(m *Machine){
		"less filled than bought":     func(m *Machine) { settle(m); ticket(m, 1).Tranches[0].Filled-- },
		"less sold than bought":       func(m *Machine) { settle(m); m.pairs[0].Sold-- },
		"policy out of range":         func(m *Machine) { m.policy.ClaimTTL = 0 },
		"too many operators":          func(m *Machine) { m.operators = make([]Operator, MaxOperators+1) },
		"operators out of order":      func(m *Machine) { m.operators = append(m.operators, Operator{1, "again"}) },
		"operator without a name":     func(m *Machine) { m.operators[0].Name = "" },
		"pairs out of order":          func(m *Machine) { m.pairs[0], m.pairs[1] = m.pairs[1], m.pairs[0] },
		"pair without a corridor":     func(m *Machine) { m.pairs[1].CorridorBps = 0 },
		"pair between unknown":        func(m *Machine) { m.pairs[1].Via = 7 },
		"pair between itself":         func(m *Machine) { m.pairs[1].Via = 3 },
		"anchor too high":             func(m *Machine) { m.pairs[1].Anchor = market.MaxUSDPrice + 1 },
		"anchor's time without it":    func(m *Machine) { m.pairs[1].AnchorAt = 1 },
		"sold more than a word":       func(m *Machine) { m.pairs[0].Sold = ^uint64(0) },
		"atoms reserved by nobody":    func(m *Machine) { m.pairs[0].Reserved++ },
		"lock by nobody":              func(m *Machine) { m.locks[0].By = 9 },
		"lock of an unknown pair":     func(m *Machine) { m.locks[0] = Lock{Scope: LockPair, Instrument: 8} },
		"price of USDC":               func(m *Machine) { m.rails[0].Rail = market.RailUSDC },
		"time before time":            func(m *Machine) { m.lastShown.At = -1 },
		"more tickets than commands":  func(m *Machine) { m.lastTicket = market.TicketID(m.lastShown.Seq) + 1 },
		"more tickets in its group":   func(m *Machine) { m.lastTicket = market.FirstTicket(2) + market.TicketID(m.lastShown.Seq) },
		"ticket of no group":          func(m *Machine) { m.lastTicket = market.MaxShards*market.TicketsPerShard + 1 },
		"ticket after the last":       func(m *Machine) { m.lastTicket = 2 },
		"ticket without a label":      func(m *Machine) { ticket(m, 1).Label = "" },
		"ticket of an unknown pair":   func(m *Machine) { ticket(m, 2).Instrument = 9 },
		"ticket without tranches":     func(m *Machine) { ticket(m, 2).Tranches = nil },
		"too many tranches":           func(m *Machine) { ticket(m, 2).Tranches = make([]Tranche, MaxTranches+1) },
		"open ticket of no state":     func(m *Machine) { ticket(m, 2).State = 9 },
		"open ticket exhausted":       func(m *Machine) { ticket(m, 2).State = TicketExhausted },
		"ticket of a later command":   func(m *Machine) { ticket(m, 2).Seq = m.lastShown.Seq + 1 },
		"tranche too big":             func(m *Machine) { ticket(m, 2).Tranches[0].Capacity = MaxCapacity + 1 },
		"tranche overfull":            func(m *Machine) { ticket(m, 2).Tranches[0].Filled = 501_000_000 },
		"capacity reserved by nobody": func(m *Machine) { ticket(m, 2).Tranches[0].Reserved = 1 },
		"tranches out of order":       func(m *Machine) { ticket(m, 1).Tranches[0].ID = 2 },
		"quote without an id":         func(m *Machine) { m.quotes.get(106).ID = 0 },
		"quote of no price":           func(m *Machine) { m.quotes.get(106).Terms.Price++ },
		"quote of nothing":            func(m *Machine) { m.quotes.get(106).Terms.Base = 0 },
		"quote over no rail":          func(m *Machine) { m.quotes.get(106).Terms.Rail = 3 },
		"quote that ends before":      func(m *Machine) { m.quotes.get(106).ValidUntil = 0 },
		"quote of another tranche":    func(m *Machine) { m.quotes.get(106).Terms.Tranche = 3 },
		"claim of no mode":            func(m *Machine) { claim(m, 112).Mode = 0 },
		"claim of no state":           func(m *Machine) { claim(m, 112).State = 0 },
		"claim of no wallet":          func(m *Machine) { claim(m, 112).Wallet = market.Address{} },
		"claim that gave up":          func(m *Machine) { claim(m, 112).State = ClaimExpired },
		"modular claim cosigned":      func(m *Machine) { claim(m, 112).State = ClaimCosigned },
		"atomic claim paid":           func(m *Machine) { claim(m, 110).State = ClaimPaid },
		"reserved claim with a proof": func(m *Machine) { claim(m, 112).Proof[0] = 1 },
		"claim paid by nobody":        func(m *Machine) { claim(m, 112).State = ClaimPaid },
		"claim paid otherwise":        func(m *Machine) { claim(m, 107).Paid++ },
		"claim paid and not":          func(m *Machine) { claim(m, 107).State = ClaimReserved },
		"refund due of nothing":       func(m *Machine) { claim(m, 112).State = ClaimRefundDue },
		"refund due of dust": func(m *Machine) {
			claim(m, 107).State, claim(m, 107).Paid = ClaimRefundDue, 0
			p := m.payments.get(signature("s1"))
			p.State, p.Reason = PaymentRefundDue, event.ReasonPaymentMismatch
			giveBack(m, 107)
		},
		"atomic refund due": func(m *Machine) {
			claim(m, 110).State, claim(m, 110).Proof = ClaimRefundDue, [32]byte{}
			giveBack(m, 110)
		},
		"given up, and still delivered": func(m *Machine) {
			p := m.payments.get(signature("s2"))
			p.Reason, p.Rail, p.Amount = event.ReasonUndeliverable, market.RailUSDC, 1_000_000_000
		},
		"late payment of a live claim": func(m *Machine) { m.payments.get(signature("s2")).Reason = event.ReasonLatePayment },
		"claim before its ticket":      func(m *Machine) { claim(m, 112).Terms.Ticket = 9 },
		"claim of a ticket gone":       func(m *Machine) { m.tickets.remove(1) },
		"payment of another claim":     func(m *Machine) { m.payments.get(signature("s1")).Claim = 110 },
		"payment of nothing":           func(m *Machine) { m.payments.get(signature("s2")).Amount = 0 },
		"payment without a reason":     func(m *Machine) { m.payments.get(signature("s2")).Reason = 0 },
		"payment with a reason":        func(m *Machine) { m.payments.get(signature("s1")).Reason = event.ReasonLatePayment },
		"payment without a signature":  func(m *Machine) { m.payments.get(signature("s2")).Signature = [64]byte{} },
		"payment of no state":          func(m *Machine) { m.payments.get(signature("s2")).State = 0 },
		"the same payment twice":       func(m *Machine) { m.payments.get(signature("s2")).Signature = signature("s1") },
		"refund before it":             func(m *Machine) { m.payments.get(signature("s2")).Proof[0] = 1 },
	} {
		m := busyDesk(t).m
		before := m.AppendSnapshot(nil)
		if _, err := Restore(before); err != nil {
			t.Fatal(err)
		}
		change(m)
		data := m.AppendSnapshot(nil)
		if bytes.Equal(before, data) {
			t.Errorf("%s: nothing changed", name)
		}
		if _, err := Restore(data); !errors.Is(err, ErrSnapshot) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRestoreRefusesAbandoned: impossible states of an abandoned claim.
func TestRestoreRefusesAbandoned(t *testing.T) {
	payment := func(m *Machine, sig string) *paymentItem { return m.payments.get(signature(sig)) }
	for name, change := range map[string]func(m *Machine){
		"short":       func(m *Machine) { payment(m, "s1").Amount = 999_999_999 },
		"wrong rail":  func(m *Machine) { payment(m, "s1").Rail = market.RailSOL },
		"short, back": func(m *Machine) { payment(m, "s1").State, payment(m, "s1").Amount = PaymentRefunded, 999_999_999 },
		"twice": func(m *Machine) {
			p := payment(m, "s2")
			p.Reason, p.Rail, p.Amount = event.ReasonUndeliverable, market.RailUSDC, 1_000_000_000
		},
		"expired":       func(m *Machine) { m.claims.get(107).State = ClaimExpired },
		"still paid":    func(m *Machine) { m.claims.get(107).Paid = 1_000_000_000 },
		"still applied": func(m *Machine) { payment(m, "s1").State = PaymentApplied },
	} {
		m := abandonedDesk(t).m
		if _, err := Restore(m.AppendSnapshot(nil)); err != nil {
			t.Fatal(err)
		}
		change(m)
		if _, err := Restore(m.AppendSnapshot(nil)); !errors.Is(err, ErrSnapshot) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRestoreRefusesGuarded: impossible desks of version 2.
func TestRestoreRefusesGuarded(t *testing.T) {
	claim := func(m *Machine, id market.ClaimID) *Claim { return &m.claims.get(id).Claim }
	payment := func(m *Machine, sig string) *Payment { return &m.payments.get(signature(sig)).Payment }
	for name, change := range map[string]func(m *Machine){
		"rules of no version":         func(m *Machine) { m.policy.Rules = 1 },
		"older rules with their own":  func(m *Machine) { m.policy.Rules = 0 },
		"late window":                 func(m *Machine) { m.policy.LateWindow = 1 },
		"grace":                       func(m *Machine) { m.policy.Grace = maxGrace + 1 },
		"negative grace":              func(m *Machine) { m.policy.Grace = -1 },
		"no time for unproven claims": func(m *Machine) { m.policy.UnprovenTTL = 0 },
		"unproven share":              func(m *Machine) { m.policy.UnprovenShareBps = market.MaxBps + 1 },
		"unproven limit":              func(m *Machine) { m.policy.UnprovenPerClient = MaxCapacity + 1 },
		"firm":                        func(m *Machine) { m.pairs[0].FirmBps[1] = market.MaxBps + 1 },
		"no such origin":              func(m *Machine) { m.pairs[0].AnchorSource = OriginOperator + 1 },
		"confidence":                  func(m *Machine) { m.pairs[0].Confidence = market.MaxUSDPrice + 1 },
		"published before time":       func(m *Machine) { m.pairs[0].PublishedAt = -1 },
		"published after it was set":  func(m *Machine) { m.pairs[0].PublishedAt = m.pairs[0].AnchorAt + 1 },
		"withdrawn with a price":      func(m *Machine) { m.pairs[0].Withdrawn = true },
		"balance never read":          func(m *Machine) { m.pairs[0].OnChainAt = 0 },
		"balance before time":         func(m *Machine) { m.pairs[0].OnChainAt = -1 },
		"rail without a price":        func(m *Machine) { m.rails[0].Withdrawn = false },
		"rail withdrawn with a price": func(m *Machine) { m.rails[0].Price = 1 },
		"terms without a rail price":  func(m *Machine) { claim(m, 113).Terms.RailPrice = 0 },
		"terms without a market":      func(m *Machine) { claim(m, 113).Terms.Market = 0 },
		"USDC at another price":       func(m *Machine) { claim(m, 113).Terms.RailPrice++ },
		"surplus of another size":     func(m *Machine) { payment(m, "s1").Due-- },
		"surplus without a reason":    func(m *Machine) { payment(m, "s1").Reason = event.ReasonClaimState },
		"surplus that pays nothing":   func(m *Machine) { payment(m, "s1").Applied = 0 },
		"more applied than the price": func(m *Machine) { payment(m, "s1").Applied++; payment(m, "s1").Due-- },
		"paid with the surplus":       func(m *Machine) { claim(m, 108).Paid++ },
		"due of another size":         func(m *Machine) { payment(m, "s2").Due++ },
		"refunding without a proof":   func(m *Machine) { payment(m, "s2").Proof = [32]byte{} },
		"due with a proof":            func(m *Machine) { payment(m, "s2").State = PaymentRefundDue },
		"block before time":           func(m *Machine) { payment(m, "s1").BlockTime = -1 },
		"modular released by a proof": func(m *Machine) { claim(m, 115).Proof[0] = 1 },
		"abandoned and paid": func(m *Machine) {
			p := payment(m, "s1")
			p.Reason, p.Applied, p.Due = event.ReasonPriceCorridor, 0, p.Amount
		},
	} {
		m := busyGuardedDesk(t).m
		before := m.AppendSnapshot(nil)
		if _, err := Restore(before); err != nil {
			t.Fatal(err)
		}
		change(m)
		data := m.AppendSnapshot(nil)
		if bytes.Equal(before, data) {
			t.Errorf("%s: nothing changed", name)
		}
		if _, err := Restore(data); !errors.Is(err, ErrSnapshot) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSnapshotVersions: what needs nothing of version 2 is no snapshot of version 2.
func TestSnapshotVersions(t *testing.T) {
	m := busyDesk(t).m
	old := m.AppendSnapshot(nil)
	m.policy.Rules = RulesGuarded // makes it version 2
	m.policy.LateWindow, m.policy.UnprovenTTL = 0, second
	data := m.AppendSnapshot(nil)
	if len(data) <= len(old) || old[len(snapshotMagic)] != snapshotVersion1 || data[len(snapshotMagic)] != snapshotVersion2 {
		t.Fatalf("versions %d and %d", old[len(snapshotMagic)], data[len(snapshotMagic)])
	}
	if _, err := Restore(data); err != nil {
		t.Fatal(err)
	}
	w := codec{buf: []byte(snapshotMagic), v2: true}
	version := uint16(snapshotVersion2)
	u16(&w, &version)
	(&Policy{}).walk(&w)
	empty := New().AppendSnapshot(nil)
	w.buf = append(w.buf, empty[len(empty)-(2+2+2+1+8+8+8+3*4):]...)
	if _, err := Restore(w.buf); !errors.Is(err, ErrSnapshot) {
		t.Errorf("an empty desk in version 2: %v", err)
	}
}

// TestRestoreVersion: the error about another version names it.
func TestRestoreVersion(t *testing.T) {
	data := New().AppendSnapshot(nil)
	data[len(snapshotMagic)]++
	if _, err := Restore(data); !errors.Is(err, ErrSnapshot) {
		t.Error(err)
	}
	if _, err := Restore([]byte("BDRX")); !errors.Is(err, ErrSnapshot) {
		t.Error(err)
	}
}

// TestRestoreSumsOverflow: two claims whose atoms together exceed 64 bits are refused.
func TestRestoreSumsOverflow(t *testing.T) {
	d := busyDesk(t)
	a, b := d.m.claims.get(110), d.m.claims.get(112)
	a.Terms.Base, b.Terms.Base = 1<<63, 1<<63
	d.m.pairs[0].Reserved = d.m.claims.get(107).Terms.Base // the wrapped sum
	if _, err := Restore(d.m.AppendSnapshot(nil)); !errors.Is(err, ErrSnapshot) {
		t.Error(err)
	}
}

// TestRestoreMaxRefunds: more refunds due than the limit are refused.
func TestRestoreMaxRefunds(t *testing.T) {
	d := busyDesk(t) // owes one
	d.m.limits.refunds = MaxRefunds + 1
	r := &ProvePayment{Header: token(0), Claim: 107, Rail: market.RailUSDC, Amount: 1}
	var data []byte
	for i := range MaxRefunds {
		r.Signature = signature(fmt.Sprint("dust ", i))
		data = AppendRequest(data[:0], r)
		d.out.Reset()
		d.seq++
		d.m.Apply(data, Stamp{Seq: d.seq, At: d.at}, nil, d.out)
	}
	if _, err := Restore(d.m.AppendSnapshot(nil)); d.m.refundsDue != MaxRefunds+1 || !errors.Is(err, ErrSnapshot) {
		t.Fatalf("%d refunds due: %v", d.m.refundsDue, err)
	}
	d.out.Reset()
	d.seq++
	d.m.Apply(AppendRequest(nil, &RefundPayment{Header: token(0), Signature: r.Signature}), Stamp{Seq: d.seq, At: d.at}, nil, d.out)
	m, err := Restore(d.m.AppendSnapshot(nil))
	if err != nil || m.refundsDue != MaxRefunds {
		t.Fatalf("%d refunds due: %v", d.m.refundsDue, err)
	}
}

func ExampleMachine() {
	m := New()
	out := event.NewGrowingSink(16)
	request := AppendRequest(nil, &SetOperator{Header: Header{RequestID: 1}, Of: Operator{ID: 1, Name: "ann"}})
	m.Apply(request, Stamp{Seq: 1, At: 1_800_000_000_000_000_000}, nil, out)
	var r Reader
	for i := range out.Events() {
		if rec, seq, ok := r.Add(&out.Events()[i]); ok {
			fmt.Printf("%d: %+v\n", seq, rec)
		}
	}
	// Output:
	// 1: &{ID:1 Name:ann}
	// 1: &{RequestID:1 Kind:3 Reason:none Limit:0 At:1800000000000000000 Ticket:0}
}
