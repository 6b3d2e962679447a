package settle_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/internal/await"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
	"blockdesk/settle"
	"blockdesk/settle/broadcast"
)

// forgettingNode is a client of nodes that cannot prove the past: histories are too
// long, or old blocks are pruned.
type forgettingNode struct {
	settle.Node
	crowded, forgets atomic.Bool
}

func (n *forgettingNode) SignaturesFromEach(ctx context.Context, a solana.Address, views []rpc.NodeStatuses, most int) []rpc.NodeHistory {
	list := n.Node.SignaturesFromEach(ctx, a, views, most)
	for i := range list {
		if n.crowded.Load() {
			list[i].List, list[i].Err = nil, rpc.ErrTooMany
		}
	}
	return list
}

func (n *forgettingNode) StatusesFromEach(ctx context.Context, list []solana.Signature) ([]rpc.NodeStatuses, error) {
	views, err := n.Node.StatusesFromEach(ctx, list)
	for i := range views {
		if n.forgets.Load() {
			views[i].First = rpc.FirstBlock{Slot: 1 << 40}
		}
	}
	return views, err
}

// listUnknown lists transactions with unknown outcome, beginning after a claim.
func (l *life) listUnknown(after market.ClaimID, limit int) []desk.MoneyItem {
	l.t.Helper()
	list, err := l.settle.Money(desk.MoneyOutcomeUnknown, desk.MoneyCursor{Claim: after}, limit)
	l.chain.must(err)
	return list
}

// beginUnknown is a desk whose sends are lost, with an operator.
func beginUnknown(t *testing.T, clock *atomic.Int64, wrap func(settle.Desk) settle.Desk) (*life, *forgettingNode, desk.OperatorRequest) {
	t.Helper()
	node := new(forgettingNode)
	l := begin(t, startChain(t), lifeOptions{clock: clock, desk: wrap, node: func(n settle.Node) settle.Node {
		node.Node = n
		return node
	}}).open()
	l.must(&rfq.SetOperator{Of: rfq.Operator{ID: 3, Name: "ann"}})
	return l, node, desk.OperatorRequest{Operator: 3, Name: "ann"}
}

// TestReleaseAtomic: a claim whose reference strangers have crowded waits for ever,
// is listed, and is released by an operator's word; not before its last block, and
// not twice. Where the desk fails, it waits on.
func TestReleaseAtomic(t *testing.T) {
	var away atomic.Int64
	hooked := &hookedDesk{before: func(r rfq.Request) error {
		if r.Kind() == rfq.KindReleaseClaim {
			return failing(&away)
		}
		return nil
	}}
	l, node, ann := beginUnknown(t, nil, func(d settle.Desk) settle.Desk { hooked.Desk = d; return hooked })
	c, w := l.chain, l.chain.wallet(0)
	refused := func(when string, id market.ClaimID) {
		t.Helper()
		if _, err := l.settle.Release(t.Context(), ann, id); !errors.Is(err, desk.ErrOutcomeKnown) {
			t.Fatalf("%s: %v", when, err)
		}
	}
	claim := l.take(rfq.Atomic, 1, market.RailUSDC, w)
	p := l.pack(claim, desk.TakerPays)
	refused("no such claim", 77)
	refused("reserved", claim.ID)
	node.crowded.Store(true)
	c.control("dropSends", map[string]any{"count": 1_000_000})
	got, err := l.submit(t.Context(), claim.ID, w.address, submission(w.fill(t, p.Transaction)))
	c.must(err)
	refused("it may land", claim.ID)
	l.expire()
	await.True(l.t, "an unknown outcome", func() bool { return len(l.listUnknown(0, 10)) == 1 })
	d := l.listUnknown(0, 10)[0]
	if d.Claim != claim.ID || d.Reason != broadcast.ProblemHistoryLong || d.Delivery != got.Signature || d.At == 0 {
		t.Errorf("%+v", d)
	}
	if list := l.listUnknown(claim.ID, 10); len(list) != 0 {
		t.Errorf("after it: %+v", list)
	}
	if list := l.listUnknown(0, 0); len(list) != 0 {
		t.Errorf("none: %+v", list)
	}
	if n := l.settle.MoneyCounts().OutcomesUnknown; n != 1 {
		t.Errorf("%d unknown outcomes", n)
	}
	away.Store(1)
	if _, err := l.settle.Release(t.Context(), ann, claim.ID); !errors.Is(err, errAway) {
		t.Fatalf("the desk is away: %v", err)
	}
	await.True(l.t, "an unknown outcome again", func() bool { return len(l.listUnknown(0, 10)) == 1 })
	result, err := l.settle.Release(t.Context(), ann, claim.ID)
	if err != nil || result.Reason != 0 || result.Claim.State != rfq.ClaimReleased {
		t.Fatalf("%+v, %v", result, err)
	}
	refused("released", claim.ID)
	if h := l.settle.Health(); len(l.listUnknown(0, 10)) != 0 || h.Tracker.Tracked != 0 || l.desk.View().Pair(1).Reserved != 0 || l.settle.Counts().Released != 1 {
		t.Errorf("%+v, counts %+v", h.Tracker, l.settle.Counts())
	}
}

// TestReleaseDelivery: a delivery that the nodes have pruned expires by an
// operator's word, and the next one settles the claim.
func TestReleaseDelivery(t *testing.T) {
	clock := new(atomic.Int64)
	l, node, ann := beginUnknown(t, clock, nil)
	c, w := l.chain, l.chain.wallet(0)
	claim := l.take(rfq.Modular, 1, market.RailUSDC, w)
	node.forgets.Store(true)
	c.control("dropSends", map[string]any{"count": 1_000_000})
	l.must(&rfq.ProvePayment{Claim: claim.ID, Rail: market.RailUSDC, Signature: [64]byte{7}, Payer: w.address, Amount: claim.Terms.Payment, Slot: 1})
	l.becomes(claim.ID, rfq.ClaimDelivering)
	await.True(l.t, "its signature", func() bool { _, ok, err := l.settle.Delivery(claim.ID); return ok && err == nil })
	l.expire()
	await.True(l.t, "an unknown outcome", func() bool { return len(l.listUnknown(0, 10)) == 1 })
	if d := l.listUnknown(0, 10)[0]; d.Claim != claim.ID || d.Reason != broadcast.ProblemTooOld {
		t.Errorf("%+v", d)
	}
	c.control("heal", nil)
	result, err := l.settle.Release(t.Context(), ann, claim.ID)
	if err != nil || result.Reason != 0 || result.Claim.State != rfq.ClaimPaid {
		t.Fatalf("%+v, %v", result, err)
	}
	l.becomes(claim.ID, rfq.ClaimSettled)
	if got := c.tokens(w.address, "SLUSD"); got != claim.Terms.Base {
		t.Errorf("%d atoms were delivered, %d bought", got, claim.Terms.Base)
	}
}
