package engine

import (
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/market"
)

// Desk returns the state of the RFQ desk. It belongs to the State: who has an
// Engine at work on it must not touch it.
func (s *State) Desk() *rfq.Machine { return s.desk }

// piece takes a piece of a request to the desk or of a refresh, and applies what
// is whole by it.
func (s *State) piece(c *Command, out *event.Sink) {
	wanted := s.joiner.NextPiece(c.Seq)
	request, torn := s.joiner.Add(c)
	if request != nil && c.Kind == Desk {
		referenceDesk(c, request, out)
	}
	if s.at >= s.nextExpiry {
		s.expire(out)
	}
	if torn {
		s.tellTorn(int(c.Order.Side), wanted, out)
	}
	if request == nil {
		return
	}
	if c.Kind == MirrorRefresh {
		s.mirrorRefresh(c, request, out)
		return
	}
	by := c.Order.Participant
	s.desk.Apply(request, rfq.Stamp{Seq: s.seq, At: s.at, Participant: by, Blocked: s.barredFromDesk(by)}, s, out)
	s.expiresAt(s.desk.NextExpiry())
}

// barredFromDesk says why a participant may have no quote and no claim; 0 = it
// may, as whoever comes by another way than FIX.
func (s *State) barredFromDesk(who market.ParticipantID) event.Reason {
	switch {
	case who == 0:
		return event.ReasonNone
	case int(who) >= len(s.participants):
		return event.ReasonUnknownParticipant
	}
	switch s.participants[who].status {
	case StatusLive:
		return event.ReasonNone
	case StatusKilled:
		return event.ReasonKilled
	}
	return event.ReasonUnknownParticipant
}

// referenceDesk writes the Reference of a request that has a client's own id.
func referenceDesk(c *Command, request []byte, out *event.Sink) {
	if p, ok := rfq.PeekRequest(request); ok && len(p.Ref) > 0 {
		out.Next().SetReference(c.Seq, event.Ref{
			OrderID: market.OrderID(p.Token), Instrument: AllInstruments, Participant: c.Order.Participant,
			Origin: c.Origin, Text: p.Ref,
		})
	}
}

// tellTorn says that a request to the desk or a refresh has been dropped, at the
// piece number where another was wanted.
func (s *State) tellTorn(number, wanted int, out *event.Sink) {
	*out.Next() = event.Event{
		Seq: s.seq, At: s.at, Qty: market.Qty(number), Aux: int64(wanted), Kind: event.Rejected,
		Instrument: AllInstruments, Code: uint16(event.ReasonInvalidCommand),
	}
}

// expireDesk ends what is due of the desk's.
func (s *State) expireDesk(out *event.Sink) {
	next := s.desk.NextExpiry()
	if next != 0 && next <= s.at {
		s.desk.Expire(rfq.Stamp{Seq: s.seq, At: s.at}, out)
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
	if !in.open {
		return 0, false
	}
	bid, ask := in.book.best(market.Buy), in.book.best(market.Sell)
	if bid == 0 || ask == 0 {
		return 0, false
	}
	return in.def.MidPrice(bid, ask)
}
