package rfq

import (
	"iter"
	"math"

	"blockdesk/engine/event"
	"blockdesk/market"
)

// paymentItem is a payment, linked to the next one of its claim.
type paymentItem struct {
	Payment
	next uint32 // 1 + slot; 0 = none
}

// maxBlockTime is the largest time of a block in seconds whose nanoseconds fit an int64.
const maxBlockTime = math.MaxInt64 / second

// apply records a payment that has arrived, once per signature, even if it pays nothing.
func (r *ProvePayment) apply(m *Machine) refusal {
	if !r.Rail.Valid() || r.Amount == 0 || r.Signature == [64]byte{} || r.BlockTime < 0 || r.BlockTime > maxBlockTime {
		return refusal{reason: event.ReasonInvalidCommand}
	}
	if p := m.payments.get(r.Signature); p != nil {
		return m.repeatPayment(r, p)
	}
	slot, c, refused := m.findClaim(r.Claim)
	if refused.reason != 0 {
		return refused
	}
	reason := m.refundReason(c, r)
	surplus := uint64(0)
	if reason == 0 {
		surplus = m.surplus(c, r)
	}
	if (reason != 0 || surplus != 0) && m.refundsDue >= m.limits.refunds {
		return refusal{event.ReasonDeskFull, int64(m.limits.refunds)}
	}
	if refused := m.makeRoomForPayment(slot); refused.reason != 0 {
		return refused
	}
	p := m.addPayment(slot, r)
	if reason != 0 {
		p.State, p.Reason = PaymentRefundDue, reason
		if m.policy.Rules == RulesGuarded {
			p.Due = p.Amount
		}
		m.countRefundDue(c, +1)
		m.emit(&p.Payment)
		if c.State == ClaimExpired && reason == event.ReasonLatePayment { // a mismatch leaves the claim open, or dust could block the real payment
			m.setClaimState(slot, ClaimRefundDue)
		} else {
			m.updateRemovable(slot)
		}
		return refusal{}
	}
	c.Paid = r.Amount - surplus
	m.applyPayment(c, p, surplus)
	if c.State != ClaimReserved {
		m.reserve(&c.Terms)
	}
	m.setClaimState(slot, ClaimPaid)
	return refusal{}
}

// applyPayment records that p pays c, with a surplus that is due for refund.
func (m *Machine) applyPayment(c *claimItem, p *paymentItem, surplus uint64) {
	p.State = PaymentApplied
	if m.policy.Rules == RulesGuarded {
		p.Applied = c.Paid
	}
	if surplus != 0 {
		p.State, p.Reason, p.Due = PaymentRefundDue, event.ReasonSurplus, surplus
		m.countRefundDue(c, +1)
	}
	m.emit(&p.Payment)
}

// surplus returns the atoms of a payment for c that are due for refund.
func (m *Machine) surplus(c *claimItem, r *ProvePayment) uint64 {
	if over := r.Amount - c.Terms.Payment; m.policy.Rules == RulesGuarded && over > m.policy.Dust[r.Rail] {
		return over
	}
	return 0
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
		m.updateRemovable(slot)
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
		Payer: r.Payer, Slot: r.Slot, At: m.current.At, BlockTime: r.BlockTime,
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
func (m *Machine) refundReason(c *claimItem, r *ProvePayment) event.Reason {
	switch c.State {
	case ClaimReserved, ClaimExpired:
	case ClaimRefundDue: // by another payment, which was late, or by an abandoned delivery
		if m.policy.Rules != RulesGuarded || m.paymentOf(c, abandoned) != nil {
			return event.ReasonLatePayment
		}
	default: // paid already, or settled atomically
		return event.ReasonClaimState
	}
	switch {
	case c.Mode != Modular:
		return event.ReasonClaimState
	case r.Rail != c.Terms.Rail || r.Amount < c.Terms.Payment:
		return event.ReasonPaymentMismatch
	case m.policy.Rules == RulesGuarded:
		if m.paidAt(r) >= c.Deadline || c.State != ClaimReserved && !m.canReserve(&c.Terms) {
			return event.ReasonLatePayment
		}
	case c.State == ClaimExpired && !m.canServeLate(&c.Claim):
		return event.ReasonLatePayment
	}
	return 0
}

// paidAt returns the time by which a payment is judged: that of its block, or, if it is
// unknown, of its proof.
func (m *Machine) paidAt(r *ProvePayment) int64 {
	if r.BlockTime == 0 {
		return m.current.At
	}
	return r.BlockTime * second
}

// canReserve reports whether a claim that has returned what it held can have it again: its
// ticket, even an ended one, has the capacity, and the pair the inventory.
func (m *Machine) canReserve(t *Terms) bool {
	ticket := m.tickets.get(t.Ticket)
	return ticket != nil && m.checkCapacityLeft(t, ticket.Tranche(t.Tranche)).reason == 0
}

// refundable reports whether a payment may be due for refund for the reason.
func refundable(reason event.Reason) bool {
	return reason == event.ReasonClaimState || reason == event.ReasonPaymentMismatch || reason == event.ReasonSurplus || EndsClaim(reason)
}

// EndsClaim reports whether a refund for the reason makes the payment's claim refund_due.
func EndsClaim(reason event.Reason) bool {
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
		m.current.pricing.checkPaymentValue(p, &c.Terms).reason == 0
}

// checkPaymentValue checks that the payment of terms is worth their fill at the rail's
// current price, less the corridor of their pair: at least current payment × (1 -
// corridor), both rounded up. It refuses with the reason why the rail has no price, or with
// PriceCorridor and that minimum in atoms.
func (o *pricing) checkPaymentValue(p *Pair, t *Terms) refusal {
	price, refused := o.priceOfRail(t.Rail)
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

func abandoned(p *Payment) bool { return abandonReason(p.Reason) }
