package proof

import (
	"fmt"
	"slices"

	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/payment"
	"blockdesk/market"
)

// result is the result for a signature. It does not depend on the request.
type result struct {
	pending  bool
	refused  event.Reason
	mismatch string
	// claim is the one that the transaction names; nil if it names none, several, or
	// one that the desk does not know.
	claim *rfq.Claim
	// payment is the desk's record. Our own atomic transaction is not recorded as a
	// payment: for it the record is made from the claim.
	payment  *rfq.Payment
	replayed bool
	// ended: the transaction is our own atomic one, and its claim has ended in
	// another way or is unknown to the desk. notFinal: in addition, no node has it
	// as final.
	ended, notFinal bool
	// undecided is why no majority could be found while some node knows the
	// transaction: other nodes fail. The result is pending then.
	undecided error
}

// refusal returns the result of a transaction that is not recorded.
func refusal(c *rfq.Claim, why payment.Reason) result {
	if why == unknownClaim {
		return result{refused: event.ReasonUnknownClaim}
	}
	return result{claim: c, refused: event.ReasonPaymentMismatch, mismatch: string(why)}
}

// recorded returns, without reading the chain, the result for a payment that the
// desk has recorded and for a transaction of our own.
func (p *Prover) recorded(s solana.Signature) (f result, ok bool, err error) {
	id, ok, err := p.desk.PaymentClaim(s)
	if err != nil {
		return f, false, fmt.Errorf("payment %s: %w", s, err)
	}
	if ok {
		h, known, err := p.desk.Claim(id)
		if err != nil {
			return f, false, fmt.Errorf("payment %s: %w", s, err)
		}
		if known {
			if at := slices.IndexFunc(h.Payments, func(x rfq.Payment) bool { return x.Signature == s }); at >= 0 {
				return recordedPayment(&h.Claim, &h.Payments[at]), true, nil
			}
		}
		// A History has only the newest payments, and this one is older. Reading
		// the chain leads to the same record.
		return f, false, nil
	}
	id, ok, err = p.store.ClaimOf(s)
	if err != nil || !ok {
		return f, false, err
	}
	h, known, err := p.desk.Claim(id)
	switch {
	case err != nil:
		return f, false, fmt.Errorf("payment %s: %w", s, err)
	case !known:
		f = refusal(nil, unknownClaim)
		f.ended = true
		return f, true, nil
	}
	return ownTransaction(s, &h.Claim), true, nil
}

// recordedPayment returns the result of a payment that the desk has recorded, as it is
// now.
func recordedPayment(c *rfq.Claim, x *rfq.Payment) result {
	f := result{claim: c, payment: x}
	if x.State == rfq.PaymentApplied {
		return f
	}
	f.refused = x.Reason
	if x.Reason == event.ReasonPaymentMismatch {
		f.mismatch = string(payment.AmountShort)
		if x.Rail != c.Terms.Rail {
			f.mismatch = string(payment.WrongMint)
		}
	}
	return f
}

// ownTransaction returns the result of a transaction that the desk has signed. The
// claim's state says how it ended; it is never recorded as a payment.
func ownTransaction(s solana.Signature, c *rfq.Claim) result {
	if c.Mode != rfq.Atomic { // a delivery pays us nothing
		return refusal(c, payment.WrongDestination)
	}
	switch c.State {
	case rfq.ClaimSettled:
		return result{claim: c, payment: &rfq.Payment{
			Signature: s, Claim: c.ID, Rail: c.Terms.Rail, State: rfq.PaymentApplied, Amount: c.Terms.Payment, Payer: c.Wallet, At: c.ChangedAt,
		}}
	case rfq.ClaimReserved, rfq.ClaimCosigned:
		return result{claim: c, pending: true}
	default:
		return result{claim: c, refused: event.ReasonClaimState, ended: true}
	}
}

// claimPayment is the payment for a claim in a transaction.
type claimPayment struct {
	claim  *rfq.Claim
	rail   market.Rail
	amount market.Amount
	payer  solana.Address
}

// record records a payment in the desk, and stores other payments of the transaction as
// unmatched.
func (p *Prover) record(s *accountChanges, x *claimPayment, key rfq.IdempotencyKey) (result, error) {
	id := x.claim.ID
	// First, because a signature that the desk has recorded is not examined again.
	if err := p.addUnrecorded(s, id, x, payment.WrongDestination, false); err != nil {
		return result{}, err
	}
	o, err := p.desk.Do(&rfq.ProvePayment{
		Header: rfq.Header{Key: key}, Claim: id, Rail: x.rail, Signature: s.Signature(), Payer: x.payer, Amount: uint64(x.amount), Slot: s.Slot,
		BlockTime: s.BlockTime,
	})
	if err != nil {
		return result{}, err
	}
	switch {
	case o.Reason == event.ReasonUnknownClaim: // the claim is so old that only its history is left
		f, err := p.refuseUnmatched(s, id, nil, unknownClaim)
		f.replayed = o.Replayed
		return f, err
	case o.Reason == event.ReasonPaymentUsed || o.Reason == event.ReasonDeskFull:
		return result{claim: x.claim, refused: o.Reason, replayed: o.Replayed}, nil
	case o.Reason != event.ReasonNone:
		return result{}, fmt.Errorf("%w: the desk refuses the payment: %s", ErrAnswer, o.Reason)
	case o.Payment == nil || o.Payment.Claim != id || o.Payment.Signature != s.Signature():
		return result{}, fmt.Errorf("%w: the desk returned the record of another payment", ErrAnswer)
	}
	p.counts.recorded.Add(1)
	c := o.Claim
	switch {
	case c != nil && c.ID == id:
	case x.claim.State != rfq.ClaimReserved && x.claim.State != rfq.ClaimExpired:
		c = x.claim // it was paid before, and the command has not changed it
	default: // another payment was first
		h, known, err := p.desk.Claim(id)
		if err != nil {
			return result{}, err
		}
		if c = nil; known {
			c = &h.Claim
		}
	}
	f := recordedPayment(c, o.Payment)
	f.replayed = o.Replayed
	return f, nil
}
