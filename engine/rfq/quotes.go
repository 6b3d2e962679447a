package rfq

import (
	"blockdesk/engine/event"
	"blockdesk/market"
)

// fillRequest is the common part of a request for a quote and of a claim.
type fillRequest struct {
	ticket  market.TicketID
	tranche market.TrancheID
	fill    market.FillUSD
	rail    market.Rail
}

// ticketForSale returns the slot of the requested ticket if it sells and no lock prevents it.
func (m *Machine) ticketForSale(a fillRequest) (uint32, refusal) {
	if !a.fill.Valid() || !a.rail.Valid() {
		return 0, refusal{reason: event.ReasonInvalidCommand}
	}
	slot, refused := m.activeTicket(a.ticket)
	if refused.reason != 0 {
		return 0, refused
	}
	t := m.tickets.at(slot)
	if t.Tranche(a.tranche) == nil {
		return 0, refusal{reason: event.ReasonUnknownTranche}
	}
	if findLock(m.locks, t.Instrument, a.rail) != nil {
		return 0, refusal{reason: event.ReasonLocked}
	}
	return slot, refusal{}
}

// computeTerms computes the terms of a at the current prices.
func (m *Machine) computeTerms(a fillRequest, t *Ticket, into *Terms) refusal {
	p := findPair(m.pairs, t.Instrument)
	if !t.Rails.Has(a.rail) || !p.Rails.Has(a.rail) || m.policy.PayTo[a.rail] == (market.Address{}) {
		return refusal{reason: event.ReasonRailNotAccepted}
	}
	ref, refused := m.current.pricing.reference(p, t.Reference)
	if refused.reason != 0 {
		return refused
	}
	of, refused := m.priceOfRail(a.rail)
	if refused.reason != 0 {
		return refused
	}
	price := m.policy.Price(ref, a.fill)
	base, enough := baseFor(a.fill, price, p.BaseDecimals)
	payment, fits := paymentFor(a.fill, a.rail, of)
	if !enough || !fits {
		return refusal{reason: event.ReasonPriceUnavailable}
	}
	*into = Terms{
		Ticket: a.ticket, Tranche: a.tranche, Instrument: t.Instrument, Fill: a.fill, Rail: a.rail,
		DiscountBps: m.policy.Discounts[a.fill-1], FeeBps: m.policy.FeeBps,
		Reference: ref, Price: price, Base: base, Payment: payment, PayTo: m.policy.PayTo[a.rail],
	}
	return refusal{}
}

// priceOfRail returns the dollar price of the rail's asset.
func (m *Machine) priceOfRail(rail market.Rail) (market.USDPrice, refusal) {
	if rail == market.RailUSDC {
		return usdPriceOne, refusal{}
	}
	p := m.railPrice(rail)
	switch {
	case p == nil:
		return 0, refusal{reason: event.ReasonPriceUnavailable}
	case tooOld(m.current.At, p.At, p.MaxAge):
		return 0, refusal{event.ReasonPriceStale, p.MaxAge}
	}
	return p.Price, refusal{}
}

// checkCapacityLeft checks that capacity and inventory suffice for terms.
func (m *Machine) checkCapacityLeft(t *Terms, tr *Tranche) refusal {
	if available := tr.Available(); t.Fill.USD() > available {
		return refusal{event.ReasonCapacityExhausted, int64(available)}
	}
	if free := findPair(m.pairs, t.Instrument).Free(); t.Base > free {
		return refusal{event.ReasonInventory, clampToInt64(free)}
	}
	return refusal{}
}

func (r *RequestQuote) apply(m *Machine) refusal {
	if m.current.Blocked != 0 {
		return refusal{reason: m.current.Blocked}
	}
	a := fillRequest{r.Ticket, r.Tranche, r.Fill, r.Rail}
	slot, refused := m.ticketForSale(a)
	if refused.reason != 0 {
		return refused
	}
	t := m.tickets.at(slot)
	var terms Terms
	if refused := m.computeTerms(a, t, &terms); refused.reason != 0 {
		return refused
	}
	if refused := m.checkCapacityLeft(&terms, t.Tranche(a.tranche)); refused.reason != 0 {
		return refused
	}
	id := market.QuoteID(r.Token)
	if m.quotes.get(id) != nil {
		return refusal{reason: event.ReasonInvalidCommand}
	}
	if m.quotes.len() >= m.limits.quotes {
		return refusal{event.ReasonDeskFull, int64(m.limits.quotes)}
	}
	at := m.quotes.add(id)
	q := m.quotes.at(at)
	*q = Quote{ID: id, Terms: terms, IssuedAt: m.current.At, ValidUntil: addTime(m.current.At, m.policy.QuoteTTL)}
	m.quoteEnds.set(at, q.ValidUntil, r.Token)
	m.emit(q)
	return refusal{}
}

// quotedTerms returns the terms of a live quote, if it matches a.
func (m *Machine) quotedTerms(id market.QuoteID, a fillRequest, into *Terms) refusal {
	q := m.quotes.get(id)
	if q == nil {
		return refusal{reason: event.ReasonQuoteExpired}
	}
	if a != (fillRequest{q.Terms.Ticket, q.Terms.Tranche, q.Terms.Fill, q.Terms.Rail}) {
		return refusal{reason: event.ReasonQuoteMismatch}
	}
	*into = q.Terms
	return refusal{}
}

// removeQuote forgets a used or expired quote.
func (m *Machine) removeQuote(slot uint32) {
	id := m.quotes.at(slot).ID
	m.quoteEnds.remove(slot)
	m.quotes.remove(id)
	m.emitRemoved(TagQuote, uint64(id))
}
