package rfq

import "blockdesk/engine/event"

// apply ends a paid claim that cannot be delivered: it returns what the claim holds, and its
// payment is due for refund.
func (r *AbandonDelivery) apply(m *Machine) refusal {
	slot, c, refused := m.findClaim(r.Claim)
	if refused.reason != 0 {
		return refused
	}
	reason := r.Reason
	if reason == 0 {
		reason = event.ReasonUndeliverable
	}
	if !abandonReason(reason) {
		return refusal{reason: event.ReasonInvalidCommand}
	}
	if c.State == ClaimRefundDue && m.paymentOf(c, abandoned) != nil {
		return m.repeatClaim(c)
	}
	if c.State != ClaimPaid {
		return rejectState(c)
	}
	if reason == event.ReasonPriceCorridor {
		switch refused := m.guard(&c.Claim); refused.reason {
		case event.ReasonPriceCorridor:
		case 0: // the price has come back: it can be delivered
			return rejectState(c)
		default:
			return refused
		}
	}
	p := m.paymentOf(c, (*Payment).pays)
	switch {
	case p.State == PaymentRefunding:
		return refusal{reason: event.ReasonPaymentUsed}
	case p.State != PaymentRefundDue && m.refundsDue >= m.limits.refunds:
		return refusal{event.ReasonDeskFull, int64(m.limits.refunds)}
	}
	m.refundWhole(c, p, reason)
	m.unreserve(&c.Terms)
	c.Paid = 0
	m.setClaimState(slot, ClaimRefundDue)
	return refusal{}
}

// refundWhole makes what p has left, with a surplus that is still due, due for refund.
func (m *Machine) refundWhole(c *claimItem, p *paymentItem, reason event.Reason) {
	switch p.State {
	case PaymentRefundDue: // the surplus too
		p.Applied, p.Due = 0, p.Amount
	default:
		p.Applied, p.Due = 0, p.Applied
		m.countRefundDue(c, +1)
	}
	p.State, p.Reason, p.Proof = PaymentRefundDue, reason, [32]byte{}
	m.emit(&p.Payment)
}

// findPayment returns a payment and its claim.
func (m *Machine) findPayment(signature [64]byte) (p *paymentItem, slot uint32, refused refusal) {
	if p = m.payments.get(signature); p == nil {
		return nil, 0, refusal{reason: event.ReasonUnknownPayment}
	}
	slot, _, refused = m.findClaim(p.Claim)
	return p, slot, refused
}

// apply records that a payment was refunded.
func (r *RefundPayment) apply(m *Machine) refusal {
	p, slot, refused := m.findPayment(r.Signature)
	switch {
	case refused.reason != 0:
		return refused
	case p.State == PaymentRefunded && p.Proof == r.Proof:
		m.emit(&p.Payment)
		return refusal{}
	case p.State != PaymentRefundDue && (p.State != PaymentRefunding || p.Proof != r.Proof):
		return refusal{reason: event.ReasonPaymentUsed}
	}
	p.State, p.Proof = PaymentRefunded, r.Proof
	m.countRefundDue(m.claims.at(slot), -1)
	m.updateRemovable(slot)
	m.emit(&p.Payment)
	return refusal{}
}

func (r *BeginRefund) apply(m *Machine) refusal {
	if r.Proof == [32]byte{} {
		return refusal{reason: event.ReasonInvalidCommand}
	}
	p, _, refused := m.findPayment(r.Signature)
	switch {
	case refused.reason != 0:
		return refused
	case p.State == PaymentRefunding && p.Proof == r.Proof: // repeated
	case p.State != PaymentRefundDue:
		return refusal{reason: event.ReasonPaymentUsed}
	}
	p.State, p.Proof = PaymentRefunding, r.Proof
	m.emit(&p.Payment)
	return refusal{}
}

func (r *ExpireRefund) apply(m *Machine) refusal {
	p, _, refused := m.findPayment(r.Signature)
	switch {
	case refused.reason != 0:
		return refused
	case p.State != PaymentRefunding || p.Proof != r.Proof:
		return refusal{reason: event.ReasonPaymentUsed}
	}
	p.State, p.Proof = PaymentRefundDue, [32]byte{}
	m.emit(&p.Payment)
	return refusal{}
}
