package httpgw

import (
	"errors"
	"maps"
	"slices"

	"blockdesk/desk"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
)

// Seconds of Retry-After.
const (
	retryBusyS     = 1  // a queue is full
	retryReadOnlyS = 10 // somebody must make room on the disk
)

// refused is what one of the desk's reasons is on the wire. Its machine word is
// the reason's own.
type refused struct {
	status int
	code   string
	field  string // of the request, where one is to blame
	text   string
	retryS int
}

// refusals has every reason that the desk may give (a test holds that). Those
// that only an operator's or the service's own requests meet are there for
// package-mates that answer them.
var refusals = map[event.Reason]refused{
	event.ReasonUnknownTicket: {
		status: 404, code: codeUnknownTicket, field: "order_id",
		text: "No such ticket. /api/v1/rfq/market-tickets lists those there are.",
	},
	event.ReasonUnknownTranche: {
		status: 404, code: codeUnknownTicket, field: "tranche_id",
		text: "The ticket has no such tranche. /api/v1/rfq/market-tickets lists those it has.",
	},
	event.ReasonTicketWithdrawn:   {status: 409, code: codeCapacityExhausted, text: "The ticket has been withdrawn."},
	event.ReasonTicketExpired:     {status: 409, code: codeCapacityExhausted, text: "The ticket has expired."},
	event.ReasonCapacityExhausted: {status: 409, code: codeCapacityExhausted, text: "The tranche has not as much left."},
	event.ReasonInventory:         {status: 409, code: codeRefused, text: "The desk does not hold as much of the base asset now."},
	event.ReasonLocked: {
		status: 409, code: codeRefused, text: "The desk is locked for this pair or rail. /api/v1/dvp/status lists the locks.",
	},
	event.ReasonPriceCorridor:    {status: 409, code: codeRefused, text: "The reference price lies outside the corridor around its anchor."},
	event.ReasonPriceStale:       {status: 409, code: codeRefused, text: "The price that this would be sold at is too old."},
	event.ReasonPriceUnavailable: {status: 409, code: codeRefused, text: "There is no price to sell this at now."},
	event.ReasonWalletClaims:     {status: 409, code: codeRefused, field: "bot_wallet", text: "The wallet has as many claims reserved as it may."},
	event.ReasonRailNotAccepted:  {status: 400, code: codeInvalidField, field: "rail", text: "The ticket does not take this rail. Its rails member lists those it takes."},
	event.ReasonQuoteExpired:     {status: 409, code: codeClaimExpired, field: "quote_id", text: "There is no such quote: it has expired, it was used, or it was never given."},
	event.ReasonQuoteMismatch:    {status: 400, code: codeInvalidField, field: "quote_id", text: "The quote was given for another ticket, tranche, size or rail."},
	event.ReasonDeskFull:         {status: 503, code: codeOverloaded, text: "The desk is at one of its limits. Try again in a moment.", retryS: retryBusyS},
	event.ReasonUnknownClaim:     {status: 404, code: codeUnknownClaim, field: "claim_id", text: "No such claim."},
	event.ReasonClaimState:       {status: 409, code: codeClaimExpired, field: "claim_id", text: "The claim is not in a state that allows this."},
	event.ReasonPaymentUsed:      {status: 409, code: codePaymentUsed, field: "l1_signature", text: "This payment belongs to another claim."},
	event.ReasonPaymentMismatch:  {status: 422, code: codePaymentMismatch, field: "l1_signature", text: "The payment does not fit the claim's terms."},
	event.ReasonLatePayment:      {status: 409, code: codeClaimExpired, field: "l1_signature", text: "The payment arrived when the claim could not be served any more. The desk owes it back."},
	event.ReasonUnknownPayment:   {status: 404, code: codeUnknownClaim, field: "l1_signature", text: "No such payment."},
	event.ReasonUndeliverable:    {status: 409, code: codeClaimExpired, field: "claim_id", text: "What was paid for can never be delivered. The desk owes the payment back."},
	event.ReasonUnknownPair:      {status: 409, code: codeRefused, text: "The desk does not sell this pair."},
	event.ReasonUnknownOperator:  {status: 403, code: codeRefused, text: "The desk does not know this operator."},
	event.ReasonInvalidCommand:   {status: 400, code: codeInvalidField, text: "The request has a value that the desk does not take."},
}

// refusedReasons returns the reasons that have a status, a code and a sentence.
func refusedReasons() []event.Reason { return slices.Sorted(maps.Keys(refusals)) }

// refusal says what a desk's refusal is on the wire.
func refusal(o *rfq.Outcome) *problem {
	r, known := refusals[o.Reason]
	if !known {
		r = refused{status: 409, code: codeRefused, text: "The desk refused the request."}
	}
	return &problem{
		status: r.status, code: r.code, field: r.field, reason: o.Reason.String(), text: r.text, retryS: r.retryS,
	}
}

// deskProblem says what an error of the desk is on the wire. The error itself
// goes no further: it may name what is inside.
func deskProblem(err error) *problem {
	switch {
	case errors.Is(err, desk.ErrUnknown):
		return &problem{
			ending: errors.Is(err, desk.ErrReadOnly) || errors.Is(err, desk.ErrStopped),
			status: 503, code: codeOverloaded, reason: "outcome_unknown", retryS: retryBusyS,
			text: "What came of the request is not known yet. Send it again with the same Idempotency-Key.",
		}
	case errors.Is(err, desk.ErrConflict):
		return &problem{
			status: 409, code: codeIdempotencyConflict, field: idempotencyHeader,
			text: "This key came with another body before. A new request needs a new key.",
		}
	case errors.Is(err, desk.ErrReadOnly):
		return &problem{
			status: 503, code: codeReadOnly, retryS: retryReadOnlyS,
			text: "The service takes no requests that change something now. Nothing has happened.",
		}
	case errors.Is(err, desk.ErrStopped):
		bad := overloaded("stopping", "The service is stopping. Nothing has happened.")
		bad.ending = true
		return bad
	case errors.Is(err, desk.ErrBusy):
		return overloaded("busy", "Too many requests are under way. Nothing has happened; try again in a moment.")
	default:
		return &problem{
			status: 500, code: codeInternal, text: "The desk could not answer. The request_id names the log's entry.",
			cause: err,
		}
	}
}

func overloaded(reason, text string) *problem {
	return &problem{status: 503, code: codeOverloaded, reason: reason, text: text, retryS: retryBusyS}
}

// chainUnavailable is the answer while nothing can be settled; more is a
// sentence about what this request has done.
func chainUnavailable(more string) *problem {
	return &problem{
		status: 503, code: codeChainUnavailable, retryS: retryChainS,
		text: "The settlement chain is not reached. " + more,
	}
}
