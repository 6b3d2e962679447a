package settle_test

import (
	"errors"
	"testing"
	"time"

	"blockdesk/desk"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/internal/await"
	"blockdesk/market"
	"blockdesk/settle"
)

const guardedTTL, unprovenTTL = 600 * time.Second, 45 * time.Second

// openGuarded is open under the rules of the guard: 100 basis points on both rails.
func (l *life) openGuarded() *life {
	l.t.Helper()
	l.open()
	policy := l.desk.View().Policy
	policy.Rules, policy.LateWindow, policy.ClaimTTL = rfq.RulesGuarded, 0, int64(guardedTTL)
	policy.Grace, policy.UnprovenTTL = int64(30*time.Second), int64(unprovenTTL)
	policy.UnprovenPerClient, policy.UnprovenShareBps = 1_000_000_000_000, 3000
	l.must(&rfq.SetPolicy{Policy: policy})
	for in := market.InstrumentID(1); in <= 2; in++ {
		pair := *l.desk.View().Pair(in)
		pair.FirmBps = [market.RailCount]uint16{market.RailUSDC: 100, market.RailSOL: 100}
		l.must(&rfq.SetPair{Pair: pair})
	}
	return l
}

// claimFor reserves a fill under the guarded rules.
func (l *life) claimFor(way rfq.SettlementMode, w wallet, proven bool) *rfq.Claim {
	l.t.Helper()
	return l.must(&rfq.TakeClaim{
		Ticket: 1, Tranche: 1, Fill: 1, Rail: market.RailUSDC, Mode: way, Wallet: w.address, Client: 0xffff_01020304, Proven: proven,
	}).Claim
}

func (l *life) anchor(price market.USDPrice) {
	l.t.Helper()
	l.must(&rfq.SetAnchor{Instrument: 1, Price: price, Withdrawn: price == 0})
}

// setBalances leaves the balances to the test after the first reading.
func setBalances(o *settle.Options) { o.BalanceEvery = time.Hour }

// deskGuards are what the desk's guard refuses: how it begins and ends, and its word.
func deskGuards(l *life) map[string]struct{ begin, end func() } {
	return map[string]struct{ begin, end func() }{
		"locked": {
			func() { l.must(&rfq.SetLock{Scope: rfq.LockDeliveries, Locked: true}) },
			func() { l.must(&rfq.SetLock{Scope: rfq.LockDeliveries}) },
		},
		"price_unavailable": {func() { l.anchor(0) }, func() { l.anchor(1_000_000_000) }},
		"inventory": {
			func() { l.must(&rfq.SetBalance{Instrument: 1, Atoms: 1}) },
			func() { l.must(&rfq.SetBalance{Instrument: 1, Atoms: 50_000_000_000_000}) },
		},
	}
}

// TestGuardedDelivery: while the guard refuses, nothing is signed and the claim is listed
// at once with the reason; once the cause has ended it is delivered by itself.
func TestGuardedDelivery(t *testing.T) {
	c := startChain(t)
	signer := newHookedSigner(t, c)
	l := begin(t, c, lifeOptions{signer: signer, change: setBalances}).openGuarded()
	for word, guard := range deskGuards(l) {
		t.Run(word, func(t *testing.T) {
			w, before := c.wallet(0), signer.calls.Load()
			had := c.tokens(w.address, "SLUSD")
			claim := l.claimFor(rfq.Modular, w, true)
			p := l.pack(claim, 0)
			guard.begin()
			c.send(w.fill(t, p.Transaction))
			s := l.fails(claim.ID, word)
			if s.Attempts != 0 || signer.calls.Load() != before || l.claim(claim.ID).State != rfq.ClaimPaid {
				t.Errorf("%d attempts, %d signatures, %+v", s.Attempts, signer.calls.Load()-before, l.claim(claim.ID))
			}
			guard.end()
			l.delivered(claim, had)
			h, _, err := l.desk.Claim(claim.ID)
			if err != nil || len(h.Payments) != 1 || h.Payments[0].BlockTime == 0 {
				t.Errorf("payments %+v, %v", h.Payments, err)
			}
		})
	}
}

