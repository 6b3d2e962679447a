package settle_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/internal/await"
	"blockdesk/internal/solana"
	"blockdesk/market"
	"blockdesk/settle"
	"blockdesk/settle/binding"
)

// TestAdversary: buyers who pay right, too little, too much, twice, or without a claim, over
// both rails, and buyers who submit atomic transactions; prices that move within and beyond
// firm_bps, or are withdrawn; a node of three that lies and another that is busy or slow; a
// clock that jumps ahead; a process that is killed again and again, with part of what was
// not synced lost; an operator who locks, unlocks and pays back all the time. After each
// round a ledger that the program has no part in reconciles chain, journal and lists to
// the atom, and nothing was permitted while the price was beyond firm_bps.
// ADVERSARY_ROUNDS says how many rounds: make adversary ROUNDS=200.
func TestAdversary(t *testing.T) {
	rounds := 3
	if text := os.Getenv("ADVERSARY_ROUNDS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("ADVERSARY_ROUNDS: %v", err)
		}
		rounds = n
	}
	for seed := range uint64(rounds) {
		t.Run(fmt.Sprintf("round %d", seed), func(t *testing.T) {
			t.Parallel()
			newAdversary(t, seed).run()
		})
	}
}

// buyerKind is how a buyer pays.
type buyerKind int

const (
	paysRight    buyerKind = 0
	paysLess     buyerKind = 1
	paysMore     buyerKind = 2
	paysTwice    buyerKind = 3
	paysNameless buyerKind = 4
	submits      buyerKind = 5 // an atomic transaction
	buyerKinds   buyerKind = 6
)

// mayBeServed reports whether the kind pays at least once what its claim says.
func (k buyerKind) mayBeServed() bool { return k != paysLess && k != paysNameless }

// buyer is one of them, with what the buyer has sent: the ledger outside of the program.
type buyer struct {
	wallet
	kind  buyerKind
	rail  market.Rail
	claim *rfq.Claim
	sent  []sentPayment
	// ended: the desk has said that it signs the claim no more; stale: that it does not sign
	// the package that the buyer has.
	ended, stale bool
}

type sentPayment struct {
	signature solana.Signature
	amount    uint64
}

// adversary is one round.
type adversary struct {
	t      *testing.T
	c      *chain
	rng    *rand.Rand
	disk   *vfs.MemFS
	nodes  [2]*lyingNode // besides the chain's own
	clock  atomic.Int64
	notary *notary
	buyers []*buyer
	before holdings
	l      *life
	died   []string
	// moving: prices move in this round, jumps: its clock does.
	moving, jumps bool
}

func newAdversary(t *testing.T, seed uint64) *adversary {
	c := startChain(t)
	c.float(2_000_000_000)
	a := &adversary{t: t, c: c, rng: rand.New(rand.NewPCG(seed, 7)), disk: vfs.NewCrashableMem(), notary: newNotary(t)}
	a.nodes[0] = newLyingNode(t, c.local.URL(), seed, lie)
	a.nodes[1] = newLyingNode(t, c.local.URL(), seed+1<<32, busy)
	a.moving, a.jumps = a.rng.IntN(2) == 0, a.rng.IntN(3) == 0
	l := begin(t, c, lifeOptions{fs: a.disk, dir: "data"}).openGuarded()
	policy := l.desk.View().Policy
	policy.UnprovenTTL, policy.UnprovenPerClient, policy.UnprovenShareBps = policy.ClaimTTL, rfq.MaxCapacity, market.MaxBps
	l.must(&rfq.SetPolicy{Policy: policy})
	l.must(&rfq.SetOperator{Of: rfq.Operator{ID: 3, Name: "ann"}})
	for i := range 6 {
		b := &buyer{wallet: c.wallet(i), kind: buyerKind(a.rng.IntN(int(buyerKinds))), rail: market.RailUSDC}
		if a.rng.IntN(3) == 0 {
			b.rail = market.RailSOL
		}
		way := rfq.Modular
		if b.kind == submits {
			way = rfq.Atomic
		}
		b.claim = l.take(way, market.TicketID(1+a.rng.IntN(2)), b.rail, b.wallet)
		a.buyers = append(a.buyers, b)
	}
	a.before = c.holdings(a.wallets())
	l.end()
	return a
}

