package settle

import (
	"context"
	"log/slog"

	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/settle/proof"
	"blockdesk/settle/store"
)

// Reasons of unmatched payments that are transactions of the desk.
const (
	// reasonDelivered is a delivery for a payment whose refund is due.
	reasonDelivered = "delivered_refund_due"
	// reasonUnbooked is a settlement that the desk's rules refuse to book.
	reasonUnbooked = proof.SettledUnbooked
)

// audits look for deliveries of claims whose refund is due.
type audits struct {
	store   *store.Store
	refunds *refunds
	search  *search
	log     *slog.Logger
	now     func() int64
}

// audit looks whether the tokens of a claim whose refund is due were delivered all
// the same: if the journal is older than the delivery, the payment is proved again
// and is too late for the claim. Then a person decides, and until then the refund is
// not listed. The audit fails while a signed delivery may still land.
func (a *audits) audit(ctx context.Context, c *rfq.Claim) error {
	list, err := a.store.Transactions(c.ID)
	if err != nil {
		return err
	}
	signature, slot, found, err := a.search.landedDelivery(ctx, list)
	if err != nil {
		return err
	}
	if !found {
		t, err := a.search.unrecordedDelivery(ctx, c, list)
		if err != nil {
			return err
		}
		if t == nil {
			a.refunds.unhold(c.ID)
			return nil
		}
		signature, slot = t.Signature(), t.Slot
	}
	a.log.Error("tokens were delivered for a payment whose refund is due", "claim", claimText(c.ID), "signature", signature.String())
	err = a.store.AddUnmatched(&store.UnmatchedPayment{Signature: signature, Reason: reasonDelivered, Slot: slot, SeenAt: a.now(), Claim: c.ID})
	if err != nil {
		return err
	}
	x, ok, err := a.store.UnmatchedPayment(signature)
	if err == nil && ok && x.Resolved != 0 { // before a restart
		a.refunds.unhold(c.ID)
	}
	return err
}

// holdDelivered holds the refunds of claims whose delivery an audit of an earlier
// run has found.
func holdDelivered(st *store.Store, r *refunds) error {
	for from := (solana.Signature{}); ; {
		list, err := st.UnmatchedPayments(from, store.MaxUnmatchedPage)
		if err != nil || len(list) == 0 {
			return err
		}
		for i := range list {
			if list[i].Reason == reasonDelivered {
				r.hold(list[i].Claim)
			}
		}
		from = list[len(list)-1].Signature
	}
}
