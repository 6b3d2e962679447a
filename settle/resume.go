package settle

import (
	"blockdesk/engine/rfq"
	"blockdesk/settle/binding"
	"blockdesk/settle/broadcast"
	"blockdesk/settle/cosign"
)

// resumeAtomic takes up an atomic claim that was promised, unless a submission is
// at it.
func (s *Settlement) resumeAtomic(c *rfq.Claim) error {
	unlock, ok := s.locks.try(c.ID)
	if !ok {
		return errLater
	}
	defer unlock()
	return s.resumeLocked(c)
}

// resumeLocked is resumeAtomic for the holder of the claim's lock.
func (s *Settlement) resumeLocked(c *rfq.Claim) error {
	b, ok, err := s.store.Build(c.ID)
	if err != nil {
		return err
	}
	lastValid := uint64(0)
	if ok {
		lastValid = b.LastValid
	}
	return s.resume(c, cosign.Cosign, lastValid)
}

// resume sees to it that what was promised for a claim comes to its end: its
// signed bytes are sent, or, where there are none, it is waited for until they
// could not land any more. Of what is tracked already nothing changes.
func (s *Settlement) resume(c *rfq.Claim, kind cosign.Kind, lastValid uint64) error {
	kept, ok, err := s.store.Transaction(c.ID, c.Proof)
	switch {
	case err != nil:
		return err
	case ok:
		return s.tracker.Track(kept)
	}
	return s.tracker.Await(broadcast.Missing{
		Claim: c.ID, Kind: kind, Hash: c.Proof, Reference: binding.Reference(c.ID), LastValid: lastValid, AllowedAt: c.ChangedAt,
	})
}
