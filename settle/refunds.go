package settle

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"

	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/ledger"
	"blockdesk/market"
	"blockdesk/settle/proof"
	"blockdesk/settle/search"
	"blockdesk/settle/store"
)

// refunds are the payments whose refund is due or under way, according to the engine's records.
// The engine bounds them: rfq.MaxRefunds. Safe for concurrent use.
type refunds struct {
	mu       sync.Mutex
	payments map[solana.Signature]rfq.Payment
	// held are claims whose payments are not listed: their search has not ended, or a
	// person must decide.
	held map[market.ClaimID]bool
}

func newRefunds() *refunds {
	return &refunds{payments: map[solana.Signature]rfq.Payment{}, held: map[market.ClaimID]bool{}}
}

// hold keeps a claim's payments off the list.
func (r *refunds) hold(id market.ClaimID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held[id] = true
}

func (r *refunds) unhold(id market.ClaimID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.held, id)
}

// set enters a payment's newest record. The engine forgets a payment only after its
// refund.
func (r *refunds) set(p *rfq.Payment) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.State.Pending() {
		r.payments[p.Signature] = *p
	} else {
		delete(r.payments, p.Signature)
	}
}

// count returns the numbers of payments whose refund is due and listed, and is under way.
func (r *refunds) count() (due, underWay int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.payments {
		switch {
		case p.State == rfq.PaymentRefunding:
			underWay++
		case !r.held[p.Claim]:
			due++
		}
	}
	return due, underWay
}

// find returns a payment whose refund is due or under way. held: it is not listed yet.
func (r *refunds) find(signature solana.Signature) (p rfq.Payment, held, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, ok = r.payments[signature]
	return p, r.held[p.Claim], ok
}

// byProof returns the payments that a transaction pays back.
func (r *refunds) byProof(hash solana.Hash) (list []solana.Signature) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for signature, p := range r.payments {
		if p.State == rfq.PaymentRefunding && p.Proof == hash {
			list = append(list, signature)
		}
	}
	return list
}

// list returns payments in a state in the order of their signatures, beginning after
// one; at most limit.
func (r *refunds) list(state rfq.PaymentState, after solana.Signature, limit int) []rfq.Payment {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []rfq.Payment
	for signature, p := range r.payments {
		held := state == rfq.PaymentRefundDue && r.held[p.Claim]
		if p.State == state && !held && bytes.Compare(signature[:], after[:]) > 0 {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b rfq.Payment) int { return bytes.Compare(a.Signature[:], b.Signature[:]) })
	return list[:min(len(list), max(limit, 0))]
}

// Reasons of unmatched payments that are transactions of the desk.
const (
	// reasonDelivered is a delivery for a payment whose refund is due.
	reasonDelivered = "delivered_refund_due"
	// reasonUnrecorded is a settlement that the desk's rules refuse to record.
	reasonUnrecorded = proof.SettledUnrecorded
)

// refundSearches look for deliveries of claims whose refund is due.
type refundSearches struct {
	*env
	refunds *refunds
	search  *deliverySearch
}

// run checks whether a claim whose refund is due was delivered after all. That can
// happen if the journal was restored from a time before the delivery: the payment is
// proved again, and is too late for the claim. Then an operator decides, and until
// then the refund is not listed. The search fails while a signed delivery may still
// land.
func (a *refundSearches) run(ctx context.Context, c *rfq.Claim) error {
	list, err := a.store.Transactions(c.ID)
	if err != nil {
		return err
	}
	signature, slot, found, err := a.search.landedDelivery(ctx, list)
	if err == nil && !found {
		var t *ledger.Confirmed
		if t, err = a.search.unrecordedDelivery(ctx, c, list); t != nil {
			signature, slot, found = t.Signature(), t.Slot, true
		}
	}
	switch {
	case errors.Is(err, search.ErrHistory):
		// The payment is so old that the nodes have pruned its block. A person decides: the
		// desk itself pays nothing back that the nodes cannot check.
		a.log.Warn("refund due for a claim whose blocks the nodes no longer have, look for its delivery first", "claim", claimText(c.ID), "error", err)
		a.refunds.unhold(c.ID)
		return nil
	case err != nil:
		return err
	case !found:
		a.refunds.unhold(c.ID)
		return nil
	}
	a.log.Error("claim with a refund due was delivered, do not pay it back", "claim", claimText(c.ID), "signature", signature.String())
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

// holdDelivered holds the refunds of claims whose delivery a search of an earlier
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