func (a *adversary) wallets() map[string]solana.Address {
	list := map[string]solana.Address{"desk": a.c.desk, "treasury": a.c.treasury}
	for i, b := range a.buyers {
		list[fmt.Sprint("buyer ", i)] = b.address
	}
	return list
}

// pay sends what the buyer pays.
func (a *adversary) pay(b *buyer) {
	due := b.claim.Terms.Payment
	memo, reference := binding.Memo(b.claim.ID), binding.Reference(b.claim.ID)
	amounts := []uint64{due}
	switch b.kind {
	case submits:
		return
	case paysLess:
		amounts = []uint64{due - 1 - a.rng.Uint64N(due/2)}
	case paysMore:
		amounts = []uint64{due + 1_000_000 + a.rng.Uint64N(due)}
	case paysTwice:
		amounts = []uint64{due, due + a.rng.Uint64N(5)}
	case paysNameless:
		memo, reference = "hello", solana.Address{7, byte(a.rng.UintN(256)), 9}
	}
	for _, n := range amounts {
		b.sent = append(b.sent, sentPayment{a.c.transfer(b.wallet, a.c.leg(b.rail, n, a.c.treasury), memo, reference), n})
	}
}

// pack returns the buyer's package, a fresh one if the desk does not sign the last.
func (a *adversary) pack(b *buyer) (desk.Package, error) {
	if b.stale {
		p, err := a.l.settle.FreshPackage(a.t.Context(), b.claim.ID)
		if !errors.Is(err, desk.ErrUnknownBuild) { // a crash has lost it
			return p, err
		}
	}
	return a.l.settle.Package(a.t.Context(), b.claim, 0)
}

// submit submits a buyer's atomic transaction, unless the desk has signed it or never will.
func (a *adversary) submit(b *buyer, dead func() bool) {
	if b.kind != submits || b.ended || a.rng.IntN(2) == 0 {
		return
	}
	p, err := a.pack(b)
	closed := err != nil
	if err == nil {
		_, err = a.l.submit(a.t.Context(), b.claim.ID, b.address, submission(b.fill(a.t, p.Transaction)))
	}
	refusal := (*desk.Refusal)(nil)
	switch {
	case err == nil || dead() || errors.Is(err, settle.ErrNotReady) || errors.Is(err, settle.ErrChain):
	case errors.As(err, &refusal):
		expired := refusal.Reason == desk.RefusalExpired
		// A claim that is still reserved waits for a package whose blockhash has not expired.
		b.stale = expired && !closed && a.l.claim(b.claim.ID).State == rfq.ClaimReserved
		b.ended = expired && !b.stale || refusal.Reason == desk.RefusalAlreadySettled
		if guards := []desk.RefusalReason{
			desk.RefusalLocked, desk.RefusalPriceCorridor, desk.RefusalPriceUnavailable,
		}; !b.ended && !b.stale && !slices.Contains(guards, refusal.Reason) {
			a.t.Errorf("submission refused: %s", refusal.Reason)
		}
	default:
		a.t.Errorf("submission: %v (died %v)", err, a.died)
	}
}

