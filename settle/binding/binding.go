// Package binding ties a transaction to its claim: by a memo that people and explorers
// read, and by a reference, an account that exists only to be searched for.
//
//	memo       the claim's text, "C" and 13 digits, alone
//	reference  [8]id, big-endian ‖ [24]SHA-256(domain ‖ [8]id)
//
// Both contain the claim's number, so that a transaction names its claim by its own bytes
// and no index is needed. A reference is not a secret: anyone who knows the claim's id can
// make it, as anyone can write the memo. Nobody has a private key for it, unless SHA-256
// is broken.
//
// A refund names the payment that it pays back in the same two ways:
//
//	memo       "refund " and the payment's signature in base58, alone
//	reference  SHA-256(domain ‖ [64]signature)
//
// Concurrency: pure functions.
package binding

import (
	"crypto/sha256"
	"encoding/binary"
	"strings"

	"blockdesk/internal/solana"
	"blockdesk/market"
)

// domain separates our references from other uses of the hash. Frozen: references are
// on chain.
const domain = "blockdesk claim reference v1"

// Memo returns the memo of a claim's transactions.
func Memo(id market.ClaimID) string { return string(market.AppendClaimID(nil, id)) }

// ClaimOfMemo returns the claim that a memo names, if the memo is exactly one of
// ours: no space, no other text.
func ClaimOfMemo(text string) (market.ClaimID, bool) { return market.ParseClaimID([]byte(text)) }

// Reference returns the reference of a claim's transactions.
func Reference(id market.ClaimID) (a solana.Address) {
	var text [len(domain) + 8]byte
	copy(text[:], domain)
	binary.BigEndian.PutUint64(text[len(domain):], uint64(id))
	sum := sha256.Sum256(text[:])
	copy(a[:8], text[len(domain):])
	copy(a[8:], sum[:])
	return a
}

// ClaimOfReference returns the claim that an account names, if it is a reference.
func ClaimOfReference(a solana.Address) (market.ClaimID, bool) {
	id := market.ClaimID(binary.BigEndian.Uint64(a[:8]))
	return id, id != 0 && a == Reference(id)
}

// refundDomain separates references of refunds, and refundWord begins their memo.
// Frozen: both are on chain.
const (
	refundDomain = "blockdesk refund reference v1"
	refundWord   = "refund "
)

// RefundMemo returns the memo of a payment's refund.
func RefundMemo(payment solana.Signature) string { return refundWord + solana.Base58(payment) }

// PaymentOfMemo returns the payment that the memo of a refund names, if the memo is
// exactly one of ours.
func PaymentOfMemo(text string) (payment solana.Signature, ok bool) {
	word, ok := strings.CutPrefix(text, refundWord)
	if !ok {
		return payment, false
	}
	payment, err := solana.ParseSignature(word)
	return payment, err == nil && payment != (solana.Signature{})
}

// RefundReference returns the reference of a payment's refund.
func RefundReference(payment solana.Signature) solana.Address {
	var text [len(refundDomain) + len(payment)]byte
	copy(text[:], refundDomain)
	copy(text[len(refundDomain):], payment[:])
	return sha256.Sum256(text[:])
}
