package settle

import (
	"context"
	"fmt"

	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/settle/cosign"
	"blockdesk/settle/store"
)

// strayDelivered is the word of a stray that is a delivery of ours: the desk owes
// the money back that bought it.
const strayDelivered = "delivered_refund_due"

// doubt has a claim audited whose money is owed back. What is owed is not listed
// before that has ended.
func (s *Settlement) doubt(c *rfq.Claim) {
	if c.Mode == rfq.Modular && c.State == rfq.ClaimRefundDue {
		s.refund.hold(c.ID)
		s.work.audit(c, s.now())
	}
}

// audit looks whether the tokens of a claim whose money is owed back were
// delivered all the same: the journal is older than the delivery, and its payment
// came too late for it when it was proved again. Then a person decides, and the
// money is not listed as due before. It does not end while a delivery that was
// signed may still land.
func (s *Settlement) audit(ctx context.Context, c *rfq.Claim) error {
	list, err := s.store.Transactions(c.ID)
	if err != nil {
		return err
	}
	signature, slot, found, err := s.landed(ctx, list)
	if err != nil {
		return err
	}
	if !found {
		t, err := s.forgotten(ctx, c, list)
		if err != nil {
			return err
		}
		if t == nil {
			s.refund.unhold(c.ID)
			return nil
		}
		signature, slot = t.Signature(), t.Slot
	}
	s.log.Error("tokens were delivered for money that is due for refund", "claim", claimText(c.ID), "signature", signature.String())
	err = s.store.AddUnmatched(&store.UnmatchedPayment{Signature: signature, Reason: strayDelivered, Slot: slot, SeenAt: s.now(), Claim: c.ID})
	if err != nil {
		return err
	}
	x, ok, err := s.store.UnmatchedPayment(signature)
	if err == nil && ok && x.Resolved != 0 { // before a restart
		s.refund.unhold(c.ID)
	}
	return err
}

// landed looks for a delivery among those that are kept which is in a block and
// has not failed. Errors: [ErrChain], also while one is in no block and may still
// land.
func (s *Settlement) landed(ctx context.Context, list []store.Transaction) (signature solana.Signature, slot uint64, found bool, err error) {
	var asked []solana.Signature
	lastValid := uint64(0)
	for i := range list {
		if list[i].Kind() == cosign.Deliver {
			asked = append(asked, list[i].Signature())
			lastValid = max(lastValid, list[i].LastValid())
		}
	}
	if len(asked) == 0 {
		return signature, 0, false, nil
	}
	claim := claimText(list[0].Claim())
	// First: what is unknown after it will not land.
	reached, err := s.node.Position(ctx, rpc.Finalized)
	if err != nil {
		return signature, 0, false, fmt.Errorf("claim %s: %w: %w", claim, ErrChain, err)
	}
	statuses, _, err := s.node.Statuses(ctx, asked, true)
	if err != nil {
		return signature, 0, false, fmt.Errorf("claim %s: %w: %w", claim, ErrChain, err)
	}
	for i := range statuses {
		if statuses[i].Known && !statuses[i].Failed && statuses[i].Level != rpc.Processed {
			return asked[i], statuses[i].Slot, true, nil
		}
	}
	if reached.Height <= lastValid {
		return signature, 0, false, fmt.Errorf("claim %s: %w: a delivery may still land", claim, ErrChain)
	}
	return signature, 0, false, nil
}

// holdDelivered takes out of the refunds those that an audit before the start has
// found.
func (s *Settlement) holdDelivered() error {
	for from := (solana.Signature{}); ; {
		list, err := s.store.UnmatchedPayments(from, store.MaxUnmatchedPage)
		if err != nil || len(list) == 0 {
			return err
		}
		for i := range list {
			if list[i].Reason == strayDelivered {
				s.refund.hold(list[i].Claim)
			}
		}
		from = list[len(list)-1].Signature
	}
}