// run lets the service live and die until everything has ended, and then reconciles.
func (a *adversary) run() {
	paid := 0
	for lives := 1 + a.rng.IntN(4); ; lives-- {
		var d *failpoint
		if at := 1 + a.rng.IntN(40); lives > 0 {
			d = newFailpoint(func(_ string, n int) bool { return n == at })
		}
		for _, n := range a.nodes {
			n.bad.Store(lives > 0)
		}
		a.l = begin(a.t, a.c, lifeOptions{
			fs: a.disk, dir: "data", failpoint: d, more: []string{a.nodes[0].URL, a.nodes[1].URL}, clock: &a.clock, desk: a.notary.wrap,
		})
		dead := func() bool { return d != nil && d.isDead() }
		if lives <= 0 {
			a.notary.move(a.l, 1_000_000_000, 150_000_000_000)
		}
		const died, ended = "died", "ended"
		await.Value(a.t, "the end of a life", func() string {
			if dead() {
				return died
			}
			if paid < len(a.buyers) {
				a.pay(a.buyers[paid])
				paid++
			}
			a.operate(dead, lives > 0)
			for _, b := range a.buyers {
				a.submit(b, dead)
			}
			a.l.expireMissing()
			if paid == len(a.buyers) && a.over() {
				return ended
			}
			return a.open()
		}, func(how string) bool { return how == died || how == ended })
		if !dead() {
			break
		}
		a.died = append(a.died, d.died)
		a.l.stopSettle()
		a.l.settled.Wait()
		clone := a.disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: []int{0, 50, 100}[a.rng.IntN(3)], RNG: a.rng})
		a.l.end()
		a.disk = clone
	}
	a.reconcile()
	a.l.end()
	if a.t.Failed() {
		a.t.Logf("died %v; prices move: %t, the clock jumps: %t", a.died, a.moving, a.jumps)
	}
}

// operate is what happens to the desk all the time: locks, refunds, prices, the clock. In
// the last life prices stay where they are.
func (a *adversary) operate(dead func() bool, random bool) {
	if ready := a.l.settle.Ready() == nil; !ready {
		return // the operator waits
	}
	if a.rng.IntN(4) == 0 {
		if _, err := a.l.desk.Do(&rfq.SetLock{Scope: rfq.LockDeliveries, Locked: a.rng.IntN(4) == 0, Reason: "looking"}); err != nil && !dead() {
			a.t.Fatal(err)
		}
	}
	if random && a.moving && a.rng.IntN(3) == 0 {
		a.notary.move(a.l,
			[]market.USDPrice{700_000_000, 995_000_000, 1_000_000_000, 1_009_000_000, 1_011_000_000, 1_300_000_000, 0}[a.rng.IntN(7)],
			[]market.USDPrice{105_000_000_000, 148_000_000_000, 149_000_000_000, 150_000_000_000, 200_000_000_000}[a.rng.IntN(5)])
	}
	if random && a.jumps && a.rng.IntN(10) == 0 {
		a.clock.Add(int64(a.rng.IntN(300)) * int64(time.Second))
	}
	if _, err := a.l.settle.Refund(ann, &desk.RefundSelection{}); err != nil && !dead() {
		a.t.Fatal(err)
	}
}

// over reports whether each payment has found its place.
func (a *adversary) over() bool {
	for _, b := range a.buyers {
		for i := range b.sent {
			if _, ok := a.placeOf(b, &b.sent[i]); !ok {
				return false
			}
		}
		if b.kind == submits && !a.isOver(b) {
			return false
		}
	}
	n := a.l.settle.MoneyCounts()
	return n.RefundsDue+n.Refunding+n.Ordered == 0
}

// isOver reports whether an atomic claim has ended: settled; released, because its signed
// transaction can land no more; or refused for good.
func (a *adversary) isOver(b *buyer) bool {
	switch a.l.claim(b.claim.ID).State {
	case rfq.ClaimSettled, rfq.ClaimReleased:
		return true
	case rfq.ClaimCosigned:
		return false
	}
	return b.ended
}

// open describes what has not ended.
func (a *adversary) open() string {
	h := a.l.settle.Health()
	text := fmt.Sprintf("died %v; prices move: %t, the clock jumps: %t; %+v; ready: %v", a.died, a.moving, a.jumps, h.Tracker, h.NotReady)
	for i, b := range a.buyers {
		text += fmt.Sprintf("\nbuyer %d of kind %d: %s", i, b.kind, a.l.claim(b.claim.ID).State.Word())
		for k := range b.sent {
			if p, ok := a.placeOf(b, &b.sent[k]); !ok {
				text += fmt.Sprintf(", payment %d is open: %+v", k, p)
			}
		}
	}
	for kind := desk.MoneyRefundDue; kind <= desk.MoneyRefunding; kind++ {
		list, err := a.l.settle.Money(kind, desk.MoneyCursor{}, 10)
		for i := range list {
			x := &list[i]
			text += fmt.Sprintf("\nmoney of kind %d: claim %d, %d atoms: %s, %d deliveries, ordered by %q, waits for %q", kind, x.Claim, x.Amount, x.Reason, x.Attempts, x.OrderedBy, x.Problem)
		}
		if err != nil {
			text += "\n" + err.Error()
		}
	}
	return text
}

