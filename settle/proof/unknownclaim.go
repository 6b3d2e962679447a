package proof

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/payment"
	"blockdesk/market"
	"blockdesk/settle/binding"
	"blockdesk/settle/cosign"
	"blockdesk/settle/search"
)

// Reasons of unmatched payments after the restore of an old backup: the chain has a
// transaction whose record the desk has lost.
const (
	// SettledUnrecorded is an atomic settlement of ours that the desk has not
	// recorded: its claim has ended in another way, or is unknown.
	SettledUnrecorded = "settled_unbooked"
	// DeliveredUnrecorded is a payment for a claim that the desk does not know and that
	// was delivered nevertheless: do not send it back. If more than MaxSearched
	// transactions name the claim, it may have been delivered.
	DeliveredUnrecorded = "delivered_unbooked"
)

// MaxSearched bounds the transactions that are read to find the delivery of a claim
// that the desk does not know.
const MaxSearched = search.Max

// refuseUnknownClaim refuses and stores a payment for a claim that the desk does not
// know. If the chain has our delivery, the stored reason is DeliveredUnrecorded.
func (p *Prover) refuseUnknownClaim(ctx context.Context, s *accountChanges, id market.ClaimID) (result, error) {
	why := unknownClaim
	if slices.ContainsFunc(s.facts, func(f *payment.Facts) bool { return f.Gained > 0 }) {
		switch delivered, err := p.delivered(ctx, id, s.Signature(), s.Slot); {
		case err != nil:
			return result{}, err
		case delivered:
			why = DeliveredUnrecorded
		}
	}
	return refusal(nil, unknownClaim), p.addUnrecorded(s, id, nil, why, false)
}

// delivered searches the transactions that name a claim, except its payment, for a
// delivery of ours: it is in no older block than the payment.
func (p *Prover) delivered(ctx context.Context, id market.ClaimID, paid solana.Signature, paidAt uint64) (bool, error) {
	s := search.Search{
		Reference: binding.Reference(id), Since: paidAt, Known: []solana.Signature{paid},
		Ours: func(message []byte) bool { return p.delivers(message, id) },
	}
	found, err := s.Run(ctx, p.node)
	switch {
	case errors.Is(err, search.ErrUnread), errors.Is(err, search.ErrHistory):
		return false, fmt.Errorf("%w: claim %s: %w", ErrAnswer, binding.Memo(id), err)
	case err != nil:
		return false, fmt.Errorf("claim %s: %w", binding.Memo(id), err)
	}
	return found.Found != nil || found.More, nil
}

// delivers reports whether a message has the shape of a delivery of ours for a claim,
// modular or atomic.
func (p *Prover) delivers(message []byte, id market.ClaimID) bool {
	return p.isAtomic(message, id) || slices.ContainsFunc(p.ours, func(a solana.Address) bool {
		shape, err := cosign.CheckDelivery(message, a)
		return err == nil && shape.Claim == id
	})
}

// isAtomic reports whether a message has the shape of our atomic transaction for a
// claim.
func (p *Prover) isAtomic(message []byte, id market.ClaimID) bool {
	return slices.ContainsFunc(p.ours, func(a solana.Address) bool {
		shape, err := cosign.CheckAtomic(message, a)
		return err == nil && shape.Claim == id
	})
}
