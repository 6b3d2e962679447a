package fixgw

import (
	"strconv"

	"blockdesk/engine/event"
	"blockdesk/market"
)

// Codes of contract C at the front of Text (58) that only the desk's messages
// have.
const (
	codeUnknownTicket    = "UNKNOWN_TICKET"
	codeUnknownClaim     = "UNKNOWN_CLAIM"
	codeCapacity         = "CAPACITY_EXHAUSTED"
	codeRefused          = "REFUS_DVP"
	codeClaimExpired     = "CLAIM_EXPIRED"
	codeChainUnavailable = "CHAIN_UNAVAILABLE"
)

// Values of QuoteRequestRejectReason (658).
const (
	quoteRejUnknownSymbol = 1
	quoteRejClosed        = 2
	quoteRejExceedsLimit  = 3
	quoteRejTooLate       = 4
	quoteRejPrice         = 5
	quoteRejNotAuthorized = 6
	quoteRejNoMarket      = 8
	quoteRejNoInventory   = 9
	quoteRejOther         = 99
)

// Values of OrdRejReason (103) that only claims have.
const ordRejTooLate = 4

// noSymbol is the Symbol (55) of an answer that nobody knows the instrument of:
// its request came before a crash.
const noSymbol = "[N/A]"

// deskRefusal is what one of the desk's reasons is on the wire: the codes are
// those of REST, the machine word is the reason's own.
type deskRefusal struct {
	code        string
	quoteReason int // QuoteRequestRejectReason (658)
	orderReason int // OrdRejReason (103)
	text        string
}

// refusalOf returns what a reason is on the wire.
func refusalOf(reason event.Reason) deskRefusal {
	switch reason {
	case event.ReasonKilled:
		return deskRefusal{codeRefused, quoteRejNotAuthorized, ordRejBroker, "the participant is stopped"}
	case event.ReasonUnknownParticipant:
		return deskRefusal{codeRefused, quoteRejNotAuthorized, ordRejBroker, "the engine does not know the participant"}
	case event.ReasonUnknownTicket:
		return deskRefusal{codeUnknownTicket, quoteRejUnknownSymbol, ordRejUnknown, "no such ticket"}
	case event.ReasonUnknownTranche:
		return deskRefusal{codeUnknownTicket, quoteRejUnknownSymbol, ordRejUnknown, "the ticket has no such tranche"}
	case event.ReasonUnknownPair:
		return deskRefusal{codeRefused, quoteRejNoMarket, ordRejUnknown, "the desk does not sell this pair"}
	case event.ReasonTicketWithdrawn:
		return deskRefusal{codeCapacity, quoteRejTooLate, ordRejTooLate, "the ticket has been withdrawn"}
	case event.ReasonTicketExpired:
		return deskRefusal{codeCapacity, quoteRejTooLate, ordRejTooLate, "the ticket has expired"}
	case event.ReasonCapacityExhausted:
		return deskRefusal{codeCapacity, quoteRejExceedsLimit, ordRejExceedsLimit, "the tranche has not as much left"}
	case event.ReasonInventory:
		return deskRefusal{codeRefused, quoteRejNoInventory, ordRejExceedsLimit, "the desk does not hold as much of the base asset now"}
	case event.ReasonLocked:
		return deskRefusal{codeRefused, quoteRejClosed, ordRejClosed, "the desk is locked for this pair or rail"}
	case event.ReasonPriceCorridor:
		return deskRefusal{codeRefused, quoteRejPrice, ordRejOther, "the reference price lies outside the corridor around its anchor"}
	case event.ReasonPriceStale:
		return deskRefusal{codeRefused, quoteRejPrice, ordRejOther, "the price that this would be sold at is too old"}
	case event.ReasonPriceUnavailable:
		return deskRefusal{codeRefused, quoteRejPrice, ordRejOther, "there is no price to sell this at now"}
	case event.ReasonRailNotAccepted:
		return deskRefusal{codeInvalidField, quoteRejOther, ordRejUnsupported, "Currency (15): the ticket does not take this rail"}
	case event.ReasonQuoteExpired:
		return deskRefusal{codeClaimExpired, quoteRejTooLate, ordRejTooLate, "QuoteID (117): it has expired, it was used, or it was never given"}
	case event.ReasonQuoteMismatch:
		return deskRefusal{codeInvalidField, quoteRejOther, ordRejUnsupported, "QuoteID (117): given for something else"}
	case event.ReasonWalletClaims:
		return deskRefusal{codeRefused, quoteRejExceedsLimit, ordRejExceedsLimit, "the wallet has as many claims reserved as it may"}
	case event.ReasonDeskFull:
		return deskRefusal{codeOverloaded, quoteRejExceedsLimit, ordRejExceedsLimit, "the desk is at one of its limits, try again"}
	case event.ReasonInvalidCommand:
		return deskRefusal{codeInvalidField, quoteRejOther, ordRejOther, "a value that the desk does not take"}
	}
	return deskRefusal{codeRefused, quoteRejOther, ordRejOther, "the desk has refused it"}
}

// deskText is the Text (58) of a refusal: its code, its word, a sentence, and the
// number that it is about.
func deskText(reason event.Reason, limit int64) string {
	r := refusalOf(reason)
	text := r.code + ": " + reason.String() + ": " + r.text
	switch reason {
	case event.ReasonCapacityExhausted:
		text += ": " + string(market.AppendDecimal(nil, uint64(limit), market.USDDecimals)) + " USD"
	case event.ReasonWalletClaims, event.ReasonDeskFull:
		text += ": " + strconv.FormatInt(limit, 10)
	}
	return text
}

// symbolAsked returns the symbol of a request that has no answer yet.
func (g *Gateway) symbolAsked(s *session, key string) string {
	s.mu.Lock()
	r := s.refs[key]
	s.mu.Unlock()
	if r == nil || r.answer != 0 {
		return noSymbol
	}
	if in := g.instruments.Get(r.instrument); in != nil {
		return in.Symbol
	}
	return noSymbol
}

// appendQuoteReject appends a QuoteRequestReject (35=AG) without "131=" and
// without the last SOH.
func appendQuoteReject(dst []byte, id, symbol string, reason int, text []byte) []byte {
	dst = strconv.AppendInt(append(append(dst, id...), "\x01658="...), int64(reason), 10)
	dst = append(append(dst, "\x01146=1\x0155="...), symbol...)
	return append(append(dst, "\x0158="...), text...)
}

// appendClaimReject appends the ExecutionReport (35=8) of a claim that is not
// made, without "37=" and without the last SOH.
func appendClaimReject(dst []byte, key string, execID []byte, symbol string, reason int, at int64, text []byte) []byte {
	dst = appendRef(append(dst, "NONE"...), key)
	dst = append(append(dst, "\x0117="...), execID...)
	dst = append(dst, "\x01150=8\x0139=8"...)
	if symbol != "" { // FIX has no empty fields
		dst = append(append(dst, "\x0155="...), symbol...)
	}
	dst = appendTime(append(dst, "\x0154=1\x0140=D\x01151=0\x0114=0\x016=0\x0160="...), at)
	dst = append(append(dst, "\x0158="...), text...)
	return strconv.AppendInt(append(dst, "\x01103="...), int64(reason), 10)
}
