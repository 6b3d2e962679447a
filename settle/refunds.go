package settle

import (
	"bytes"
	"slices"
	"sync"

	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/market"
)

// refunds are the payments whose refund is due, as the engine's records say. The
// engine bounds them: rfq.MaxRefunds. Safe for concurrent use.
type refunds struct {
	mu       sync.Mutex
	payments map[solana.Signature]rfq.Payment
	// held are claims whose payments are not listed: their audit has not ended, or a
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

// unhold ends hold.
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
	if p.State == rfq.PaymentRefundDue {
		r.payments[p.Signature] = *p
	} else {
		delete(r.payments, p.Signature)
	}
}

// count returns the length of the whole list.
func (r *refunds) count() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.held) == 0 {
		return len(r.payments)
	}
	for _, p := range r.payments {
		if !r.held[p.Claim] {
			n++
		}
	}
	return n
}

// list returns payments in the order of their signatures, beginning after one; at
// most limit.
func (r *refunds) list(after solana.Signature, limit int) []rfq.Payment {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []rfq.Payment
	for signature, p := range r.payments {
		if bytes.Compare(signature[:], after[:]) > 0 && !r.held[p.Claim] {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b rfq.Payment) int { return bytes.Compare(a.Signature[:], b.Signature[:]) })
	return list[:min(len(list), max(limit, 0))]
}
