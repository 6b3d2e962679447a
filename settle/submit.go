package settle

import (
	"context"
	"errors"
	"fmt"

	"blockdesk/desk"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
	"blockdesk/settle/cosign"
	"blockdesk/settle/store"
)

// Submit signs and sends a claim's atomic transaction that its taker has signed,
// once for ever: a later submission returns the same signature and the transaction's
// newest stage. Submissions of one claim wait for each other.
//
// The desk's promise comes after every check and is durable before its key is
// used. An error after the promise leaves it standing: the same submission again
// goes on from there, and if none comes the claim is released when its
// transaction can never land any more.
//
// Errors: *[desk.Refusal], after which no signature of the desk exists by this
// submission; [desk.ErrUnknownBuild]; [ErrChain]; [ErrSigner]; [ErrNotReady]; ctx's; those of the
// desk and of package store.
func (s *Settlement) Submit(ctx context.Context, sub *desk.Submission) (desk.Submitted, error) {
	id := sub.Claim
	b, ok, err := s.store.Build(id)
	switch {
	case err != nil:
		return desk.Submitted{}, err
	case !ok || b.Way != rfq.Atomic:
		return desk.Submitted{}, fmt.Errorf("%w: claim %s", desk.ErrUnknownBuild, claimText(id))
	case b.Taker != sub.By:
		return desk.Submitted{}, s.refuse(id, desk.RefusalTakerMismatch)
	}
	signed, err := cosign.Countersign(id, b.Raw, b.Taker, cosign.Submission{Transaction: sub.Transaction, Signature: sub.Signature})
	if err != nil {
		return desk.Submitted{}, s.refusedSubmission(id, err)
	}
	unlock, err := s.locks.lock(ctx, id)
	if err != nil {
		return desk.Submitted{}, fmt.Errorf("claim %s: %w", claimText(id), err)
	}
	defer unlock()
	kept, ok, err := s.store.Transaction(id, signed.Hash())
	switch {
	case err != nil:
		return desk.Submitted{}, err
	case ok:
		return s.submittedBefore(ctx, &kept)
	}
	if err := s.guard(ctx, b, &signed); err != nil {
		return desk.Submitted{}, err
	}
	return s.cosign(ctx, b, signed)
}

// refuse makes a refusal and counts it.
func (s *Settlement) refuse(id market.ClaimID, r desk.RefusalReason) error {
	s.counts.refused.Add(1)
	return &desk.Refusal{Claim: id, Reason: r}
}

// refusedSubmission says why a submission is not its taker's signature under the
// kept bytes.
func (s *Settlement) refusedSubmission(id market.ClaimID, err error) error {
	switch {
	case errors.Is(err, cosign.ErrEmptyCounterparty):
		return s.refuse(id, desk.RefusalEmptyCounterparty)
	case errors.Is(err, cosign.ErrMismatch):
		return s.refuse(id, desk.RefusalMessageMismatch)
	case errors.Is(err, cosign.ErrBadSignature):
		return s.refuse(id, desk.RefusalBadSignature)
	}
	return err // the kept bytes themselves are bad
}

// submittedBefore answers a submission of what the desk has signed. That it is
// under way is the matter of the claim's job.
func (s *Settlement) submittedBefore(ctx context.Context, k *store.Transaction) (desk.Submitted, error) {
	claim, err := s.claim(k.Claim())
	if err != nil {
		return desk.Submitted{}, err
	}
	stage, slot := s.fate(ctx, claim, k)
	return desk.Submitted{Claim: k.Claim(), Signature: k.Signature(), Transaction: k.Bytes(), Stage: stage, Slot: slot}, nil
}

