package settle_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"blockdesk/engine/rfq"
	"blockdesk/internal/await"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
	"blockdesk/settle"
)

// chainFault is something that a node does to us.
type chainFault struct {
	name   string
	method string
	params map[string]any
	// end is how long it lasts; 0 = it ends by itself.
	end time.Duration
}

var chainFaults = []chainFault{
	{"sends are lost", "dropSends", map[string]any{"count": 3}, 0},
	{"sends fail", "failSends", map[string]any{"count": 3}, 0},
	{"answers to sends are lost", "loseAnswers", map[string]any{"count": 3}, 0},
	{"landing late", "delayLanding", map[string]any{"slots": 5}, 0},
	{"slow", "delayAnswers", map[string]any{"ms": 150}, time.Second},
	{"down", "setNode", map[string]any{"mode": "503"}, 500 * time.Millisecond},
	{"connections closed", "setNode", map[string]any{"mode": "reset"}, 500 * time.Millisecond},
	{"no answers", "setNode", map[string]any{"mode": "hang"}, 500 * time.Millisecond},
	{"behind", "lag", map[string]any{"slots": 20}, 500 * time.Millisecond},
	{"garbage", "answerGarbage", map[string]any{"count": 30, "kind": "text"}, 0},
	{"truncated", "answerGarbage", map[string]any{"count": 30, "kind": "truncated"}, 0},
	{"wrong types", "answerGarbage", map[string]any{"count": 30, "kind": "wrong_type"}, 0},
	{"nothing is final", "holdFinality", map[string]any{"hold": true}, 500 * time.Millisecond},
	{"slots without blocks", "skipSlots", map[string]any{"slots": 40}, 0},
}

// TestChainFaults: whatever the node does for a while, both ways come to their
// end, once, and each atom is where it belongs.
func TestChainFaults(t *testing.T) {
	c := startChain(t)
	l := begin(t, c, lifeOptions{}).open()
	for i, f := range chainFaults {
		t.Run(f.name, func(t *testing.T) { f.run(t, l, i) })
	}
}

func (f *chainFault) run(t *testing.T, l *life, i int) {
	c, w := l.chain, l.chain.wallet(i%10)
	defer c.control("heal", nil)
	holders := map[string]solana.Address{"wallet": w.address, "desk": c.desk, "treasury": c.treasury}
	before := c.holdings(holders)
	atomic, modular := l.take(rfq.Atomic, 1, market.RailUSDC, w), l.take(rfq.Modular, 2, market.RailUSDC, w)
	p, pay := l.pack(atomic, 0), l.pack(modular, 0)
	c.send(w.fill(t, pay.Transaction))
	c.control(f.method, f.params)
	if f.end > 0 {
		heal := time.AfterFunc(f.end, func() {
			if err := c.local.Call(context.WithoutCancel(t.Context()), "sandbox_heal", nil, nil); err != nil {
				t.Error(err)
			}
		})
		defer heal.Stop()
	}
	await.True(l.t, "a submission", func() bool {
		_, err := l.submit(t.Context(), atomic.ID, w.address, submission(w.fill(t, p.Transaction)))
		if err != nil && !errors.Is(err, settle.ErrChain) {
			t.Fatal(err)
		}
		return err == nil
	})
	l.becomes(atomic.ID, rfq.ClaimSettled)
	l.becomes(modular.ID, rfq.ClaimSettled)
	c.control("heal", nil)
	got := c.holdings(holders).minus(before)
	for _, name := range []string{"wallet SOL", "desk SOL"} { // fees and rents are another test's
		delete(got, name)
	}
	paid := int64(atomic.Terms.Payment + modular.Terms.Payment)
	reconcile(t, got, map[string]int64{
		"wallet USDC": -paid, "treasury USDC": paid,
		"wallet SLUSD": int64(atomic.Terms.Base), "desk SLUSD": -int64(atomic.Terms.Base),
		"wallet 92C": int64(modular.Terms.Base), "desk 92C": -int64(modular.Terms.Base),
	})
}

