package fixgw

import (
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/fixgw/wire"
	"blockdesk/market"
)

// clientPrefix begins the client address of a participant, which no IP address begins with.
const clientPrefix rfq.ClientAddress = 0xffff << 48

// orderQuoted handles a D with OrdType D, previously quoted.
func (s *deskClient) orderQuoted(frame []byte) *wire.Reject {
	a := wire.ScanAcceptance(frame, false)
	return s.accept(&a)
}

// quoteResponse handles an AJ.
func (s *deskClient) quoteResponse(frame []byte) *wire.Reject {
	a := wire.ScanAcceptance(frame, true)
	switch string(a.RespType) {
	case wire.RespHit:
		return s.accept(&a)
	case wire.RespPass:
		s.pass(&a)
		return nil
	}
	s.rejectClaim(&a, wire.Refuse(wire.OrdRejUnsupported, wire.CodeUnsupported, "QuoteRespType (694) %.20q: must be 1 (hit) or 6 (pass)", a.RespType))
	return nil
}

// accept takes a quote: it asks for a claim.
func (s *deskClient) accept(a *wire.Acceptance) *wire.Reject {
	key := a.Key()
	if a.CheckID() == nil {
		done, duplicate, reject := s.repeated([]byte(key), a.Content())
		if done {
			return reject
		}
		if duplicate {
			s.rejectClaim(a, wire.RefuseDuplicate(wire.OrdRejDuplicate, "ClOrdID (11), QuoteRespID (693)", wire.WithoutPrefix([]byte(key))))
			return nil
		}
	}
	entry := &request{clOrdID: key, msgType: 'D', content: a.Content()}
	if a.Response {
		entry.msgType = 'J'
	}
	take, refusal := s.decodeAcceptance(a, entry)
	if refusal == nil {
		refusal = s.submitDesk(take, entry)
	}
	if refusal != nil {
		s.rejectClaim(a, refusal)
	}
	return nil
}

// decodeAcceptance makes the desk's request, and completes the session's entry of it. An
// error in the request is reported even while the chain is unavailable; then nothing is
// reserved. The refusal's reason is an OrdRejReason.
func (s *deskClient) decodeAcceptance(a *wire.Acceptance, entry *request) (*rfq.TakeClaim, *wire.Refusal) {
	if refusal := a.CheckID(); refusal != nil {
		return nil, refusal
	}
	g := s.gateway
	if _, refusal := g.deskView(); refusal != nil {
		return nil, refusal
	}
	q, refusal := s.quoteNamed(a.QuoteID)
	if refusal != nil {
		return nil, refusal
	}
	in := g.instruments.Get(q.Terms.Instrument)
	if in == nil {
		return nil, wire.Refuse(wire.OrdRejUnknown, wire.CodeUnknownSymbol, "the quote's instrument is not configured")
	}
	if refusal := a.Check(q, in); refusal != nil {
		return nil, refusal
	}
	wallet, err := s.Terms().WalletAddress()
	if err != nil || wallet == (market.Address{}) {
		return nil, wire.Refuse(wire.OrdRejBroker, wire.CodeMissingField, "the participant has no wallet: ask the operator to configure one")
	}
	if !g.settles() {
		return nil, wire.Refuse(wire.OrdRejBroker, wire.CodeChainUnavailable, "the settlement chain cannot be reached; nothing was reserved")
	}
	t := &q.Terms
	entry.instrument = in.ID
	// A status request before the desk's answer shows the request.
	entry.claim = &claim{owner: s, ClientClaim: wire.ClientClaim{Ref: entry.clOrdID, Digits: q.Digits, Status: wire.StatusPendingNew}}
	entry.claim.Quote, entry.claim.Terms, entry.claim.State = q.ID, *t, rfq.ClaimReserved
	return &rfq.TakeClaim{
		Ticket: t.Ticket, Tranche: t.Tranche, Fill: t.Fill, Rail: t.Rail, Mode: rfq.Modular, Quote: q.ID,
		Wallet: wallet, Participant: s.Participant.Number,
		// The operator has said whose wallet it is.
		Client: clientPrefix | rfq.ClientAddress(s.Participant.Number), Proven: true,
	}, nil
}

// quoteNamed returns a copy of a live quote of the session.
func (s *deskClient) quoteNamed(text []byte) (*wire.ClientQuote, *wire.Refusal) {
	if text == nil {
		return nil, wire.Refuse(wire.OrdRejOther, wire.CodeMissingField, "QuoteID (117)")
	}
	id, ok := market.ParseQuoteID(text)
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.quotes[id]
	if !ok || q == nil || q.over {
		reason := event.ReasonQuoteExpired
		return nil, &wire.Refusal{Text: wire.DeskText(reason, 0), Reason: wire.DeskReasonOf(reason).OrderReason}
	}
	named := q.ClientQuote
	return &named, nil
}

// rejectClaim answers a request for a claim that is refused here.
func (s *deskClient) rejectClaim(a *wire.Acceptance, refusal *wire.Refusal) {
	s.gateway.Rejects.Add(1)
	key := string(wire.AppendText(nil, string(a.ClOrdID)))
	if a.Response {
		key = wire.QuoteRespPrefix + string(wire.AppendText(nil, string(a.RespID)))
	}
	execID := s.gateway.ids.Append(nil)
	symbol := string(wire.AppendText(nil, string(a.Symbol)))
	now := s.gateway.options.Now().UnixNano()
	s.Out.Scratch = wire.AppendClaimReject(s.Out.Scratch[:0], key, execID, symbol, refusal.Reason, now, wire.AppendText(nil, refusal.Text))
	s.send('8', s.Out.Scratch, false)
}

// pass ends a quote for its client, and reports it by AI. The desk forgets the quote at
// its end; until then it counts as one of the session's.
func (s *deskClient) pass(a *wire.Acceptance) {
	id, _ := market.ParseQuoteID(a.QuoteID)
	now := s.gateway.options.Now().UnixNano()
	s.mu.Lock()
	q := s.quotes[id]
	var passed *wire.ClientQuote
	if q != nil {
		q.over = true
		copied := q.ClientQuote
		passed = &copied
	}
	s.mu.Unlock()
	if passed != nil {
		if in := s.gateway.instruments.Get(passed.Terms.Instrument); in != nil {
			s.Out.Scratch = passed.AppendStatus(s.Out.Scratch[:0], in.Symbol, wire.QuotePassed, now, "")
			s.Send("AI", wire.TagQuoteID, s.Out.Scratch, false)
			return
		}
	}
	s.gateway.Rejects.Add(1)
	b := s.Out.Scratch[:0]
	if b = wire.AppendText(b, string(a.QuoteID)); len(b) == 0 {
		b = append(b, "NONE"...)
	}
	if len(a.Symbol) > 0 {
		b = wire.AppendText(append(b, "\x0155="...), string(a.Symbol))
	}
	b = wire.AppendTime(append(b, "\x01297="+wire.QuoteNotFound+"\x0160="...), now)
	b = append(append(b, "\x0158="...), wire.DeskText(event.ReasonQuoteExpired, 0)...)
	s.Out.Scratch = b
	s.Send("AI", wire.TagQuoteID, b, false)
}
