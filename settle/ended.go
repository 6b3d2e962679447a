package settle

import (
	"context"
	"fmt"

	"blockdesk/desk"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/settle/broadcast"
	"blockdesk/settle/cosign"
	"blockdesk/settle/proof"
	"blockdesk/settle/store"
)

// ended books the end of a transaction. The tracker calls it again until it
// returns nil; every step of it can be taken again.
func (s *Settlement) ended(_ context.Context, r broadcast.Result) error {
	switch {
	case r.End == broadcast.Finalized:
		return s.settled(&r)
	case r.Kind == cosign.Cosign:
		return s.book(&r, &rfq.ReleaseClaim{Claim: r.Claim}, &s.counts.released)
	}
	word := wordExpired
	if r.End == broadcast.Failed {
		word = wordFailed
	}
	// Before the desk knows, so that the pause is there when it tells of it.
	s.work.lapsed(r.Claim, r.Hash, r.Signature != (solana.Signature{}), word)
	return s.book(&r, &rfq.ExpireDelivery{Claim: r.Claim, Proof: r.Hash}, &s.counts.lapsed)
}

// settled books that the tokens have been delivered. Where the desk does not
// think that they were on their way, it is told so first: its tail was lost, as
// in mode interval.
func (s *Settlement) settled(r *broadcast.Result) error {
	settle := &rfq.SettleClaim{Claim: r.Claim, Proof: r.Hash}
	result, err := s.desk.Do(settle)
	if err != nil {
		return fmt.Errorf("claim %s: %w", claimText(r.Claim), err)
	}
	if r.Kind == cosign.Deliver && result.Reason == event.ReasonClaimState && rfq.ClaimState(result.Limit) == rfq.ClaimPaid {
		if _, err := s.desk.Do(&rfq.BeginDelivery{Claim: r.Claim, Proof: r.Hash}); err != nil {
			return fmt.Errorf("claim %s: %w", claimText(r.Claim), err)
		}
		if result, err = s.desk.Do(settle); err != nil {
			return fmt.Errorf("claim %s: %w", claimText(r.Claim), err)
		}
	}
	if result.Reason == event.ReasonNone {
		s.counts.settled.Add(1)
		return nil
	}
	return s.disagree(r, result)
}

// disagree leaves to a person what the chain has and the desk cannot book any
// more: tokens that were delivered for a claim that has ended otherwise. It
// happens after a journal was restored alone.
func (s *Settlement) disagree(r *broadcast.Result, result *desk.Result) error {
	s.log.Error("the chain has a settlement that the desk does not book",
		"claim", claimText(r.Claim), "signature", r.Signature.String(), "reason", result.Reason.String(), "limit", result.Limit)
	return s.store.AddUnmatched(&store.UnmatchedPayment{
		Signature: r.Signature, Reason: strayUnbooked, Slot: r.Slot, SeenAt: s.now(), Claim: r.Claim,
	})
}

// strayUnbooked is the word of a stray that is a settlement of ours.
const strayUnbooked = proof.SettledUnbooked

// book tells the desk of an end that gives something back. A claim that has gone
// on since, or is forgotten, was told before.
func (s *Settlement) book(r *broadcast.Result, request rfq.Request, count *counter) error {
	result, err := s.desk.Do(request)
	if err != nil {
		return fmt.Errorf("claim %s: %w", claimText(r.Claim), err)
	}
	if result.Reason == event.ReasonNone {
		count.Add(1)
	} else {
		s.log.Warn("the desk did not book the end of a transaction", "claim", claimText(r.Claim),
			"end", r.End.String(), "reason", result.Reason.String(), "limit", result.Limit)
	}
	return nil
}
