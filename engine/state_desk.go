package engine

import (
	"blockdesk/engine/event"
	"blockdesk/engine/lists"
	"blockdesk/engine/rfq"
	"blockdesk/market"
)

// Desk returns the state of the RFQ desk. It belongs to the State: it must not be used while
// an Engine runs on the State.
func (s *State) Desk() *rfq.Machine { return s.desk }

// addPiece takes a piece of a desk request, mirror refresh, mass quote or list, and applies the request if the
// piece completes it.
func (s *State) addPiece(c *Command, out *event.Sink) {
	wanted := s.assembler.NextPiece(c.Seq)
	request, incomplete := s.assembler.Add(c)
	switch {
	case request == nil:
	case c.Kind == Desk:
		emitDeskReference(c, request, out)
	case c.Kind == QuoteMass:
		emitQuoteReference(c, request, out)
	case c.Kind == OrderList:
		emitListReference(c, lists.PeekRef(request), out)
	}
	if s.at >= s.nextExpiry {
		s.expire(c.Kind, out)
	}
	if incomplete {
		s.emitIncomplete(int(c.Order.Side), wanted, out)
	}
	if request == nil {
		return
	}
	switch c.Kind {
	case MirrorRefresh:
		s.mirrorRefresh(c, request, out)
		return
	case QuoteMass, OrderList:
		if c.Kind == QuoteMass {
			s.massQuote(c, request, out)
		} else {
			s.orderList(c, request, out)
		}
		if len(s.fills) > 0 {
			s.protectQuotes(out)
		}
		return
	}
	by := c.Order.Participant
	s.desk.Apply(request, rfq.Stamp{Seq: s.seq, At: s.at, Participant: by, Blocked: s.deskRejection(by)}, s, out)
	s.expiresAt(s.desk.NextExpiry())
}

// deskRejection returns why a participant gets no quote and no claim; 0 = it may have them.
// Participant 0 is a client of another gateway than FIX.
func (s *State) deskRejection(participant market.ParticipantID) event.Reason {
	switch {
	case participant == 0:
		return event.ReasonNone
	case int(participant) >= len(s.participants):
		return event.ReasonUnknownParticipant
	}
	switch s.participants[participant].status {
	case StatusLive:
		return event.ReasonNone
	case StatusKilled:
		return event.ReasonKilled
	}
	return event.ReasonUnknownParticipant
}

// emitDeskReference writes the Reference event of a request with a client's id.
func emitDeskReference(c *Command, request []byte, out *event.Sink) {
	if p, ok := rfq.PeekRequest(request); ok && len(p.Ref) > 0 {
		out.Next().SetReference(c.Seq, event.Ref{
			OrderID: market.OrderID(p.RequestID), Instrument: AllInstruments, Participant: c.Order.Participant,
			Origin: c.Origin, Text: p.Ref,
		})
	}
}

// emitIncomplete writes the reject of a dropped desk request or refresh: piece number came
// where piece wanted was expected.
func (s *State) emitIncomplete(number, wanted int, out *event.Sink) {
	*out.Next() = event.Event{
		Seq: s.seq, At: s.at, Qty: market.Qty(number), Aux: int64(wanted), Kind: event.Rejected,
		Instrument: AllInstruments, Code: uint16(event.ReasonInvalidCommand),
	}
}

// expireDesk ends a slice of what is due at the desk.
func (s *State) expireDesk(k Kind, out *event.Sink) {
	next := s.desk.NextExpiry()
	if next != 0 && next <= s.at {
		steps := rfq.CommandSlice
		if k == Tick {
			steps = rfq.TickSlice
		}
		s.desk.Expire(rfq.Stamp{Seq: s.seq, At: s.at}, steps, out)
		next = s.desk.NextExpiry()
	}
	s.expiresAt(next)
}

// Mid returns the mid price of an instrument's book: see market.Instrument.MidPrice. ok
// is false without both sides; for a mirrored instrument, because its book may be stale;
// and while the instrument is halted, because participants could move the price of a book
// that accepts only cancels by cancelling. Mid implements rfq.Prices.
func (s *State) Mid(id market.InstrumentID) (mid market.USDPrice, ok bool) {
	if int(id) >= len(s.instruments) {
		return 0, false
	}
	in := &s.instruments[id]
	if !in.trades() {
		return 0, false
	}
	bid, ask := in.book.best(market.Buy), in.book.best(market.Sell)
	if bid == 0 || ask == 0 {
		return 0, false
	}
	return in.def.MidPrice(bid, ask)
}
