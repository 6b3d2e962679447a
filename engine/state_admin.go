package engine

import (
	"blockdesk/engine/book"
	"blockdesk/engine/event"
	"blockdesk/market"
)

// administer applies the commands of the service. Their rejects carry no order, because the
// order's fields have other meanings in them.
func (s *State) administer(c *Command, out *event.Sink) {
	var reason event.Reason
	var limit int64
	switch c.Kind {
	case DefineInstrument:
		reason, limit = s.define(c, out)
	case SetRisk:
		reason, limit = s.setRisk(c, out)
	case SetInstrument:
		reason, limit = s.setInstrument(c, out)
	case SetParticipant:
		reason, limit = s.setParticipant(c, out)
	case StartEpoch:
		reason, limit = s.startEpoch(c, out)
	case SetAuctions:
		reason, limit = s.setAuctions(c, out)
	case MirrorTrade:
		reason, limit = s.mirrorTrade(c, out)
	default:
		reason = event.ReasonInvalidCommand
	}
	if reason != event.ReasonNone {
		s.rejectAdmin(c, reason, limit, out)
	}
}

// define adds an instrument, or changes the limits of a known one.
func (s *State) define(c *Command, out *event.Sink) (event.Reason, int64) {
	def, err := definition(c)
	id := int(c.Instrument)
	switch {
	case err != nil:
		return event.ReasonInvalidCommand, 0
	case id > len(s.instruments) || id >= market.MaxInstruments:
		return event.ReasonUnknownInstrument, int64(min(len(s.instruments), market.MaxInstruments-1))
	case id < len(s.instruments) && CheckRedefinition(&s.instruments[id].def, &def) != nil:
		return event.ReasonInvalidCommand, 0
	case id == len(s.instruments) && s.hasSymbol(def.Symbol):
		return event.ReasonInvalidCommand, 0
	}
	if id == len(s.instruments) {
		s.addInstrument(def)
	}
	s.instruments[id].setLimits(def)
	s.emitInstrumentSet(c.Instrument, out)
	return event.ReasonNone, 0
}

func (s *State) hasSymbol(symbol string) bool {
	for i := range s.instruments {
		if s.instruments[i].def.Symbol == symbol {
			return true
		}
	}
	return false
}

func (s *State) addInstrument(def market.Instrument) {
	s.instruments = append(s.instruments, instrument{
		book: newInstrumentBook(s.naive, book.Options{Instrument: def.ID, MaxOrders: s.maxOrders, Trades: &s.trades, Fills: &s.fills, Due: &s.at}),
	})
	in := &s.instruments[def.ID]
	in.setLimits(def)
	in.setStatus(StatusTrading)
	if def.Source == market.Mirrored {
		in.mirror = &mirrorState{}
	}
}

func (in *instrument) setLimits(def market.Instrument) {
	in.def = def
	in.minQty, in.maxQty, in.maxPrice = def.MinQty, def.MaxQty, def.MaxPrice
}

func (in *instrument) setStatus(status uint8) {
	in.status = status
	in.acceptsOrders = in.trades() && in.auctions.BandBps == 0
}

// trades reports whether the instrument is matched and trading.
func (in *instrument) trades() bool {
	return in.status == StatusTrading && in.def.Source == market.Matched
}

func (s *State) emitInstrumentSet(id market.InstrumentID, out *event.Sink) {
	*out.Next() = event.Event{
		Seq: s.seq, At: s.at, Kind: event.InstrumentSet, Instrument: id,
		Code: uint16(s.instruments[id].status),
	}
}

func (s *State) setInstrument(c *Command, out *event.Sink) (event.Reason, int64) {
	if int(c.Instrument) >= len(s.instruments) {
		return event.ReasonUnknownInstrument, 0
	}
	in := &s.instruments[c.Instrument]
	switch c.Status {
	case StatusTrading:
		s.resume(in, out)
	case StatusHalted:
		s.halt(in)
	case StatusAuction:
		if reason := s.beginAuction(in, c.Arg, out); reason != event.ReasonNone {
			return reason, 0
		}
	default:
		return event.ReasonInvalidCommand, 0
	}
	s.emitInstrumentSet(c.Instrument, out)
	return event.ReasonNone, 0
}

// setRisk sets limits and makes their participant known.
func (s *State) setRisk(c *Command, out *event.Sink) (event.Reason, int64) {
	l, err := limitsOf(c)
	id := c.Order.Participant
	switch {
	case err != nil:
		return event.ReasonInvalidCommand, 0
	case id == 0:
		return event.ReasonUnknownParticipant, 0
	case c.Instrument != AllInstruments && int(c.Instrument) >= len(s.instruments):
		return event.ReasonUnknownInstrument, 0
	}
	p := s.participantAt(id)
	if c.Instrument == AllInstruments {
		p.common, p.own = l.compile(), p.own[:0]
	} else {
		for len(p.own) <= int(c.Instrument) {
			p.own = append(p.own, p.common)
		}
		p.own[c.Instrument] = l.compile()
	}
	s.emitParticipantSet(id, out)
	return event.ReasonNone, 0
}

// participantAt returns a participant, creating it if need be.
func (s *State) participantAt(id market.ParticipantID) *participant {
	for int(id) >= len(s.participants) {
		s.participants = append(s.participants, participant{common: Limits{}.compile()})
	}
	p := &s.participants[id]
	if p.status == 0 {
		p.status = StatusLive
		s.participantCount++
	}
	return p
}

func (s *State) emitParticipantSet(id market.ParticipantID, out *event.Sink) {
	*out.Next() = event.Event{
		Seq: s.seq, At: s.at, Kind: event.ParticipantSet, Instrument: AllInstruments, Participant: id,
		Code: uint16(s.participants[id].status),
	}
}

func (s *State) setParticipant(c *Command, out *event.Sink) (event.Reason, int64) {
	id := c.Order.Participant
	switch {
	case s.ParticipantStatus(id) == 0:
		return event.ReasonUnknownParticipant, 0
	case c.Status != StatusKilled && c.Status != StatusLive:
		return event.ReasonInvalidCommand, 0
	}
	s.participants[id].status = c.Status
	s.emitParticipantSet(id, out)
	if c.Status == StatusKilled {
		s.cancelAll(id, AllInstruments, 0, event.ReasonKilled, out)
	}
	return event.ReasonNone, 0
}

// setMaxOrders changes the limit of live orders of each book. It cancels no order.
func (s *State) setMaxOrders(n int) {
	s.maxOrders = n
	for i := range s.instruments {
		s.instruments[i].book.stored().SetMaxOrders(n)
	}
}

// startEpoch accepts only the epoch after the current one, so that no two leaders have the
// same.
func (s *State) startEpoch(c *Command, out *event.Sink) (event.Reason, int64) {
	limit := c.Order.Qty
	if c.Arg != s.epoch+1 || c.Arg > MaxEpoch || limit < 0 || limit > book.MaxMaxOrders || c.Status > StatusInSlices {
		return event.ReasonInvalidCommand, int64(s.epoch + 1)
	}
	s.epoch = c.Arg
	s.inSlices = s.inSlices || c.Status == StatusInSlices
	if limit != 0 {
		s.setMaxOrders(int(limit))
	}
	*out.Next() = event.Event{
		Seq: s.seq, At: s.at, Other: s.epoch, Kind: event.EpochStarted, Instrument: AllInstruments,
	}
	if wanted := s.assembler.NextPiece(s.seq); wanted > 0 {
		s.emitIncomplete(0, wanted, out)
	}
	return event.ReasonNone, 0
}
