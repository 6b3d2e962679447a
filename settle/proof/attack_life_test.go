package proof

import (
	"time"

	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/build"
	"blockdesk/internal/solana/payment"
	"blockdesk/internal/solana/token"
	"blockdesk/internal/solana/tx"
	"blockdesk/market"
	"blockdesk/settle/binding"
)

// lifeAttacks pay when or where it is not the time or the place.
func lifeAttacks() []attack {
	list := append(surplusAttacks(), swappedAttacks()...)
	list = append(list, ownAttacks()...)
	list = append(list, lateAttacks()...) // last: the desk's clock is not set back
	for i := range list {
		list[i].rail = market.RailUSDC
	}
	return list
}

// surplus is money for a claim that is paid for.
func surplus(state rfq.ClaimState) want {
	w := refund(verdictWord(event.ReasonClaimState), "", event.ReasonClaimState, market.RailUSDC, dueUSDC)
	w.claim = state
	return w
}

func (s *stage) settle(c claim) {
	proof := [32]byte{1}
	for _, r := range []rfq.Request{&rfq.BeginDelivery{Claim: c.ID, Proof: proof}, &rfq.SettleClaim{Claim: c.ID, Proof: proof}} {
		if o := s.machine.must(s.t, r); o.Reason != 0 {
			s.t.Fatalf("%T: %v", r, o.Reason)
		}
	}
}

// settles pays a claim and has it verified.
func (s *stage) settles(c claim) signature {
	sig := s.as(c, draft{})
	v, err := s.verify(sig, c)
	if err != nil || wordOf(&v) != verified {
		s.t.Fatalf("%+v, %v", v, err)
	}
	return sig
}

func surplusAttacks() []attack {
	return []attack{
		{name: "a second payment", attack: func(s *stage, c claim) signature {
			s.settles(c)
			return s.as(c, draft{version: tx.Legacy})
		}, want: surplus(rfq.ClaimPaid)},
		{name: "a second payment while it is delivered", attack: func(s *stage, c claim) signature {
			s.settles(c)
			s.machine.must(s.t, &rfq.BeginDelivery{Claim: c.ID, Proof: [32]byte{1}})
			return s.as(c, draft{version: tx.Legacy})
		}, want: surplus(rfq.ClaimDelivering)},
		{name: "a second payment after it is settled", attack: func(s *stage, c claim) signature {
			s.settles(c)
			s.settle(c)
			return s.as(c, draft{version: tx.Legacy})
		}, want: surplus(rfq.ClaimSettled)},
		{name: "an atom short first, then in full", attack: func(s *stage, c claim) signature {
			sig := s.does(s.bound(c, due(c)-1)...)
			if v, err := s.verify(sig, c); err != nil || v.Mismatch != string(payment.AmountShort) {
				s.t.Fatalf("%+v, %v", v, err)
			}
			return s.as(c, draft{})
		}, want: paid(dueUSDC)},
		{name: "the payment again after it is settled", attack: func(s *stage, c claim) signature {
			sig := s.settles(c)
			s.settle(c)
			return sig
		}, want: paid(dueUSDC).in(rfq.ClaimSettled)},
		{name: "a payment of what was given up", attack: func(s *stage, c claim) signature {
			sig := s.settles(c)
			s.machine.must(s.t, &rfq.AbandonDelivery{Claim: c.ID})
			return sig
		}, want: refund(verdictWord(event.ReasonUndeliverable), "", event.ReasonUndeliverable, market.RailUSDC, dueUSDC).in(rfq.ClaimRefundDue)},
		{name: "a payment that was refunded", attack: func(s *stage, c claim) signature {
			sig := s.does(s.bound(c, 5)...)
			if v, err := s.verify(sig, c); err != nil || v.Payment == nil {
				s.t.Fatalf("%+v, %v", v, err)
			}
			s.machine.must(s.t, &rfq.RefundPayment{Signature: sig, Proof: [32]byte{9}})
			return sig
		}, want: want{verdict: mismatch, word: string(payment.AmountShort), state: rfq.PaymentRefunded, why: event.ReasonPaymentMismatch, rail: market.RailUSDC, amount: 5}},
	}
}

// in says in which state the claim ends.
func (w want) in(s rfq.ClaimState) want {
	w.claim = s
	return w
}

