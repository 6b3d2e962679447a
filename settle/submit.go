package settle

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"blockdesk/desk"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/market"
	"blockdesk/settle/broadcast"
	"blockdesk/settle/cosign"
	"blockdesk/settle/store"
)

// submissions countersigns and sends the atomic transactions that takers submit.
type submissions struct {
	*env
	tracker  *broadcast.Tracker
	packages *packages
	guard    *guard
	key      *deskKey
	locks    *claimLocks
}

// Submit countersigns and sends a claim's atomic transaction that its taker has
// signed. It signs once: a later submission returns the same signature and the
// transaction's newest stage. Submissions of one claim wait for each other.
//
// The desk's permission comes after every check and is durable before its key is used.
// After an error that follows the permission, the permission stands: the same submission
// again continues from there, and if none comes the claim is released when its
// transaction can no longer land.
//
// Errors: *[desk.Refusal], after which this submission has caused no signature of the desk;
// [desk.ErrUnknownBuild]; [ErrChain]; [ErrSigner]; [ErrNotReady]; ctx.Err(); errors of the
// desk and of package store.
func (s *submissions) Submit(ctx context.Context, sub *desk.Submission) (desk.Submitted, error) {
	id := sub.Claim
	b, ok, err := s.store.Build(id)
	switch {
	case err != nil:
		return desk.Submitted{}, err
	case !ok || b.Way != rfq.Atomic:
		return desk.Submitted{}, fmt.Errorf("%w: claim %s", desk.ErrUnknownBuild, claimText(id))
	case b.Taker != sub.By:
		return desk.Submitted{}, s.counts.refuse(id, desk.RefusalTakerMismatch)
	}
	signed, err := cosign.Countersign(id, b.Raw, b.Taker, cosign.Submission{Transaction: sub.Transaction, Signature: sub.Signature})
	if err != nil {
		return desk.Submitted{}, s.refusedSubmission(id, err)
	}
	unlock, err := s.locks.lock(ctx, id)
	if err != nil {
		return desk.Submitted{}, err
	}
	defer unlock()
	t, ok, err := s.store.Transaction(id, signed.Hash())
	switch {
	case err != nil:
		return desk.Submitted{}, err
	case ok:
		return s.submittedBefore(ctx, &t)
	}
	// Before the lock was held, the build may have been replaced.
	switch newest, ok, err := s.store.Build(id); {
	case err != nil:
		return desk.Submitted{}, err
	case !ok || !bytes.Equal(newest.Raw, b.Raw):
		return desk.Submitted{}, s.counts.refuse(id, desk.RefusalMessageMismatch)
	}
	if err := s.guard.countersignature(ctx, b, &signed); err != nil {
		return desk.Submitted{}, err
	}
	return s.countersign(ctx, b, signed)
}

// refusedSubmission turns an error of [cosign.Countersign] into a refusal.
func (s *submissions) refusedSubmission(id market.ClaimID, err error) error {
	switch {
	case errors.Is(err, cosign.ErrEmptyCounterparty):
		return s.counts.refuse(id, desk.RefusalEmptyCounterparty)
	case errors.Is(err, cosign.ErrMismatch):
		return s.counts.refuse(id, desk.RefusalMessageMismatch)
	case errors.Is(err, cosign.ErrBadSignature):
		return s.counts.refuse(id, desk.RefusalBadSignature)
	}
	return err // the stored bytes themselves are bad
}

// submittedBefore answers a repeated submission of a transaction that the desk has
// signed. The claim's job sends it.
func (s *submissions) submittedBefore(ctx context.Context, t *store.Transaction) (desk.Submitted, error) {
	claim, err := s.claimOf(t.Claim())
	if err != nil {
		return desk.Submitted{}, err
	}
	stage, slot := s.packages.stageOf(ctx, claim, t)
	return desk.Submitted{Claim: t.Claim(), Signature: t.Signature(), Transaction: t.Bytes(), Stage: stage, Slot: slot}, nil
}

// countersign gets the desk's permission, then signs, stores and sends the
// transaction. After the permission, the end of ctx does not stop it.
func (s *submissions) countersign(ctx context.Context, b *store.Build, signed cosign.Countersigned) (desk.Submitted, error) {
	permitted, err := signed.Authorize(s.desk)
	if refused := (*cosign.Refused)(nil); errors.As(err, &refused) {
		return desk.Submitted{}, s.counts.refuse(b.Claim, refusalOfOutcome(&refused.Outcome))
	}
	if err != nil {
		return desk.Submitted{}, err
	}
	t, err := s.key.sign(context.WithoutCancel(ctx), permitted, b.LastValid)
	if err != nil {
		return desk.Submitted{}, err
	}
	s.counts.cosigned.Add(1)
	if err := s.tracker.Track(t); err != nil { // the tracker is full; the claim's job tries again
		s.log.Warn("queue of sends is full, transaction is delayed", "claim", claimText(b.Claim), "error", err)
	}
	return desk.Submitted{Claim: b.Claim, Signature: t.Signature(), Transaction: t.Bytes(), Stage: desk.BuildBroadcast}, nil
}

func refusalOfOutcome(o *rfq.Outcome) desk.RefusalReason {
	switch o.Reason {
	case event.ReasonLocked:
		return desk.RefusalLocked
	case event.ReasonPriceCorridor:
		return desk.RefusalPriceCorridor
	case event.ReasonPriceStale:
		return desk.RefusalPriceStale
	case event.ReasonPriceUnavailable:
		return desk.RefusalPriceUnavailable
	case event.ReasonInventory:
		return desk.RefusalInventory
	case event.ReasonClaimState:
		return refusalOfState(rfq.ClaimState(o.Limit))
	default: // the desk has forgotten the claim
		return desk.RefusalExpired
	}
}
