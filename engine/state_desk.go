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

// Mid returns the middle between the best displayed bid and ask of an
// instrument, in 10^-9 of the quote asset for a whole unit of the base asset,
// rounded up. ok is false without both sides, for a price that does not fit, for a
// mirrored instrument, whose book may be old, and while the instrument is halted:
// a book that takes cancels alone moves to whoever has orders to take away. The
// State is the desk's rfq.Prices.
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
	return midOf(uint64(bid+ask), in.def.Tick, int(in.def.PriceDecimals))
}

// midOf returns ticks × tick × 10^-decimals ÷ 2 in 10^-9, rounded up.
func midOf(ticks, tick uint64, decimals int) (market.USDPrice, bool) {
	twice := market.Mul(ticks, tick) // in 10^-decimals
	if decimals >= market.USDPriceDecimals {
		mid, err := twice.DivCeil(2 * market.Pow10(decimals-market.USDPriceDecimals))
		return market.USDPrice(mid), err == nil
	}
	factor := 5 * market.Pow10(market.USDPriceDecimals-1-decimals) // 10 ÷ 2 × …
	mid := market.Mul(twice.Lo, factor)
	return market.USDPrice(mid.Lo), twice.Hi == 0 && mid.Hi == 0
}
