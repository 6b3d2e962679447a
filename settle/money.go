package settle

import (
	"cmp"
	"slices"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/market"
	"blockdesk/settle/broadcast"
)

// Money lists one kind of the money that needs an operator, after a cursor, in the
// order of the items' cursors; at most limit items. It sorts all items of the kind
// on each call, so it is for people and not for polling. Errors: those of the desk
// and of package store.
//
// The delivery of a claim is failing as soon as a cause is known that needs a person (a
// lock, a price, a balance, an account, MaxDeliveryAttempts), or when Options.FailingAfter
// has passed since its payment or its permission. The outcome of a
// transaction is unknown if it can no longer land and the nodes cannot say whether it
// has landed.
func (o *operations) Money(kind desk.MoneyKind, after desk.MoneyCursor, limit int) ([]desk.MoneyItem, error) {
	switch kind {
	case desk.MoneyRefundDue:
		return o.listRefunds(rfq.PaymentRefundDue, after.Signature, limit)
	case desk.MoneyRefunding:
		return o.listRefunds(rfq.PaymentRefunding, after.Signature, limit)
	case desk.MoneyRefunded:
		return o.listRefunded(after.Signature, limit)
	case desk.MoneyDeliveryFailing:
		return o.listFailing(after.Claim, limit)
	case desk.MoneyOutcomeUnknown:
		return o.listUnknown(after.Claim, limit)
	case desk.MoneyUnmatched:
		return o.listUnmatched(after.Signature, limit)
	}
	return nil, nil
}

// MoneyCounts counts the money that needs an operator. It does not block. It counts
// unknown outcomes also of claims that the desk has forgotten.
func (o *operations) MoneyCounts() desk.MoneyCounts {
	due, refunding := o.refunds.count()
	seen := o.seen()
	return desk.MoneyCounts{
		Dropped: o.store.Dropped().Count, Dust: seen.Dust, Foreign: seen.OtherMint,
		RefundsDue: due, Refunding: refunding, Ordered: o.orders.count(),
		DeliveriesFailing: o.jobs.countFailing(o.now(), o.failingAfter),
		Unmatched:         o.store.UnmatchedCount(), OutcomesUnknown: o.tracker.OutcomesUnknown(),
	}
}

// RefundsDue lists payments whose refund is due, by signature, beginning after one;
// at most limit. It sorts all of them.
func (o *operations) RefundsDue(after solana.Signature, limit int) []rfq.Payment {
	return o.refunds.list(rfq.PaymentRefundDue, after, limit)
}

func (o *operations) listRefunds(state rfq.PaymentState, after solana.Signature, limit int) (out []desk.MoneyItem, err error) {
	for _, p := range o.refunds.list(state, after, limit) {
		item := desk.MoneyItem{
			Signature: p.Signature, Claim: p.Claim, Rail: p.Rail, Amount: p.RefundAtoms(), Payer: p.Payer, Slot: p.Slot, At: p.At, Reason: p.Reason.String(),
		}
		if order, ok := o.orders.order(p.Signature); ok {
			item.OrderedBy, item.Problem = order.By, order.problem
		}
		if state == rfq.PaymentRefunding {
			x, ok, err := o.store.Refunds.Get(p.Proof)
			if err != nil {
				return nil, err
			}
			if ok {
				item.Refund, item.OrderedBy = x.Signature, x.By
				s, _ := o.tracker.State(x.Signature)
				item.Problem = s.Problem
			}
		}
		out = append(out, item)
	}
	return out, nil
}

// listRefunded lists what was paid back on an order, not what an operator has paid back
// with another wallet.
func (o *operations) listRefunded(after solana.Signature, limit int) (out []desk.MoneyItem, err error) {
	list, err := o.store.Refunds.PaidBack(after, limit)
	if err != nil {
		return nil, err
	}
	for i := range list {
		x := &list[i]
		item := desk.MoneyItem{
			Signature: x.Payment, Rail: market.RailUSDC, Amount: uint64(x.Amount), At: x.RefundTransaction.EndedAt, Refund: x.RefundTransaction.Signature, OrderedBy: x.RefundTransaction.By,
		}
		if x.Mint == (solana.Address{}) {
			item.Rail = market.RailSOL
		}
		id, known, err := o.desk.PaymentClaim(x.Payment)
		if err != nil {
			return nil, err
		}
		if known {
			item.Claim = id
		}
		out = append(out, item)
	}
	return out, nil
}

func (o *operations) listFailing(after market.ClaimID, limit int) ([]desk.MoneyItem, error) {
	list := o.jobs.failing(o.now(), o.failingAfter, after, max(limit, 0))
	for i := range list {
		item := &list[i]
		h, ok, err := o.desk.Claim(item.Claim)
		if err != nil {
			return nil, claimError(item.Claim, err)
		}
		if !ok {
			continue
		}
		for j := range h.Payments {
			if p := &h.Payments[j]; p.State == rfq.PaymentApplied {
				item.Signature, item.Payer, item.Slot = p.Signature, p.Payer, p.Slot
			}
		}
	}
	return list, nil
}

func (o *operations) listUnknown(after market.ClaimID, limit int) (out []desk.MoneyItem, err error) {
	states := slices.DeleteFunc(o.tracker.Unresolved(broadcast.MaxTracked), func(x broadcast.State) bool {
		return !x.OutcomeUnknown || x.Claim <= after
	})
	slices.SortFunc(states, func(a, b broadcast.State) int { return cmp.Compare(a.Claim, b.Claim) })
	for i := range states {
		if len(out) >= limit {
			break
		}
		x := &states[i]
		claim, err := o.claimOf(x.Claim)
		if err != nil {
			return nil, err
		}
		if hasTransactionOut(claim) && claim.Proof == x.Hash {
			out = append(out, desk.MoneyItem{
				Claim: claim.ID, Rail: claim.Terms.Rail, Amount: claim.Terms.Payment, Payer: claim.Wallet,
				At: x.Since.UnixNano(), Reason: x.Problem, Delivery: x.Signature,
			})
		}
	}
	return out, nil
}

// hasTransactionOut reports whether the claim has a permitted transaction that has
// not ended. The claim may be nil.
func hasTransactionOut(c *rfq.Claim) bool {
	return c != nil && (c.State == rfq.ClaimCosigned || c.State == rfq.ClaimDelivering)
}

func (o *operations) listUnmatched(after solana.Signature, limit int) (out []desk.MoneyItem, err error) {
	list, err := o.store.UnmatchedPayments(after, limit)
	if err != nil {
		return nil, err
	}
	for i := range list {
		x := &list[i]
		out = append(out, desk.MoneyItem{
			Signature: x.Signature, Claim: x.Claim, Rail: x.Rail, Amount: x.Amount, Payer: x.Payer, Slot: x.Slot, At: x.SeenAt, Reason: x.Reason,
		})
	}
	return out, nil
}
