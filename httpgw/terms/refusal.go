package terms

import (
	"errors"
	"maps"
	"slices"

	"blockdesk/desk"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/httpgw/wire"
	"blockdesk/internal/ratelimit"
	"blockdesk/market"
)

// Seconds of Retry-After.
const (
	retryBusyS     = 1  // a queue is full
	retryReadOnlyS = 10 // an operator has to free disk space
	retryUpgradeS  = 60 // an operator has to finalize an upgrade
	retryUnprovenS = 45 // how long a claim without proof waits, if rfq.unproven_ttl_s is not set
)

// proveIt says how a claim escapes the limits of claims without proof.
const proveIt = " Send wallet_signature or a DvP token of bot_wallet with the claim, or wait until such a claim has ended."

// refusals has the error of every reason that the desk may return, also those that only
// operators meet; a test checks that it is complete.
var refusals = map[event.Reason]wire.Problem{
	event.ReasonUnknownTicket: {
		Status: 404, Code: wire.CodeUnknownTicket, Field: "order_id",
		Text: "Unknown ticket. /api/v1/rfq/market-tickets lists all tickets.",
	},
	event.ReasonUnknownTranche: {
		Status: 404, Code: wire.CodeUnknownTicket, Field: "tranche_id",
		Text: "The ticket has no such tranche. /api/v1/rfq/market-tickets lists its tranches.",
	},
	event.ReasonTicketWithdrawn:   {Status: 409, Code: wire.CodeCapacityExhausted, Text: "The ticket has been withdrawn."},
	event.ReasonTicketExpired:     {Status: 409, Code: wire.CodeCapacityExhausted, Text: "The ticket has expired."},
	event.ReasonCapacityExhausted: {Status: 409, Code: wire.CodeCapacityExhausted, Text: "The tranche does not have enough left."},
	event.ReasonInventory:         {Status: 409, Code: wire.CodeRefused, Text: "The desk does not hold enough of the base asset now."},
	event.ReasonLocked: {
		Status: 409, Code: wire.CodeRefused, Text: "The desk is locked for this pair or rail. /api/v1/dvp/status lists the locks.",
	},
	event.ReasonPriceCorridor:    {Status: 409, Code: wire.CodeRefused, Text: "The reference price has moved too far: away from its anchor, or against the desk since the claim."},
	event.ReasonPriceStale:       {Status: 409, Code: wire.CodeRefused, Text: "The price of this sale is too old."},
	event.ReasonPriceUnavailable: {Status: 409, Code: wire.CodeRefused, Text: "There is no price for this now."},
	event.ReasonWalletClaims:     {Status: 409, Code: wire.CodeRefused, Field: "bot_wallet", Text: "The wallet has the maximum number of reserved claims."},
	event.ReasonUnprovenLimit: {
		Status: 409, Code: wire.CodeRefused, RetryS: retryUnprovenS,
		Text: "Claims without proof of the wallet's key, from this client address, would reserve too much." + proveIt,
	},
	event.ReasonUnprovenShare: {
		Status: 409, Code: wire.CodeCapacityExhausted, RetryS: retryUnprovenS,
		Text: "The rest of the tranche is kept for claims with proof of the wallet's key." + proveIt,
	},
	event.ReasonRailNotAccepted: {Status: 400, Code: wire.CodeInvalidField, Field: "rail", Text: "The ticket does not accept this rail. Its member rails lists the rails it accepts."},
	event.ReasonQuoteExpired:    {Status: 409, Code: wire.CodeClaimExpired, Field: "quote_id", Text: "Unknown quote: it has expired, was used, or never existed."},
	event.ReasonQuoteMismatch:   {Status: 400, Code: wire.CodeInvalidField, Field: "quote_id", Text: "The quote was given for another ticket, tranche, size or rail."},
	event.ReasonDeskFull:        {Status: 503, Code: wire.CodeOverloaded, Text: "The desk is at one of its limits. Try again in a moment.", RetryS: retryBusyS},
	event.ReasonUnknownClaim:    {Status: 404, Code: wire.CodeUnknownClaim, Field: "claim_id", Text: "No such claim."},
	event.ReasonClaimState:      {Status: 409, Code: wire.CodeClaimExpired, Field: "claim_id", Text: "The claim's state does not allow this. GET /api/v1/rfq/claims/{claim_id} shows the state."},
	event.ReasonPaymentUsed:     {Status: 409, Code: wire.CodePaymentUsed, Field: "l1_signature", Text: "This payment belongs to another claim."},
	event.ReasonPaymentMismatch: {Status: 422, Code: wire.CodePaymentMismatch, Field: "l1_signature", Text: "The payment does not fit the claim's terms."},
	event.ReasonLatePayment:     {Status: 409, Code: wire.CodeClaimExpired, Field: "l1_signature", Text: "The payment arrived after its claim could be served. A refund is due."},
	event.ReasonSurplus:         {Status: 409, Code: wire.CodePaymentUsed, Field: "l1_signature", Text: "The payment was larger than its claim. A refund of the surplus is due."},
	event.ReasonUnknownPayment:  {Status: 404, Code: wire.CodeUnknownClaim, Field: "l1_signature", Text: "No such payment."},
	event.ReasonUndeliverable:   {Status: 409, Code: wire.CodeClaimExpired, Field: "claim_id", Text: "The claim can never be delivered. A refund of the payment is due."},
	event.ReasonUnknownPair:     {Status: 409, Code: wire.CodeRefused, Text: "The desk does not sell this pair."},
	event.ReasonUnknownOperator: {Status: 403, Code: wire.CodeRefused, Text: "The desk does not know this operator."},
	event.ReasonInvalidCommand:  {Status: 400, Code: wire.CodeInvalidField, Text: "The request has a value that the desk does not accept."},
}

