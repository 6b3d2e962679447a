package fixgw

import (
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/market"
)

// acceptance holds the raw values of a D with OrdType D, or of an AJ; nil =
// absent. They alias the message.
type acceptance struct {
	clOrdID, respID    []byte
	quoteID, respType  []byte
	symbol, side       []byte
	qty, cash          []byte
	price, offer, rail []byte
	tif                []byte
	security           []byte
	other              int  // a field that changes an order, and that no quote has; 0 = none
	response           bool // an AJ
}

// ordTypeQuoted is the OrdType (40) of an order that takes a quote.
const ordTypeQuoted = "D"

// Values of QuoteRespType (694).
const (
	respHit  = "1"
	respPass = "6"
)

func scanAcceptance(frame []byte, response bool) acceptance {
	a := acceptance{response: response}
	eachField(frame, func(tag int, value []byte) {
		switch tag {
		case 11:
			a.clOrdID = value
		case 693:
			a.respID = value
		case 117:
			a.quoteID = value
		case 694:
			a.respType = value
		case 55:
			a.symbol = value
		case 54:
			a.side = value
		case 38:
			a.qty = value
		case 152:
			a.cash = value
		case 44:
			a.price = value
		case 133:
			a.offer = value
		case 15:
			a.rail = value
		case 59:
			a.tif = value
		case 48:
			a.security = value
		case 18, 99, 111, 126, 432:
			a.other = tag
		}
	})
	return a
}

// key is the name that the request goes by.
func (a *acceptance) key() string {
	if a.response {
		return quoteRespMark + string(a.respID)
	}
	return string(a.clOrdID)
}

// checkID holds the request's id to what the engine carries.
func (a *acceptance) checkID() *refusal {
	switch {
	case a.response && (len(a.respID) == 0 || len(a.respID) > MaxQuoteReqID):
		return refuse(ordRejOther, codeInvalidField, "QuoteRespID (693) %.60q: must be 1 to %d bytes", a.respID, MaxQuoteReqID)
	case !a.response && (len(a.clOrdID) == 0 || len(a.clOrdID) > MaxClOrdID):
		return refuse(ordRejOther, codeInvalidField, "ClOrdID (11) %.60q: must be 1 to %d bytes", a.clOrdID, MaxClOrdID)
	}
	return nil
}

// orderQuoted handles a D with OrdType D, previously quoted.
func (s *session) orderQuoted(frame []byte) *reject {
	a := scanAcceptance(frame, false)
	return s.accept(&a)
}

// quoteResponse handles an AJ.
func (s *session) quoteResponse(frame []byte) *reject {
	a := scanAcceptance(frame, true)
	switch string(a.respType) {
	case respHit:
		return s.accept(&a)
	case respPass:
		s.pass(&a)
		return nil
	}
	s.rejectClaim(&a, refuse(ordRejUnsupported, codeUnsupported, "QuoteRespType (694) %.20q: must be 1 (hit) or 6 (pass)", a.respType))
	return nil
}

// accept makes a claim of a quote.
func (s *session) accept(a *acceptance) *reject {
	key := a.key()
	if a.checkID() == nil {
		if done, err := s.repeatedAs([]byte(key)); done {
			return err
		}
	}
	entry := &ref{clOrdID: key, msgType: 'D'}
	if a.response {
		entry.msgType = 'J'
	}
	take, no := s.decodeAcceptance(a, entry)
	if no == nil {
		no = s.submitDesk(take, entry)
	}
	if no != nil {
		s.rejectClaim(a, no)
	}
	return nil
}

// decodeAcceptance makes the desk's request, and fills in what the session keeps
// of it. What is wrong with the request is told even while the chain is
// unavailable; then nothing is reserved. The reason of a refusal is an
// OrdRejReason.
func (s *session) decodeAcceptance(a *acceptance, entry *ref) (*rfq.TakeClaim, *refusal) {
	if no := a.checkID(); no != nil {
		return nil, no
	}
	g := s.gateway
	if _, no := g.deskView(); no != nil {
		return nil, no
	}
	q, no := s.quoteNamed(a.quoteID)
	if no != nil {
		return nil, no
	}
	in := g.instruments.Get(q.Terms.Instrument)
	if in == nil {
		return nil, refuse(ordRejUnknown, codeUnknownSymbol, "the quote's instrument is not configured")
	}
	if no := a.check(q, in); no != nil {
		return nil, no
	}
	wallet, err := s.terms.Load().wallet()
	if err != nil || wallet == (market.Address{}) {
		return nil, refuse(ordRejBroker, codeMissingField, "wallet of the participant: there is nowhere to deliver to")
	}
	if g.doors.Settlement == nil || g.doors.Settlement.Ready() != nil {
		return nil, refuse(ordRejBroker, codeChainUnavailable, "the settlement chain is not reached, nothing has been reserved")
	}
	t := &q.Terms
	entry.instrument = in.ID
	// Who asks before the desk has answered is told what was asked for.
	entry.claim = &claim{session: s, clientClaim: clientClaim{ref: entry.clOrdID, digits: q.digits, status: statusPendingNew}}
	entry.claim.Quote, entry.claim.Terms, entry.claim.State = q.ID, *t, rfq.ClaimReserved
	return &rfq.TakeClaim{
		Ticket: t.Ticket, Tranche: t.Tranche, Fill: t.Fill, Rail: t.Rail, Way: rfq.Modular, Quote: q.ID,
		Wallet: wallet, Participant: s.participant.Number,
	}, nil
}

