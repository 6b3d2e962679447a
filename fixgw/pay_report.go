package fixgw

import (
	"fmt"

	"blockdesk/market"
)

// tradeRefusal is why a TradeCaptureReport is not accepted.
type tradeRefusal struct {
	reason int    // TradeReportRejectReason (751)
	text   string // begins with the code
}

func refuseTrade(code, format string, args ...any) *tradeRefusal {
	return &tradeRefusal{tradeRejOther, code + ": " + fmt.Sprintf(format, args...)}
}

// unknownClaim is the one answer to a claim that there is not, and to one that is
// another participant's.
func unknownClaim() *tradeRefusal {
	return &tradeRefusal{tradeRejNotAuthorized, codeUnknownClaim + ": TradeReportRefID (572): no claim of yours"}
}

// tradeReport holds the raw values of an AE that the dictionary has let through;
// nil = absent. They alias the message.
type tradeReport struct {
	id, claim, signature            []byte // 571 572 818
	symbol, qty, price              []byte // 55 32 31
	transType, reportType, execType []byte // 487 856 150
	sides, side, orderID            []byte // 552 54 37
}

// scanTradeReport reads the fields of frame. Of a field that is there more than
// once, in several sides, the first counts; checkTradeReport wants one side.
func scanTradeReport(frame []byte) (r tradeReport) {
	eachField(frame, func(tag int, value []byte) {
		to := r.field(tag)
		if to != nil && *to == nil {
			*to = value
		}
	})
	return r
}

func (r *tradeReport) field(tag int) *[]byte {
	switch tag {
	case 571:
		return &r.id
	case 572:
		return &r.claim
	case 818:
		return &r.signature
	case 55:
		return &r.symbol
	case 32:
		return &r.qty
	case 31:
		return &r.price
	case 487:
		return &r.transType
	case 856:
		return &r.reportType
	case 150:
		return &r.execType
	case 552:
		return &r.sides
	case 54:
		return &r.side
	case 37:
		return &r.orderID
	}
	return nil
}

// checkTradeReport holds a report to what we take, and to the terms of the claim
// that it names: what is sent must agree with them. The error is the store's.
func (s *session) checkTradeReport(r *tradeReport) (*proofTask, *tradeRefusal, error) {
	t := &proofTask{prover: s.gateway.prover, session: s, id: string(r.id)}
	if no := r.checkForm(); no != nil {
		return nil, no, nil
	}
	if !parseBase58(t.proof.Signature[:], string(r.signature)) || t.proof.Signature == ([64]byte{}) {
		return nil, refuseTrade(codeInvalidField, "SecondaryTradeReportID (818) %.100q: must be a transaction's signature, 64 bytes in base58", r.signature), nil
	}
	if s.gateway.instruments.Lookup(r.symbol) == nil {
		return nil, &tradeRefusal{tradeRejUnknownInstrument, codeUnknownSymbol + ": Symbol (55): no instrument of that name"}, nil
	}
	id, ok := market.ParseClaimID(r.claim)
	if !ok {
		return nil, unknownClaim(), nil
	}
	c, ok, err := s.participantClaim(id)
	switch {
	case err != nil:
		return nil, nil, err
	case !ok:
		return nil, unknownClaim(), nil
	}
	t.proof.Claim, t.proof.Ticket, t.proof.Tranche = id, c.Terms.Ticket, c.Terms.Tranche
	t.instrument = c.Terms.Instrument
	return t, r.checkTerms(&c.clientClaim, s.gateway.instruments), nil
}

// checkForm checks what every report has to have.
func (r *tradeReport) checkForm() *tradeRefusal {
	switch {
	case len(r.id) > MaxTradeReportID || !printable(r.id):
		return refuseTrade(codeInvalidField, "TradeReportID (571): must be 1 to %d printable ASCII characters", MaxTradeReportID)
	case r.claim == nil:
		return refuseTrade(codeMissingField, "TradeReportRefID (572): the claim's id")
	case r.signature == nil:
		return refuseTrade(codeMissingField, "SecondaryTradeReportID (818): the payment's signature")
	case r.symbol == nil:
		return refuseTrade(codeMissingField, "Symbol (55)")
	case r.transType != nil && string(r.transType) != "0":
		return refuseTrade(codeUnsupported, "TradeReportTransType (487) %.20q: only 0 (new)", r.transType)
	case r.reportType != nil && string(r.reportType) != "0":
		return refuseTrade(codeUnsupported, "TradeReportType (856) %.20q: only 0 (submit)", r.reportType)
	case r.execType != nil && string(r.execType) != "F":
		return refuseTrade(codeUnsupported, "ExecType (150) %.20q: only F (trade)", r.execType)
	case string(r.sides) != "1":
		return refuseTrade(codeInvalidField, "NoSides (552) %.20q: must be 1", r.sides)
	}
	return nil
}

func printable(text []byte) bool {
	for _, c := range text {
		if c < ' ' || c > '~' {
			return false
		}
	}
	return true
}

// participantClaim returns a copy of a claim that a session of the participant's
// has taken.
func (s *session) participantClaim(id market.ClaimID) (claim, bool, error) {
	// Those of today first: the store has a new claim a moment later.
	for _, other := range s.gateway.roster.Load().byNumber {
		if other != nil && other.participant.Number == s.participant.Number {
			if c, ok := other.liveClaim(id); ok {
				return c, true, nil
			}
		}
	}
	stored, err := s.gateway.storedClaim(id)
	if err != nil || stored == nil || stored.session.participant.Number != s.participant.Number {
		return claim{}, false, err
	}
	return *stored, true, nil
}

// termsMismatch is REST's word for a proof that names the right claim and tells
// something wrong of it.
const termsMismatch = "terms_mismatch"

// checkTerms holds what the report tells of the claim to the claim.
func (r *tradeReport) checkTerms(c *clientClaim, set *market.Instruments) *tradeRefusal {
	qty, badQty := market.ParseDecimal(r.qty, int(c.digits))
	price, badPrice := market.ParseDecimal(r.price, market.USDPriceDecimals)
	in := set.Get(c.Terms.Instrument)
	var field string
	switch {
	case in == nil || string(r.symbol) != in.Symbol:
		field = "Symbol (55)"
	case badQty != nil || qty != c.Terms.Base:
		field = "LastQty (32)"
	case badPrice != nil || market.USDPrice(price) != c.Terms.Price:
		field = "LastPx (31)"
	case string(r.side) != "1":
		field = "Side (54)"
	case string(r.orderID) != string(r.claim):
		field = "OrderID (37)"
	default:
		return nil
	}
	return refuseTrade(codePaymentMismatch, termsMismatch+": %s is not the claim's", field)
}
