package settle

import (
	"fmt"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
)

// Money lists one kind of the money that needs an operator, after a cursor, in the
// order of the items' cursors; at most limit items. Errors: those of the desk and
// of package store.
func (s *Settlement) Money(kind desk.MoneyKind, after desk.MoneyCursor, limit int) (out []desk.MoneyItem, err error) {
	switch kind {
	case desk.MoneyRefundDue:
		for _, p := range s.RefundsDue(after.Signature, limit) {
			out = append(out, desk.MoneyItem{
				Signature: p.Signature, Claim: p.Claim, Rail: p.Rail, Amount: p.Amount, Payer: p.Payer, Slot: p.Slot, At: p.At, Reason: p.Reason.String(),
			})
		}
	case desk.MoneyDeliveryFailing:
		for _, x := range s.Stuck(after.Claim, limit) {
			item := desk.MoneyItem{
				Claim: x.Claim.ID, Rail: x.Claim.Terms.Rail, Amount: x.Claim.Paid, Payer: x.Claim.Wallet,
				At: x.Since, Reason: x.Problem, Attempts: x.Tries, Delivery: x.Signature,
			}
			if err := s.addPayment(&item); err != nil {
				return nil, err
			}
			out = append(out, item)
		}
	case desk.MoneyOutcomeUnknown:
		list, err := s.Doubtful(after.Claim, limit)
		if err != nil {
			return nil, err
		}
		for i := range list {
			x := &list[i]
			out = append(out, desk.MoneyItem{
				Claim: x.Claim.ID, Rail: x.Claim.Terms.Rail, Amount: x.Claim.Terms.Payment, Payer: x.Claim.Wallet,
				At: x.Since, Reason: x.Word, Delivery: x.Signature,
			})
		}
	case desk.MoneyUnmatched:
		list, err := s.Strays(after.Signature, limit)
		if err != nil {
			return nil, err
		}
		for i := range list {
			x := &list[i]
			out = append(out, desk.MoneyItem{
				Signature: x.Signature, Claim: x.Claim, Rail: x.Rail, Amount: x.Amount, Payer: x.Payer, Slot: x.Slot, At: x.SeenAt, Reason: x.Reason,
			})
		}
	}
	return out, nil
}

// addPayment adds the payment that a stuck claim was paid by.
func (s *Settlement) addPayment(item *desk.MoneyItem) error {
	h, ok, err := s.desk.Claim(item.Claim)
	if err != nil {
		return fmt.Errorf("claim %s: %w", claimText(item.Claim), err)
	}
	if !ok {
		return nil
	}
	for i := range h.Payments {
		if p := &h.Payments[i]; p.State == rfq.PaymentApplied {
			item.Signature, item.Payer, item.Slot = p.Signature, p.Payer, p.Slot
		}
	}
	return nil
}

// MoneyCounts counts the money that needs an operator. It does not block.
func (s *Settlement) MoneyCounts() desk.MoneyCounts {
	return desk.MoneyCounts{
		RefundsDue: s.refund.count(), DeliveriesFailing: s.work.countStuck(s.now(), s.options.FailingAfter), Unmatched: s.store.UnmatchedCount(),
		OutcomesUnknown: s.DoubtfulCount(),
	}
}
