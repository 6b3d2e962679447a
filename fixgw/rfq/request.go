package rfq

import (
	"bytes"

	"blockdesk/desk"
	"blockdesk/engine"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/fixgw/reports"
	"blockdesk/fixgw/wire"
	"blockdesk/market"
)

// Requests to the desk, on the session's goroutine. A request that is refused here is
// answered here, and does not use up its id. The reporter answers all others when their
// events are durable.

// QuoteRequest handles an R.
func (s *Session) QuoteRequest(frame []byte) *wire.Reject {
	r := wire.ScanQuoteRequest(frame)
	key := wire.QuoteReqPrefix + string(r.ID)
	if len(r.ID) > 0 {
		done, duplicate, reject := s.Repeated([]byte(key), r.Content())
		if done {
			return reject
		}
		if duplicate {
			s.rejectQuoteRequest(&r, wire.RefuseDuplicate(wire.QuoteRejOther, "QuoteReqID (131)", r.ID))
			return nil
		}
	}
	entry := &reports.Request{ClOrdID: key, MsgType: 'R', Content: r.Content()}
	request, refusal := s.decodeQuoteRequest(&r, entry)
	if refusal == nil {
		refusal = s.submit(request, entry)
	}
	if refusal != nil {
		s.rejectQuoteRequest(&r, refusal)
	}
	return nil
}

// decodeQuoteRequest makes the desk's request of an R, and completes the session's entry
// of it. The refusal's reason is a QuoteRequestRejectReason.
func (s *Session) decodeQuoteRequest(r *wire.QuoteRequest, entry *reports.Request) (*rfq.RequestQuote, *wire.Refusal) {
	if len(r.ID) == 0 || len(r.ID) > wire.MaxQuoteReqID || !wire.IsPrintable(r.ID) {
		return nil, wire.Refuse(wire.QuoteRejOther, wire.CodeInvalidField, "QuoteReqID (131) %.60q: must be 1 to %d printable ASCII characters", r.ID, wire.MaxQuoteReqID)
	}
	view, refusal := s.entry.view()
	if refusal != nil {
		refusal.Reason = wire.QuoteRejNoMarket
		return nil, refusal
	}
	if string(r.Groups) != "1" || r.Twice {
		return nil, wire.Refuse(wire.QuoteRejOther, wire.CodeUnsupported, "NoRelatedSym (146) %.20q: one instrument a request", r.Groups)
	}
	in := s.entry.Instruments.Lookup(r.Symbol)
	switch {
	case r.Symbol == nil:
		return nil, wire.Refuse(wire.QuoteRejUnknownSymbol, wire.CodeMissingField, "Symbol (55)")
	case in == nil:
		return nil, wire.RefuseSymbol(wire.QuoteRejUnknownSymbol, s.entry.Instruments, r.Symbol)
	case r.Side != nil && string(r.Side) != "1":
		return nil, wire.Refuse(wire.QuoteRejOther, wire.CodeUnsupported, "Side (54) %.20q: must be 1 (buy), the desk sells", r.Side)
	case r.QuoteType != nil && string(r.QuoteType) != "1":
		return nil, wire.Refuse(wire.QuoteRejOther, wire.CodeUnsupported, "QuoteType (537) %.20q: must be 1 (tradeable)", r.QuoteType)
	case r.Qty != nil:
		return nil, wire.Refuse(wire.QuoteRejOther, wire.CodeUnsupported, "OrderQty (38): a quote is asked for in dollars, CashOrderQty (152)")
	}
	request := &rfq.RequestQuote{}
	entry.Instrument = in.ID
	if request.Fill, refusal = wire.ParseFill(r.Cash); refusal != nil {
		return nil, refusal
	}
	if request.Rail, refusal = wire.ParseRail(r.Rail); refusal != nil {
		return nil, refusal
	}
	if r.Security != nil {
		request.Ticket, request.Tranche, refusal = parseOffered(view, in.ID, r.Security, r.Source)
	} else {
		request.Ticket, request.Tranche, refusal = currentOffer(view, in.ID, request.Fill, request.Rail, s.entry.Now().UnixNano())
	}
	if refusal != nil {
		return nil, refusal
	}
	request.Indicative = !s.entry.settles()
	return request, nil
}

