package proof

import (
	"context"
	"errors"
	"testing"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/build"
	"blockdesk/internal/solana/rpc"
	"blockdesk/internal/solana/token"
	"blockdesk/internal/solana/tx"
	"blockdesk/market"
	"blockdesk/settle/binding"
)

// restoredAttacks pay claims that the desk has lost with its journal.
func restoredAttacks() []attack {
	older := func(c claim) claim {
		lost := *c
		lost.ID += 1 << 41
		return &lost
	}
	// unbooked: what the desk pays for its own transactions is in no book.
	unbooked := func(why string) want {
		return want{unbooked: true, verdict: unknown, unmatchedAs: why, unmatchedOn: market.RailUSDC, strayed: dueUSDC, unnamed: true}
	}
	return []attack{
		{rail: market.RailUSDC, name: "a lost claim, delivered", attack: func(s *stage, c claim) signature {
			c = older(c)
			sig := s.does(s.bound(c, due(c))...)
			s.delivers(c)
			return sig
		}, want: unbooked(DeliveredUnrecorded)},
		{rail: market.RailUSDC, name: "a lost claim, paid by memo, delivered before", attack: func(s *stage, c claim) signature {
			c = older(c)
			s.delivers(c)
			return s.does(s.pays(c, due(c)), memo(binding.Memo(c.ID)))
		}, want: unbooked(DeliveredUnrecorded)},
		{rail: market.RailUSDC, name: "a lost claim, settled in one transaction", attack: func(s *stage, c claim) signature {
			c = older(c)
			s.atomic(c)
			return s.does(s.bound(c, due(c))...)
		}, want: unbooked(DeliveredUnrecorded)},
		{rail: market.RailUSDC, name: "a lost claim, not delivered", attack: func(s *stage, c claim) signature {
			c = older(c)
			return s.does(s.bound(c, due(c))...)
		}, want: unbooked("unknown_claim")},
		{rail: market.RailUSDC, name: "a lost claim, a transfer in the guise of its delivery", attack: func(s *stage, c claim) signature {
			c = older(c)
			sig := s.does(s.bound(c, due(c))...)
			s.does(s.usdc.give(s.payer.addr, s.friend.addr, 1).with(binding.Reference(c.ID)), memo(binding.Memo(c.ID)))
			return sig
		}, want: unbooked("unknown_claim")},
	}
}

// delivers lands a claim's delivery, signed by the desk.
func (s *stage) delivers(c *rfq.Claim) {
	s.t.Helper()
	b, err := s.Blockhash(s.t.Context())
	s.must(err)
	d := build.Delivery{
		Common: build.Common{
			Blockhash: b.Hash, Budget: build.Budget{Units: 200_000, MicroLamports: 1}, Memo: binding.Memo(c.ID), Reference: binding.Reference(c.ID),
		},
		Desk: s.desk.addr, Wallet: c.Wallet, Base: s.check(s.slusd, token.Harmless()), Amount: 1000,
	}
	u, err := d.Build(&solana.AccountCache{})
	s.must(err)
	m, err := tx.DecodeMessage(u.Message())
	s.must(err)
	raw, err := seal(m, s.people)
	s.must(err)
	s.sends(raw)
}

// namedNode lists transactions by a claim's reference.
type namedNode struct {
	*fakeNode
	reference solana.Address
	list      []rpc.SignatureInfo
}

func (n *namedNode) SignaturePageFromEach(ctx context.Context, a solana.Address, page rpc.Page, level rpc.Commitment) ([]rpc.NodeSignatures, error) {
	if a == n.reference {
		return []rpc.NodeSignatures{{List: n.list[:min(len(n.list), page.Limit)]}}, nil
	}
	return n.fakeNode.SignaturePageFromEach(ctx, a, page, level)
}

// TestSearchIsBounded: if too many transactions name an unknown claim, it is not said
// that nothing was delivered for it, and no more than the limit are read.
func TestSearchIsBounded(t *testing.T) {
	for more, want := range map[int]string{0: "unknown_claim", 1: DeliveredUnrecorded} {
		x := newTable(t, nil)
		const id market.ClaimID = 1<<63 + 7
		paid := x.node.lands(x.node.transfer(t, fakePayer, 1_000_000, binding.Memo(id)))
		n := &namedNode{fakeNode: x.node, reference: binding.Reference(id), list: []rpc.SignatureInfo{{Signature: paid}}}
		for range MaxSearched + more {
			n.list = append(n.list, rpc.SignatureInfo{Signature: x.node.lands(x.node.transfer(t, fakeFriend, 1))})
		}
		x.Prover.node = n
		x.wants(&desk.PaymentProof{Signature: paid}, unknown, "")
		if s, ok := x.store.unmatched(paid); !ok || s.Reason != want || s.Claim != id || s.Amount != 1_000_000 {
			t.Errorf("%d more: %+v", more, s)
		}
		if reads := x.node.count(); reads != 1+MaxSearched {
			t.Errorf("%d reads", reads)
		}
	}
}

// TestSearchListedNotFound: while no node returns a listed transaction, nothing is concluded
// and nothing stored.
func TestSearchListedNotFound(t *testing.T) {
	x := newTable(t, nil)
	const id market.ClaimID = 1<<63 + 7
	paid := x.node.lands(x.node.transfer(t, fakePayer, 1_000_000, binding.Memo(id)))
	n := &namedNode{fakeNode: x.node, reference: binding.Reference(id), list: []rpc.SignatureInfo{{Signature: solana.Signature{9}}}}
	x.Prover.node = n
	if v, err := x.Verify(t.Context(), &desk.PaymentProof{Signature: paid}); !errors.Is(err, ErrAnswer) {
		t.Errorf("%+v, %v", v, err)
	}
	if s, ok := x.store.unmatched(paid); ok {
		t.Errorf("%+v", s)
	}
	n.list[0].Failed = true
	x.wants(&desk.PaymentProof{Signature: paid}, unknown, "")
}

// TestRewind: a payment that the desk has lost with its journal is behind the cursor.
// It is booked if the watch begins before it, and history is not.
func TestRewind(t *testing.T) {
	x := newTable(t, nil)
	before := x.old()
	c := x.take()
	sig := x.node.pays(t, c)
	account := fakeCoin.of(fakeTreasury.addr)
	if err := x.store.SetCursor(account, sig); err != nil {
		t.Fatal(err)
	}
	x.goes(x.account())
	if x.state(c) != rfq.ClaimReserved {
		t.Fatalf("state %d without a rewind", x.state(c))
	}
	x.restart(func(o *Options) { o.Rewind = true })
	down := &rpc.Error{Kind: rpc.Down, Err: errors.New("away")}
	x.node.set(func(f *fakeNode) { f.fail = func(solana.Signature) error { return down } })
	if err := x.follow(t.Context(), x.account()); !errors.Is(err, down) || x.cursor() != sig {
		t.Errorf("%v, cursor %s", err, x.cursor())
	}
	x.node.set(func(f *fakeNode) { f.fail = nil })
	x.goes(x.account())
	if x.state(c) != rfq.ClaimPaid || x.cursor() != before || x.node.readsOf(before) != 0 {
		t.Errorf("state %d, cursor %s", x.state(c), x.cursor())
	}
}
