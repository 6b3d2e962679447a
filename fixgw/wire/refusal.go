package wire

import (
	"fmt"
	"strconv"

	"blockdesk/engine/event"
	"blockdesk/market"
)

// Refusal is why the gateway does not pass a request on.
type Refusal struct {
	Text string // begins with the code
	// Reason is a value of the field that the answer has for it: OrdRejReason (103), of
	// which CxlRejReason (102) is made, QuoteRequestRejectReason (658),
	// TradeReportRejectReason (751), or the character of an MDReqRejReason (281), where
	// 0 = none.
	Reason int
}

// Refuse returns a refusal whose text is the code and what format says.
func Refuse(reason int, code, format string, args ...any) *Refusal {
	return &Refusal{Text: code + ": " + fmt.Sprintf(format, args...), Reason: reason}
}

// Codes at the front of Text (58), beside the words of event.Reason.
const (
	CodeUnknownSymbol = "UNKNOWN_SYMBOL"
	CodeUnknownOrder  = "UNKNOWN_ORDER"
	// There is no subscription under that id.
	CodeUnknownSubscription = "UNKNOWN_SUBSCRIPTION"
	CodeTooLate             = "TOO_LATE"
	CodeRateLimited         = "RATE_LIMITED"
	CodeOverloaded          = "OVERLOADED"
	CodeReadOnly            = "READ_ONLY"
	CodeUnsupported         = "UNSUPPORTED"
	// The id names an earlier request with other content.
	CodeDuplicate = "DUPLICATE_CLORDID"
)

// Values of OrdRejReason (103) and CxlRejReason (102) that we use.
const (
	OrdRejBroker       = 0
	OrdRejUnknown      = 1
	ordRejClosed       = 2
	ordRejExceedsLimit = 3
	OrdRejUnknownOrder = 5
	OrdRejDuplicate    = 6
	OrdRejUnsupported  = 11
	// OrdRejUnknownAccount is 15, unknown account.
	OrdRejUnknownAccount = 15
	ordRejQuantity       = 13
	OrdRejOther          = 99

	CxlRejTooLate      = 0
	CxlRejUnknownOrder = 1
	CxlRejDuplicate    = 6
	CxlRejOther        = 99
)

// Codes at the front of Text (58) that only the desk's messages have.
const (
	CodeUnknownTicket    = "UNKNOWN_TICKET"
	codeUnknownClaim     = "UNKNOWN_CLAIM"
	CodeCapacity         = "CAPACITY_EXHAUSTED"
	CodeRefused          = "REFUS_DVP"
	CodeClaimExpired     = "CLAIM_EXPIRED"
	CodeChainUnavailable = "CHAIN_UNAVAILABLE"
)

// Values of QuoteRequestRejectReason (658).
const (
	QuoteRejUnknownSymbol = 1
	quoteRejClosed        = 2
	QuoteRejExceedsLimit  = 3
	quoteRejTooLate       = 4
	quoteRejPrice         = 5
	quoteRejNotAuthorized = 6
	QuoteRejNoMarket      = 8
	quoteRejNoInventory   = 9
	QuoteRejOther         = 99
)

// ordRejTooLate is a value of OrdRejReason (103) that only claims have.
const ordRejTooLate = 4

// NoSymbol is the Symbol (55) of an answer to a request that came before a crash.
const NoSymbol = "[N/A]"

// DeskReason is one of the desk's reasons on the wire: REST has the same codes, and the
// reason's own word follows.
type DeskReason struct {
	code        string
	QuoteReason int // QuoteRequestRejectReason (658)
	OrderReason int // OrdRejReason (103)
	text        string
}