// guard is what must hold before the desk promises its signature; the promise
// itself checks the desk's own rules again.
func (s *Settlement) guard(ctx context.Context, b *store.Build, signed *cosign.Countersigned) error {
	claim, err := s.claim(b.Claim)
	switch {
	case err != nil:
		return err
	case claim == nil:
		return s.refuse(b.Claim, desk.RefusalExpired)
	case claim.State == rfq.ClaimCosigned && claim.Proof == signed.Hash(): // promised, but not signed
	case claim.State != rfq.ClaimReserved:
		return s.refuse(b.Claim, reasonOfState(claim.State))
	}
	err = s.today(claim, signed.Shape())
	if errors.Is(err, errOtherDesk) {
		s.log.Warn("a submission of what the desk would not build today", "claim", claimText(b.Claim), "error", err)
		return s.refuse(b.Claim, desk.RefusalExpired)
	}
	if err != nil {
		return fmt.Errorf("claim %s: %w", claimText(b.Claim), err)
	}
	newest, err := s.blockhash(ctx)
	if err != nil {
		return fmt.Errorf("claim %s: %w", claimText(b.Claim), err)
	}
	if b.LastValid+s.options.BlockhashLife < newest.LastValidBlockHeight+MinLife {
		return s.refuse(b.Claim, desk.RefusalExpired)
	}
	// Not what the taker sent but what he signed is run: the runtime looks at no
	// signature here.
	run, err := s.node.Simulate(ctx, b.Raw, rpc.SimulateOptions{})
	if err != nil {
		return fmt.Errorf("claim %s: %w: %w", claimText(b.Claim), ErrChain, err)
	}
	if !run.Failed {
		return nil
	}
	s.log.Debug("a submission would fail on the chain", "claim", claimText(b.Claim), "error", run.Error)
	reason := reasonOfAtomic(run.Error, takerPays(b))
	if reason == desk.RefusalExpired && run.Slot < newest.Slot { // a node that is behind does not know the blockhash yet
		return fmt.Errorf("claim %s: %w: simulated as of slot %d, behind slot %d", claimText(b.Claim), ErrChain, run.Slot, newest.Slot)
	}
	return s.refuse(b.Claim, reason)
}

// cosign has the desk promise, sign, keep and send. From the promise on the
// caller's patience no longer counts.
func (s *Settlement) cosign(ctx context.Context, b *store.Build, signed cosign.Countersigned) (desk.Submitted, error) {
	promised, err := signed.Authorize(s.desk)
	if refused := (*cosign.Refused)(nil); errors.As(err, &refused) {
		return desk.Submitted{}, s.refuse(b.Claim, reasonOfOutcome(&refused.Outcome))
	}
	if err != nil {
		return desk.Submitted{}, err
	}
	kept, err := s.sign(context.WithoutCancel(ctx), promised, b.LastValid)
	if err != nil {
		return desk.Submitted{}, err
	}
	s.counts.cosigned.Add(1)
	if err := s.tracker.Track(kept); err != nil { // it is full: the claim's job tries again
		s.log.Warn("a signed transaction waits to be sent", "claim", claimText(b.Claim), "error", err)
	}
	return desk.Submitted{Claim: b.Claim, Signature: kept.Signature(), Transaction: kept.Bytes(), Stage: desk.BuildBroadcast}, nil
}

// sign uses the desk's key on what was promised, and keeps the result before
// anybody has it. Errors: [ErrSigner], those of package store.
func (s *Settlement) sign(ctx context.Context, promised cosign.Authorized, lastValid uint64) (store.Transaction, error) {
	ctx, cancel := context.WithTimeout(ctx, s.options.SignTimeout)
	defer cancel()
	signed, err := promised.Sign(ctx, s.signer)
	if err != nil {
		return store.Transaction{}, fmt.Errorf("%w: %w", ErrSigner, err)
	}
	return s.store.PutTransaction(signed, lastValid, s.now())
}

// reasonOfState says why a claim in another state than reserved is not signed.
func reasonOfState(state rfq.ClaimState) desk.RefusalReason {
	if state == rfq.ClaimSettled || state == rfq.ClaimCosigned {
		return desk.RefusalAlreadySettled
	}
	return desk.RefusalExpired
}

// reasonOfOutcome is the word for the desk's own no.
func reasonOfOutcome(o *rfq.Outcome) desk.RefusalReason {
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
		return reasonOfState(rfq.ClaimState(o.Limit))
	default: // the claim is forgotten
		return desk.RefusalExpired
	}
}
