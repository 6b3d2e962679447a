package fixgw

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"strings"

	"blockdesk/engine"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/market"
)

// What a session asks of the desk, on its own goroutine. A request that is not
// passed on is answered here, and does not use its id up; one that is, by the
// follower when its events are durable.

// quoteRequest holds the raw values of an R; nil = absent. They alias the
// message.
type quoteRequest struct {
	id, groups            []byte
	symbol                []byte
	security, source      []byte
	side, qty, cash, rail []byte
	quoteType             []byte
	twice                 bool // a field of the group came twice
}

// scanQuoteRequest reads the fields of frame, which the dictionary has let
// through. Of a group with more than one entry it keeps the first.
func scanQuoteRequest(frame []byte) (r quoteRequest) {
	eachField(frame, func(tag int, value []byte) {
		var field *[]byte
		switch tag {
		case 131:
			field = &r.id
		case 146:
			field = &r.groups
		case 55:
			field = &r.symbol
		case 48:
			field = &r.security
		case 22:
			field = &r.source
		case 54:
			field = &r.side
		case 38:
			field = &r.qty
		case 152:
			field = &r.cash
		case 15:
			field = &r.rail
		case 537:
			field = &r.quoteType
		default:
			return
		}
		if *field != nil {
			r.twice = true
			return
		}
		*field = value
	})
	return r
}

// quoteRequest handles an R.
func (s *session) quoteRequest(frame []byte) *reject {
	r := scanQuoteRequest(frame)
	key := quoteReqMark + string(r.id)
	if len(r.id) > 0 {
		if done, err := s.repeatedAs([]byte(key)); done {
			return err
		}
	}
	entry := &ref{clOrdID: key, msgType: 'R'}
	ask, no := s.decodeQuoteRequest(&r, entry)
	if no == nil {
		no = s.submitDesk(ask, entry)
	}
	if no != nil {
		s.rejectQuoteRequest(&r, no)
	}
	return nil
}

// decodeQuoteRequest makes the desk's request of an R, and fills in what the
// session keeps of it. The reason of a refusal is a QuoteRequestRejectReason.
func (s *session) decodeQuoteRequest(r *quoteRequest, entry *ref) (*rfq.RequestQuote, *refusal) {
	if len(r.id) == 0 || len(r.id) > MaxQuoteReqID {
		return nil, refuse(quoteRejOther, codeInvalidField, "QuoteReqID (131) %.60q: must be 1 to %d bytes", r.id, MaxQuoteReqID)
	}
	view, no := s.gateway.deskView()
	if no != nil {
		no.reason = quoteRejNoMarket
		return nil, no
	}
	if string(r.groups) != "1" || r.twice {
		return nil, refuse(quoteRejOther, codeUnsupported, "NoRelatedSym (146) %.20q: one instrument a request", r.groups)
	}
	in := s.gateway.instruments.Lookup(r.symbol)
	switch {
	case r.symbol == nil:
		return nil, refuse(quoteRejUnknownSymbol, codeMissingField, "Symbol (55)")
	case in == nil:
		return nil, refuseSymbol(quoteRejUnknownSymbol, s.gateway.instruments, r.symbol)
	case r.side != nil && string(r.side) != "1":
		return nil, refuse(quoteRejOther, codeUnsupported, "Side (54) %.20q: must be 1 (buy), the desk sells", r.side)
	case r.quoteType != nil && string(r.quoteType) != "1":
		return nil, refuse(quoteRejOther, codeUnsupported, "QuoteType (537) %.20q: must be 1 (tradeable), quotes are firm", r.quoteType)
	case r.qty != nil:
		return nil, refuse(quoteRejOther, codeUnsupported, "OrderQty (38): a quote is asked for in dollars, CashOrderQty (152)")
	}
	ask := &rfq.RequestQuote{}
	entry.instrument = in.ID
	if ask.Fill, no = parseFill(r.cash); no != nil {
		return nil, no
	}
	if ask.Rail, no = parseRail(r.rail); no != nil {
		return nil, no
	}
	if r.security != nil {
		ask.Ticket, ask.Tranche, no = parseOffered(view, in.ID, r.security, r.source)
	} else {
		ask.Ticket, ask.Tranche, no = currentOffer(view, in.ID, ask.Fill, ask.Rail)
	}
	if no != nil {
		return nil, no
	}
	return ask, nil
}

// deskView returns the desk's newest view.
func (g *Gateway) deskView() (*rfq.View, *refusal) {
	if g.doors.Desk == nil {
		return nil, refuse(ordRejUnsupported, codeUnsupported, "the desk is not enabled")
	}
	v := g.doors.Desk.View()
	if v == nil {
		return nil, refuse(ordRejOther, codeOverloaded, "the desk is starting, try again")
	}
	return v, nil
}

// parseFill reads a step of the ladder, in dollars with or without decimals.
func parseFill(text []byte) (market.FillUSD, *refusal) {
	if text == nil {
		return 0, refuse(quoteRejOther, codeMissingField, "CashOrderQty (152)")
	}
	usd, err := market.ParseDecimal(text, market.USDDecimals)
	var steps strings.Builder
	for f := market.FillUSD(1); f <= market.FillCount; f++ {
		if err == nil && f.USD() == market.USD(usd) {
			return f, nil
		}
		steps.WriteString(" " + f.String())
	}
	return 0, refuse(quoteRejOther, codeInvalidField, "CashOrderQty (152) %.40q: must be one of%s", text, steps.String())
}