// swappedAttacks use the payment of another claim.
func swappedAttacks() []attack {
	return []attack{
		{name: "another pair's payment", attack: func(s *stage, _ claim) signature {
			other := s.machine.take(s.t, s.payer.addr, market.RailUSDC, rfq.Modular, 2)
			return s.as(other, draft{})
		}, want: want{verdict: used}},
		{name: "another pair's payment, settled before", attack: func(s *stage, _ claim) signature {
			return s.settles(s.machine.take(s.t, s.payer.addr, market.RailUSDC, rfq.Modular, 2))
		}, want: want{verdict: used}},
		{name: "another pair's payment, an atom short", attack: func(s *stage, _ claim) signature {
			other := s.machine.take(s.t, s.payer.addr, market.RailUSDC, rfq.Modular, 2)
			return s.does(s.bound(other, due(other)-1)...)
		}, want: want{verdict: used}},
		{name: "another pair's payment by a thief", attack: func(s *stage, _ claim) signature {
			other := s.machine.take(s.t, s.payer.addr, market.RailUSDC, rfq.Modular, 2)
			return s.does(s.usdc.give(s.thief.addr, s.treasury.addr, due(other)), memo(binding.Memo(other.ID)))
		}, want: want{verdict: used, unmatchedAs: string(payment.WrongPayer), unmatchedOn: market.RailUSDC, strayed: dueUSDC, unnamed: true}},
		{name: "two claims with one payment of both amounts", attack: func(s *stage, c claim) signature {
			other := s.take(market.RailUSDC)
			return s.does(append(s.bound(c, due(c)), s.bound(other, due(other))...)...)
		}, want: nameless(payment.AmbiguousReference, market.RailUSDC, 2*dueUSDC)},
		{name: "older than the claim", attack: func(s *stage, c claim) signature {
			return s.past(time.Hour, c)
		}, want: unmatchedFor(payment.TooOld, market.RailUSDC, dueUSDC)},
		{name: "older than the claim by less than clocks differ", attack: func(s *stage, c claim) signature {
			return s.past(3*time.Minute, c)
		}, want: paid(dueUSDC)},
		{name: "a claim that the desk has forgotten", attack: func(s *stage, c claim) signature {
			s.t.Cleanup(s.machine.forget(c.ID))
			return s.as(c, draft{})
		}, want: want{verdict: unknown, unmatchedAs: "unknown_claim", unmatchedOn: market.RailUSDC, strayed: dueUSDC}},
	}
}

// past pays a claim while the chain's clock is behind.
func (s *stage) past(by time.Duration, c claim) signature {
	s.clock(-by)
	defer s.clock(0)
	return s.as(c, draft{})
}

// clock sets the chain's clock, so far from the desk's, as of the next block.
func (s *stage) clock(off time.Duration) {
	s.t.Helper()
	s.control("setTime", map[string]any{"unixTimestamp": time.Now().Add(s.machine.ahead + off).Unix()})
	s.advance(1)
}

// wait lets time pass for the desk and the chain.
func (s *stage) wait(by time.Duration) {
	s.machine.pass(by)
	s.clock(0)
}

// atomic lands a claim's atomic transaction, signed by both.
func (s *stage) atomic(c claim) (signature, solana.Hash) {
	s.t.Helper()
	b, err := s.Blockhash(s.t.Context())
	s.must(err)
	a := build.Atomic{
		Common: build.Common{
			Blockhash: b.Hash, Budget: build.Budget{Units: 200_000, MicroLamports: 1}, Memo: binding.Memo(c.ID), Reference: binding.Reference(c.ID),
		},
		Taker: c.Wallet, Desk: s.desk.addr, FeePayer: build.Desk, RentPayer: build.Taker, BaseAmount: 1000,
		Payment: build.Leg{Rail: market.RailUSDC, Mint: s.checked, Amount: market.Amount(due(c)), To: s.treasury.addr},
		Base:    s.check(s.slusd, token.Harmless()),
	}
	u, err := a.Build(&solana.AccountCache{})
	s.must(err)
	m, err := tx.DecodeMessage(u.Message())
	s.must(err)
	raw, err := seal(m, s.people)
	s.must(err)
	return s.sends(raw), u.Hash()
}

