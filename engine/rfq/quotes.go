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
	if refused := m.current.pricing.terms(a, t, &terms); refused.reason != 0 {
		return refused
	}
	if refused := m.checkCapacityLeft(&terms, t.Tranche(a.tranche)); refused.reason != 0 {
		return refused
	}
	id := market.QuoteID(r.RequestID)
	if m.quotes.get(id) != nil {
		return refusal{reason: event.ReasonInvalidCommand}
	}
	if m.quotes.len() >= m.limits.quotes {
		return refusal{event.ReasonDeskFull, int64(m.limits.quotes)}
	}
	at := m.quotes.add(id)
	q := m.quotes.at(at)
	*q = Quote{ID: id, Terms: terms, IssuedAt: m.current.At, ValidUntil: addTime(m.current.At, m.policy.QuoteTTL), Indicative: r.Indicative}
	m.quoteEnds.set(at, q.ValidUntil, r.RequestID)
	m.emit(q)
	return refusal{}
}

// endQuotes ends the quotes that match, as if their time were over.
func (m *Machine) endQuotes(match func(*Quote) bool) {
	for _, slot := range m.quotes.slots {
		if q := m.quotes.at(slot); q.ValidUntil > m.current.At && match(q) {
			q.ValidUntil = m.current.At
			m.quoteEnds.set(slot, q.ValidUntil, uint64(q.ID))
		}
	}
	m.sweep(CommandSlice)
}
