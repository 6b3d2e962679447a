package proof

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"blockdesk/desk"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/market"
)

// machineDesk is the engine's state machine of the desk, with a sequencer and the
// stored history: the Desk of a Prover, in memory.
type machineDesk struct {
	mu      sync.Mutex
	m       *rfq.Machine
	seq     uint64
	ahead   time.Duration // of the clock
	out     *event.Sink
	reader  rfq.Reader
	claims  map[market.ClaimID]rfq.Claim
	paid    map[market.ClaimID][]rfq.Payment
	index   map[[64]byte]market.ClaimID
	keys    map[rfq.IdempotencyKey]desk.Result // answers to keys
	bodies  map[[16]byte]rfq.IdempotencyKey
	proves  int   // ProvePayments that reached the machine
	failing error // of the next calls, while not nil
}

// errDesk is a failure of the desk's machinery.
var errDesk = errors.New("desk: not now")

const (
	claimTTL   = 15 * time.Minute
	lateWindow = time.Hour
)

func newDesk(t testing.TB, usdc solana.Address, treasury [market.RailCount]solana.Address) *machineDesk {
	t.Helper()
	d := &machineDesk{
		m: rfq.New(), out: event.NewGrowingSink(64), claims: map[market.ClaimID]rfq.Claim{}, paid: map[market.ClaimID][]rfq.Payment{},
		index: map[[64]byte]market.ClaimID{}, keys: map[rfq.IdempotencyKey]desk.Result{}, bodies: map[[16]byte]rfq.IdempotencyKey{},
	}
	policy := rfq.Policy{
		QuoteTTL: int64(15 * time.Second), ClaimTTL: int64(claimTTL), LateWindow: int64(lateWindow), FeeBps: 500, WalletClaims: 60_000,
		USDCMint: usdc, PayTo: treasury,
	}
	pair := func(in market.InstrumentID) rfq.Pair {
		return rfq.Pair{
			Instrument: in, BaseMint: solana.Address{0xba, byte(in)}, BaseDecimals: 6, Rails: market.AllRails,
			Source: rfq.SourceOperator, CorridorBps: 500, Via: rfq.NoInstrument,
		}
	}
	for _, r := range []rfq.Request{
		&rfq.SetPolicy{Policy: policy}, &rfq.SetPair{Pair: pair(0)}, &rfq.SetPair{Pair: pair(1)},
		&rfq.SetAnchor{Price: 1_000_000_000}, &rfq.SetAnchor{Instrument: 1, Price: 3_000_000_000},
		&rfq.SetRailPrice{Rail: market.RailSOL, Price: 250_000_000_000},
		&rfq.SetInventory{Atoms: 1 << 60}, &rfq.SetInventory{Instrument: 1, Atoms: 1 << 60},
		&rfq.PostTicket{Label: "first", Capacities: []market.USD{1e15, 1e15}}, &rfq.PostTicket{Label: "second", Instrument: 1, Capacities: []market.USD{1e15}},
	} {
		if o := d.must(t, r); o.Reason != 0 {
			t.Fatalf("%T: %v", r, o.Reason)
		}
	}
	return d
}

// do applies a request and follows its records.
func (d *machineDesk) do(r rfq.Request) (o desk.Result, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failing != nil {
		return o, d.failing
	}
	return d.apply(r), nil
}

func (d *machineDesk) apply(r rfq.Request) (o desk.Result) {
	d.seq++
	if r.Head().RequestID == 0 {
		r.Head().RequestID = d.seq
	}
	d.out.Reset()
	d.m.Apply(rfq.AppendRequest(nil, r), rfq.Stamp{Seq: d.seq, At: time.Now().Add(d.ahead).UnixNano()}, nil, d.out)
	for i := range d.out.Events() {
		rec, _, ok := d.reader.Add(&d.out.Events()[i])
		if !ok {
			continue
		}
		switch rec := rec.(type) {
		case *rfq.Claim:
			d.claims[rec.ID], o.Claim = *rec, rec
		case *rfq.Payment:
			o.Payment, d.index[rec.Signature] = rec, rec.Claim
			list := d.paid[rec.Claim]
			if at := slices.IndexFunc(list, func(p rfq.Payment) bool { return p.Signature == rec.Signature }); at >= 0 {
				list = slices.Clone(list)
				list[at] = *rec
			} else {
				list = append(slices.Clip(list), *rec)
			}
			d.paid[rec.Claim] = list
		case *rfq.Outcome:
			o.Outcome = *rec
		}
	}
	return o
}