// RefusedReasons returns the reasons of refusals, sorted.
func RefusedReasons() []event.Reason { return slices.Sorted(maps.Keys(refusals)) }

// Refusal returns the HTTP error for a reason of the desk.
func Refusal(reason event.Reason) *wire.Problem {
	p, known := refusals[reason]
	if !known {
		p = wire.Problem{Status: 409, Code: wire.CodeRefused, Text: "The desk refused the request."}
	}
	p.Reason = reason.String()
	return &p
}

// RefusalOf is Refusal with what a client can use of the outcome: the limit of claims without
// proof, and how long one of them holds what it reserves: its life, and the grace after it.
func RefusalOf(o *rfq.Outcome, policy *rfq.Policy) *wire.Problem {
	p := Refusal(o.Reason)
	if o.Reason != event.ReasonUnprovenLimit && o.Reason != event.ReasonUnprovenShare {
		return p
	}
	p.Text += " At most " + string(market.AppendDecimal(nil, uint64(max(o.Limit, 0)), market.USDDecimals)) + " USD may be reserved so."
	if ttl := ratelimit.Seconds(min(policy.UnprovenTTL, policy.ClaimTTL) + policy.Grace); ttl > 0 {
		p.RetryS = int(ttl)
	}
	return p
}

// DeskProblem returns the HTTP error for an error of the desk. It does not publish the
// error's text, which may reveal internals.
func DeskProblem(err error) *wire.Problem {
	switch {
	case errors.Is(err, desk.ErrUnknown):
		return &wire.Problem{
			Stopping: errors.Is(err, desk.ErrReadOnly) || errors.Is(err, desk.ErrStopped),
			Status:   503, Code: wire.CodeOverloaded, Reason: "outcome_unknown", RetryS: retryBusyS,
			Text: "The outcome is not known yet. Repeat the request with the same Idempotency-Key.",
		}
	case errors.Is(err, desk.ErrConflict):
		return &wire.Problem{
			Status: 409, Code: wire.CodeIdempotencyConflict, Field: wire.IdempotencyHeader,
			Text: "This Idempotency-Key was used with another body. A new request needs a new key.",
		}
	case errors.Is(err, rfq.ErrNotFinalized):
		return &wire.Problem{
			Status: 503, Code: wire.CodeReadOnly, Reason: "upgrade_not_finalized", RetryS: retryUpgradeS,
			Text: "The desk cannot do this until the upgrade of its nodes is finalized. Nothing was done.",
		}
	case errors.Is(err, desk.ErrReadOnly):
		return &wire.Problem{
			Status: 503, Code: wire.CodeReadOnly, RetryS: retryReadOnlyS,
			Text: "The service is read-only now. Nothing was done.",
		}
	case errors.Is(err, desk.ErrStopped):
		problem := overloaded("stopping", "The service is stopping. Nothing was done.")
		problem.Stopping = true
		return problem
	case errors.Is(err, desk.ErrBusy):
		return overloaded("busy", "Too many requests are in progress. Nothing was done. Try again in a moment.")
	default:
		return &wire.Problem{
			Status: 500, Code: wire.CodeInternal, Text: "The desk could not answer. The log has details under the request_id.",
			Cause: err,
		}
	}
}

func overloaded(reason, text string) *wire.Problem {
	return &wire.Problem{Status: 503, Code: wire.CodeOverloaded, Reason: reason, Text: text, RetryS: retryBusyS}
}

// ChainUnavailable is the error while the chain cannot be reached. more is a sentence
// about what this request has done.
func ChainUnavailable(more string) *wire.Problem {
	return &wire.Problem{
		Status: 503, Code: wire.CodeChainUnavailable, RetryS: wire.RetryChainS,
		Text: "The settlement chain cannot be reached. " + more,
	}
}
