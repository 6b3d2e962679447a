package settle_test

import (
	"sync/atomic"
	"testing"
	"time"

	"blockdesk/desk"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/internal/await"
	"blockdesk/internal/solana"
	"blockdesk/market"
	"blockdesk/settle"
	"blockdesk/settle/cosign"
)

// payFor has a wallet take a modular claim and pay it.
func (l *life) payFor(ticket market.TicketID, w wallet) *rfq.Claim {
	l.t.Helper()
	claim := l.take(rfq.Modular, ticket, market.RailUSDC, w)
	p := l.pack(claim, 0)
	l.chain.send(w.fill(l.t, p.Transaction))
	return claim
}

// listFailing lists one failing delivery, from claim id on.
func (l *life) listFailing(id market.ClaimID) []desk.MoneyItem {
	l.t.Helper()
	list, err := l.settle.Money(desk.MoneyDeliveryFailing, desk.MoneyCursor{Claim: id - 1}, 1)
	l.chain.must(err)
	return list
}

// fails waits until the claim's delivery is listed as failing, and returns the item.
func (l *life) fails(id market.ClaimID, problem string) (found desk.MoneyItem) {
	l.t.Helper()
	await.True(l.t, "failing: "+problem, func() bool {
		list := l.listFailing(id)
		if len(list) != 1 || list[0].Claim != id || list[0].Reason != problem {
			return false
		}
		found = list[0]
		return true
	})
	return found
}

// delivered waits until a claim is settled, and checks that its wallet got its
// tokens once.
func (l *life) delivered(claim *rfq.Claim, had uint64) {
	l.t.Helper()
	l.becomes(claim.ID, rfq.ClaimSettled)
	if got := l.chain.tokens(claim.Wallet, symbols[claim.Terms.Instrument]) - had; got != claim.Terms.Base {
		l.t.Errorf("%d atoms were delivered, %d bought", got, claim.Terms.Base)
	}
	if list := l.listFailing(claim.ID); len(list) == 1 && list[0].Claim == claim.ID {
		l.t.Errorf("still failing: %+v", list[0])
	}
}

func impatient(o *settle.Options) { o.FailingAfter = 300 * time.Millisecond }

// TestDeliveryWaits: what a simulation shows to fail is not signed; the claim is
// listed with the cause, and delivered when the cause has ended.
func TestDeliveryWaits(t *testing.T) {
	c := startChain(t)
	signer := newHookedSigner(t, c)
	l := begin(t, c, lifeOptions{signer: signer, change: impatient}).open()
	for problem, spoil := range map[string]func(w wallet) (undo func()){
		"inventory": func(wallet) func() {
			was := c.setTokens(c.desk, "SLUSD", 1)
			return func() { c.setTokens(c.desk, "SLUSD", was) }
		},
		"chain_unavailable": func(wallet) func() {
			c.control("setNode", map[string]any{"mode": "503"})
			return func() { c.control("heal", nil) }
		},
	} {
		t.Run(problem, func(t *testing.T) {
			w, before := c.wallet(0), signer.calls.Load()
			had := c.tokens(w.address, "SLUSD")
			claim := l.take(rfq.Modular, 1, market.RailUSDC, w)
			undo := spoil(w)
			l.must(&rfq.ProvePayment{
				Claim: claim.ID, Rail: market.RailUSDC, Signature: [64]byte{byte(len(problem))}, Payer: w.address, Amount: claim.Terms.Payment, Slot: 1,
			})
			s := l.fails(claim.ID, problem)
			if s.Attempts != 0 || signer.calls.Load() != before {
				t.Errorf("%d tries, %d signatures", s.Attempts, signer.calls.Load()-before)
			}
			undo()
			l.delivered(claim, had)
		})
	}
}

