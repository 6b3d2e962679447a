package terms

import (
	"errors"
	"maps"
	"slices"

	"blockdesk/desk"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/httpgw/wire"
)

// Seconds of Retry-After.
const (
	retryBusyS     = 1  // a queue is full
	retryReadOnlyS = 10 // somebody must make room on the disk
)

// refused is what one of the desk's reasons is on the wire. Its machine word is
// the reason's own.
type wireRefusal struct {
	status int
	code   string
	field  string // of the request, where one is to blame
	text   string
	retryS int
}

// refusals has every reason that the desk may give (a test holds that). Those
// that only an operator's or the service's own requests meet are there for
// package-mates that answer them.
var refusals = map[event.Reason]wireRefusal{
	event.ReasonUnknownTicket: {
		status: 404, code: wire.CodeUnknownTicket, field: "order_id",
		text: "No such ticket. /api/v1/rfq/market-tickets lists those there are.",
	},
	event.ReasonUnknownTranche: {
		status: 404, code: wire.CodeUnknownTicket, field: "tranche_id",
		text: "The ticket has no such tranche. /api/v1/rfq/market-tickets lists those it has.",
	},
	event.ReasonTicketWithdrawn:   {status: 409, code: wire.CodeCapacityExhausted, text: "The ticket has been withdrawn."},
	event.ReasonTicketExpired:     {status: 409, code: wire.CodeCapacityExhausted, text: "The ticket has expired."},
	event.ReasonCapacityExhausted: {status: 409, code: wire.CodeCapacityExhausted, text: "The tranche has not as much left."},
	event.ReasonInventory:         {status: 409, code: wire.CodeRefused, text: "The desk does not hold as much of the base asset now."},
	event.ReasonLocked: {
		status: 409, code: wire.CodeRefused, text: "The desk is locked for this pair or rail. /api/v1/dvp/status lists the locks.",
	},
	event.ReasonPriceCorridor:    {status: 409, code: wire.CodeRefused, text: "The reference price lies outside the corridor around its anchor."},
	event.ReasonPriceStale:       {status: 409, code: wire.CodeRefused, text: "The price that this would be sold at is too old."},
	event.ReasonPriceUnavailable: {status: 409, code: wire.CodeRefused, text: "There is no price to sell this at now."},
	event.ReasonWalletClaims:     {status: 409, code: wire.CodeRefused, field: "bot_wallet", text: "The wallet has as many claims reserved as it may."},
	event.ReasonRailNotAccepted:  {status: 400, code: wire.CodeInvalidField, field: "rail", text: "The ticket does not take this rail. Its rails member lists those it takes."},
	event.ReasonQuoteExpired:     {status: 409, code: wire.CodeClaimExpired, field: "quote_id", text: "There is no such quote: it has expired, it was used, or it was never given."},
	event.ReasonQuoteMismatch:    {status: 400, code: wire.CodeInvalidField, field: "quote_id", text: "The quote was given for another ticket, tranche, size or rail."},
	event.ReasonDeskFull:         {status: 503, code: wire.CodeOverloaded, text: "The desk is at one of its limits. Try again in a moment.", retryS: retryBusyS},
	event.ReasonUnknownClaim:     {status: 404, code: wire.CodeUnknownClaim, field: "claim_id", text: "No such claim."},
	event.ReasonClaimState:       {status: 409, code: wire.CodeClaimExpired, field: "claim_id", text: "The claim is not in a state that allows this."},
	event.ReasonPaymentUsed:      {status: 409, code: wire.CodePaymentUsed, field: "l1_signature", text: "This payment belongs to another claim."},
	event.ReasonPaymentMismatch:  {status: 422, code: wire.CodePaymentMismatch, field: "l1_signature", text: "The payment does not fit the claim's terms."},
	event.ReasonLatePayment:      {status: 409, code: wire.CodeClaimExpired, field: "l1_signature", text: "The payment arrived when the claim could not be served any more. The desk owes it back."},
	event.ReasonUnknownPayment:   {status: 404, code: wire.CodeUnknownClaim, field: "l1_signature", text: "No such payment."},
	event.ReasonUndeliverable:    {status: 409, code: wire.CodeClaimExpired, field: "claim_id", text: "What was paid for can never be delivered. The desk owes the payment back."},
	event.ReasonUnknownPair:      {status: 409, code: wire.CodeRefused, text: "The desk does not sell this pair."},
	event.ReasonUnknownOperator:  {status: 403, code: wire.CodeRefused, text: "The desk does not know this operator."},
	event.ReasonInvalidCommand:   {status: 400, code: wire.CodeInvalidField, text: "The request has a value that the desk does not take."},
}

// RefusedReasons returns the reasons that have a status, a code and a sentence.
func RefusedReasons() []event.Reason { return slices.Sorted(maps.Keys(refusals)) }

// Refusal says what a desk's Refusal is on the wire.
func Refusal(o *rfq.Outcome) *wire.Problem {
	r, known := refusals[o.Reason]
	if !known {
		r = wireRefusal{status: 409, code: wire.CodeRefused, text: "The desk refused the request."}
	}
	return &wire.Problem{
		Status: r.status, Code: r.code, Field: r.field, Reason: o.Reason.String(), Text: r.text, RetryS: r.retryS,
	}
}

// DeskProblem says what an error of the desk is on the wire. The error itself
// goes no further: it may name what is inside.
func DeskProblem(err error) *wire.Problem {
	switch {
	case errors.Is(err, desk.ErrUnknown):
		return &wire.Problem{
			Stopping: errors.Is(err, desk.ErrReadOnly) || errors.Is(err, desk.ErrStopped),
			Status:   503, Code: wire.CodeOverloaded, Reason: "outcome_unknown", RetryS: retryBusyS,
			Text: "What came of the request is not known yet. Send it again with the same Idempotency-Key.",
		}
	case errors.Is(err, desk.ErrConflict):
		return &wire.Problem{
			Status: 409, Code: wire.CodeIdempotencyConflict, Field: wire.IdempotencyHeader,
			Text: "This key came with another body before. A new request needs a new key.",
		}
	case errors.Is(err, desk.ErrReadOnly):
		return &wire.Problem{
			Status: 503, Code: wire.CodeReadOnly, RetryS: retryReadOnlyS,
			Text: "The service takes no requests that change something now. Nothing has happened.",
		}
	case errors.Is(err, desk.ErrStopped):
		bad := overloaded("stopping", "The service is stopping. Nothing has happened.")
		bad.Stopping = true
		return bad
	case errors.Is(err, desk.ErrBusy):
		return overloaded("busy", "Too many requests are under way. Nothing has happened; try again in a moment.")
	default:
		return &wire.Problem{
			Status: 500, Code: wire.CodeInternal, Text: "The desk could not answer. The request_id names the log's entry.",
			Cause: err,
		}
	}
}

func overloaded(reason, text string) *wire.Problem {
	return &wire.Problem{Status: 503, Code: wire.CodeOverloaded, Reason: reason, Text: text, RetryS: retryBusyS}
}

// ChainUnavailable is the answer while nothing can be settled; more is a
// sentence about what this request has done.
func ChainUnavailable(more string) *wire.Problem {
	return &wire.Problem{
		Status: 503, Code: wire.CodeChainUnavailable, RetryS: wire.RetryChainS,
		Text: "The settlement chain is not reached. " + more,
	}
}
