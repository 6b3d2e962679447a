package engine

import (
	"fmt"
	"math"

	"blockdesk/engine/book"
	"blockdesk/engine/codec"
	"blockdesk/engine/event"
	"blockdesk/engine/quotes"
	"blockdesk/market"
)

// emitQuoteReference writes the Reference event of a mass quote with a client's id.
func emitQuoteReference(c *Command, request []byte, out *event.Sink) {
	if ref := quotes.PeekRef(request); ref != nil {
		out.Next().SetReference(c.Seq, event.Ref{Instrument: AllInstruments, Participant: c.Order.Participant, Origin: c.Origin, Text: ref})
	}
}

// massQuote applies a whole mass quote: rule 7.
func (s *State) massQuote(c *Command, request []byte, out *event.Sink) {
	q, err := quotes.Decode(request, s.quoteEntries)
	by := c.Order.Participant
	switch {
	case err != nil:
		s.rejectAdmin(c, event.ReasonInvalidCommand, 0, out)
		return
	case s.ParticipantStatus(by) == 0:
		s.rejectAdmin(c, event.ReasonUnknownParticipant, 0, out)
		return
	}
	s.quoteEntries = q.Entries
	done := event.Event{
		Seq: s.seq, At: s.at, Other: uint64(q.Response), Kind: event.MassQuoted, Instrument: AllInstruments, Participant: by,
	}
	switch {
	case q.CancelAll:
		done.Code = event.QuotesCancelledAll
		sets := s.quotes.Of(by, c.Origin)
		for i := range sets {
			s.pullQuotes(&sets[i], event.ReasonQuoteReplaced, out)
		}
	case q.Cancel:
		done.Code = event.QuotesCancelled
	}
	for i := range q.Entries {
		e := &q.Entries[i]
		if e.Set == 0 {
			s.cancelQuotes(s.quotes.Of(by, c.Origin), e.Instrument, out)
			done.Qty++
			continue
		}
		key := quotes.Key{Participant: by, Session: c.Origin, Number: e.Set}
		if reason, limit := s.quote(key, &q, i, out); reason != event.ReasonNone {
			done.Aux++
			*out.Next() = event.Event{
				Seq: s.seq, At: s.at, Other: uint64(e.Set), Qty: market.Qty(e.Number), Aux: limit,
				Kind: event.QuoteRejected, Instrument: e.Instrument, Participant: by, Code: uint16(reason),
			}
			continue
		}
		done.Qty++
	}
	*out.Next() = done
}

// cancelQuotes withdraws the quotes of an instrument.
func (s *State) cancelQuotes(sets []quotes.Set, in market.InstrumentID, out *event.Sink) {
	for i := range sets {
		if live := sets[i].On(in); live != nil {
			s.withdrawQuote(live, event.ReasonQuoteReplaced, out)
		}
	}
}

// quote applies the entry i of a mass quote. For a refused one it withdraws the quote that
// was there, and returns the broken rule and its limit.
func (s *State) quote(key quotes.Key, q *quotes.Mass, i int, out *event.Sink) (event.Reason, int64) {
	e := &q.Entries[i]
	*out.Next() = event.Event{
		Seq: s.seq, At: s.at, Other: uint64(e.Set), Qty: market.Qty(e.Number), Kind: event.Quoted,
		Instrument: e.Instrument, Participant: key.Participant,
	}
	if int(e.Instrument) >= len(s.instruments) {
		return event.ReasonUnknownInstrument, 0
	}
	set, live, most := s.quotes.Quote(key, q, e)
	if set == nil {
		return event.ReasonQuoteSets, most
	}
	reason, limit := s.checkQuote(key.Participant, set, live, q, e)
	if reason == event.ReasonNone {
		reason, limit = s.placeQuote(key.Participant, live, q, i, out)
	}
	if reason != event.ReasonNone {
		s.withdrawQuote(live, event.ReasonQuoteReplaced, out)
	}
	return reason, limit
}

// checkQuote returns the rule that an entry breaks, and its limit. A withdrawal breaks none.
func (s *State) checkQuote(by market.ParticipantID, set *quotes.Set, live *quotes.Quote, q *quotes.Mass, e *quotes.Entry) (event.Reason, int64) {
	if e.BidQty|e.AskQty == 0 {
		return event.ReasonNone, 0
	}
	c := Command{Instrument: e.Instrument}
	c.Order.Participant = by
	in, trader, reason, limit := s.admit(&c)
	switch {
	case reason != event.ReasonNone:
		return reason, limit
	case set.Pulled:
		return event.ReasonQuoteProtection, 0
	case e.BidQty != 0 && e.AskQty != 0 && e.BidPrice >= e.AskPrice:
		return event.ReasonInvalidSpread, int64(e.AskPrice)
	}
	limits := *trader.limitsOn(e.Instrument)
	if limits.maxOpen != math.MaxInt32 {
		open := in.book.open(by)
		for side := range live.IDs {
			if _, ok := in.book.get(live.IDs[side]); ok {
				open--
			}
		}
		for _, qty := range [...]market.Qty{e.BidQty, e.AskQty} {
			if qty != 0 {
				open++
			}
		}
		if open > int(limits.maxOpen) {
			return event.ReasonMaxOpenOrders, int64(limits.maxOpen)
		}
		limits.maxOpen = math.MaxInt32
	}
	for side := market.Buy; side <= market.Sell; side++ {
		o := q.Order(by, side, e)
		if o.Qty == 0 {
			continue
		}
		o.ID, o.Flags = 1, 0
		if reason, limit = checkShape(&o, in, s.at); reason == event.ReasonNone {
			reason, limit = checkRisk(&o, in, &limits)
		}
		if reason != event.ReasonNone {
			return reason, limit
		}
	}
	return event.ReasonNone, 0
}