// DeskReasonOf returns the form of a reason on the wire.
func DeskReasonOf(reason event.Reason) DeskReason {
	switch reason {
	case event.ReasonKilled:
		return DeskReason{CodeRefused, quoteRejNotAuthorized, OrdRejBroker, "the participant is stopped"}
	case event.ReasonUnknownParticipant:
		return DeskReason{CodeRefused, quoteRejNotAuthorized, OrdRejBroker, "unknown participant: the engine has no such number"}
	case event.ReasonUnknownTicket:
		return DeskReason{CodeUnknownTicket, QuoteRejUnknownSymbol, OrdRejUnknown, "no such ticket"}
	case event.ReasonUnknownTranche:
		return DeskReason{CodeUnknownTicket, QuoteRejUnknownSymbol, OrdRejUnknown, "the ticket has no such tranche"}
	case event.ReasonUnknownPair:
		return DeskReason{CodeRefused, QuoteRejNoMarket, OrdRejUnknown, "the desk does not sell this pair"}
	case event.ReasonTicketWithdrawn:
		return DeskReason{CodeCapacity, quoteRejTooLate, ordRejTooLate, "the ticket has been withdrawn"}
	case event.ReasonTicketExpired:
		return DeskReason{CodeCapacity, quoteRejTooLate, ordRejTooLate, "the ticket has expired"}
	case event.ReasonCapacityExhausted:
		return DeskReason{CodeCapacity, QuoteRejExceedsLimit, ordRejExceedsLimit, "the tranche does not have enough left"}
	case event.ReasonInventory:
		return DeskReason{CodeRefused, quoteRejNoInventory, ordRejExceedsLimit, "the desk does not hold enough of the base asset now"}
	case event.ReasonLocked:
		return DeskReason{CodeRefused, quoteRejClosed, ordRejClosed, "the desk is locked for this pair or rail"}
	case event.ReasonPriceCorridor:
		return DeskReason{CodeRefused, quoteRejPrice, OrdRejOther, "the reference price has moved too far"}
	case event.ReasonPriceStale:
		return DeskReason{CodeRefused, quoteRejPrice, OrdRejOther, "the reference price is too old"}
	case event.ReasonPriceUnavailable:
		return DeskReason{CodeRefused, quoteRejPrice, OrdRejOther, "there is no price for this now"}
	case event.ReasonRailNotAccepted:
		return DeskReason{CodeInvalidField, QuoteRejOther, OrdRejUnsupported, "Currency (15): the ticket does not accept this rail"}
	case event.ReasonQuoteExpired:
		return DeskReason{CodeClaimExpired, quoteRejTooLate, ordRejTooLate, "QuoteID (117): unknown quote: it has expired, was used, or never existed"}
	case event.ReasonQuoteMismatch:
		return DeskReason{CodeInvalidField, QuoteRejOther, OrdRejUnsupported, "QuoteID (117): the quote is for another ticket, tranche, size or rail"}
	case event.ReasonWalletClaims:
		return DeskReason{CodeRefused, QuoteRejExceedsLimit, ordRejExceedsLimit, "the wallet has the maximum number of reserved claims"}
	case event.ReasonUnprovenLimit:
		return DeskReason{CodeRefused, QuoteRejExceedsLimit, ordRejExceedsLimit, "unproven claims of the participant hold the most that they may"}
	case event.ReasonUnprovenShare:
		return DeskReason{CodeRefused, QuoteRejExceedsLimit, ordRejExceedsLimit, "unproven claims hold their share of the tranche"}
	case event.ReasonDeskFull:
		return DeskReason{CodeOverloaded, QuoteRejExceedsLimit, ordRejExceedsLimit, "the desk is at one of its limits, try again"}
	case event.ReasonInvalidCommand:
		return DeskReason{CodeInvalidField, QuoteRejOther, OrdRejOther, "the request has a value that the desk does not accept"}
	}
	return DeskReason{CodeRefused, QuoteRejOther, OrdRejOther, "the desk refused the request"}
}

// DeskText returns the Text (58) of a refusal: code, reason, a sentence, and the limit
// that was reached.
func DeskText(reason event.Reason, limit int64) string {
	r := DeskReasonOf(reason)
	text := r.code + ": " + reason.String() + ": " + r.text
	switch reason {
	case event.ReasonCapacityExhausted, event.ReasonUnprovenLimit, event.ReasonUnprovenShare:
		text += ": " + string(market.AppendDecimal(nil, uint64(limit), market.USDDecimals)) + " USD"
	case event.ReasonWalletClaims, event.ReasonDeskFull:
		text += ": " + strconv.FormatInt(limit, 10)
	}
	return text
}
