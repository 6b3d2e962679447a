package rfq

import (
	"cmp"

	"blockdesk/engine/event"
	"blockdesk/market"
)

// smallestFill is the capacity that keeps a ticket open.
const smallestFill = market.FillUSD(1)

func compareTickets(a, b *Ticket) int { return cmp.Compare(a.ID, b.ID) }

// Ended reports whether the ticket was withdrawn or has expired.
func (t *Ticket) Ended() bool { return t.State == TicketWithdrawn || t.State == TicketExpired }

// endedRejection returns why an ended ticket refuses requests.
func (t *Ticket) endedRejection() refusal {
	switch t.State {
	case TicketWithdrawn:
		return refusal{reason: event.ReasonTicketWithdrawn}
	case TicketExpired:
		return refusal{reason: event.ReasonTicketExpired}
	}
	return refusal{}
}

func (r *PostTicket) apply(m *Machine) refusal {
	if !printable(r.Label) || len(r.Capacities) == 0 {
		return refusal{reason: event.ReasonInvalidCommand}
	}
	for _, c := range r.Capacities {
		if refused := checkCapacity(c, smallestFill.USD()); refused.reason != 0 {
			return refused
		}
	}
	rails, refused := m.checkOffer(r.Instrument, r.Rails, r.Reference, r.ExpiresAt)
	if refused.reason != 0 {
		return refused
	}
	if m.tickets.len() >= m.limits.tickets {
		return refusal{event.ReasonDeskFull, int64(m.limits.tickets)}
	}
	m.lastTicket++
	slot := m.tickets.add(m.lastTicket)
	t := m.tickets.at(slot)
	*t = Ticket{
		ID: m.lastTicket, Label: r.Label, Instrument: r.Instrument, Rails: rails, State: TicketOpen,
		Priority: r.Priority, Reference: r.Reference, CreatedAt: m.current.At, ExpiresAt: r.ExpiresAt, By: r.Operator,
		Tranches: make([]Tranche, len(r.Capacities)),
	}
	for i, c := range r.Capacities {
		t.Tranches[i] = Tranche{ID: market.TrancheID(i + 1), Capacity: c}
	}
	if t.ExpiresAt != 0 {
		m.ticketEnds.set(slot, t.ExpiresAt, uint64(t.ID))
	}
	m.ticketChanged(slot)
	for i := range t.Tranches {
		m.emitTranche(t, &t.Tranches[i])
	}
	return refusal{}
}

// checkCapacity checks that c is lowest..MaxCapacity. The refusal's limit is the bound that
// c is beyond.
func checkCapacity(c, lowest market.USD) refusal {
	switch {
	case c < lowest:
		return refusal{event.ReasonInvalidQty, int64(lowest)}
	case c > MaxCapacity:
		return refusal{event.ReasonInvalidQty, int64(MaxCapacity)}
	}
	return refusal{}
}

// checkOffer checks the fields that new and amended tickets share, and returns the rails.
func (m *Machine) checkOffer(in market.InstrumentID, rails market.Rails, ref market.USDPrice, expiresAt int64) (market.Rails, refusal) {
	p := findPair(m.pairs, in)
	if p == nil {
		return 0, refusal{reason: event.ReasonUnknownPair}
	}
	if rails == 0 {
		rails = p.Rails
	}
	switch {
	case rails&^p.Rails != 0:
		return 0, refusal{reason: event.ReasonRailNotAccepted}
	case ref != 0 && !validPrice(ref):
		return 0, refusal{reason: event.ReasonInvalidPrice}
	case expiresAt != 0 && expiresAt <= m.current.At:
		return 0, refusal{reason: event.ReasonInvalidExpiry}
	}
	return rails, refusal{}
}

// activeTicket returns the slot of a ticket that has not ended.
func (m *Machine) activeTicket(id market.TicketID) (uint32, refusal) {
	slot, ok := m.tickets.find(id)
	if !ok {
		return 0, refusal{reason: event.ReasonUnknownTicket}
	}
	m.current.outcome.Ticket = id
	t := m.tickets.at(slot)
	if t.ExpiresAt != 0 && t.ExpiresAt <= m.current.At && !t.Ended() { // due, and not yet swept
		m.endTicket(slot, TicketExpired)
	}
	return slot, t.endedRejection()
}

