package fixgw

import (
	"strconv"
	"time"

	"blockdesk/engine/event"
	"blockdesk/market"
)

// What a session asks about the claims that it has.

// claimNamed returns a copy of the session's claim by its id, as OrderID (37) has
// it, or by the ClOrdID that it was taken under.
func (s *session) claimNamed(orderID, clOrdID []byte) (c claim, ok bool, err error) {
	if id, isClaim := market.ParseClaimID(orderID); isClaim {
		if c, ok, err = s.claimOf(id); ok || err != nil {
			return c, ok, err
		}
	}
	return s.claimUnder(string(clOrdID))
}

// claimShown answers an H: the claim as the last durable event has left it.
func (s *session) claimShown(r *request, c *claim, now time.Time, err error) *reject {
	if err != nil {
		s.gateway.fail(err)
		return businessReject(rejNotAvailable, r.clOrdID, s.gateway.unserved("the store has failed"))
	}
	in := s.gateway.instruments.Get(c.Terms.Instrument)
	if in == nil {
		return businessReject(rejOther, r.clOrdID, codeUnknownSymbol+": the claim's instrument is not configured")
	}
	report := claimReport{
		claim: &c.clientClaim, symbol: in.Symbol, execID: s.gateway.localID(nil), execType: execStatus, at: now.UnixNano(),
		text: claimText(nil, &c.clientClaim, false, event.ReasonNone),
	}
	body := report.appendBody(s.out.scratch[:0])
	if s.custom.Load() {
		if view, no := s.gateway.deskView(); no == nil {
			body = appendCustomTerms(body, &c.Terms, view.Policy.USDCMint)
		}
		body = appendCustomText(body, tagClaimState, claimStateWord(c.State))
	}
	s.out.scratch = body
	s.send('8', body, false)
	return nil
}

// keepClaim refuses an F or a G: a claim ends by its payment or by its deadline.
func (s *session) keepClaim(r *request, c *claim, amend bool, err error) *reject {
	if err != nil {
		s.gateway.fail(err)
		return businessReject(rejNotAvailable, r.clOrdID, s.gateway.unserved("the store has failed"))
	}
	s.gateway.rejects.Add(1)
	reason, text := cxlRejOther, codeUnsupported+": a claim ends by its payment or by its deadline"
	if c.over() {
		reason, text = cxlRejTooLate, codeTooLate+": the claim is over"
	}
	to := byte('1')
	if amend {
		to = '2'
	}
	b := market.AppendClaimID(s.out.scratch[:0], c.ID)
	b = appendText(append(b, "\x0111="...), string(r.clOrdID))
	b = append(b, "\x0141="...)
	if len(r.origClOrdID) > 0 {
		b = appendText(b, string(r.origClOrdID))
	} else {
		b = appendText(b, string(r.clOrdID))
	}
	b = append(append(b, "\x0139="...), c.status)
	b = strconv.AppendInt(append(append(append(b, "\x01434="...), to), "\x01102="...), int64(reason), 10)
	b = appendTime(append(b, "\x0160="...), s.gateway.options.Now().UnixNano())
	b = append(append(b, "\x0158="...), text...)
	s.out.scratch = b
	s.send('9', b, false)
	return nil
}
