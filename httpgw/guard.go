package httpgw

import (
	"errors"
	"maps"
	"slices"

	"blockdesk/desk"
)

// Machine words of REFUS_DVP that this package gives itself.
const (
	guardEmpty = "empty_counterparty"
	guardOther = "refused" // for a guard whose name is no machine word
)

// guards are the sentences for the words of a [desk.Refusal] that are not the desk's
// own (contract, section E).
var guards = map[string]string{
	guardEmpty:          "There is no counterparty: its address or its signature is empty.",
	"message_mismatch":  "This is not, byte for byte, the transaction that was built.",
	"bad_signature":     "The signature is not one of the taker over the transaction that was built.",
	"expired":           "The build can land no more, its reservation has ended, or the desk has changed since. Ask for a new one.",
	"already_settled":   "The claim has been settled.",
	"taker_funds":       "The taker does not hold what it is to pay.",
	"unbuildable":       "No transaction can settle this claim, for its wallet or its terms.",
	"simulation_failed": "The transaction would fail on the chain.",
}

// guardWords returns the machine words that have a sentence.
func guardWords() []string { return slices.Sorted(maps.Keys(guards)) }

// guarded says what a guard that has tripped is on the wire: REFUS_DVP, unless
// its word has a code of its own elsewhere.
func guarded(word string) *problem {
	if word == tokenOfAnother {
		return refuseToken(word)
	}
	for reason := range refusals {
		if reason.String() == word {
			return refuse(reason)
		}
	}
	bad := &problem{status: 409, code: codeRefused, reason: word, text: guards[word]}
	if bad.text == "" {
		bad.text = "A guard of the desk has refused this."
	}
	if !isWord(word) {
		bad.reason = guardOther
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
	return text != "" && len(text) <= MaxSegment
}

// Machine words of TAKER_NON_ADMIS_JETON. One that is unknown, one that has
// expired and one that was revoked are not told apart.
const (
	tokenMissing   = "token_missing"
	tokenMalformed = "token_malformed"
	tokenUnknown   = "token_unknown"
	tokenOfAnother = "taker_mismatch"
)

// refuseToken says why a token admits nobody, and what would (RFC 6750, section
// 3).
func refuseToken(reason string) *problem {
	const challenge = `Bearer realm="dvp"`
	bad := &problem{
		status: 403, code: codeToken, reason: reason, challenge: challenge + `, error="invalid_token"`,
		text: "This takes a DvP token: Authorization: Bearer, a space, the token. " + pathHandshake + " gives one.",
	}
	switch reason {
	case tokenMissing:
		bad.challenge = challenge
	case tokenOfAnother:
		bad.challenge = challenge + `, error="insufficient_scope"`
		bad.text = "The token belongs to another key than this taker's."
	}
	return bad
}

// settlementProblem says what an error of the settlement is on the wire: a guard
// that has tripped, the desk's own, or that the chain could not be asked; more
// is a sentence for the last.
func settlementProblem(err error, more string) *problem {
	var guard *desk.Refusal
	if errors.As(err, &guard) {
		return guarded(string(guard.Reason))
	}
	if bad := deskProblem(err); bad.cause == nil {
		return bad
	}
	bad := chainUnavailable(more)
	bad.cause = err
	return bad
}