// TestChainDown: nothing is signed and nothing permitted while the chain cannot be
// asked.
func TestChainDown(t *testing.T) {
	c := startChain(t)
	signer := newHookedSigner(t, c)
	l := begin(t, c, lifeOptions{signer: signer}).open()
	w := c.wallet(0)
	claim, unpacked := l.take(rfq.Atomic, 1, market.RailUSDC, w), l.take(rfq.Atomic, 1, market.RailUSDC, w)
	p := l.pack(claim, 0)
	c.control("setNode", map[string]any{"mode": "503"})
	for range 2 {
		if _, err := l.submit(t.Context(), claim.ID, w.address, submission(w.fill(t, p.Transaction))); !errors.Is(err, settle.ErrChain) {
			t.Errorf("submitted: %v", err)
		}
	}
	if n, state := signer.calls.Load(), l.claim(claim.ID).State; n != 0 || state != rfq.ClaimReserved {
		t.Errorf("%d signatures, the claim is %d", n, state)
	}
	if again := l.pack(claim, 0); again.Hash != p.Hash { // it is kept
		t.Error("another package")
	}
	l.pack(unpacked, 0) // its blockhash is cached
	c.control("heal", nil)
	await.True(l.t, "the chain's return", func() bool {
		_, err := l.submit(t.Context(), claim.ID, w.address, submission(w.fill(t, p.Transaction)))
		return err == nil
	})
	l.becomes(claim.ID, rfq.ClaimSettled)
}

// TestHealth: what the gateway and the operator see.
func TestHealth(t *testing.T) {
	c := startChain(t)
	l := begin(t, c, lifeOptions{}).open()
	claim := l.payFor(1, c.wallet(0))
	l.becomes(claim.ID, rfq.ClaimSettled)
	await.True(l.t, "an end that is counted", func() bool { // after it is published
		h := l.settle.Health()
		return h.Working == 0 && h.Tracker.Finalized == 1 && l.settle.Counts().Settled == 1
	})
	h := l.settle.Health()
	if h.Desk != c.desk || len(h.Nodes) != 1 || !h.Nodes[0].Available || h.NotReady != nil || h.Blockhash == (rpc.Blockhash{}) {
		t.Errorf("%+v", h)
	}
	if n := l.settle.Counts(); n.Built != 1 || n.Delivered != 1 || n.Settled != 1 || n.Refused+n.Cosigned+n.Released+n.Expired != 0 {
		t.Errorf("%+v", n)
	}
}

// TestFollowerNeverWaits: with a node that answers nothing and more paid claims
// than workers, the engine's ring is read on; all is delivered when it is back.
func TestFollowerNeverWaits(t *testing.T) {
	c := startChain(t)
	l := begin(t, c, lifeOptions{change: func(o *settle.Options) { o.Deliverers = 2 }}).open()
	w := c.wallet(0)
	c.control("setNode", map[string]any{"mode": "hang"})
	const claims = 6
	var last *rfq.Claim
	for n := range byte(claims) {
		last = l.take(rfq.Modular, 1, market.RailUSDC, w)
		l.must(&rfq.ProvePayment{
			Claim: last.ID, Rail: market.RailUSDC, Signature: [64]byte{7, n}, Payer: w.address, Amount: last.Terms.Payment, Slot: 1,
		})
	}
	await.True(l.t, "all claims in the table", func() bool { return l.settle.Health().Working == claims })
	await.True(t, "the end of the engine's ring", func() bool {
		for _, lag := range l.eng.Stats().Consumers {
			if lag.Name == "settle" {
				return lag.Events == 0
			}
		}
		return false
	})
	c.control("heal", nil)
	// An end that is booked again is counted again; what was delivered is not.
	await.True(l.t, "all deliveries", func() bool { return l.settle.Counts().Settled >= claims && l.settle.Health().Working == 0 })
	if n := l.settle.Counts().Delivered; n != claims {
		t.Errorf("%d deliveries were signed", n)
	}
	if got := c.tokens(w.address, "SLUSD"); got != claims*last.Terms.Base {
		t.Errorf("%d atoms were delivered, want %d", got, claims*last.Terms.Base)
	}
}
