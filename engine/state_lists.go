package engine

import (
	"math"

	"blockdesk/engine/book"
	"blockdesk/engine/event"
	"blockdesk/engine/lists"
	"blockdesk/market"
)

// emitListReference writes the Reference event of a list with a client's id.
func emitListReference(c *Command, ref []byte, out *event.Sink) {
	if ref != nil {
		out.Next().SetReference(c.Seq, event.Ref{Instrument: AllInstruments, Participant: c.Order.Participant, Origin: c.Origin, Text: ref})
	}
}

// orderList applies a whole list: rule 9.
func (s *State) orderList(c *Command, request []byte, out *event.Sink) {
	l, err := lists.Decode(request, s.listEntries)
	by := c.Order.Participant
	if err != nil {
		s.rejectAdmin(c, event.ReasonInvalidCommand, 0, out)
		return
	}
	s.listEntries = l.Entries
	if l.Cancel {
		s.cancelList(c, &l, out)
		return
	}
	s.listReasons = s.listReasons[:0]
	first := event.ReasonNone
	for i := range l.Entries {
		reason, limit := s.checkListed(&l, i, by, out)
		s.listReasons = append(s.listReasons, listReason{reason, limit})
		if first == event.ReasonNone {
			first = reason
		}
	}
	for i := range l.Entries {
		e := &l.Entries[i]
		own := Command{Seq: c.Seq, Arg: e.Arg, Instrument: e.Instrument, Origin: c.Origin, Order: e.Order}
		own.Order.Participant = by
		own.SetRef(e.Ref)
		emitReference(&own, out)
		if e.Order.Flags&book.FlagTerms != 0 {
			s.emitTerms(&own, out)
		}
		if first == event.ReasonNone {
			s.submitListed(&own, out)
			continue
		}
		r := s.listReasons[i]
		if r.reason == event.ReasonNone {
			r.reason = event.ReasonListRefused
		}
		s.reject(&own, event.Rejected, own.Order.Side, r.reason, r.limit, out)
	}
	done := event.Event{
		Seq: s.seq, At: s.at, OrderID: l.FirstID, Qty: market.Qty(len(l.Entries)), Kind: event.Listed,
		Instrument: AllInstruments, Participant: by, Code: uint16(first),
	}
	emitListReference(c, l.Ref, out)
	*out.Next() = done
}

// listReason is why an order of a list is refused, and the limit that it breaks.
type listReason struct {
	reason event.Reason
	limit  int64
}

// checkListed returns the rule that the order i of a list breaks before any order of the list is
// entered, and its limit. The orders of the list before it count as open ones.
func (s *State) checkListed(l *lists.List, i int, by market.ParticipantID, out *event.Sink) (event.Reason, int64) {
	e := &l.Entries[i]
	c := Command{Instrument: e.Instrument, Order: e.Order}
	c.Order.Participant = by
	in, trader, reason, limit := s.admit(&c)
	if reason != event.ReasonNone {
		return reason, limit
	}
	if in.status == StatusAuction {
		return event.ReasonAuction, 0
	}
	if reason, limit = checkShape(&c.Order, in, s.at); reason != event.ReasonNone {
		return reason, limit
	}
	before := 0
	for j := range l.Entries[:i] {
		if l.Entries[j].Instrument == e.Instrument && mayStay(&l.Entries[j].Order) {
			before++
		}
	}
	limits := *trader.limitsOn(e.Instrument)
	most := limits.maxOpen
	if most != math.MaxInt32 {
		limits.maxOpen -= int32(before)
	}
	if reason, limit = checkRisk(&c.Order, in, &limits); reason != event.ReasonNone {
		if reason == event.ReasonMaxOpenOrders {
			limit = int64(most)
		}
		return reason, limit
	}
	return in.book.stored().Check(&c.Order, before, s.at, s.seq, out)
}

// mayStay reports whether an order may stay in the book.
func mayStay(o *book.Order) bool {
	return o.Type == book.Stop || o.Type == book.StopLimit || o.Type == book.Limit && o.TIF != book.IOC && o.TIF != book.FOK
}

// submitListed enters an order of an accepted list. It ends at once if the orders of the list
// before it have changed the book so that it would be refused now.
func (s *State) submitListed(c *Command, out *event.Sink) {
	o, in := &c.Order, &s.instruments[c.Instrument]
	b := in.book
	reason, _ := b.stored().Check(o, 0, s.at, s.seq, out)
	if reason == event.ReasonNone && !in.acceptsOrders && in.leavesBand(o, o.Qty) {
		reason = event.ReasonAuction
	}
	if reason == event.ReasonNone {
		b.submit(o, s.at, s.seq, out)
		s.orderExpiresAt(o.ExpireAt)
		return
	}
	if reason == event.ReasonFOKUnfillable {
		reason = event.ReasonFOK
	}
	e := event.Event{
		Seq: s.seq, At: s.at, OrderID: o.ID, Price: o.Price, Qty: o.Qty, Kind: event.Accepted, Side: o.Side,
		Instrument: c.Instrument, Participant: o.Participant, Code: uint16(o.Type) | uint16(o.TIF)<<8,
	}
	*out.Next() = e
	e.Kind, e.Code = event.Cancelled, uint16(reason)
	*out.Next() = e
}

// cancelList cancels the orders of a list that are still the participant's.
func (s *State) cancelList(c *Command, l *lists.List, out *event.Sink) {
	done := event.Event{
		Seq: s.seq, At: s.at, Kind: event.MassCancelled, Side: l.Side, Instrument: l.On, Participant: c.Order.Participant,
	}
	for i := range l.Entries {
		e := &l.Entries[i]
		if int(e.Instrument) >= len(s.instruments) {
			continue
		}
		b := s.instruments[e.Instrument].book
		if o, ok := b.get(e.Order.ID); ok && o.Participant == c.Order.Participant && b.cancelFor(e.Order.ID, event.ReasonMassCancel, s.at, s.seq, out) {
			done.Qty++
		}
	}
	if l.More {
		done.Code = event.MoreCancels
	}
	*out.Next() = done
}
