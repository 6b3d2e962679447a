package settle

import (
	"context"

	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/settle/broadcast"
	"blockdesk/settle/cosign"
	"blockdesk/settle/store"
)

// outcomes has the desk book how transactions ended.
type outcomes struct {
	*env
	jobs *jobs
}

// book books the end of a transaction. The tracker calls it again until it returns
// nil; every step of it can be repeated.
func (o *outcomes) book(_ context.Context, r broadcast.Result) error {
	switch {
	case r.End == broadcast.Finalized:
		return o.settle(&r)
	case r.Kind == cosign.Cosign:
		return o.release(&r, &rfq.ReleaseClaim{Claim: r.Claim}, &o.counts.released)
	}
	problem := problemExpired
	if r.End == broadcast.Failed {
		problem = problemFailed
	}
	// Before the desk's record of it arrives, so that the claim's next job waits.
	o.jobs.setEnded(r.Claim, r.Hash, r.Signature != (solana.Signature{}), problem)
	return o.release(&r, &rfq.ExpireDelivery{Claim: r.Claim, Proof: r.Hash}, &o.counts.expired)
}

// settle books a claim as settled. If the desk has lost the beginning of the
// delivery, as after a crash in mode interval, that is booked first.
func (o *outcomes) settle(r *broadcast.Result) error {
	settle := &rfq.SettleClaim{Claim: r.Claim, Proof: r.Hash}
	result, err := o.desk.Do(settle)
	if err != nil {
		return claimError(r.Claim, err)
	}
	if r.Kind == cosign.Deliver && result.Reason == event.ReasonClaimState && rfq.ClaimState(result.Limit) == rfq.ClaimPaid {
		if _, err := o.desk.Do(&rfq.BeginDelivery{Claim: r.Claim, Proof: r.Hash}); err != nil {
			return claimError(r.Claim, err)
		}
		if result, err = o.desk.Do(settle); err != nil {
			return claimError(r.Claim, err)
		}
	}
	if result.Reason == event.ReasonNone {
		o.counts.settled.Add(1)
		return nil
	}
	// The claim has ended otherwise, as after a restore of the journal alone: a
	// person decides.
	o.log.Error("settlement on the chain is not booked by the desk",
		"claim", claimText(r.Claim), "signature", r.Signature.String(), "reason", result.Reason.String(), "limit", result.Limit)
	return o.store.AddUnmatched(&store.UnmatchedPayment{
		Signature: r.Signature, Reason: reasonUnbooked, Slot: r.Slot, SeenAt: o.now(), Claim: r.Claim,
	})
}

// release books that a transaction did nothing. A refusal is logged only: the claim
// has changed since, or is forgotten, and the end was booked before.
func (o *outcomes) release(r *broadcast.Result, request rfq.Request, count *counter) error {
	result, err := o.desk.Do(request)
	if err != nil {
		return claimError(r.Claim, err)
	}
	if result.Reason == event.ReasonNone {
		count.Add(1)
	} else {
		o.log.Warn("desk did not book the end of a transaction", "claim", claimText(r.Claim),
			"end", r.End.String(), "reason", result.Reason.String(), "limit", result.Limit)
	}
	return nil
}
