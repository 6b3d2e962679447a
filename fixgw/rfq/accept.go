package rfq

import (
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/fixgw/reports"
	"blockdesk/fixgw/wire"
	"blockdesk/market"
)

// clientPrefix begins the client address of a participant, which no IP address begins with.
const clientPrefix rfq.ClientAddress = 0xffff << 48

// OrderQuoted handles a D with OrdType D, previously quoted.
func (s *Session) OrderQuoted(frame []byte) *wire.Reject {
	a := wire.ScanAcceptance(frame, false)
	return s.accept(&a)
}

// QuoteResponse handles an AJ.
func (s *Session) QuoteResponse(frame []byte) *wire.Reject {
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

// accept takes a quote: it requests a claim.
func (s *Session) accept(a *wire.Acceptance) *wire.Reject {
	key := a.Key()
	if a.CheckID() == nil {
		done, duplicate, reject := s.Repeated([]byte(key), a.Content())
		if done {
			return reject
		}
		if duplicate {
			s.rejectClaim(a, wire.RefuseDuplicate(wire.OrdRejDuplicate, "ClOrdID (11), QuoteRespID (693)", wire.WithoutPrefix([]byte(key))))
			return nil
		}
	}
	entry := &reports.Request{ClOrdID: key, MsgType: 'D', Content: a.Content()}
	if a.Response {
		entry.MsgType = 'J'
	}
	take, refusal := s.decodeAcceptance(a, entry)
	if refusal == nil {
		refusal = s.submit(take, entry)
	}
	if refusal != nil {
		s.rejectClaim(a, refusal)
	}
	return nil
}

// decodeAcceptance makes the desk's request, and completes the session's entry of it. An
// error in the request is reported even while the chain is unavailable; then nothing is
// reserved. The refusal's reason is an OrdRejReason.
func (s *Session) decodeAcceptance(a *wire.Acceptance, entry *reports.Request) (*rfq.TakeClaim, *wire.Refusal) {
	if refusal := a.CheckID(); refusal != nil {
		return nil, refusal
	}
	if _, refusal := s.entry.view(); refusal != nil {
		return nil, refusal
	}
	if a.QuoteID == nil {
		return nil, wire.Refuse(wire.OrdRejOther, wire.CodeMissingField, "QuoteID (117)")
	}
	id, parsed := market.ParseQuoteID(a.QuoteID)
	q, live := s.quoteNamed(id)
	if !parsed || !live {
		reason := event.ReasonQuoteExpired
		return nil, &wire.Refusal{Text: wire.DeskText(reason, 0), Reason: wire.DeskReasonOf(reason).OrderReason}
	}
	in := s.entry.Instruments.Get(q.Terms.Instrument)
	if in == nil {
		return nil, wire.Refuse(wire.OrdRejUnknown, wire.CodeUnknownSymbol, "the quote's instrument is not configured")
	}
	if refusal := a.Check(&q, in); refusal != nil {
		return nil, refusal
	}
	wallet, err := s.Terms().WalletAddress()
	if err != nil || wallet == (market.Address{}) {
		return nil, wire.Refuse(wire.OrdRejBroker, wire.CodeMissingField, "the participant has no wallet: ask the operator to configure one")
	}
	if !s.entry.settles() {
		return nil, wire.Refuse(wire.OrdRejBroker, wire.CodeChainUnavailable, "the settlement chain cannot be reached; nothing was reserved")
	}
	t := &q.Terms
	entry.Instrument = in.ID
	// A status request before the desk's answer shows the request.
	requested := &claim{owner: s, ClientClaim: wire.ClientClaim{Ref: entry.ClOrdID, Digits: q.Digits, Status: wire.StatusPendingNew}}
	requested.Quote, requested.Terms, requested.State = q.ID, *t, rfq.ClaimReserved
	entry.Subject = requested
	return &rfq.TakeClaim{
		Ticket: t.Ticket, Tranche: t.Tranche, Fill: t.Fill, Rail: t.Rail, Mode: rfq.Modular, Quote: q.ID,
		Wallet: wallet, Participant: s.Participant.Number,
		// The operator has configured the wallet for this participant.
		Client: clientPrefix | rfq.ClientAddress(s.Participant.Number), Proven: true,
	}, nil
}

// rejectClaim answers a request for a claim that is refused here.
func (s *Session) rejectClaim(a *wire.Acceptance, refusal *wire.Refusal) {
	s.CountReject()
	key := string(wire.AppendText(nil, string(a.ClOrdID)))
	if a.Response {
		key = wire.QuoteRespPrefix + string(wire.AppendText(nil, string(a.RespID)))
	}
	execID := s.entry.Requests.IDs.Append(nil)
	symbol := string(wire.AppendText(nil, string(a.Symbol)))
	now := s.entry.Now().UnixNano()
	s.Out.Scratch = wire.AppendClaimReject(s.Out.Scratch[:0], key, execID, symbol, refusal.Reason, now, wire.AppendText(nil, refusal.Text))
	s.SendReport("8", s.Out.Scratch)
}

// pass ends a quote for its client, and reports it by AI. The desk forgets the quote at
// its end; until then it counts as one of the session's.
func (s *Session) pass(a *wire.Acceptance) {
	id, _ := market.ParseQuoteID(a.QuoteID)
	now := s.entry.Now().UnixNano()
	if q, known := s.endQuote(id); known {
		if in := s.entry.Instruments.Get(q.Terms.Instrument); in != nil {
			s.Out.Scratch = q.AppendStatus(s.Out.Scratch[:0], in.Symbol, wire.QuotePassed, now, "")
			s.Send("AI", wire.TagQuoteID, s.Out.Scratch, false)
			return
		}
	}
	s.CountReject()
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