// TestDeliveryFailsOnChain: one that landed and failed is made again, with
// another message; only one delivers.
func TestDeliveryFailsOnChain(t *testing.T) {
	c := startChain(t)
	signer := newHookedSigner(t, c)
	l := begin(t, c, lifeOptions{signer: signer}).open()
	w := c.wallet(0)
	c.control("delayLanding", map[string]any{"slots": 3})
	var was atomic.Uint64
	signer.on(func(cosign.Job) error { // it passed its simulation
		if was.Load() == 0 {
			was.Store(c.setTokens(c.desk, "92C", 1))
		}
		return nil
	})
	claim := l.payFor(2, w)
	await.True(l.t, "a failure", func() bool { return l.settle.Counts().Expired == 1 })
	c.control("heal", nil)
	c.setTokens(c.desk, "92C", was.Load())
	l.delivered(claim, 0)
	list, err := l.store.Transactions(claim.ID)
	if err != nil || len(list) != 2 || list[0].Hash() == list[1].Hash() || l.claim(claim.ID).Proof != list[1].Hash() {
		t.Errorf("%d deliveries were signed, %v", len(list), err)
	}
}

// TestDeliveryTries: after MaxDeliveryAttempts signatures nothing more is signed; a
// person gives the claim up, and its money is due.
func TestDeliveryTries(t *testing.T) {
	c := startChain(t)
	signer, hooked := newHookedSigner(t, c), &hookedDesk{}
	clock := new(atomic.Int64)
	l := begin(t, c, lifeOptions{clock: clock, signer: signer, desk: func(d settle.Desk) settle.Desk { hooked.Desk = d; return hooked }}).open()
	w := c.wallet(0)
	var was atomic.Uint64
	signer.on(func(cosign.Job) error {
		was.Store(c.setTokens(c.desk, "SLUSD", 1))
		return nil
	})
	hooked.on(func(r rfq.Request) error {
		if r.Kind() == rfq.KindExpireDelivery {
			c.setTokens(c.desk, "SLUSD", was.Load())
		}
		return nil
	})
	claim := l.payFor(1, w)
	s := l.fails(claim.ID, "tries_used_up")
	if s.Attempts != settle.MaxDeliveryAttempts || signer.calls.Load() != settle.MaxDeliveryAttempts || s.Delivery == (solana.Signature{}) {
		t.Errorf("%d tries, %d signatures", s.Attempts, signer.calls.Load())
	}
	// While two others are delivered the claim is due again, too.
	signer.on(func(cosign.Job) error { return nil })
	for range 2 {
		clock.Add(int64(time.Second))
		l.becomes(l.payFor(2, c.wallet(1)).ID, rfq.ClaimSettled)
	}
	if n := signer.calls.Load(); n != settle.MaxDeliveryAttempts+2 {
		t.Errorf("%d signatures after the last try", n-settle.MaxDeliveryAttempts-2)
	}
	result, err := l.settle.Abandon(desk.OperatorRequest{Name: "ann"}, claim.ID)
	if err != nil || result.Reason != 0 || result.Claim.State != rfq.ClaimRefundDue {
		t.Fatalf("%+v, %v", result, err)
	}
	l.expire() // else the audit waits for what may still land
	await.True(l.t, "its refund", func() bool {
		due := l.settle.RefundsDue([64]byte{}, 2)
		failing := l.settle.MoneyCounts().DeliveriesFailing
		return len(due) == 1 && due[0].Claim == claim.ID && due[0].Reason == event.ReasonUndeliverable && failing == 0
	})
	if got := c.tokens(w.address, "SLUSD"); got != 0 {
		t.Errorf("%d atoms were delivered", got)
	}
}

// TestDeliverySignerAway: a delivery that was permitted and not signed expires when
// it could not land any more, and another one is made.
func TestDeliverySignerAway(t *testing.T) {
	c := startChain(t)
	signer := newHookedSigner(t, c)
	l := begin(t, c, lifeOptions{signer: signer, change: impatient}).open()
	signer.on(func(cosign.Job) error { return errAway })
	w := c.wallet(0)
	claim := l.payFor(1, w)
	l.fails(claim.ID, "signer_unavailable")
	result, err := l.settle.Abandon(desk.OperatorRequest{Name: "ann"}, claim.ID)
	if err != nil || result.Reason != event.ReasonClaimState {
		t.Errorf("given up while a delivery may be out: %+v, %v", result, err)
	}
	signer.on(func(cosign.Job) error { return nil })
	l.expiring("the expire", func() bool { return l.settle.Counts().Expired >= 1 })
	l.delivered(claim, 0)
}