// quoteNamed returns a copy of a live quote of the session's.
func (s *session) quoteNamed(text []byte) (*clientQuote, *refusal) {
	if text == nil {
		return nil, refuse(ordRejOther, codeMissingField, "QuoteID (117)")
	}
	id, ok := market.ParseQuoteID(text)
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.quotes[id]
	if !ok || q == nil || q.over {
		reason := event.ReasonQuoteExpired
		return nil, &refusal{text: deskText(reason, 0), reason: refusalOf(reason).orderReason}
	}
	named := q.clientQuote
	return &named, nil
}

// check holds everything that the client says of the quote to the quote.
func (a *acceptance) check(q *clientQuote, in *market.Instrument) *refusal {
	t := &q.Terms
	size := string(market.AppendDecimal(nil, t.Base, int(q.digits)))
	price, offered := string(appendUSDPrice(nil, t.Price)), string(appendOfferID(nil, t))
	switch {
	case a.symbol == nil:
		return refuse(ordRejUnknown, codeMissingField, "Symbol (55)")
	case string(a.symbol) != in.Symbol:
		return differs("Symbol (55)", a.symbol, in.Symbol)
	case a.security != nil && string(a.security) != offered:
		return differs("SecurityID (48)", a.security, offered)
	case a.side == nil && !a.response:
		return refuse(ordRejOther, codeMissingField, "Side (54)")
	case a.side != nil && string(a.side) != "1":
		return refuse(ordRejUnsupported, codeUnsupported, "Side (54) %.20q: must be 1 (buy), the desk sells", a.side)
	case a.other != 0:
		return refuse(ordRejUnsupported, codeUnsupported, "tag %d: not with a quote", a.other)
	case a.tif != nil && string(a.tif) != "0" && string(a.tif) != "3" && string(a.tif) != "4":
		return refuse(ordRejUnsupported, codeUnsupported, "TimeInForce (59) %.20q: a quote is taken whole and at once", a.tif)
	case a.qty == nil && a.cash == nil && !a.response:
		return refuse(ordRejQuantity, codeMissingField, "OrderQty (38) or CashOrderQty (152)")
	case !isDecimal(a.qty, t.Base, int(q.digits)):
		return differs("OrderQty (38)", a.qty, size)
	case !isDecimal(a.cash, uint64(t.Fill.USD()), market.USDDecimals):
		return differs("CashOrderQty (152)", a.cash, t.Fill.String())
	case !isDecimal(a.price, uint64(t.Price), market.USDPriceDecimals):
		return differs("Price (44)", a.price, price)
	case !isDecimal(a.offer, uint64(t.Price), market.USDPriceDecimals):
		return differs("OfferPx (133)", a.offer, price)
	case a.rail != nil && string(a.rail) != t.Rail.String():
		return differs("Currency (15)", a.rail, t.Rail.String())
	}
	return nil
}

// isDecimal reports whether text, where it is there, means value.
func isDecimal(text []byte, value uint64, decimals int) bool {
	if text == nil {
		return true
	}
	got, err := market.ParseDecimal(text, decimals)
	return err == nil && got == value
}

// differs is a refusal of a field that is not as the quote has it.
func differs(field string, got []byte, want string) *refusal {
	return refuse(ordRejOther, codeInvalidField, "%s %.40q: the quote has %s", field, got, want)
}

// rejectClaim answers a request for a claim that is not passed on.
func (s *session) rejectClaim(a *acceptance, no *refusal) {
	s.gateway.rejects.Add(1)
	key := string(appendText(nil, string(a.clOrdID)))
	if a.response {
		key = quoteRespMark + string(appendText(nil, string(a.respID)))
	}
	execID := s.gateway.localID(nil)
	symbol := string(appendText(nil, string(a.symbol)))
	now := s.gateway.options.Now().UnixNano()
	s.out.scratch = appendClaimReject(s.out.scratch[:0], key, execID, symbol, no.reason, now, appendText(nil, no.text))
	s.send('8', s.out.scratch, false)
}

// pass ends a quote for its client: AI says so. The desk forgets it when its time
// has come; until then it counts as one of the session's.
func (s *session) pass(a *acceptance) {
	id, _ := market.ParseQuoteID(a.quoteID)
	now := s.gateway.options.Now().UnixNano()
	s.mu.Lock()
	q := s.quotes[id]
	var passed *clientQuote
	if q != nil {
		q.over = true
		copied := q.clientQuote
		passed = &copied
	}
	s.mu.Unlock()
	if passed != nil {
		if in := s.gateway.instruments.Get(passed.Terms.Instrument); in != nil {
			s.out.scratch = passed.appendStatus(s.out.scratch[:0], in.Symbol, quotePassed, now, "")
			s.sendType("AI", tagQuoteID, s.out.scratch, false)
			return
		}
	}
	s.gateway.rejects.Add(1)
	b := s.out.scratch[:0]
	if b = appendText(b, string(a.quoteID)); len(b) == 0 {
		b = append(b, "NONE"...)
	}
	if len(a.symbol) > 0 {
		b = appendText(append(b, "\x0155="...), string(a.symbol))
	}
	b = appendTime(append(b, "\x01297="+quoteNotFound+"\x0160="...), now)
	b = append(append(b, "\x0158="...), deskText(event.ReasonQuoteExpired, 0)...)
	s.out.scratch = b
	s.sendType("AI", tagQuoteID, b, false)
}
