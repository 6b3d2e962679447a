package terms

import (
	"errors"
	"maps"
	"slices"

	"blockdesk/desk"
	"blockdesk/httpgw/wire"
)

// Reasons of REFUS_DVP that this package sets itself.
const (
	GuardEmptyCounterparty = "empty_counterparty"
	guardOther             = "refused" // replaces a reason that is not a plain word
)

// guardTexts are the sentences for the reasons of a [desk.Refusal] that are not reasons of the
// engine (docs/specification.md C.5).
var guardTexts = map[string]string{
	GuardEmptyCounterparty: "The counterparty's address or signature is empty.",
	"message_mismatch":     "The transaction differs from the one that was built.",
	"bad_signature":        "The signature is not the taker's signature of the transaction that was built.",
	"expired":              "The transaction can no longer land, its reservation has ended, or the desk's price or key has changed since. Build a new one.",
	"already_settled":      "The claim is already settled.",
	"taker_funds":          "The taker does not hold the payment.",
	"unbuildable":          "No transaction can settle this claim because of its wallet or its terms.",
	"simulation_failed":    "The simulation of the transaction failed.",
}

// GuardReasons returns the reasons that have a sentence, sorted.
func GuardReasons() []string { return slices.Sorted(maps.Keys(guardTexts)) }

// GuardProblem returns the error for the reason of a tripped guard: REFUS_DVP, unless the
// reason has its own code.
func GuardProblem(word string) *wire.Problem {
	if word == TokenWrongTaker {
		return TokenProblem(word)
	}
	for reason := range refusals {
		if reason.String() == word {
			return Refusal(reason)
		}
	}
	problem := &wire.Problem{Status: 409, Code: wire.CodeRefused, Reason: word, Text: guardTexts[word]}
	if problem.Text == "" {
		problem.Text = "The desk's checks before signing refused this; reason says which. Ask for a new quote."
	}
	if !isWord(word) {
		problem.Reason = guardOther
	}
	return problem
}

// isWord reports whether text is a plain word that needs no escapes in JSON.
func isWord(text string) bool {
	for _, c := range []byte(text) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return text != "" && len(text) <= wire.MaxSegment
}

// Reasons of TAKER_NON_ADMIS_JETON. An unknown, an expired and a revoked token have the
// same reason.
const (
	TokenMissing    = "token_missing"
	TokenMalformed  = "token_malformed"
	TokenUnknown    = "token_unknown"
	TokenWrongTaker = "taker_mismatch"
)

// TokenProblem returns the error for a token that was refused (RFC 6750, section 3).
func TokenProblem(reason string) *wire.Problem {
	const challenge = `Bearer realm="dvp"`
	problem := &wire.Problem{
		Status: 403, Code: wire.CodeTokenRefused, Reason: reason, Challenge: challenge + `, error="invalid_token"`,
		Text: "Send a DvP token as Authorization: Bearer TOKEN. " + PathHandshake + " gives one.",
	}
	switch reason {
	case TokenMissing:
		problem.Challenge = challenge
	case TokenWrongTaker:
		problem.Challenge = challenge + `, error="insufficient_scope"`
		problem.Text = "The token belongs to another key than the taker's."
	}
	return problem
}

// SettlementProblem returns the HTTP error for an error of the settlement: a tripped
// guard, an error of the desk, or CHAIN_UNAVAILABLE with more as its second sentence.
func SettlementProblem(err error, more string) *wire.Problem {
	var guard *desk.Refusal
	if errors.As(err, &guard) {
		return GuardProblem(string(guard.Reason))
	}
	if problem := DeskProblem(err); problem.Cause == nil {
		return problem
	}
	problem := ChainUnavailable(more)
	problem.Cause = err
	return problem
}
