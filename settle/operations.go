package settle

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/market"
	"blockdesk/settle/broadcast"
	"blockdesk/settle/cosign"
	"blockdesk/settle/proof"
	"blockdesk/settle/store"
)

// operations are an operator's lists of money that needs attention, and the
// operator's decisions about it.
type operations struct {
	*env
	tracker      *broadcast.Tracker
	jobs         *jobs
	refunds      *refunds
	orders       *refundOrders
	resumer      *resumer
	locks        *claimLocks
	failingAfter time.Duration
	// seen returns what the watch for payments has seen.
	seen func() proof.Stats
}

// Refunded records that a payment was paid back by a transaction. A refusal by the
// rules is a Result with a Reason. Errors: those of the desk.
func (o *operations) Refunded(by desk.OperatorRequest, payment, refund [64]byte) (*desk.Result, error) {
	return o.do(by, &rfq.RefundPayment{Signature: payment, Proof: sha256.Sum256(refund[:])})
}

// Abandon gives up a claim that is paid and can never be delivered: the refund of
// its payment is due. The desk refuses it while a delivery is under way. A refusal
// by the rules is a Result with a Reason. Errors: those of the desk.
func (o *operations) Abandon(by desk.OperatorRequest, id market.ClaimID) (*desk.Result, error) {
	return o.do(by, &rfq.AbandonDelivery{Claim: id})
}

func (o *operations) do(by desk.OperatorRequest, r rfq.Request) (*desk.Result, error) {
	head := r.Head()
	head.Operator, head.Key = by.Operator, by.Key
	result, err := o.desk.Do(r)
	if err != nil {
		return nil, fmt.Errorf("settle: operator %d: %w", by.Operator, err)
	}
	return result, nil
}

// ResolveUnmatched records what an operator has done about an unmatched payment. If
// that is a delivery of ours for a payment whose refund is due, the refund is listed
// from now on. The first note stands. Errors: [desk.ErrNotUnmatched], errors of
// package store.
func (o *operations) ResolveUnmatched(by desk.OperatorRequest, payment [64]byte, note string) error {
	switch err := o.store.ResolveUnmatched(payment, by.Name, note, o.now()); {
	case errors.Is(err, store.ErrNotFound):
		return fmt.Errorf("%w: %w", desk.ErrNotUnmatched, err)
	case errors.Is(err, store.ErrResolved):
		return nil
	case err != nil:
		return err
	}
	x, ok, err := o.store.UnmatchedPayment(payment)
	if err == nil && ok && (x.Reason == reasonDelivered || x.Reason == reasonUnrecorded) {
		o.refunds.unhold(x.Claim)
	}
	return err
}

// Release ends the wait for a transaction whose outcome is unknown, on the word of an
// operator who has seen that it is not on the chain. An atomic claim is released; the
// delivery of a paid claim expires and the next one is signed at once. If the
// operator is wrong, the desk delivers twice. A refusal by the rules is a Result with
// a Reason. Errors: [desk.ErrOutcomeKnown]; ctx.Err(); errors of the desk, after
// which the claim waits as before.
func (o *operations) Release(ctx context.Context, by desk.OperatorRequest, id market.ClaimID) (*desk.Result, error) {
	// The lock keeps out submissions and workers, which would track it again.
	unlock, err := o.locks.lock(ctx, id)
	if err != nil {
		return nil, err
	}
	defer unlock()
	c, err := o.claimOf(id)
	if err != nil {
		return nil, err
	}
	if !hasTransactionOut(c) {
		return nil, fmt.Errorf("%w: claim %s", desk.ErrOutcomeKnown, claimText(id))
	}
	was, err := o.tracker.GiveUp(id, c.Proof)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", desk.ErrOutcomeKnown, err)
	}
	o.log.Warn("operator gave up a transaction whose outcome is unknown", "claim", claimText(id), "operator", by.Name,
		"signature", was.Signature.String(), "last_valid", was.LastValid, "word", was.Problem)
	result, err := o.recordGivenUp(by, c, was.Signature)
	if err != nil {
		return nil, errors.Join(err, o.resume(c))
	}
	return result, nil
}

// recordGivenUp records in the desk that a claim's transaction never landed.
func (o *operations) recordGivenUp(by desk.OperatorRequest, c *rfq.Claim, signature solana.Signature) (*desk.Result, error) {
	var request rfq.Request = &rfq.ReleaseClaim{Claim: c.ID}
	count := &o.counts.released
	if c.State != rfq.ClaimCosigned {
		// Call it before the desk's record of the end arrives, or the job would adopt
		// the same delivery.
		o.jobs.setEnded(c.ID, c.Proof, signature != (solana.Signature{}), problemGivenUp)
		request, count = &rfq.ExpireDelivery{Claim: c.ID, Proof: c.Proof}, &o.counts.expired
	}
	result, err := o.do(by, request)
	if err == nil && result.Reason == 0 {
		count.Add(1)
	}
	return result, err
}

// resume makes the tracker continue to wait for the transaction whose end the desk
// has not recorded. The caller holds the claim's lock.
func (o *operations) resume(c *rfq.Claim) error {
	if c.State == rfq.ClaimCosigned {
		return o.resumer.atomic(c)
	}
	return o.resumer.resume(c, cosign.Deliver, 0)
}