// place is where the atoms of a payment are, by the journal and the lists.
type place struct{ applied, refunded, unmatched uint64 }

// placeOf returns where the atoms of a payment are; ok is false while they are on their way.
func (a *adversary) placeOf(b *buyer, sent *sentPayment) (p place, ok bool) {
	h, known, err := a.l.desk.Claim(b.claim.ID)
	if err != nil || !known {
		a.t.Fatalf("claim: %v", err)
	}
	for i := range h.Payments {
		x := &h.Payments[i]
		if x.Signature != sent.signature {
			continue
		}
		if x.AppliedAtoms() > 0 && h.Claim.State != rfq.ClaimSettled || x.State.Pending() {
			return p, false
		}
		p.applied = x.AppliedAtoms()
		p.refunded = x.Amount - p.applied
		return p, true
	}
	x, isUnmatched, err := a.l.store.UnmatchedPayment(sent.signature)
	if err != nil {
		a.t.Fatal(err)
	}
	if isUnmatched {
		p.unmatched = x.Amount
	}
	return p, isUnmatched
}

// reconcile compares the ledger with the chain, the journal and the lists.
func (a *adversary) reconcile() {
	t := a.t
	want := map[string]int64{}
	for i, b := range a.buyers {
		name, rail := fmt.Sprint("buyer ", i), " "+b.rail.String()
		claim := a.l.claim(b.claim.ID)
		var applied uint64
		for k := range b.sent {
			sent := &b.sent[k]
			p, _ := a.placeOf(b, sent)
			if p.applied+p.refunded+p.unmatched != sent.amount {
				t.Errorf("%s, payment %d of %d atoms: %+v", name, k, sent.amount, p)
			}
			if back, n := a.c.refundsOnChain(sent.signature); uint64(back) != p.refunded || n > 1 {
				t.Errorf("%s, payment %d: %d atoms went back in %d transactions, the journal has %d", name, k, back, n, p.refunded)
			}
			applied += p.applied
			want["treasury"+rail] += int64(sent.amount)
			want[name+rail] += int64(p.refunded) - int64(sent.amount)
			want["desk"+rail] -= int64(p.refunded)
		}
		settled := claim.State == rfq.ClaimSettled
		// A permission whose signature a crash has lost is released once it can land no more.
		lost := b.kind == submits && len(a.died) > 0 && claim.State == rfq.ClaimReleased
		switch {
		case settled && !b.kind.mayBeServed(), b.kind.mayBeServed() && !settled && !lost && !a.moving && !a.jumps,
			settled && b.kind != submits && applied != claim.Terms.Payment, !settled && applied != 0:
			t.Errorf("%s of kind %d: state %s, %d atoms applied of %d", name, b.kind, claim.State.Word(), applied, claim.Terms.Payment)
		}
		if !settled {
			continue
		}
		if b.kind == submits {
			want["treasury"+rail] += int64(claim.Terms.Payment)
			want[name+rail] -= int64(claim.Terms.Payment)
		}
		base := symbols[claim.Terms.Instrument]
		want[name+" "+base] += int64(claim.Terms.Base)
		want["desk "+base] -= int64(claim.Terms.Base)
	}
	got := a.c.holdings(a.wallets()).minus(a.before)
	for name := range a.wallets() {
		if name != "treasury" { // it pays no fees
			delete(got, name+" SOL")
			delete(want, name+" SOL")
		}
	}
	for name, atoms := range want {
		if atoms == 0 {
			delete(want, name)
		}
	}
	reconcile(t, got, want)
}
