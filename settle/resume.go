package settle

import (
	"context"
	"slices"
	"time"

	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/market"
	"blockdesk/settle/binding"
	"blockdesk/settle/broadcast"
	"blockdesk/settle/cosign"
)

// resumer gives the tracker the transactions that the desk has permitted.
type resumer struct {
	*env
	tracker *broadcast.Tracker
	locks   *claimLocks
}

// resume tracks a claim's permitted transaction: its signed bytes are sent, or, if
// there are none, the tracker waits until they can no longer land. Nothing changes
// for a transaction that is tracked already, or that has ended since c was read.
func (r *resumer) resume(c *rfq.Claim, kind cosign.Kind, lastValid uint64) error {
	newest, err := r.claimOf(c.ID)
	switch {
	case err != nil:
		return err
	case newest != nil && newest.ChangedAt > c.ChangedAt:
		return nil // the claim has changed since c was read: a job of its newest record resumes it
	}
	t, ok, err := r.store.Transaction(c.ID, c.Proof)
	switch {
	case err != nil:
		return err
	case ok:
		return r.tracker.Track(t)
	}
	return r.tracker.Await(broadcast.Missing{
		Claim: c.ID, Kind: kind, Hash: c.Proof, Reference: binding.Reference(c.ID), LastValid: lastValid,
		// Permission may have been repeated after its transaction landed.
		AllowedAt: c.ReservedAt,
	})
}

// tryAtomic resumes a permitted atomic claim, unless a submission holds its lock.
// Errors: errLater.
func (r *resumer) tryAtomic(c *rfq.Claim) error {
	unlock, ok := r.locks.try(c.ID)
	if !ok {
		return errLater
	}
	defer unlock()
	return r.atomic(c)
}

// atomic resumes a permitted atomic claim. The caller holds the claim's lock.
func (r *resumer) atomic(c *rfq.Claim) error {
	b, ok, err := r.store.Build(c.ID)
	if err != nil {
		return err
	}
	lastValid := uint64(0)
	if ok {
		lastValid = b.LastValid
	}
	return r.resume(c, cosign.Cosign, lastValid)
}

// recovery finds the atomic transactions that the desk has signed and whose permission
// the journal has lost: in a crash in mode interval, or because it was restored from
// a backup. It gets permission again if that is still possible, and in any case
// tracks the transaction to its end.
type recovery struct {
	*env
	tracker    *broadcast.Tracker
	retryEvery time.Duration

	// claims have not been checked yet. Start fills the list, then run owns it.
	claims []market.ClaimID
}

// recovered enters a claim of the recovered state.
func (r *recovery) recovered(c *rfq.Claim) {
	if c.Mode == rfq.Atomic && (c.State == rfq.ClaimReserved || c.State == rfq.ClaimExpired) {
		r.claims = append(r.claims, c.ID)
	}
}

// run checks each claim once, and retries those that failed. A failure does not delay
// the other claims.
func (r *recovery) run(ctx context.Context) error {
	for {
		r.claims = slices.DeleteFunc(r.claims, func(id market.ClaimID) bool {
			if ctx.Err() != nil {
				return false
			}
			err := r.recover(id)
			if err != nil {
				r.log.Warn("recovery of a claim's signed transactions failed", "claim", claimText(id), "error", err)
			}
			return err == nil
		})
		if len(r.claims) == 0 || !sleep(ctx, r.retryEvery) {
			return nil
		}
	}
}

func (r *recovery) recover(id market.ClaimID) error {
	list, err := r.store.Transactions(id)
	if err != nil {
		return err
	}
	for i := range list {
		if list[i].Kind() != cosign.Cosign {
			continue
		}
		result, err := r.desk.Do(&rfq.CosignClaim{Claim: id, Proof: list[i].Hash()})
		if err != nil {
			return claimError(id, err)
		}
		if result.Reason == event.ReasonNone {
			r.log.Warn("journal lost a signed transaction, recorded again", "claim", claimText(id))
		} else { // it is tracked all the same, because it may land
			r.log.Error("journal lost a signed transaction, and the desk refuses it now", "claim", claimText(id), "reason", result.Reason.String())
		}
		if err := r.tracker.Track(list[i]); err != nil {
			return err
		}
	}
	return nil
}
