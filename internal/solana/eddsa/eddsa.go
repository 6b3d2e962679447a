// Package eddsa verifies ed25519 signatures strictly: it accepts a signature only if
// its maker knew the key.
//
// RFC 8032 leaves room for forgery. A verifier that accepts small-order keys accepts
// signatures made without a private key; one that accepts non-canonical encodings, or a
// scalar beyond the group's order, accepts several signatures for one; and verifiers
// disagree about keys with a small-order component. The standard
// library's verifier accepts the first and the third. This one refuses all of them, and
// checks the equation without the cofactor, as the chain does.
//
// Concurrency: pure functions. Cost: see the benchmark.
package eddsa

import (
	"github.com/oasisprotocol/curve25519-voi/curve"
	"github.com/oasisprotocol/curve25519-voi/primitives/ed25519"

	"blockdesk/internal/solana"
)

// strict leaves the other options false, which refuses small-order and non-canonical
// keys and points.
var strict = ed25519.Options{Verify: &ed25519.VerifyOptions{CofactorlessVerify: true}}

// Verify reports whether signature is key's signature of exactly these bytes. It is
// false for every key that fails [ValidKey].
func Verify(key solana.Address, message []byte, signature solana.Signature) bool {
	return ValidKey(key) && ed25519.VerifyWithOptions(key[:], message, signature[:], &strict)
}

// ValidKey reports whether an address is a key whose signatures prove something: the
// canonical encoding of a point of the prime-order group other than its identity. Every
// key made from a seed is one.
func ValidKey(key solana.Address) bool {
	compressed := curve.CompressedEdwardsY(key)
	if !compressed.IsCanonicalVartime() {
		return false
	}
	var p curve.EdwardsPoint
	if _, err := p.SetCompressedY(&compressed); err != nil {
		return false
	}
	return !p.IsSmallOrder() && p.IsTorsionFree()
}
