package terms

import (
	"errors"
	"maps"
	"slices"

	"blockdesk/desk"
	"blockdesk/httpgw/wire"
)

// Machine words of REFUS_DVP that this package gives itself.
const (
	GuardEmptyCounterparty = "empty_counterparty"
	guardOther             = "refused" // for a guard whose name is no machine word
)

// guards are the sentences for the words of a [desk.Refusal] that are not the desk's
// own (contract, section E).
var guardTexts = map[string]string{
	GuardEmptyCounterparty: "There is no counterparty: its address or its signature is empty.",
	"message_mismatch":     "This is not, byte for byte, the transaction that was built.",
	"bad_signature":        "The signature is not one of the taker over the transaction that was built.",
	"expired":              "The build can land no more, its reservation has ended, or the desk has changed since. Ask for a new one.",
	"already_settled":      "The claim has been settled.",
	"taker_funds":          "The taker does not hold what it is to pay.",
	"unbuildable":          "No transaction can settle this claim, for its wallet or its terms.",
	"simulation_failed":    "The transaction would fail on the chain.",
}

// GuardReasons returns the machine words that have a sentence.
func GuardReasons() []string { return slices.Sorted(maps.Keys(guardTexts)) }

// GuardProblem says what a guard that has tripped is on the wire: REFUS_DVP, unless
// its word has a code of its own elsewhere.
func GuardProblem(word string) *wire.Problem {
	if word == TokenWrongTaker {
		return TokenProblem(word)
	}
	for reason := range refusals {
		if reason.String() == word {
			return Refuse(reason)
		}
	}
	bad := &wire.Problem{Status: 409, Code: wire.CodeRefused, Reason: word, Text: guardTexts[word]}
	if bad.Text == "" {
		bad.Text = "A guard of the desk has refused this."
	}
	if !isWord(word) {
		bad.Reason = guardOther
	}
	return bad
}

// isWord reports whether text is a machine word, which stands in JSON as it is.
func isWord(text string) bool {
	for _, c := range []byte(text) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return text != "" && len(text) <= wire.MaxSegment
}

// Machine words of TAKER_NON_ADMIS_JETON. One that is unknown, one that has
// expired and one that was revoked are not told apart.
const (
	TokenMissing    = "token_missing"
	TokenMalformed  = "token_malformed"
	TokenUnknown    = "token_unknown"
	TokenWrongTaker = "taker_mismatch"
)

// TokenProblem says why a token admits nobody, and what would (RFC 6750, section
// 3).
func TokenProblem(reason string) *wire.Problem {
	const challenge = `Bearer realm="dvp"`
	bad := &wire.Problem{
		Status: 403, Code: wire.CodeTokenRefused, Reason: reason, Challenge: challenge + `, error="invalid_token"`,
		Text: "This takes a DvP token: Authorization: Bearer, a space, the token. " + PathHandshake + " gives one.",
	}
	switch reason {
	case TokenMissing:
		bad.Challenge = challenge
	case TokenWrongTaker:
		bad.Challenge = challenge + `, error="insufficient_scope"`
		bad.Text = "The token belongs to another key than this taker's."
	}
	return bad
}

// SettlementProblem says what an error of the settlement is on the wire: a guard
// that has tripped, the desk's own, or that the chain could not be asked; more
// is a sentence for the last.
func SettlementProblem(err error, more string) *wire.Problem {
	var guard *desk.Refusal
	if errors.As(err, &guard) {
		return GuardProblem(string(guard.Reason))
	}
	if bad := DeskProblem(err); bad.Cause == nil {
		return bad
	}
	bad := ChainUnavailable(more)
	bad.Cause = err
	return bad
}
