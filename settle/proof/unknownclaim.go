package proof

import (
	"context"
	"fmt"
	"slices"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/payment"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
	"blockdesk/settle/binding"
	"blockdesk/settle/cosign"
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
// that the desk does not know. A stranger can make more. Each costs us one read, no
// more than a request would.
const MaxSearched = 32

// refuseUnknownClaim refuses and stores a payment for a claim that the desk does not
// know. If the chain has our delivery, the stored reason is DeliveredUnrecorded.
func (p *Prover) refuseUnknownClaim(ctx context.Context, s *accountChanges, id market.ClaimID) (result, error) {
	why := unknownClaim
	if slices.ContainsFunc(s.facts, func(f *payment.Facts) bool { return f.Gained > 0 }) {
		switch delivered, err := p.delivered(ctx, id, s.Signature()); {
		case err != nil:
			return result{}, err
		case delivered:
			why = DeliveredUnrecorded
		}
	}
	return refusal(nil, unknownClaim), p.addUnrecorded(s, id, nil, why, false)
}

// delivered searches the transactions that name a claim, except its payment, for a
// delivery of ours.
func (p *Prover) delivered(ctx context.Context, id market.ClaimID, paid solana.Signature) (bool, error) {
	// One more for the payment, and one to detect that there are too many.
	list, err := p.node.Signatures(ctx, binding.Reference(id), rpc.Page{Limit: MaxSearched + 2}, rpc.Confirmed)
	if err != nil {
		return false, fmt.Errorf("claim %s: %w", binding.Memo(id), err)
	}
	list = slices.DeleteFunc(slices.Clone(list), func(x rpc.SignatureInfo) bool { return x.Signature == paid })
	for i := range list[:min(len(list), MaxSearched)] {
		if list[i].Failed {
			continue
		}
		c, found, err := p.node.Transaction(ctx, list[i].Signature, rpc.Confirmed)
		switch {
		case err != nil:
			return false, fmt.Errorf("claim %s: %w", binding.Memo(id), err)
		case !found:
			return false, fmt.Errorf("%w: claim %s: a node lists transaction %s, but does not return it", ErrAnswer, binding.Memo(id), list[i].Signature)
		case !c.Failed && p.delivers(c.Tx.Signed, id):
			return true, nil
		}
	}
	return len(list) > MaxSearched, nil
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
