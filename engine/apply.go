package engine

import (
	"blockdesk/engine/book"
	"blockdesk/engine/event"
)

// Apply applies one stamped command and writes its events. If c.Seq is not Seq()+1, Apply
// changes nothing and writes a Rejected event with ReasonInvalidCommand, Seq() as its Seq and
// the expected Seq in Aux. A c.At before At() counts as At(). Apply does not keep c.
func (s *State) Apply(c *Command, out *event.Sink) {
	if c.Seq != s.seq+1 {
		s.rejectSequence(c, out)
		return
	}
	s.seq = c.Seq
	s.at = max(s.at, c.At)
	if c.Kind.piece() {
		s.addPiece(c, out)
		return
	}
	if c.RefLen > 0 && c.Kind != DefineInstrument {
		emitReference(c, out)
		if c.Order.Flags&book.FlagTerms != 0 && (c.Kind == NewOrder || c.Kind == AmendOrder) {
			s.emitTerms(c, out)
		}
	}
	if s.at >= s.nextExpiry {
		s.expire(c.Kind, out)
	}
	switch c.Kind {
	case NewOrder:
		s.newOrder(c, out)
	case CancelOrder:
		s.cancelOrder(c, out)
	case AmendOrder:
		s.amendOrder(c, out)
	case MassCancel:
		s.massCancel(c, out)
	case Tick:
	default:
		s.administer(c, out)
	}
	if len(s.fills) > 0 {
		s.protectQuotes(out)
	}
}

// expire ends what is due in the books, then takes a slice of the auctions and of what is due
// at the desk, which depends on the kind of the command.
func (s *State) expire(k Kind, out *event.Sink) {
	if s.at >= s.bookExpiry {
		s.expireBooks(out)
	}
	if len(s.sweeps) > 0 {
		s.sweep(k, out)
	}
	if s.at >= s.nextCall {
		s.runCalls(k, out)
	}
	s.nextExpiry = min(s.bookExpiry, s.nextCall)
	if len(s.sweeps) > 0 {
		s.nextExpiry = overdue
	}
	s.expireDesk(k, out)
}

// Prefetch loads what Apply will read of the order that c names into the CPU's cache, so
// that the loads for several commands overlap. It changes nothing that Apply depends on.
func (s *State) Prefetch(c *Command) {
	if int(c.Instrument) >= len(s.instruments) {
		return
	}
	if b := s.instruments[c.Instrument].book.ladder; b != nil {
		b.Prefetch(c.Order.ID)
	}
}

func (s *State) rejectSequence(c *Command, out *event.Sink) {
	*out.Next() = event.Event{
		Seq: s.seq, At: s.at, OrderID: c.Order.ID, Aux: int64(s.seq + 1), Kind: event.Rejected,
		Instrument: c.Instrument, Participant: c.Order.Participant, Code: uint16(event.ReasonInvalidCommand),
	}
}

func emitReference(c *Command, out *event.Sink) {
	out.Next().SetReference(c.Seq, event.Ref{
		OrderID: c.Order.ID, Instrument: c.Instrument, Participant: c.Order.Participant,
		Origin: c.Origin, Text: c.RefText(),
	})
}

func (s *State) emitTerms(c *Command, out *event.Sink) {
	o := &c.Order
	*out.Next() = event.Event{
		Seq: c.Seq, At: s.at, OrderID: o.ID, Other: c.Arg, Price: o.Stop, Qty: o.Display, Aux: o.ExpireAt,
		Kind: event.Terms, Side: o.Side, Instrument: c.Instrument, Participant: o.Participant, Code: uint16(o.Flags) | uint16(o.TIF)<<8,
	}
}
