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

// Reasons of strays after a restore of an old backup, when the chain has what the
// desk has lost.
const (
	// SettledUnbooked is an atomic settlement of ours that the desk does not count:
	// its claim has ended otherwise, or is not known.
	SettledUnbooked = "settled_unbooked"
	// DeliveredUnbooked is money for a claim that the desk does not know, and that
	// was delivered all the same: it is not to be sent back. Where more than
	// MaxSearched transactions name the claim, it may have been.
	DeliveredUnbooked = "delivered_unbooked"
)

// MaxSearched bounds the transactions that are read to find what was delivered for
// a claim that the desk does not know. A stranger can make as many, and a read of
// each is what he could have had us do by a request.
const MaxSearched = 32

// lost refuses a payment of a claim that the desk does not know, and keeps it: with
// a word of its own where the chain has what we delivered for it.
func (p *Prover) refuseUnknownClaim(ctx context.Context, s *effects, id market.ClaimID) (finding, error) {
	why := unknownClaim
	if slices.ContainsFunc(s.facts, func(f *payment.Facts) bool { return f.Gained > 0 }) {
		switch delivered, err := p.delivered(ctx, id, s.Signature()); {
		case err != nil:
			return finding{}, err
		case delivered:
			why = DeliveredUnbooked
		}
	}
	return refusal(nil, unknownClaim), p.addUnbooked(s, id, nil, why, false)
}

// delivered searches the transactions that name a claim, but its payment, for one
// of ours that delivers.
func (p *Prover) delivered(ctx context.Context, id market.ClaimID, paid solana.Signature) (bool, error) {
	// One more for the payment, and one that tells of too many.
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
			return false, fmt.Errorf("%w: claim %s: %s is listed and not found", ErrAnswer, binding.Memo(id), list[i].Signature)
		case !c.Failed && p.delivers(c.Tx.Signed, id):
			return true, nil
		}
	}
	return len(list) > MaxSearched, nil
}

// delivers reports whether a message is of the shape by which one of ours delivers
// for a claim, of either way.
func (p *Prover) delivers(message []byte, id market.ClaimID) bool {
	return p.isAtomic(message, id) || slices.ContainsFunc(p.ours, func(a solana.Address) bool {
		shape, err := cosign.CheckDelivery(message, a)
		return err == nil && shape.Claim == id
	})
}

// isAtomic reports whether a message is that of a claim's atomic transaction by one
// of ours.
func (p *Prover) isAtomic(message []byte, id market.ClaimID) bool {
	return slices.ContainsFunc(p.ours, func(a solana.Address) bool {
		shape, err := cosign.CheckAtomic(message, a)
		return err == nil && shape.Claim == id
	})
}
