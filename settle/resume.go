package settle

import (
	"blockdesk/engine/rfq"
	"blockdesk/settle/binding"
	"blockdesk/settle/broadcast"
	"blockdesk/settle/cosign"
	"blockdesk/settle/store"
)

// resumer gives the tracker the transactions that the desk has promised.
type resumer struct {
	store   *store.Store
	tracker *broadcast.Tracker
	locks   *claimLocks
}

// resume tracks a claim's promised transaction: its signed bytes are sent, or, if
// there are none, the tracker waits until they can no longer land. Nothing changes
// for a transaction that is tracked already.
func (r *resumer) resume(c *rfq.Claim, kind cosign.Kind, lastValid uint64) error {
	t, ok, err := r.store.Transaction(c.ID, c.Proof)
	switch {
	case err != nil:
		return err
	case ok:
		return r.tracker.Track(t)
	}
	return r.tracker.Await(broadcast.Missing{
		Claim: c.ID, Kind: kind, Hash: c.Proof, Reference: binding.Reference(c.ID), LastValid: lastValid, AllowedAt: c.ChangedAt,
	})
}

// tryAtomic resumes a promised atomic claim, unless a submission holds its lock.
// Errors: errLater.
func (r *resumer) tryAtomic(c *rfq.Claim) error {
	unlock, ok := r.locks.try(c.ID)
	if !ok {
		return errLater
	}
	defer unlock()
	return r.atomic(c)
}

// atomic resumes a promised atomic claim. The caller holds the claim's lock.
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
