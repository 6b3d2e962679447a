package rfq

import (
	"cmp"

	"blockdesk/engine/event"
	"blockdesk/market"
)

// claimItem is a claim and its payments in order of arrival.
type claimItem struct {
	Claim
	first, last uint32 // 1 + slot; 0 = none
	refundsDue  uint32 // payments due for refund
}

func compareClaims(a, b *claimItem) int { return cmp.Compare(a.ID, b.ID) }

// Live reports whether a claim in this state holds capacity and inventory.
func (s ClaimState) Live() bool {
	switch s {
	case ClaimReserved, ClaimPaid, ClaimDelivering, ClaimCosigned:
		return true
	}
	return false
}

func (r *TakeClaim) apply(m *Machine) refusal {
	a := fillRequest{r.Ticket, r.Tranche, r.Fill, r.Rail}
	if r.Mode != Modular && r.Mode != Atomic || r.Wallet == (market.Address{}) || r.Participant != 0 && r.Participant != m.current.Participant {
		return refusal{reason: event.ReasonInvalidCommand}
	}
	if m.current.Blocked != 0 {
		return refusal{reason: m.current.Blocked}
	}
	on, refused := m.ticketForSale(a)
	if refused.reason != 0 {
		return refused
	}
	t := m.tickets.at(on)
	var terms Terms
	if r.Quote != 0 {
		refused = m.quotedTerms(r.Quote, a, &terms)
	} else {
		refused = m.current.pricing.terms(a, t, &terms)
	}
	if refused.reason != 0 {
		return refused
	}
	if refused := m.checkCapacityLeft(&terms, t.Tranche(a.tranche)); refused.reason != 0 {
		return refused
	}
	id := market.ClaimID(r.RequestID)
	next := Claim{
		ID: id, Quote: r.Quote, Mode: r.Mode, Terms: terms, Wallet: r.Wallet, Participant: r.Participant,
		ReservedAt: m.current.At, Client: r.Client, Proven: r.Proven,
	}
	next.Deadline = addTime(m.current.At, m.claimTTL(&next))
	if refused := m.makeRoomForClaim(&next, t.Tranche(a.tranche)); refused.reason != 0 {
		return refused
	}
	if r.Quote != 0 {
		slot, _ := m.quotes.find(r.Quote)
		m.removeQuote(slot)
	}
	slot := m.claims.add(id)
	c := m.claims.at(slot)
	c.Claim = next
	m.reserve(&c.Terms)
	m.setClaimState(slot, ClaimReserved)
	return refusal{}
}

// makeRoomForClaim checks the limits of claims, and forgets an old claim if memory is full.
func (m *Machine) makeRoomForClaim(c *Claim, tr *Tranche) refusal {
	if m.claims.get(c.ID) != nil {
		return refusal{reason: event.ReasonInvalidCommand}
	}
	if c.unproven() {
		if refused := m.checkUnproven(c.Client, &c.Terms, tr); refused.reason != 0 {
			return refused
		}
	} else if most := uint32(m.policy.WalletClaims); m.wallets[c.Wallet] >= most {
		return refusal{event.ReasonWalletClaims, int64(most)}
	}
	if m.claims.len() >= m.limits.claims {
		from := &m.removableUnpaid
		if len(m.removablePaid.heap) > m.limits.claims/4 {
			from = &m.removablePaid
		}
		oldest, ok := from.first()
		if !ok {
			return refusal{event.ReasonDeskFull, int64(m.limits.claims)}
		}
		m.removeClaim(oldest)
	}
	return refusal{}
}

// claimTTL returns how long a new claim may wait for its payment.
func (m *Machine) claimTTL(c *Claim) int64 {
	if c.unproven() {
		return min(m.policy.ClaimTTL, m.policy.UnprovenTTL)
	}
	return m.policy.ClaimTTL
}

// holdsUntil returns when a reserved claim returns what it holds: a modular one after its
// deadline and the Grace of the policy.
func (m *Machine) holdsUntil(c *Claim) int64 {
	if c.Mode == Modular {
		return addTime(c.Deadline, m.policy.Grace)
	}
	return c.Deadline
}

// reserve reserves the capacity and inventory of terms.
func (m *Machine) reserve(t *Terms) {
	m.move(t, func(tr *Tranche, p *Pair) {
		tr.Reserved += t.Fill.USD()
		p.Reserved += t.Base
	})
}

// unreserve undoes reserve.
func (m *Machine) unreserve(t *Terms) {
	m.move(t, func(tr *Tranche, p *Pair) {
		tr.Reserved -= t.Fill.USD()
		p.Reserved -= t.Base
	})
}

// sell turns reserved capacity and inventory into sold.
func (m *Machine) sell(t *Terms) {
	m.move(t, func(tr *Tranche, p *Pair) {
		tr.Reserved -= t.Fill.USD()
		tr.Filled += t.Fill.USD()
		p.Reserved -= t.Base
		p.Sold += t.Base
		p.OnChain -= min(p.OnChain, t.Base)
	})
}

