package rfq

import (
	"blockdesk/engine/event"
	"blockdesk/fixgw/wire"
)

// ClaimStatus answers an H: the claim as of the last durable event. It implements
// orders.Claims.
func (s *Session) ClaimStatus(r *wire.OrderRequest) (handled bool, reject *wire.Reject) {
	c, ok, err := s.claimNamed(r.OrderID, r.ClOrdID)
	switch {
	case err != nil:
		return true, s.StoreFailed(r.ClOrdID, err)
	case !ok:
		return false, nil
	}
	in := s.entry.Instruments.Get(c.Terms.Instrument)
	if in == nil {
		return true, wire.BusinessReject(wire.RejOther, r.ClOrdID, wire.CodeUnknownSymbol+": the claim's instrument is not configured")
	}
	s.Out.Scratch = s.AppendStatus(s.Out.Scratch[:0], &c.ClientClaim, in.Symbol, s.entry.Now().UnixNano())
	s.SendReport("8", s.Out.Scratch)
	return true, nil
}

// AppendStatus appends the body of a status report (150=I) of a claim.
func (s *Session) AppendStatus(dst []byte, c *wire.ClientClaim, symbol string, at int64) []byte {
	report := wire.ClaimReport{
		Claim: c, Symbol: symbol, ExecID: s.entry.Requests.IDs.Append(nil), ExecType: wire.ExecStatus, At: at,
		Text: wire.ClaimText(nil, c, false, event.ReasonNone),
	}
	dst = report.AppendBody(dst)
	if s.Custom.Load() {
		if view, refusal := s.entry.view(); refusal == nil {
			dst = wire.AppendCustomTerms(dst, &c.Terms, view.Policy.USDCMint)
		}
		dst = wire.AppendCustomText(dst, wire.TagClaimState, c.State.Word())
	}
	return dst
}

// ChangeClaim refuses an F or a G: a claim ends by its payment or by its deadline. It
// implements orders.Claims.
func (s *Session) ChangeClaim(r *wire.OrderRequest, amend bool) (handled bool, reject *wire.Reject) {
	c, ok, err := s.claimNamed(r.OrderID, r.OrigClOrdID)
	switch {
	case err != nil:
		return true, s.StoreFailed(r.ClOrdID, err)
	case !ok:
		return false, nil
	}
	refusal := wire.Refuse(wire.CxlRejOther, wire.CodeUnsupported, "a claim ends by its payment or by its deadline")
	if c.Over() {
		refusal = wire.Refuse(wire.CxlRejTooLate, wire.CodeTooLate, "the claim has ended")
	}
	s.RejectChange(r, wire.CancelReject{ClaimID: c.ID, Status: c.Status}, amend, refusal)
	return true, nil
}
