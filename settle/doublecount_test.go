package settle_test

import (
	"context"
	"testing"

	"blockdesk/engine/rfq"
	"blockdesk/internal/await"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
	"blockdesk/settle"
)

// gatedSimulations is a node whose simulations wait, each for one value of gate.
type gatedSimulations struct {
	settle.Node
	gate chan struct{}
}

func (n gatedSimulations) Simulate(ctx context.Context, raw []byte, o rpc.SimulateOptions) (rpc.Simulation, error) {
	select {
	case <-n.gate:
		return n.Node.Simulate(ctx, raw, o)
	case <-ctx.Done():
		return rpc.Simulation{}, ctx.Err()
	}
}

// TestCountedOnce: a delivery that ends while every worker waits for a slow node is not
// taken up again with the claim's old record, and is counted once.
func TestCountedOnce(t *testing.T) {
	c := startChain(t)
	gate := make(chan struct{}, 2)
	l := begin(t, c, lifeOptions{
		node:   func(n settle.Node) settle.Node { return gatedSimulations{n, gate} },
		change: func(o *settle.Options) { o.Deliverers = 1 },
	}).open()
	var claims []*rfq.Claim
	for i := range 2 {
		w := c.wallet(i)
		claim := l.take(rfq.Modular, 1, market.RailUSDC, w)
		l.must(&rfq.ProvePayment{
			Claim: claim.ID, Rail: market.RailUSDC, Signature: [64]byte{byte(i + 1)}, Payer: w.address, Amount: claim.Terms.Payment, Slot: 1,
		})
		claims = append(claims, claim)
	}
	await.True(t, "both claims are jobs", func() bool { return l.settle.Health().Working == 2 })
	gate <- struct{}{}
	// The only worker waits with the other claim meanwhile.
	first, second := claims[0], claims[1]
	await.True(t, "one is settled", func() bool {
		if l.claim(second.ID).State == rfq.ClaimSettled {
			first, second = second, first
		}
		return l.claim(first.ID).State == rfq.ClaimSettled
	})
	gate <- struct{}{}
	l.becomes(second.ID, rfq.ClaimSettled)
	await.True(t, "nothing is tracked", func() bool {
		h := l.settle.Health()
		return h.Working == 0 && h.Tracker.Tracked == 0
	})
	h, counts := l.settle.Health(), l.settle.Counts()
	if counts.Delivered != 2 || counts.Settled != 2 || h.Tracker.Finalized != 2 {
		t.Errorf("%d deliveries were signed, %d finalized, %d counted as settled", counts.Delivered, h.Tracker.Finalized, counts.Settled)
	}
}
