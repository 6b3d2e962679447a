package rfq

import (
	"iter"

	"blockdesk/engine/event"
	"blockdesk/market"
)

// paymentItem is a payment, linked to the next one of its claim.
type paymentItem struct {
	Payment
	next uint32 // 1 + slot; 0 = none
}

// apply records a payment that has arrived, once per signature, even if it pays nothing.
func (r *ProvePayment) apply(m *Machine) refusal {
	if !r.Rail.Valid() || r.Amount == 0 || r.Signature == [64]byte{} {
		return refusal{reason: event.ReasonInvalidCommand}
	}
	if p := m.payments.get(r.Signature); p != nil {
		return m.repeatPayment(r, p)
	}
	slot, c, refused := m.findClaim(r.Claim)
	if refused.reason != 0 {
		return refused
	}
	reason := m.refundReason(&c.Claim, r)
	if reason != 0 && m.refundsDue >= m.limits.refunds {
		return refusal{event.ReasonDeskFull, int64(m.limits.refunds)}
	}
	if refused := m.makeRoomForPayment(slot); refused.reason != 0 {
		return refused
	}
	p := m.addPayment(slot, r)
	late := c.State == ClaimExpired
	if reason != 0 {
		p.State, p.Reason = PaymentRefundDue, reason
		m.countRefundDue(c, +1)
		m.emit(&p.Payment)
		if late && reason == event.ReasonLatePayment { // a mismatch leaves the claim open, or dust could block the real payment
			m.setClaimState(slot, ClaimRefundDue)
		} else {
			m.updateEnded(slot)
		}
		return refusal{}
	}
	p.State = PaymentApplied
	c.Paid = r.Amount
	m.emit(&p.Payment)
	if late {
		m.reserve(&c.Terms)
	}
	m.setClaimState(slot, ClaimPaid)
	return refusal{}
}

// repeatPayment answers a signature that is known already: unchanged for the same claim,
// refused for another.
func (m *Machine) repeatPayment(r *ProvePayment, p *paymentItem) refusal {
	if p.Claim != r.Claim {
		return refusal{reason: event.ReasonPaymentUsed}
	}
	m.current.outcome.Ticket = m.claims.get(p.Claim).Terms.Ticket
	m.emit(&p.Payment)
	return refusal{}
}

// makeRoomForPayment forgets the oldest removable claim with payments, other than the one in
// slot, if memory is full.
func (m *Machine) makeRoomForPayment(slot uint32) refusal {
	if m.payments.len() < m.limits.payments {
		return refusal{}
	}
	m.removablePaid.remove(slot)
	oldest, ok := m.removablePaid.first()
	if !ok {
		m.updateEnded(slot)
		return refusal{event.ReasonDeskFull, int64(m.limits.payments)}
	}
	m.removeClaim(oldest)
	return refusal{}
}

// addPayment adds a payment to the claim in slot.
func (m *Machine) addPayment(slot uint32, r *ProvePayment) *paymentItem {
	at := m.payments.add(r.Signature)
	p := m.payments.at(at)
	p.Payment = Payment{
		Signature: r.Signature, Claim: r.Claim, Rail: r.Rail, Amount: r.Amount,
		Payer: r.Payer, Slot: r.Slot, At: m.current.At,
	}
	m.appendPayment(m.claims.at(slot), at)
	return p
}

// countRefundDue adds by to the number of payments of c that are due for refund.
func (m *Machine) countRefundDue(c *claimItem, by int) {
	c.refundsDue += uint32(by)
	m.refundsDue += by
}

// appendPayment links the payment in slot at as the last of c.
func (m *Machine) appendPayment(c *claimItem, at uint32) {
	if c.first == 0 {
		c.first = at + 1
	} else {
		m.payments.at(c.last - 1).next = at + 1
	}
	c.last = at + 1
}