// move changes the tranche and the pair of terms and writes their records. Both exist,
// because a ticket that reserves something is not forgotten.
func (m *Machine) move(t *Terms, change func(tr *Tranche, p *Pair)) {
	slot, ok := m.tickets.find(t.Ticket)
	if !ok {
		panic("rfq: claim holds capacity of a removed ticket")
	}
	ticket, p := m.tickets.at(slot), findPair(m.pairs, t.Instrument)
	tr := ticket.Tranche(t.Tranche)
	change(tr, p)
	m.emit(p)
	m.ticketChanged(slot)
	m.emitTranche(ticket, tr)
}

// setClaimState moves a claim to its next state and writes its record.
func (m *Machine) setClaimState(slot uint32, next ClaimState) {
	c := m.claims.at(slot)
	if c.State == ClaimReserved {
		m.claimEnds.remove(slot)
		m.countReserved(&c.Claim, -1)
	}
	c.State, c.ChangedAt = next, m.current.At
	if next == ClaimReserved {
		m.claimEnds.set(slot, m.holdsUntil(&c.Claim), uint64(c.ID))
		m.countReserved(&c.Claim, +1)
	}
	m.updateRemovable(slot)
	m.emit(&c.Claim)
}

// EachClaim calls f with every remembered claim and its payments, oldest first, until f returns
// false. Both are valid during the call and read-only. The claims come in no particular order.
func (m *Machine) EachClaim(f func(c *Claim, payments []Payment) bool) {
	var payments []Payment
	for _, slot := range m.claims.slots {
		c := m.claims.at(slot)
		payments = payments[:0]
		for p := range m.paymentsOf(c) {
			payments = append(payments, p.Payment)
		}
		if !f(&c.Claim, payments) {
			return
		}
	}
}

// countReserved adds a reserved claim, times sign, to what counts against the limits.
func (m *Machine) countReserved(c *Claim, sign int) {
	if !c.unproven() {
		count(m.wallets, c.Wallet, uint32(sign))
		return
	}
	dollars := market.USD(sign) * c.Terms.Fill.USD()
	count(m.clients, c.Client, dollars)
	count(m.unproven, trancheKey{c.Terms.Ticket, c.Terms.Tranche}, dollars)
	count(m.unprovenAtoms, c.Terms.Instrument, uint64(sign)*c.Terms.Base)
}

// count adds to a counter of a map that holds no zeros.
func count[K comparable, N uint32 | uint64 | market.USD](counters map[K]N, key K, by N) {
	if n := counters[key] + by; n != 0 {
		counters[key] = n
	} else {
		delete(counters, key)
	}
}

// updateRemovable lists the claim as removable if it has ended and no refund is due, so that it
// can be forgotten when memory is full.
func (m *Machine) updateRemovable(slot uint32) {
	c := m.claims.at(slot)
	m.removableUnpaid.remove(slot)
	m.removablePaid.remove(slot)
	switch {
	case c.State.Live() || c.refundsDue != 0:
	case c.first != 0:
		m.removablePaid.set(slot, c.ChangedAt, uint64(c.ID))
	default:
		m.removableUnpaid.set(slot, c.ChangedAt, uint64(c.ID))
	}
}

func (m *Machine) expireClaim(slot uint32) {
	m.unreserve(&m.claims.at(slot).Terms)
	m.setClaimState(slot, ClaimExpired)
}

// removeClaim forgets a claim and its payments.
func (m *Machine) removeClaim(slot uint32) {
	c := m.claims.at(slot)
	id := c.ID
	for p := range m.paymentsOf(c) {
		m.payments.remove(p.Signature)
	}
	m.removableUnpaid.remove(slot)
	m.removablePaid.remove(slot)
	m.claims.remove(id)
	m.emitRemoved(TagClaim, uint64(id))
}

// findClaim returns the claim that a request is about.
func (m *Machine) findClaim(id market.ClaimID) (slot uint32, c *claimItem, refused refusal) {
	slot, ok := m.claims.find(id)
	if !ok {
		return 0, nil, refusal{reason: event.ReasonUnknownClaim}
	}
	c = m.claims.at(slot)
	m.current.outcome.Ticket = c.Terms.Ticket
	if c.State == ClaimReserved && m.holdsUntil(&c.Claim) <= m.current.At { // due, and not yet swept
		m.expireClaim(slot)
	}
	return slot, c, refusal{}
}

func rejectState(c *claimItem) refusal {
	return refusal{event.ReasonClaimState, int64(c.State)}
}

// repeatClaim answers a step that is repeated with the same proof: it writes the claim's
// record unchanged.
func (m *Machine) repeatClaim(c *claimItem) refusal {
	m.emit(&c.Claim)
	return refusal{}
}