// parseOffered reads SecurityID: the ids of a ticket and of one of its tranches,
// as T7/T7-1.
func parseOffered(v *rfq.View, in market.InstrumentID, text, source []byte) (market.TicketID, market.TrancheID, *wire.Refusal) {
	if source != nil && string(source) != "8" {
		return 0, 0, wire.Refuse(wire.QuoteRejOther, wire.CodeUnsupported, "SecurityIDSource (22) %.20q: must be 8 (exchange symbol)", source)
	}
	order, tranche, _ := bytes.Cut(text, []byte("/"))
	ticket, ok := market.ParseTicketID(order)
	t := v.Ticket(ticket)
	if !ok || t == nil {
		return 0, 0, refuseDesk(event.ReasonUnknownTicket)
	}
	of, id, ok := market.ParseTrancheID(tranche)
	if !ok || of != ticket || t.Tranche(id) == nil {
		return 0, 0, refuseDesk(event.ReasonUnknownTranche)
	}
	if t.Instrument != in {
		return 0, 0, wire.Refuse(wire.QuoteRejUnknownSymbol, wire.CodeInvalidField, "Symbol (55): not that of SecurityID (48) %.60q", text)
	}
	return ticket, id, nil
}

// currentOffer returns the offer for a request that names no ticket.
func currentOffer(v *rfq.View, in market.InstrumentID, fill market.FillUSD, rail market.Rail, at int64) (market.TicketID, market.TrancheID, *wire.Refusal) {
	t, tranche, why := v.Offer(in, fill, rail, at)
	switch why {
	case event.ReasonNone:
		return t.ID, tranche, nil
	case event.ReasonCapacityExhausted:
		return 0, 0, wire.Refuse(wire.QuoteRejExceedsLimit, wire.CodeCapacity, "%s: no open ticket has the capacity for %s USD over %s", why, fill, rail)
	case event.ReasonUnknownTicket:
		return 0, 0, wire.Refuse(wire.QuoteRejNoMarket, wire.CodeUnknownTicket, "%s: no ticket is open", why)
	}
	return 0, 0, refuseDesk(why)
}

// refuseDesk returns the refusal for a reason of the desk that the gateway can see
// itself.
func refuseDesk(reason event.Reason) *wire.Refusal {
	return &wire.Refusal{Text: wire.DeskText(reason, 0), Reason: wire.DeskReasonOf(reason).QuoteReason}
}

// submit passes a request to the engine under entry's ClOrdID.
func (s *Session) submit(request rfq.Request, entry *reports.Request) *wire.Refusal {
	head := request.Head()
	head.RequestID, head.Ref = desk.NewRequestID(s.entry.Group), entry.ClOrdID
	entry.ID = market.OrderID(head.RequestID)
	if requested, ok := entry.Subject.(*claim); ok {
		requested.ID = market.ClaimID(head.RequestID)
	}
	if s.entry.Format1 && rfq.FitFormat1(request) != nil {
		return wire.Refuse(wire.QuoteRejOther, wire.CodeUnsupported, "%s", rfq.ErrNotFinalized)
	}
	commands, err := engine.DeskCommands(nil, request)
	if err != nil {
		return wire.Refuse(wire.QuoteRejOther, wire.CodeInvalidField, "%s", err)
	}
	last := &commands[len(commands)-1]
	last.Origin, last.Order.Participant = s.Number, s.Participant.Number
	if most := s.entry.MaxQuotes; entry.MsgType == 'R' && s.quoteCount() >= most {
		s.entry.Requests.Overloaded.Add(1)
		return wire.Refuse(wire.QuoteRejExceedsLimit, wire.CodeOverloaded, "%d quotes of this session are live or asked for", most)
	}
	if err := s.Register(entry); err != nil {
		return &wire.Refusal{Reason: wire.QuoteRejExceedsLimit, Text: s.RefusalText(err)}
	}
	if err = s.entry.Engine.SubmitAll(commands); err != nil {
		s.Unregister(entry, err)
		return &wire.Refusal{Reason: wire.QuoteRejOther, Text: s.RefusalText(err)}
	}
	return nil
}

// rejectQuoteRequest answers an R that is refused here.
func (s *Session) rejectQuoteRequest(r *wire.QuoteRequest, refusal *wire.Refusal) {
	s.CountReject()
	symbol := wire.NoSymbol
	if len(r.Symbol) > 0 {
		symbol = string(wire.AppendText(nil, string(r.Symbol)))
	}
	s.Out.Scratch = wire.AppendQuoteReject(s.Out.Scratch[:0], string(wire.AppendText(nil, string(r.ID))), symbol, refusal.Reason, wire.AppendText(nil, refusal.Text))
	s.Send("AG", wire.TagQuoteReqID, s.Out.Scratch, false)
}

// requestedSymbol returns the symbol of a request that has no answer yet.
func (s *Session) requestedSymbol(key string) string {
	if r, found := s.Find(key); found && r.Pending() {
		if in := s.entry.Instruments.Get(r.Instrument); in != nil {
			return in.Symbol
		}
	}
	return wire.NoSymbol
}
