package settle

import (
	"context"

	"blockdesk/desk"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/settle/broadcast"
	"blockdesk/settle/cosign"
	"blockdesk/settle/store"
)

// outcomes records in the desk how transactions ended.
type outcomes struct {
	*env
	jobs   *jobs
	orders *refundOrders
}

// record records the end of a transaction in the desk. The tracker calls it again
// until it returns nil, so every step must be repeatable.
func (o *outcomes) record(_ context.Context, r broadcast.Result) error {
	switch {
	case r.Kind == cosign.Refund:
		return o.orders.recordRefund(&r)
	case r.End == broadcast.Finalized:
		return o.settle(&r)
	case r.Kind == cosign.Cosign:
		return o.release(&r, &rfq.ReleaseClaim{Claim: r.Claim}, &o.counts.released)
	}
	problem := problemExpired
	if r.End == broadcast.Failed {
		problem = problemFailed
	}
	// Call it before the desk's record of the end arrives, so that the claim's next
	// job waits.
	signed := r.Signature != (solana.Signature{})
	if !signed { // it may have been awaited only, because the guard refused it
		var err error
		if _, signed, err = o.store.Transaction(r.Claim, r.Hash); err != nil {
			return err
		}
	}
	o.jobs.setEnded(r.Claim, r.Hash, signed, problem)
	return o.release(&r, &rfq.ExpireDelivery{Claim: r.Claim, Proof: r.Hash}, &o.counts.expired)
}

// hasChanged reports whether a request that the rules let through has changed its claim,
// and not repeated an earlier step.
func hasChanged(r *desk.Result) bool { return r.Claim != nil && r.Claim.ChangedAt == r.At }

// settle settles the claim in the desk. If the desk has lost the beginning of the
// delivery, for example in a crash in mode interval, settle repeats BeginDelivery
// first.
func (o *outcomes) settle(r *broadcast.Result) error {
	settle := &rfq.SettleClaim{Claim: r.Claim, Proof: r.Hash}
	result, err := o.desk.Do(settle)
	if err != nil {
		return claimError(r.Claim, err)
	}
	if r.Kind == cosign.Deliver && result.Reason == event.ReasonClaimState && rfq.ClaimState(result.Limit) == rfq.ClaimPaid {
		begun, err := o.desk.Do(&rfq.BeginDelivery{Claim: r.Claim, Proof: r.Hash})
		switch {
		case err != nil:
			return claimError(r.Claim, err)
		case isGuard(begun.Reason): // the tracker reports the end again until the desk records it
			return guarded(r.Claim, begun.Reason)
		}
		if result, err = o.desk.Do(settle); err != nil {
			return claimError(r.Claim, err)
		}
	}
	if result.Reason == event.ReasonNone {
		if hasChanged(result) {
			o.counts.settled.Add(1)
		}
		return nil
	}
	// The claim has ended in another way, for example after a restore of the
	// journal alone: an operator must decide.
	o.log.Error("desk refused a settlement that is on the chain",
		"claim", claimText(r.Claim), "signature", r.Signature.String(), "reason", result.Reason.String(), "limit", result.Limit)
	return o.store.AddUnmatched(&store.UnmatchedPayment{
		Signature: r.Signature, Reason: reasonUnrecorded, Slot: r.Slot, SeenAt: o.now(), Claim: r.Claim,
	})
}

// release records in the desk that a transaction failed or expired. A refusal is
// only logged, because it means that the end was recorded before: the claim has
// changed since, or the desk has forgotten it.
func (o *outcomes) release(r *broadcast.Result, request rfq.Request, count *counter) error {
	result, err := o.desk.Do(request)
	if err != nil {
		return claimError(r.Claim, err)
	}
	if result.Reason == event.ReasonNone {
		if hasChanged(result) {
			count.Add(1)
		}
	} else {
		o.log.Warn("desk refused a transaction outcome", "claim", claimText(r.Claim),
			"end", r.End.String(), "reason", result.Reason.String(), "limit", result.Limit)
	}
	return nil
}
