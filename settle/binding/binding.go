// Package binding ties a transaction to its claim: a memo that people and
// explorers read, and a reference, an account that is only there to be found by.
//
//	memo       the claim's text, "C" and 13 digits, alone
//	reference  [8]id, most significant byte first ‖ [24]SHA-256(domain ‖ [8]id)
//
// Both have the claim's number in them, so that a transaction names its claim by
// its own bytes and nobody keeps an index. A reference is not a secret: who knows
// the claim's id can make it, as he can write the memo. It is no account that
// anybody has the key of, as far as SHA-256 goes.
//
// Concurrency: pure functions.
package binding

import (
	"crypto/sha256"
	"encoding/binary"

	"blockdesk/internal/solana"
	"blockdesk/market"
)

// domain keeps our references apart from any other use of the hash. Frozen:
// references are on chain.
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