func (r *AmendTicket) apply(m *Machine) refusal {
	slot, refused := m.activeTicket(r.Ticket)
	if refused.reason != 0 {
		return refused
	}
	t := m.tickets.at(slot)
	rails, refused := m.checkOffer(t.Instrument, r.Rails, r.Reference, r.ExpiresAt)
	if refused.reason != 0 {
		return refused
	}
	t.Rails, t.Priority, t.Reference, t.ExpiresAt = rails, r.Priority, r.Reference, r.ExpiresAt
	if t.ExpiresAt != 0 {
		m.ticketEnds.set(slot, t.ExpiresAt, uint64(t.ID))
	} else {
		m.ticketEnds.remove(slot)
	}
	m.ticketChanged(slot)
	return refusal{}
}

func (r *SetTranche) apply(m *Machine) refusal {
	slot, refused := m.activeTicket(r.Ticket)
	if refused.reason != 0 {
		return refused
	}
	t := m.tickets.at(slot)
	lowest, next := smallestFill.USD(), len(t.Tranches)+1
	tr := t.Tranche(r.Tranche)
	switch {
	case tr != nil:
		lowest = tr.Reserved + tr.Filled
	case int(r.Tranche) != next:
		return refusal{reason: event.ReasonUnknownTranche}
	case next > MaxTranches:
		return refusal{event.ReasonDeskFull, MaxTranches}
	}
	if refused := checkCapacity(r.Capacity, lowest); refused.reason != 0 {
		return refused
	}
	if tr == nil {
		t.Tranches = append(t.Tranches, Tranche{ID: r.Tranche})
		tr = t.Tranche(r.Tranche)
	}
	tr.Capacity = r.Capacity
	m.ticketChanged(slot)
	m.emitTranche(t, tr)
	return refusal{}
}

func (r *WithdrawTicket) apply(m *Machine) refusal {
	slot, refused := m.activeTicket(r.Ticket)
	if refused.reason != 0 {
		return refused
	}
	m.endTicket(slot, TicketWithdrawn)
	return refusal{}
}

// endTicket stops the sale of a ticket. Its claims continue.
func (m *Machine) endTicket(slot uint32, state TicketState) {
	m.tickets.at(slot).State = state
	m.ticketEnds.remove(slot)
	m.ticketChanged(slot)
}

// ticketChanged writes the record of a changed ticket, with its state by capacity, Seq and
// time, and schedules the removal of an ended ticket that reserves nothing.
func (m *Machine) ticketChanged(slot uint32) {
	t := m.tickets.at(slot)
	t.Seq, t.UpdatedAt = m.current.Seq, m.current.At
	m.current.outcome.Ticket = t.ID
	if !t.Ended() {
		t.State = t.stateByCapacity()
	}
	m.scheduleRemoval(slot)
	m.emit(t)
}

func (m *Machine) scheduleRemoval(slot uint32) {
	if t := m.tickets.at(slot); t.Ended() && !t.reserves() {
		m.ticketRemovals.set(slot, addTime(t.UpdatedAt, TicketRetention), uint64(t.ID))
	} else {
		m.ticketRemovals.remove(slot)
	}
}

func (t *Ticket) reserves() bool {
	for i := range t.Tranches {
		if t.Tranches[i].Reserved != 0 {
			return true
		}
	}
	return false
}

func (m *Machine) emitTranche(t *Ticket, tr *Tranche) {
	m.current.tranche = TicketTranche{t.ID, *tr}
	m.emit(&m.current.tranche)
}

func (m *Machine) removeTicket(slot uint32) {
	id := m.tickets.at(slot).ID
	m.ticketRemovals.remove(slot)
	m.tickets.remove(id)
	m.emitRemoved(TagTicket, uint64(id))
}