// TestGuardedPrice: a price that has moved against the desk by more than the firm
// distance makes the payment due for refund, one within it or in the desk's favour does
// not.
func TestGuardedPrice(t *testing.T) {
	c := startChain(t)
	signer := newHookedSigner(t, c)
	l := begin(t, c, lifeOptions{signer: signer}).openGuarded()
	for name, x := range map[string]struct {
		now  market.USDPrice
		want rfq.ClaimState
	}{
		"two percent up":    {1_020_000_000, rfq.ClaimRefundDue},
		"just one percent":  {1_010_000_000, rfq.ClaimSettled},
		"just over":         {1_010_000_001, rfq.ClaimRefundDue},
		"down by a quarter": {750_000_000, rfq.ClaimSettled},
	} {
		t.Run(name, func(t *testing.T) {
			l.anchor(1_000_000_000)
			w, before := c.wallet(1), signer.calls.Load()
			claim := l.claimFor(rfq.Modular, w, true)
			p := l.pack(claim, 0)
			l.anchor(x.now)
			paid := c.send(w.fill(t, p.Transaction))
			l.becomes(claim.ID, x.want)
			if x.want == rfq.ClaimSettled {
				return
			}
			var due []rfq.Payment
			await.True(t, "the refund is listed", func() bool {
				due = l.settle.RefundsDue([64]byte{}, 10)
				for i := range due {
					if due[i].Signature == paid {
						return true
					}
				}
				return false
			})
			h, _, err := l.desk.Claim(claim.ID)
			if err != nil || len(h.Payments) != 1 || h.Payments[0].Reason != event.ReasonPriceCorridor || h.Payments[0].RefundAtoms() != claim.Terms.Payment {
				t.Errorf("payments %+v, %v", h.Payments, err)
			}
			if signer.calls.Load() != before {
				t.Error("something was signed")
			}
		})
	}
}

// TestGuardedCountersignature: the same guard stands before a countersignature.
func TestGuardedCountersignature(t *testing.T) {
	c := startChain(t)
	signer := newHookedSigner(t, c)
	l := begin(t, c, lifeOptions{signer: signer, change: setBalances}).openGuarded()
	all := deskGuards(l)
	all["price_corridor"] = struct{ begin, end func() }{func() { l.anchor(1_020_000_000) }, func() { l.anchor(1_000_000_000) }}
	for word, guard := range all {
		t.Run(word, func(t *testing.T) {
			w, before := c.wallet(2), signer.calls.Load()
			claim := l.claimFor(rfq.Atomic, w, true)
			sub := submission(w.fill(t, l.pack(claim, 0).Transaction))
			guard.begin()
			_, err := l.submit(t.Context(), claim.ID, w.address, sub)
			if refusal := (*desk.Refusal)(nil); !errors.As(err, &refusal) || string(refusal.Reason) != word {
				t.Errorf("%v, want %s", err, word)
			}
			if signer.calls.Load() != before {
				t.Error("something was signed")
			}
			guard.end()
			if _, err := l.submit(t.Context(), claim.ID, w.address, sub); err != nil {
				t.Fatal(err)
			}
			l.becomes(claim.ID, rfq.ClaimSettled)
		})
	}
}

// TestSeenPayment: an unproven claim gets its full time once its payment is confirmed,
// long before that is final; another's transaction that names it changes nothing.
func TestSeenPayment(t *testing.T) {
	c := startChain(t)
	l := begin(t, c, lifeOptions{}).openGuarded()
	w := c.wallet(3)
	claim, other := l.claimFor(rfq.Modular, w, false), l.claimFor(rfq.Modular, c.wallet(4), false)
	if got := time.Duration(claim.Deadline - claim.ReservedAt); got != unprovenTTL {
		t.Fatalf("an unproven claim has %v", got)
	}
	p := l.pack(claim, 0)
	c.control("holdFinality", map[string]any{"hold": true})
	c.send(w.fill(t, p.Transaction))
	await.True(t, "the full time", func() bool {
		now := l.claim(claim.ID)
		return now.State == rfq.ClaimReserved && time.Duration(now.Deadline-now.ReservedAt) == guardedTTL
	})
	c.control("heal", nil)
	l.becomes(claim.ID, rfq.ClaimSettled)
	if now := l.claim(other.ID); now.Deadline != other.Deadline {
		t.Errorf("the unpaid claim has %v", time.Duration(now.Deadline-now.ReservedAt))
	}
}