// placeQuote changes both sides of a quote, first the one that moves away from the other, so
// that the quote does not meet itself.
func (s *State) placeQuote(by market.ParticipantID, live *quotes.Quote, q *quotes.Mass, i int, out *event.Sink) (event.Reason, int64) {
	e, in := &q.Entries[i], &s.instruments[live.Instrument]
	first := market.Buy
	if ask, ok := in.book.get(live.IDs[1]); ok && e.BidQty != 0 && e.BidPrice >= ask.Price {
		first = market.Sell
	}
	for _, side := range [...]market.Side{first, first.Opposite()} {
		o := q.Order(by, side, e)
		o.ID = q.FirstID + market.OrderID(2*i) + market.OrderID(side-market.Buy)
		if reason, limit := s.placeSide(in, &live.IDs[side-market.Buy], &o, out); reason != event.ReasonNone {
			return reason, limit
		}
	}
	return event.ReasonNone, 0
}

// placeSide makes the order id, or a new one, what o wants. An order keeps its place in the
// queue where only its quantity falls. An order that has traded gets a new id otherwise, so
// that its total does not grow without end.
func (s *State) placeSide(in *instrument, id *market.OrderID, o *book.Order, out *event.Sink) (event.Reason, int64) {
	live, ok := in.book.get(*id)
	switch {
	case ok && o.Price == live.Price && o.Qty == live.Open:
		return event.ReasonNone, 0
	case ok && o.Qty != 0 && (o.Price == live.Price && o.Qty < live.Open || live.Qty == live.Open):
		o.ID, o.Flags = *id, book.FlagOpenQty
		s.amend(in, o, out)
		return lastReject(out, event.AmendRejected)
	case ok:
		in.book.cancelFor(*id, event.ReasonQuoteReplaced, s.at, s.seq, out)
	}
	*id = 0
	if o.Qty == 0 {
		return event.ReasonNone, 0
	}
	s.submit(in, o, out)
	reason, limit := lastReject(out, event.Rejected)
	if reason == event.ReasonNone {
		*id = o.ID
	}
	return reason, limit
}

// lastReject returns the reason of the last event if it is of the kind. A refusal is the only
// event of a book's call.
func lastReject(out *event.Sink, kind event.Kind) (event.Reason, int64) {
	if e := out.At(out.Pos - 1); e.Kind == kind {
		return event.Reason(e.Code), e.Aux
	}
	return event.ReasonNone, 0
}

func (s *State) withdrawQuote(live *quotes.Quote, reason event.Reason, out *event.Sink) {
	for i, id := range live.IDs {
		if id != 0 {
			s.instruments[live.Instrument].book.cancelFor(id, reason, s.at, s.seq, out)
			live.IDs[i] = 0
		}
	}
}

// pullQuotes withdraws all quotes of a set.
func (s *State) pullQuotes(set *quotes.Set, reason event.Reason, out *event.Sink) {
	for i := range set.Quotes {
		s.withdrawQuote(&set.Quotes[i], reason, out)
	}
}

// protectQuotes counts the trades of quotes that the command caused, and pulls the sets whose
// protection they reach.
func (s *State) protectQuotes(out *event.Sink) {
	for i := range s.fills {
		if set := s.quotes.Count(&s.fills[i], s.at); set != nil {
			s.pullQuotes(set, event.ReasonQuoteProtection, out)
		}
	}
	s.fills = s.fills[:0]
}

// restoreQuotes decodes the quote sets, if the version has them.
func (s *State) restoreQuotes(r *codec.Reader, version uint16) (err error) {
	if version < stateVersion4 {
		return nil
	}
	known := func(id market.ParticipantID) bool { return s.ParticipantStatus(id) != 0 }
	sets, rest, ok := quotes.Restore(r.Data, known, len(s.instruments), s.at)
	if !ok {
		return fmt.Errorf("quote sets: %w", codec.ErrSnapshot)
	}
	s.quotes, r.Data = sets, rest
	return nil
}
