package settle

import (
	"bytes"
	"slices"
	"sync"

	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/market"
)

// owed are the payments that the operator owes back, as the engine told them. The
// engine bounds them: rfq.MaxRefunds. Safe for concurrent use.
type owed struct {
	mu       sync.Mutex
	payments map[solana.Signature]rfq.Payment
	// held are claims whose payments are not listed: an audit has not ended yet, or
	// a person must decide (see Settle.audit).
	held map[market.ClaimID]bool
}

func newOwed() *owed {
	return &owed{payments: map[solana.Signature]rfq.Payment{}, held: map[market.ClaimID]bool{}}
}

func (o *owed) hold(id market.ClaimID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.held[id] = true
}

func (o *owed) unhold(id market.ClaimID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.held, id)
}

// tell enters what the engine told of a payment. One that it forgets is not owed
// any more, and was told so.
func (o *owed) tell(p *rfq.Payment) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if p.State == rfq.PaymentRefundDue {
		o.payments[p.Signature] = *p
	} else {
		delete(o.payments, p.Signature)
	}
}

// count is how many list lists in all.
func (o *owed) count() (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.held) == 0 {
		return len(o.payments)
	}
	for _, p := range o.payments {
		if !o.held[p.Claim] {
			n++
		}
	}
	return n
}

// list returns payments by their signature, from the first one after that one;
// at most limit.
func (o *owed) list(from solana.Signature, limit int) []rfq.Payment {
	o.mu.Lock()
	defer o.mu.Unlock()
	var list []rfq.Payment
	for signature, p := range o.payments {
		if bytes.Compare(signature[:], from[:]) > 0 && !o.held[p.Claim] {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b rfq.Payment) int { return bytes.Compare(a.Signature[:], b.Signature[:]) })
	return list[:min(len(list), max(limit, 0))]
}