func (r *BeginDelivery) apply(m *Machine) refusal {
	slot, c, refused := m.findClaim(r.Claim)
	if refused.reason != 0 {
		return refused
	}
	switch {
	case c.State == ClaimDelivering && c.Proof == r.Proof:
		return m.repeatClaim(c)
	case c.State != ClaimPaid:
		return rejectState(c)
	}
	if refused := m.guard(&c.Claim); refused.reason != 0 {
		return refused
	}
	c.Proof = r.Proof
	m.setClaimState(slot, ClaimDelivering)
	return refusal{}
}

func (r *ExpireDelivery) apply(m *Machine) refusal {
	slot, c, refused := m.findClaim(r.Claim)
	if refused.reason != 0 {
		return refused
	}
	if c.State != ClaimDelivering || c.Proof != r.Proof {
		return rejectState(c)
	}
	c.Proof = [32]byte{}
	m.setClaimState(slot, ClaimPaid)
	return refusal{}
}

func (r *SettleClaim) apply(m *Machine) refusal {
	slot, c, refused := m.findClaim(r.Claim)
	if refused.reason != 0 {
		return refused
	}
	switch {
	case c.State == ClaimSettled && c.Proof == r.Proof:
		return m.repeatClaim(c)
	case c.State != ClaimDelivering && c.State != ClaimCosigned:
		return rejectState(c)
	}
	c.Proof = r.Proof
	m.sell(&c.Terms)
	m.setClaimState(slot, ClaimSettled)
	return refusal{}
}

// apply makes the final checks before the desk signs: see footnote ⁷ of the package
// documentation.
func (r *CosignClaim) apply(m *Machine) refusal {
	slot, c, refused := m.findClaim(r.Claim)
	if refused.reason != 0 {
		return refused
	}
	switch {
	case c.State == ClaimCosigned && c.Proof == r.Proof:
		return m.repeatClaim(c)
	case c.State != ClaimReserved || c.Mode != Atomic:
		return rejectState(c)
	case findLock(m.locks, c.Terms.Instrument, c.Terms.Rail) != nil:
		return refusal{reason: event.ReasonLocked}
	}
	if refused := m.guard(&c.Claim); refused.reason != 0 {
		return refused
	}
	if p := findPair(m.pairs, c.Terms.Instrument); p.Reserved+p.Sold > p.Inventory {
		return refusal{event.ReasonInventory, clampToInt64(p.Inventory)}
	}
	c.Proof = r.Proof
	m.setClaimState(slot, ClaimCosigned)
	return refusal{}
}

func (r *ReleaseClaim) apply(m *Machine) refusal {
	slot, c, refused := m.findClaim(r.Claim)
	if refused.reason != 0 {
		return refused
	}
	switch c.State {
	case ClaimReleased:
		return m.repeatClaim(c)
	case ClaimCosigned:
		m.unreserve(&c.Terms)
		m.setClaimState(slot, ClaimReleased)
		return refusal{}
	}
	return rejectState(c)
}

// apply moves the deadline of a claim whose payment was seen to that of a proven claim.
func (r *SeePayment) apply(m *Machine) refusal {
	slot, c, refused := m.findClaim(r.Claim)
	if refused.reason != 0 {
		return refused
	}
	if c.State != ClaimReserved || c.Mode != Modular {
		return rejectState(c)
	}
	c.Deadline = max(c.Deadline, addTime(c.ReservedAt, m.policy.ClaimTTL))
	m.claimEnds.set(slot, m.holdsUntil(&c.Claim), uint64(c.ID))
	return m.repeatClaim(c)
}

// apply releases a claim for which nothing was signed or paid.
func (r *ReleaseUnbuilt) apply(m *Machine) refusal {
	slot, c, refused := m.findClaim(r.Claim)
	if refused.reason != 0 {
		return refused
	}
	switch {
	case c.State == ClaimReleased && c.Proof == [32]byte{}:
		return m.repeatClaim(c)
	case c.State != ClaimReserved:
		return rejectState(c)
	}
	m.unreserve(&c.Terms)
	m.setClaimState(slot, ClaimReleased)
	return refusal{}
}

// quotedTerms returns the terms of a live quote, if it matches a. Under RulesGuarded the
// price may not have moved so far that the delivery would be refused now.
func (m *Machine) quotedTerms(id market.QuoteID, a fillRequest, into *Terms) refusal {
	q := m.quotes.get(id)
	if q == nil || q.ValidUntil <= m.current.At {
		return refusal{reason: event.ReasonQuoteExpired}
	}
	if a != (fillRequest{q.Terms.Ticket, q.Terms.Tranche, q.Terms.Fill, q.Terms.Rail}) {
		return refusal{reason: event.ReasonQuoteMismatch}
	}
	if q.Terms.guarded() {
		if refused := m.checkFirm(&q.Terms); refused.reason == event.ReasonPriceCorridor {
			return refusal{reason: event.ReasonQuoteExpired}
		} else if refused.reason != 0 {
			return refused
		}
	}
	*into = q.Terms
	return refusal{}
}