// refundReason returns why a payment for c must be refunded; 0 = it is applied.
func (m *Machine) refundReason(c *Claim, r *ProvePayment) event.Reason {
	switch c.State {
	case ClaimReserved, ClaimExpired:
	case ClaimRefundDue:
		return event.ReasonLatePayment
	default: // paid already, or settled atomically
		return event.ReasonClaimState
	}
	switch {
	case c.Mode != Modular:
		return event.ReasonClaimState
	case r.Rail != c.Terms.Rail || r.Amount < c.Terms.Payment:
		return event.ReasonPaymentMismatch
	case c.State == ClaimExpired && !m.canServeLate(c):
		return event.ReasonLatePayment
	}
	return 0
}

// refundable reports whether a payment may be due for refund for the reason.
func refundable(reason event.Reason) bool {
	return reason == event.ReasonClaimState || reason == event.ReasonPaymentMismatch || reason == event.ReasonSurplus || endsClaim(reason)
}

// endsClaim reports whether a refund for the reason makes its claim refund_due.
func endsClaim(reason event.Reason) bool {
	return reason == event.ReasonLatePayment || abandonReason(reason)
}

// abandonReason reports whether the reason is one of AbandonDelivery.
func abandonReason(reason event.Reason) bool {
	return reason == event.ReasonUndeliverable || reason == event.ReasonPriceCorridor
}

// canServeLate reports whether an expired claim can still be served on its terms: a new
// claim of its size and a CosignClaim would pass. Otherwise it would be a free option on
// the price until LateWindow ends: clients would pay only if the market has moved in their
// favour.
func (m *Machine) canServeLate(c *Claim) bool {
	t := m.tickets.get(c.Terms.Ticket)
	if m.current.At-c.Deadline > m.policy.LateWindow || t == nil || t.Ended() ||
		findLock(m.locks, c.Terms.Instrument, c.Terms.Rail) != nil ||
		m.checkCapacityLeft(&c.Terms, t.Tranche(c.Terms.Tranche)).reason != 0 {
		return false
	}
	p := findPair(m.pairs, c.Terms.Instrument)
	return m.current.pricing.checkAnchor(p).reason == 0 && checkCorridor(p, c.Terms.Reference).reason == 0 &&
		m.checkPaymentValue(p, &c.Terms).reason == 0
}

// checkPaymentValue checks that the payment of terms is worth their fill at the rail's
// current price, less the corridor of their pair: at least current payment × (1 -
// corridor), both rounded up. It refuses with the reason why the rail has no price, or with
// PriceCorridor and that minimum in atoms.
func (m *Machine) checkPaymentValue(p *Pair, t *Terms) refusal {
	price, refused := m.priceOfRail(t.Rail)
	if refused.reason != 0 {
		return refused
	}
	now, fits := paymentFor(t.Fill, t.Rail, price)
	if !fits {
		return refusal{reason: event.ReasonPriceUnavailable}
	}
	least, err := market.MulDivCeil(now, market.MaxBps-uint64(p.CorridorBps), market.MaxBps)
	if err != nil || least > t.Payment {
		return refusal{event.ReasonPriceCorridor, clampToInt64(least)}
	}
	return refusal{}
}

// paymentOf returns the first payment of c for which match returns true, or nil.
func (m *Machine) paymentOf(c *claimItem, match func(*Payment) bool) *paymentItem {
	for p := range m.paymentsOf(c) {
		if match(&p.Payment) {
			return p
		}
	}
	return nil
}

// paymentsOf iterates over the payments of c in order of arrival. The caller may remove
// each of them during the iteration.
func (m *Machine) paymentsOf(c *claimItem) iter.Seq[*paymentItem] {
	return func(yield func(*paymentItem) bool) {
		for next := c.first; next != 0; {
			p := m.payments.at(next - 1)
			next = p.next
			if !yield(p) {
				return
			}
		}
	}
}

// pays reports whether p pays its claim, if with a surplus that is due for refund or refunded.
func (p *Payment) pays() bool { return p.State == PaymentApplied || p.Applied != 0 }
