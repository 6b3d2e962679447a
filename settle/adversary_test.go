package settle_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/internal/await"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/build"
	"blockdesk/market"
	"blockdesk/settle/binding"
)

// TestAdversary: buyers who pay right, too little, too much, twice, or without a claim; a
// node of three that lies; a process that is killed again and again, with part of what was
// not synced lost; an operator who locks, unlocks and pays back all the time. After each
// round a ledger that the program has no part in reconciles chain, journal and lists to
// the atom. ADVERSARY_ROUNDS says how many rounds: make adversary ROUNDS=200.
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
			newAdversary(t, seed).play()
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
	buyerKinds   buyerKind = 5
)

// buyer is one of them, with what the buyer has sent: the ledger outside of the program.
type buyer struct {
	wallet
	kind  buyerKind
	claim *rfq.Claim
	sent  []sentPayment
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
	liar   *lyingNode
	buyers []*buyer
	before holdings
	l      *life
	died   []string
}

func newAdversary(t *testing.T, seed uint64) *adversary {
	c := startChain(t)
	c.float(2_000_000_000)
	a := &adversary{t: t, c: c, rng: rand.New(rand.NewPCG(seed, 7)), disk: vfs.NewCrashableMem(), liar: newLyingNode(t, c.local.URL(), seed)}
	l := begin(t, c, lifeOptions{fs: a.disk, dir: "data"}).open()
	policy := l.desk.View().Policy
	policy.Rules, policy.LateWindow, policy.Grace, policy.UnprovenTTL = rfq.RulesGuarded, 0, 30e9, policy.ClaimTTL
	policy.UnprovenPerClient, policy.UnprovenShareBps = rfq.MaxCapacity, market.MaxBps
	l.must(&rfq.SetPolicy{Policy: policy})
	l.must(&rfq.SetOperator{Of: rfq.Operator{ID: 3, Name: "ann"}})
	for i := range 5 {
		b := &buyer{wallet: c.wallet(i), kind: buyerKind(a.rng.IntN(int(buyerKinds)))}
		b.claim = l.take(rfq.Modular, market.TicketID(1+a.rng.IntN(2)), market.RailUSDC, b.wallet)
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
		leg := build.Leg{Rail: market.RailUSDC, Mint: a.c.checkedMint("USDC"), Amount: market.Amount(n), To: a.c.treasury}
		b.sent = append(b.sent, sentPayment{a.c.transfer(b.wallet, leg, memo, reference), n})
	}
}

// play lets the service live and die until everything has ended, and then reconciles.
func (a *adversary) play() {
	paid := 0
	for lives := 1 + a.rng.IntN(4); ; lives-- {
		var d *failpoint
		if at := 1 + a.rng.IntN(40); lives > 0 {
			d = newFailpoint(func(_ string, n int) bool { return n == at })
		}
		a.liar.lies.Store(lives > 0)
		a.l = begin(a.t, a.c, lifeOptions{fs: a.disk, dir: "data", failpoint: d, more: []string{a.c.local.URL(), a.liar.URL}})
		dead := func() bool { return d != nil && d.isDead() }
		await.True(a.t, "the end of a life", func() bool {
			if dead() {
				return true
			}
			if paid < len(a.buyers) {
				a.pay(a.buyers[paid])
				paid++
			}
			if err := a.operate(); err != nil && !dead() {
				a.t.Fatal(err)
			}
			a.l.expireMissing()
			return paid == len(a.buyers) && a.over()
		})
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
		a.t.Logf("died %v", a.died)
	}
}

// operate is what the operator does all the time: lock and unlock, and pay back.
func (a *adversary) operate() error {
	if ready := a.l.settle.Ready() == nil; !ready {
		return nil // the operator waits
	}
	if a.rng.IntN(4) == 0 {
		if _, err := a.l.desk.Do(&rfq.SetLock{Scope: rfq.LockDeliveries, Locked: a.rng.IntN(4) == 0, Reason: "looking"}); err != nil {
			return err
		}
	}
	_, err := a.l.settle.Refund(ann, &desk.RefundSelection{})
	return err
}

// over reports whether each payment has found its place.
func (a *adversary) over() bool {
	for _, b := range a.buyers {
		for i := range b.sent {
			if _, ok := a.placeOf(b, &b.sent[i]); !ok {
				return false
			}
		}
	}
	n := a.l.settle.MoneyCounts()
	return n.RefundsDue+n.Refunding+n.Ordered == 0
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
		name := fmt.Sprint("buyer ", i)
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
			want["treasury USDC"] += int64(sent.amount)
			want[name+" USDC"] += int64(p.refunded) - int64(sent.amount)
			want["desk USDC"] -= int64(p.refunded)
		}
		if settled := claim.State == rfq.ClaimSettled; settled != (b.kind == paysRight || b.kind == paysMore || b.kind == paysTwice) ||
			settled && applied != claim.Terms.Payment || !settled && applied != 0 {
			t.Errorf("%s of kind %d: state %s, %d atoms applied of %d", name, b.kind, claim.State.Word(), applied, claim.Terms.Payment)
		}
		if claim.State == rfq.ClaimSettled {
			base := symbols[claim.Terms.Instrument]
			want[name+" "+base] += int64(claim.Terms.Base)
			want["desk "+base] -= int64(claim.Terms.Base)
		}
	}
	got := a.c.holdings(a.wallets()).minus(a.before)
	for name := range a.wallets() {
		delete(got, name+" SOL") // fees
	}
	reconcile(t, got, want)
}

// lyingNode is a proxy of a node that lies about half of what it is asked: transactions that
// are not there, statuses that it does not know, heights far ahead, sends that it swallows.
type lyingNode struct {
	*httptest.Server
	node string
	lies atomic.Bool
	n    atomic.Uint64
	seed uint64
}

func newLyingNode(t testing.TB, node string, seed uint64) *lyingNode {
	l := &lyingNode{node: node, seed: seed}
	l.Server = httptest.NewServer(l)
	t.Cleanup(l.Close)
	return l
}

func (l *lyingNode) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var request struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	lie := ""
	if json.Unmarshal(body, &request) == nil && l.lies.Load() && rand.New(rand.NewPCG(l.seed, l.n.Add(1))).IntN(2) == 0 {
		lie = map[string]string{
			"getTransaction": "null", "getSignatureStatuses": `{"context":{"slot":99999999},"value":[null]}`,
			"getBlockHeight": "99999999", "getSignaturesForAddress": "[]",
		}[request.Method]
	}
	if lie != "" {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, request.ID, lie)
		return
	}
	res, err := http.Post(l.node, "application/json", bytes.NewReader(body))
	if err != nil {
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	defer res.Body.Close()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(res.StatusCode)
	if _, err := io.Copy(w, res.Body); err != nil {
		return // the client is gone
	}
}
