package fixgw

import (
	"blockdesk/fixgw/wire"
	"blockdesk/market"
)

// checkTradeReport holds a report to what we take, and to the terms of the claim
// that it names: what is sent must agree with them. The error is the store's.
func (s *blotter) checkTradeReport(r *wire.PaymentReport) (*proofTask, *wire.PaymentRefusal, error) {
	t := &proofTask{verifier: s.gateway.payments, owner: s, id: string(r.ID)}
	if no := r.CheckForm(); no != nil {
		return nil, no, nil
	}
	if !wire.ParseBase58(t.proof.Signature[:], string(r.Signature)) || t.proof.Signature == ([64]byte{}) {
		return nil, wire.RefusePayment(wire.CodeInvalidField, "SecondaryTradeReportID (818) %.100q: must be a transaction's signature, 64 bytes in base58", r.Signature), nil
	}
	if s.gateway.instruments.Lookup(r.Symbol) == nil {
		return nil, &wire.PaymentRefusal{Reason: wire.TradeRejUnknownInstrument, Text: wire.CodeUnknownSymbol + ": Symbol (55): no instrument of that name"}, nil
	}
	id, ok := market.ParseClaimID(r.Claim)
	if !ok {
		return nil, wire.UnknownClaim(), nil
	}
	c, ok, err := s.participantClaim(id)
	switch {
	case err != nil:
		return nil, nil, err
	case !ok:
		return nil, wire.UnknownClaim(), nil
	}
	t.proof.Claim, t.proof.Ticket, t.proof.Tranche = id, c.Terms.Ticket, c.Terms.Tranche
	t.instrument = c.Terms.Instrument
	return t, r.CheckTerms(&c.ClientClaim, s.gateway.instruments), nil
}

// participantClaim returns a copy of a claim that a session of the participant's
// has taken.
func (s *blotter) participantClaim(id market.ClaimID) (claim, bool, error) {
	// Those of today first: the store has a new claim a moment later.
	for _, other := range s.gateway.blotters() {
		if other.Participant.Number == s.Participant.Number {
			if c, ok := other.liveClaim(id); ok {
				return c, true, nil
			}
		}
	}
	stored, err := s.gateway.storedClaim(id)
	if err != nil || stored == nil || stored.owner.Participant.Number != s.Participant.Number {
		return claim{}, false, err
	}
	return *stored, true, nil
}
