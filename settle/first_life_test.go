package settle_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/build"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
	"blockdesk/settle"
)

// gift sends lamports to the treasury under a memo that names no claim.
func (c *chain) gift(w wallet) solana.Signature {
	c.t.Helper()
	hash, err := c.client.Blockhash(c.t.Context())
	c.must(err)
	p := build.Payment{
		Common: build.Common{
			Blockhash: hash.Hash, Budget: build.Budget{Units: 200_000}, Memo: "a gift", Reference: solana.Address{31: 1},
		},
		Wallet: w.address, Leg: build.Leg{Rail: market.RailSOL, Amount: 1_000_000, To: c.treasury},
	}
	u, err := p.Build(&solana.AccountCache{})
	c.must(err)
	return c.send(w.fill(c.t, u.Bytes()))
}

// TestFirstLife: on a new desk the watch sees every payment, wherever the chain's clock
// is, because the first cursor stands before the first claim can be taken. Older history
// before is history.
func TestFirstLife(t *testing.T) {
	for name, behind := range map[string]time.Duration{"a minute behind": time.Minute, "equal": 0, "ahead": -20 * time.Second} {
		t.Run(name, func(t *testing.T) {
			c := startChain(t)
			c.control("setTime", map[string]any{"unixTimestamp": time.Now().Add(-behind).Unix()})
			history := c.gift(c.wallet(11))
			c.advance(1)
			l := begin(t, c, lifeOptions{newWatch: true}).open()
			var claims []*rfq.Claim
			for i := range 10 {
				claims = append(claims, l.payFor(1, c.wallet(i)))
			}
			for _, claim := range claims {
				l.becomes(claim.ID, rfq.ClaimSettled)
			}
			if _, ok, err := l.store.UnmatchedPayment(history); ok || err != nil {
				t.Errorf("a transfer from before the start is listed as unmatched: %t, %v", ok, err)
			}
		})
	}
}

// heldNode lists no transactions while before returns an error.
type heldNode struct {
	settle.Node
	before func() error
}

func (n heldNode) SignaturePageFromEach(ctx context.Context, a solana.Address, page rpc.Page, level rpc.Commitment) ([]rpc.NodeSignatures, error) {
	if err := n.before(); err != nil {
		return nil, err
	}
	return n.Node.SignaturePageFromEach(ctx, a, page, level)
}

// TestNoClaimBeforeTheWatch: the desk is not ready, so that it takes no claim, until the
// nodes have said where the watch begins.
func TestNoClaimBeforeTheWatch(t *testing.T) {
	c := startChain(t)
	var running atomic.Pointer[settle.Settlement]
	var asked atomic.Int64
	l := begin(t, c, lifeOptions{newWatch: true, node: func(n settle.Node) settle.Node {
		return heldNode{n, func() error {
			if asked.Add(1) > 5 {
				return nil
			}
			if err := running.Load().Ready(); !errors.Is(err, settle.ErrNotReady) {
				t.Errorf("ready before the first cursor: %v", err)
			}
			return errAway
		}}
	}})
	running.Store(l.settle)
	l.open()
	if n := asked.Load(); n <= 5 {
		t.Errorf("ready after %d questions", n)
	}
}
