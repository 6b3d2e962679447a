package proof

import (
	"context"
	"slices"
	"testing"
	"time"

	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/ledger"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
)

// threeNodes are a node that lies and two that do not. A test sets which is asked where one
// is enough, and whether the honest ones fail.
type threeNodes struct {
	*fakeNode // the honest one
	liar      *fakeNode
	current   int // 0: the liar
	down      bool
}

func (n *threeNodes) nodes() []*fakeNode { return []*fakeNode{n.liar, n.fakeNode, n.fakeNode} }

func (n *threeNodes) Upstreams() int { return 3 }

func (n *threeNodes) SignaturesInTurn(ctx context.Context, a solana.Address, page rpc.Page, level rpc.Commitment) ([]rpc.SignatureInfo, error) {
	return n.nodes()[n.current].Signatures(ctx, a, page, level)
}

var errNodeDown = &rpc.Error{Kind: rpc.RateLimited}

func (n *threeNodes) SignaturePageFromEach(ctx context.Context, a solana.Address, page rpc.Page, level rpc.Commitment) ([]rpc.NodeSignatures, error) {
	views := make([]rpc.NodeSignatures, 3)
	for i, node := range n.nodes() {
		if views[i].List, views[i].Err = node.Signatures(ctx, a, page, level); i > 0 && n.down {
			views[i] = rpc.NodeSignatures{Err: errNodeDown}
		}
	}
	return views, nil
}

func (n *threeNodes) TransactionByQuorum(ctx context.Context, s solana.Signature, level rpc.Commitment) (*ledger.Confirmed, bool, error) {
	votes := map[uint64]int{} // by slot
	var some error
	for i, node := range n.nodes() {
		c, found, _ := node.Transaction(ctx, s, level)
		switch {
		case i > 0 && n.down:
			continue
		case found:
			some = rpc.ErrNoMajority
			if votes[c.Slot]++; votes[c.Slot] == 2 {
				return c, true, nil
			}
		}
	}
	return nil, false, some
}

func (n *threeNodes) FindTransaction(ctx context.Context, s solana.Signature, level rpc.Commitment) (*ledger.Confirmed, bool, error) {
	if _, found, err := n.nodes()[n.current].Transaction(ctx, s, level); !found || err != nil {
		return nil, false, err
	}
	return n.TransactionByQuorum(ctx, s, level)
}

func (n *threeNodes) TransactionFromEach(ctx context.Context, s solana.Signature, level rpc.Commitment) ([]rpc.NodeTransaction, error) {
	views := make([]rpc.NodeTransaction, 3)
	for i, node := range n.nodes() {
		if views[i].Transaction, _, views[i].Err = node.Transaction(ctx, s, level); i > 0 && n.down {
			views[i] = rpc.NodeTransaction{Err: errNodeDown}
		}
	}
	return views, nil
}

func (n *threeNodes) FirstBlockFromEach(context.Context) ([]rpc.NodeFirstBlock, error) {
	return make([]rpc.NodeFirstBlock, 3), nil
}

// withLiar has a table's prover ask three nodes.
func (x *table) withLiar(change func(o *Options)) *threeNodes {
	x.t.Helper()
	n := &threeNodes{fakeNode: x.node, liar: newFake()}
	o := x.options
	if change != nil {
		change(&o)
	}
	p, err := New(o, n, x.desk, x.store)
	if err != nil {
		x.t.Fatal(err)
	}
	x.Prover = p
	return n
}

// copies has the liar list and know what the honest nodes do, except some.
func (n *threeNodes) copies(except ...solana.Signature) {
	n.liar.list, n.liar.known = nil, map[solana.Signature]*ledger.Confirmed{}
	for _, s := range n.list {
		if !slices.Contains(except, s.Signature) {
			n.liar.list = append(n.liar.list, s)
			n.liar.known[s.Signature] = n.known[s.Signature]
		}
	}
}

// TestWatchHiddenPayment: a node that hides a payment and lists a later one, while it is the
// only one that is asked in turn, cannot have the cursor pass the payment.
func TestWatchHiddenPayment(t *testing.T) {
	for name, down := range map[string]bool{"others answer": false, "others are down": true} {
		x := newTable(t, nil)
		n := x.withLiar(nil)
		n.current = 1
		a := x.account()
		x.goes(a)
		hidden, later := x.take(), x.take()
		sig := x.node.pays(t, hidden)
		x.node.pays(t, later)
		n.copies(sig)
		n.current = 0
		before := x.cursor()
		x.goes(a)
		if x.state(later) != rfq.ClaimPaid || x.state(hidden) != rfq.ClaimReserved {
			t.Fatalf("%s: states %d, %d", name, x.state(later), x.state(hidden))
		}
		n.down = down
		for range 3 {
			x.clock += x.options.CursorDelay
			x.goes(a)
		}
		if x.cursor() != before {
			t.Errorf("%s: the cursor passed the payment", name)
		}
		n.down, n.current = false, 1
		x.goes(a)
		if x.state(hidden) != rfq.ClaimPaid {
			t.Errorf("%s: state %d", name, x.state(hidden))
		}
		// Now both are finished, also for the liar's turn.
		x.clock += x.options.CursorDelay
		x.goes(a)
		if last := x.node.list[len(x.node.list)-1].Signature; x.cursor() != last {
			t.Errorf("%s: cursor %s, want %s", name, x.cursor(), last)
		}
	}
}

