package fixgw

import (
	"time"

	"blockdesk/engine/event"
	"blockdesk/fixgw/wire"
	"blockdesk/market"
)

// claimNamed returns a copy of the session's claim by its id, as in OrderID (37), or by
// the ClOrdID that it was taken under.
func (s *deskClient) claimNamed(orderID, clOrdID []byte) (c claim, ok bool, err error) {
	if id, isClaim := market.ParseClaimID(orderID); isClaim {
		if c, ok, err = s.claimOf(id); ok || err != nil {
			return c, ok, err
		}
	}
	return s.claimUnder(string(clOrdID))
}

// reportClaimStatus answers an H: the claim as of the last durable event.
func (s *deskClient) reportClaimStatus(r *wire.OrderRequest, c *claim, now time.Time, err error) *wire.Reject {
	if err != nil {
		return s.storeFailed(r.ClOrdID, err)
	}
	in := s.gateway.instruments.Get(c.Terms.Instrument)
	if in == nil {
		return wire.BusinessReject(wire.RejOther, r.ClOrdID, wire.CodeUnknownSymbol+": the claim's instrument is not configured")
	}
	s.Out.Scratch = s.appendClaimStatus(s.Out.Scratch[:0], c, in.Symbol, now.UnixNano())
	s.send('8', s.Out.Scratch, false)
	return nil
}

// appendClaimStatus appends the body of a status report (150=I) of a claim.
func (s *deskClient) appendClaimStatus(dst []byte, c *claim, symbol string, at int64) []byte {
	report := wire.ClaimReport{
		Claim: &c.ClientClaim, Symbol: symbol, ExecID: s.gateway.ids.Append(nil), ExecType: wire.ExecStatus, At: at,
		Text: wire.ClaimText(nil, &c.ClientClaim, false, event.ReasonNone),
	}
	dst = report.AppendBody(dst)
	if s.Custom.Load() {
		if view, refusal := s.gateway.deskView(); refusal == nil {
			dst = wire.AppendCustomTerms(dst, &c.Terms, view.Policy.USDCMint)
		}
		dst = wire.AppendCustomText(dst, wire.TagClaimState, c.State.Word())
	}
	return dst
}

// rejectClaimChange refuses an F or a G: a claim ends by its payment or by its deadline.
func (s *deskClient) rejectClaimChange(r *wire.OrderRequest, c *claim, amend bool, err error) *wire.Reject {
	if err != nil {
		return s.storeFailed(r.ClOrdID, err)
	}
	refusal := wire.Refuse(wire.CxlRejOther, wire.CodeUnsupported, "a claim ends by its payment or by its deadline")
	if c.Over() {
		refusal = wire.Refuse(wire.CxlRejTooLate, wire.CodeTooLate, "the claim has ended")
	}
	return s.rejectChange(r, &target{claim: c.ID, status: c.Status}, amend, refusal)
}
