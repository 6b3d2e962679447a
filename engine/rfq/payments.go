package rfq

import (
	"blockdesk/engine/event"
	"blockdesk/market"
)

// paymentItem is a payment and the next one of its claim.
type paymentItem struct {
	Payment
	next uint32 // 1 + slot; 0 = none
}

// provePayment records money that has arrived, whatever it is good for, once a
// signature.
func (m *Machine) provePayment(r *ProvePayment) refusal {
	if !r.Rail.Valid() || r.Amount == 0 || r.Signature == [64]byte{} {
		return refusal{reason: event.ReasonInvalidCommand}
	}
	if p := m.payments.get(r.Signature); p != nil {
		return m.repeatPayment(r, p)
	}
	slot, no := m.findClaim(r.Claim)
	if no.reason != 0 {
		return no
	}
	c := m.claims.at(slot)
	why := m.refundReason(&c.Claim, r)
	if why != 0 && m.refundsDue >= m.limits.refunds {
		return refusal{event.ReasonDeskFull, int64(m.limits.refunds)}
	}
	if no := m.makeRoomForPayment(slot); no.reason != 0 {
		return no
	}
	p := m.addPayment(slot, r)
	late := c.State == ClaimExpired
	if why != 0 {
		p.State, p.Reason = PaymentRefundDue, why
		m.countRefundDue(c, +1)
		m.emit(&p.Payment)
		if late && why == event.ReasonLatePayment { // not by what does not fit: dust would bar the real payment
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

// repeatPayment answers a signature that is known: as it was answered, for the
// same claim.
func (m *Machine) repeatPayment(r *ProvePayment, p *paymentItem) refusal {
	if p.Claim != r.Claim {
		return refusal{reason: event.ReasonPaymentUsed}
	}
	m.current.outcome.Ticket = m.claims.get(p.Claim).Terms.Ticket
	m.emit(&p.Payment)
	return refusal{}
}

// makeRoomForPayment keeps to the limit: the oldest claim that has ended, is paid
// and owes nothing is forgotten with its payments, but not the one in slot.
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

// addPayment makes the last payment of the claim in slot.
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

// countRefundDue counts what is due for refund.
func (m *Machine) countRefundDue(c *claimItem, by int) {
	c.refundsDue += uint32(by)
	m.refundsDue += by
}

// appendPayment makes the payment in slot at the last of c's.
func (m *Machine) appendPayment(c *claimItem, at uint32) {
	if c.first == 0 {
		c.first = at + 1
	} else {
		m.payments.at(c.last - 1).next = at + 1
	}
	c.last = at + 1
}

// refundReason says why money that came for c cannot be taken; 0 = it is.
func (m *Machine) refundReason(c *Claim, r *ProvePayment) event.Reason {
	switch c.State {
	case ClaimReserved, ClaimExpired:
	case ClaimRefundDue:
		return event.ReasonLatePayment
	default: // paid for already, or by the other way
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

// refundable reports whether why is what a payment that is owed back may say.
func refundable(why event.Reason) bool {
	return why == event.ReasonClaimState || why == event.ReasonPaymentMismatch || endsClaim(why)
}

// endsClaim reports whether why says of a payment that its claim is refund_due.
func endsClaim(why event.Reason) bool {
	return why == event.ReasonLatePayment || why == event.ReasonUndeliverable
}

// canServeLate reports whether an expired claim can still be served on its terms:
// what a new claim and the last look of CosignClaim ask for, and money that is
// still worth the fill. Else it would be an option on the price, free until the
// window ends: paid where the market has moved the client's way, left where not.
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
// price of now, less the corridor of their pair: the least that is taken is
// payment now × (1 - corridor), both steps rounded up, for the desk. Refused where
// the rail has no price that is young enough, and as PriceCorridor, with that
// least in atoms as limit, where the payment is below it.
func (m *Machine) checkPaymentValue(p *Pair, t *Terms) refusal {
	price, no := m.priceOfRail(t.Rail)
	if no.reason != 0 {
		return no
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

// abandonDelivery ends a paid claim that cannot be delivered: what it holds is
// free again, and its money is owed back.
func (m *Machine) abandonDelivery(r *AbandonDelivery) refusal {
	slot, no := m.findClaim(r.Claim)
	if no.reason != 0 {
		return no
	}
	c := m.claims.at(slot)
	switch {
	case c.State == ClaimRefundDue && m.paymentOf(c, undeliverable) != nil:
		return m.repeatClaim(c)
	case c.State != ClaimPaid:
		return rejectState(c)
	case m.refundsDue >= m.limits.refunds:
		return refusal{event.ReasonDeskFull, int64(m.limits.refunds)}
	}
	p := m.paymentOf(c, applied)
	p.State, p.Reason = PaymentRefundDue, event.ReasonUndeliverable
	m.countRefundDue(c, +1)
	m.emit(&p.Payment)
	m.unreserve(&c.Terms)
	c.Paid = 0
	m.setClaimState(slot, ClaimRefundDue)
	return refusal{}
}

// paymentOf returns the first payment of c that is such a one, or nil.
func (m *Machine) paymentOf(c *claimItem, such func(*Payment) bool) *paymentItem {
	for at := c.first; at != 0; {
		p := m.payments.at(at - 1)
		if such(&p.Payment) {
			return p
		}
		at = p.next
	}
	return nil
}

func applied(p *Payment) bool       { return p.State == PaymentApplied }
func undeliverable(p *Payment) bool { return p.Reason == event.ReasonUndeliverable }

// refundPayment notes that the operator has paid back what was due.
func (m *Machine) refundPayment(r *RefundPayment) refusal {
	p := m.payments.get(r.Signature)
	if p == nil {
		return refusal{reason: event.ReasonUnknownPayment}
	}
	slot, no := m.findClaim(p.Claim)
	if no.reason != 0 {
		return no
	}
	switch {
	case p.State == PaymentRefunded && p.Proof == r.Proof:
		m.emit(&p.Payment)
		return refusal{}
	case p.State != PaymentRefundDue:
		return refusal{reason: event.ReasonPaymentUsed}
	}
	p.State, p.Proof = PaymentRefunded, r.Proof
	m.countRefundDue(m.claims.at(slot), -1)
	m.updateEnded(slot)
	m.emit(&p.Payment)
	return refusal{}
}