// TestWatchCursorSlot: a node that puts the stored cursor into a slot to come, or knows one
// that nobody has, hides nothing and holds up nothing for longer than GiveUpAfter.
func TestWatchCursorSlot(t *testing.T) {
	x := newTable(t, nil)
	n := x.withLiar(nil)
	n.current = 1
	c := x.take()
	sig := x.node.pays(t, c)
	x.goes(x.account())
	x.clock = x.options.CursorDelay
	if err := x.store.SetCursor(fakeCoin.of(fakeTreasury.addr), sig); err != nil {
		t.Fatal(err)
	}
	n.copies()
	far := *x.node.known[sig]
	far.Slot = 1 << 40
	n.liar.known[sig] = &far
	next := x.take()
	x.node.pays(t, next)
	a := x.account()
	x.goes(a)
	if a.floor != x.node.known[sig].Slot || x.state(next) != rfq.ClaimPaid {
		t.Errorf("floor %d, state %d", a.floor, x.state(next))
	}
	// Only the liar knows the cursor.
	x.node.set(func(f *fakeNode) { delete(f.known, sig) })
	a = x.account()
	if err := x.follow(t.Context(), a); err == nil || a.positioned {
		t.Errorf("believed the liar: floor %d", a.floor)
	}
	x.clock += x.options.GiveUpAfter
	x.goes(a)
	if a.floor != 0 || !a.positioned {
		t.Errorf("floor %d, positioned %t", a.floor, a.positioned)
	}
}

// TestWatchInvention: what one node lists and nobody has is forgotten; what most list and
// nobody returns is stored for a person.
func TestWatchInvention(t *testing.T) {
	for name, most := range map[string]bool{"one lists it": false, "most list it": true} {
		x := newTable(t, nil)
		n := x.withLiar(nil)
		n.current = 1
		a := x.account()
		x.goes(a)
		invented := solana.Signature{7, 7}
		entry := rpc.SignatureInfo{Signature: invented, Slot: 5000, BlockTime: time.Now().Unix()}
		n.liar.list = append(n.liar.list, entry)
		if most {
			x.node.list = append(x.node.list, entry)
		}
		for i := range 4 {
			n.current = i % 2 // the honest one in between lists it or not
			_ = x.follow(t.Context(), a)
			x.clock += x.options.GiveUpAfter / 2
		}
		n.current = 0
		_ = x.follow(t.Context(), a)
		if _, stored := x.store.unmatched(invented); stored != most {
			t.Errorf("%s: stored %t", name, stored)
		}
		if _, retried := a.failed[invented]; retried {
			t.Errorf("%s: still retried", name)
		}
	}
}

// TestSeenByMost: one node that has a confirmed payment gives an unproven claim no more time;
// when a majority has it the claim gets its full time.
func TestSeenByMost(t *testing.T) {
	x := newTable(t, nil)
	n := x.withLiar(func(o *Options) { o.Unseen = func() bool { return true } })
	n.current = 1
	x.desk.guarded(t)
	a := x.account()
	a.seen = map[solana.Signature]int{}
	x.goes(a)
	c := x.take()
	deadline := func() int64 {
		now, _, err := x.desk.Claim(c.ID)
		if err != nil {
			t.Fatal(err)
		}
		return now.Claim.Deadline
	}
	was := deadline()
	sig := x.node.pays(t, c)
	n.copies()
	entry := x.node.list[len(x.node.list)-1]
	paid := x.node.known[sig]
	x.node.set(func(f *fakeNode) { f.list, f.known = nil, map[solana.Signature]*ledger.Confirmed{} })
	see := func() {
		t.Helper()
		if err := x.see(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	for current := range 3 {
		n.current = current
		see()
	}
	if deadline() != was {
		t.Fatal("one node's word gave the claim more time")
	}
	x.node.set(func(f *fakeNode) { f.list, f.known[sig] = []rpc.SignatureInfo{entry}, paid })
	see()
	if deadline() <= was {
		t.Error("the claim got no more time when most have the payment")
	}
	// Inventions are looked at a limited number of times.
	for i := range 2 * maxUnseen {
		n.liar.list = append(n.liar.list, rpc.SignatureInfo{Signature: solana.Signature{9, byte(i)}, Slot: 9000})
		n.liar.known[solana.Signature{9, byte(i)}] = paid
	}
	n.current = 0
	before := n.liar.count()
	see()
	if reads := n.liar.count() - before; reads != 2*maxUnseen {
		t.Errorf("%d reads of inventions in one round, want %d", reads, 2*maxUnseen)
	}
	for range 4 * maxLooks {
		see()
	}
	if reads := n.liar.count() - before; reads > 2*2*maxUnseen*maxLooks {
		t.Errorf("%d reads of inventions", reads)
	}
}

// guarded turns the newer rules on, under which an unproven claim has little time.
func (d *machineDesk) guarded(t *testing.T) {
	t.Helper()
	policy := rfq.Policy{
		QuoteTTL: int64(15 * time.Second), ClaimTTL: int64(claimTTL), FeeBps: 500, WalletClaims: 60_000, USDCMint: fakeCoin.mint,
		PayTo: [market.RailCount]solana.Address{market.RailUSDC: fakeTreasury.addr, market.RailSOL: fakeTreasury.addr},
		Rules: rfq.RulesGuarded, UnprovenTTL: int64(45 * time.Second), UnprovenPerClient: 1e15, UnprovenShareBps: 10_000,
	}
	if o := d.must(t, &rfq.SetPolicy{Policy: policy}); o.Reason != 0 {
		t.Fatalf("%v", o.Reason)
	}
}