// parseRail reads Currency; absent = the first of rail priority.
func parseRail(text []byte) (market.Rail, *refusal) {
	if text == nil {
		return market.RailUSDC, nil
	}
	if rail, ok := market.ParseRail(text); ok {
		return rail, nil
	}
	return 0, refuse(quoteRejOther, codeInvalidField, "Currency (15) %.20q: must be %s or %s", text, market.RailUSDC, market.RailSOL)
}

// parseOffered reads SecurityID: the ids of a ticket and of one of its tranches,
// as T7/T7-1.
func parseOffered(v *rfq.View, in market.InstrumentID, text, source []byte) (market.TicketID, market.TrancheID, *refusal) {
	if source != nil && string(source) != "8" {
		return 0, 0, refuse(quoteRejOther, codeUnsupported, "SecurityIDSource (22) %.20q: must be 8 (exchange symbol)", source)
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
		return 0, 0, refuse(quoteRejUnknownSymbol, codeInvalidField, "Symbol (55): not that of SecurityID (48) %.60q", text)
	}
	return ticket, id, nil
}

// currentOffer returns what is sold now to who names no ticket.
func currentOffer(v *rfq.View, in market.InstrumentID, fill market.FillUSD, rail market.Rail) (market.TicketID, market.TrancheID, *refusal) {
	if v.Pair(in) == nil {
		return 0, 0, refuseDesk(event.ReasonUnknownPair)
	}
	t, tranche, open := v.Offer(in, fill, rail)
	switch {
	case t != nil:
		return t.ID, tranche, nil
	case open:
		return 0, 0, refuse(quoteRejExceedsLimit, codeCapacity, "%s: no open ticket has room for %s over %s", event.ReasonCapacityExhausted, fill, rail)
	}
	return 0, 0, refuse(quoteRejNoMarket, codeUnknownTicket, "%s: no ticket is open", event.ReasonUnknownTicket)
}

// refuseDesk is a refusal that the desk need not be asked for.
func refuseDesk(reason event.Reason) *refusal {
	return &refusal{text: deskText(reason, 0), reason: refusalOf(reason).quoteReason}
}

// submitDesk hands a request to the engine under entry's name.
func (s *session) submitDesk(request rfq.Request, entry *ref) *refusal {
	head := request.Head()
	head.Token, head.Ref = newToken(s.gateway.options.Group), entry.clOrdID
	entry.id = market.OrderID(head.Token)
	if entry.claim != nil {
		entry.claim.ID = market.ClaimID(head.Token)
	}
	commands, err := engine.DeskCommands(nil, request)
	if err != nil {
		return refuse(quoteRejOther, codeInvalidField, "%s", err)
	}
	last := &commands[len(commands)-1]
	last.Origin, last.Order.Participant = s.number, s.participant.Number
	if no := s.enterDesk(entry); no != nil {
		s.gateway.overloaded.Add(1)
		return no
	}
	if err = s.gateway.engine.SubmitAll(commands); err == nil {
		return nil
	}
	s.withdraw(entry)
	if errors.Is(err, engine.ErrFull) {
		s.gateway.overloaded.Add(1)
		return refuse(quoteRejOther, codeOverloaded, "the engine's queue is full, try again")
	}
	code, text, _ := strings.Cut(s.gateway.unserved(err.Error()), ": ")
	return refuse(quoteRejOther, code, "%s", text)
}

// enterDesk is enter for requests to the desk, and holds a session to its quotes.
func (s *session) enterDesk(entry *ref) *refusal {
	most := s.gateway.options.MaxQuotes
	s.mu.Lock()
	quotes := len(s.quotes) + s.asking
	s.mu.Unlock()
	switch {
	case entry.msgType == 'R' && quotes >= most:
		return refuse(quoteRejExceedsLimit, codeOverloaded, "%d quotes of this session are live or asked for", most)
	case !s.enter(entry):
		return refuse(quoteRejExceedsLimit, codeOverloaded, "%d requests of this session wait for an answer", s.gateway.options.MaxPendingOrders)
	}
	return nil
}

// newToken returns the number that a quote or claim will have: random, so that
// nobody can guess one, and not 0. It bears the group.
func newToken(group market.GroupID) uint64 {
	var b [8]byte
	for {
		_, _ = rand.Read(b[:]) // it never fails
		if n := market.GroupWord(group, binary.LittleEndian.Uint64(b[:])); n != 0 {
			return n
		}
	}
}

// rejectQuoteRequest answers an R that is not passed on.
func (s *session) rejectQuoteRequest(r *quoteRequest, no *refusal) {
	s.gateway.rejects.Add(1)
	symbol := noSymbol
	if len(r.symbol) > 0 {
		symbol = string(appendText(nil, string(r.symbol)))
	}
	s.out.scratch = appendQuoteReject(s.out.scratch[:0], string(appendText(nil, string(r.id))), symbol, no.reason, appendText(nil, no.text))
	s.sendType("AG", tagQuoteReqID, s.out.scratch, false)
}