func (d *machineDesk) must(t testing.TB, r rfq.Request) desk.Result {
	t.Helper()
	o, err := d.do(r)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// Do answers a key again as it answered it first.
func (d *machineDesk) Do(r rfq.Request) (*desk.Result, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failing != nil {
		return nil, d.failing
	}
	key := r.Head().Key
	if key != (rfq.IdempotencyKey{}) {
		if first, ok := d.bodies[key.ID]; ok && first != key {
			return nil, fmt.Errorf("%w: conflict", errDesk)
		}
		if o, ok := d.keys[key]; ok {
			o.Replayed = true
			return &o, nil
		}
	}
	d.proves++
	o := d.apply(r)
	if key != (rfq.IdempotencyKey{}) {
		d.keys[key], d.bodies[key.ID] = o, key
	}
	return &o, nil
}

func (d *machineDesk) Claim(id market.ClaimID) (*desk.History, bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c, ok := d.claims[id]
	return &desk.History{Claim: c, Payments: d.paid[id]}, ok, d.failing
}

func (d *machineDesk) PaymentClaim(s [64]byte) (market.ClaimID, bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	id, ok := d.index[s]
	return id, ok, d.failing
}

// fail makes every call fail with err, until it is nil.
func (d *machineDesk) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failing = err
}

// pass moves the desk's clock on.
func (d *machineDesk) pass(by time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ahead += by
}

// forget drops a claim from the machine as it does when it needs the room, while
// the history stays: by a machine that never heard of it.
func (d *machineDesk) forget(id market.ClaimID) (undo func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	before := d.m
	d.m = rfq.New()
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.m = before
	}
}

// take reserves a fill of 250 dollars.
func (d *machineDesk) take(t testing.TB, wallet solana.Address, rail market.Rail, way rfq.SettlementMode, ticket market.TicketID) *rfq.Claim {
	t.Helper()
	d.mu.Lock()
	id := market.ClaimID(0x9e37_79b9_7f4a_7c15 * (d.seq + 1)) // no two alike
	d.mu.Unlock()
	o := d.must(t, &rfq.TakeClaim{Header: rfq.Header{RequestID: uint64(id)}, Ticket: ticket, Tranche: 1, Fill: 1, Rail: rail, Mode: way, Wallet: wallet})
	if o.Reason != 0 || o.Claim == nil {
		t.Fatalf("claim: %v", o.Reason)
	}
	return o.Claim
}

// check compares the machine with its own sums, and with the payments that it has
// reported: a snapshot that does not add up is not restored.
func (d *machineDesk) check(t testing.TB) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := rfq.Restore(d.m.AppendSnapshot(nil)); err != nil {
		t.Errorf("desk: %v", err)
	}
	d.m.EachClaim(func(c *rfq.Claim, payments []rfq.Payment) bool {
		applied := uint64(0)
		for i := range payments {
			if payments[i].State == rfq.PaymentApplied {
				if applied != 0 {
					t.Errorf("claim %d is paid twice", c.ID)
				}
				applied = payments[i].Amount
			}
		}
		if c.Paid != applied || applied != 0 && applied < c.Terms.Payment || (applied != 0) != (c.State == rfq.ClaimPaid || c.State == rfq.ClaimDelivering || c.State == rfq.ClaimSettled && c.Mode == rfq.Modular) {
			t.Errorf("claim %d in state %d: %d applied, %d paid, %d due", c.ID, c.State, applied, c.Paid, c.Terms.Payment)
		}
		return true
	})
}

// money sums what the desk has booked, by rail.
func (d *machineDesk) money() (sums [market.RailCount]uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, list := range d.paid {
		for i := range list {
			sums[list[i].Rail] += list[i].Amount
		}
	}
	return sums
}