// ownAttacks are about what the desk itself has signed.
func ownAttacks() []attack {
	// atomically plays a claim of the atomic way, up to a state.
	atomically := func(ours bool, until rfq.ClaimState) player {
		return func(s *stage, _ claim) signature {
			c := s.machine.take(s.t, s.payer.addr, market.RailUSDC, rfq.Atomic, 2)
			sig, hash := s.atomic(c)
			if ours {
				s.store.own(sig, c.ID)
			}
			s.machine.must(s.t, &rfq.CosignClaim{Claim: c.ID, Proof: hash})
			switch until {
			case rfq.ClaimSettled:
				s.machine.must(s.t, &rfq.SettleClaim{Claim: c.ID, Proof: hash})
			case rfq.ClaimReleased:
				s.machine.must(s.t, &rfq.ReleaseClaim{Claim: c.ID})
			}
			s.asked = c
			return sig
		}
	}
	// lost plays the atomic transaction of a claim that the desk never heard of.
	lost := func(ours bool) player {
		return func(s *stage, c claim) signature {
			older := *c
			older.ID += 1 << 40
			sig, _ := s.atomic(&older)
			if ours {
				s.store.own(sig, older.ID)
			}
			return sig
		}
	}
	delivers := func(ours bool) player {
		return func(s *stage, c claim) signature {
			s.settles(c)
			sig := s.does(s.slusd.open(s.payer.addr, s.friend.addr), s.slusd.give(s.desk.addr, s.friend.addr, 1000), memo(binding.Memo(c.ID)))
			if ours {
				s.store.own(sig, c.ID)
			}
			return sig
		}
	}
	return []attack{
		{name: "our atomic transaction, settled", attack: atomically(true, rfq.ClaimSettled), want: want{verdict: verified, unbooked: true, claim: rfq.ClaimSettled}},
		{name: "our atomic transaction, on its way", attack: atomically(true, rfq.ClaimCosigned), want: want{verdict: pending, unbooked: true, claim: rfq.ClaimCosigned}},
		{name: "our atomic transaction, released", attack: atomically(true, rfq.ClaimReleased), want: want{verdict: state, unbooked: true, claim: rfq.ClaimReleased, unmatchedAs: SettledUnrecorded}},
		{name: "our atomic transaction, released and forgotten by us", attack: atomically(false, rfq.ClaimReleased), want: want{verdict: state, unbooked: true, claim: rfq.ClaimReleased, unmatchedAs: SettledUnrecorded}},
		{name: "our atomic transaction, of a claim that was lost", attack: lost(true), want: want{verdict: unknown, unbooked: true, unmatchedAs: SettledUnrecorded, unnamed: true}},
		{name: "our atomic transaction, lost and forgotten by us", attack: lost(false), want: want{verdict: unknown, unbooked: true, unmatchedAs: SettledUnrecorded, unnamed: true}},
		{name: "our atomic transaction, forgotten by us", attack: atomically(false, rfq.ClaimSettled), want: want{verdict: verified, unbooked: true, claim: rfq.ClaimSettled}},
		{name: "our atomic transaction, forgotten on its way", attack: atomically(false, rfq.ClaimCosigned), want: want{verdict: pending, unbooked: true, claim: rfq.ClaimCosigned}},
		{name: "our delivery", attack: delivers(true), want: want{verdict: mismatch, word: string(payment.WrongDestination), claim: rfq.ClaimPaid, unbooked: true}},
		{name: "our delivery, forgotten by us", attack: delivers(false), want: want{verdict: mismatch, word: string(payment.WrongDestination), claim: rfq.ClaimPaid, unbooked: true}},
		{name: "a payment of an atomic claim", attack: func(s *stage, _ claim) signature {
			c := s.machine.take(s.t, s.payer.addr, market.RailUSDC, rfq.Atomic, 1)
			s.asked = c
			return s.as(c, draft{})
		}, want: surplus(rfq.ClaimReserved)},
	}
}

// lateAttacks pay after the claim's deadline.
func lateAttacks() []attack {
	return []attack{
		{name: "late, and honoured", attack: func(s *stage, c claim) signature {
			s.wait(claimTTL + time.Minute)
			return s.as(c, draft{})
		}, want: paid(dueUSDC)},
		{name: "late, and short", attack: func(s *stage, c claim) signature {
			s.wait(claimTTL + time.Minute)
			return s.does(s.bound(c, due(c)-1)...)
		}, want: short(market.RailUSDC, dueUSDC-1).in(rfq.ClaimExpired)},
		{name: "late, while the desk is locked", attack: func(s *stage, c claim) signature {
			s.wait(claimTTL + time.Minute)
			s.machine.must(s.t, &rfq.SetLock{Scope: rfq.LockAll, Locked: true, Reason: "test"})
			s.t.Cleanup(func() { s.machine.must(s.t, &rfq.SetLock{Scope: rfq.LockAll}) })
			return s.as(c, draft{})
		}, want: refund(late, "", event.ReasonLatePayment, market.RailUSDC, dueUSDC).in(rfq.ClaimRefundDue)},
		{name: "too late", attack: func(s *stage, c claim) signature {
			s.wait(claimTTL + lateWindow + time.Minute)
			return s.as(c, draft{})
		}, want: refund(late, "", event.ReasonLatePayment, market.RailUSDC, dueUSDC).in(rfq.ClaimRefundDue)},
		{name: "too late, twice", attack: func(s *stage, c claim) signature {
			s.wait(claimTTL + lateWindow + time.Minute)
			first := s.as(c, draft{})
			if v, err := s.verify(first, c); err != nil || wordOf(&v) != late {
				s.t.Fatalf("%+v, %v", v, err)
			}
			return s.as(c, draft{version: tx.Legacy})
		}, want: refund(late, "", event.ReasonLatePayment, market.RailUSDC, dueUSDC).in(rfq.ClaimRefundDue)},
	}
}
