package solana

import (
	"errors"
	"fmt"

	"github.com/gagliardetto/solana-go/base58"

	"blockdesk/market"
)

// Address is an account's address: a wallet, a mint, a program. Its text is base58.
type Address = market.Address

// Hash is a blockhash or the SHA-256 of a message. Its text is base58. Hash and
// Signature are our own types because solana-go's have a Verify that small-order keys
// pass, and accept JSON of any length.
type Hash [32]byte

// Signature is an ed25519 signature. A transaction's first one is its id. The text is
// base58; the zero value is an empty slot.
type Signature [64]byte

// ErrText says that a text is not base58 of the right length.
var ErrText = errors.New("solana: not base58 of the right length")

// ParseAddress parses the canonical base58 text of an address. Errors: [ErrText].
func ParseAddress(text string) (Address, error) { return parse32(text) }

// ParseHash parses a blockhash. Errors: [ErrText].
func ParseHash(text string) (Hash, error) { return parse32(text) }

// ParseSignature parses a transaction's signature. Errors: [ErrText].
func ParseSignature(text string) (s Signature, err error) {
	if len(text) > base58.EncodedMaxLen64 {
		return s, fmt.Errorf("%w: it has %d characters", ErrText, len(text))
	}
	if base58.Decode64(text, (*[64]byte)(&s)) != nil || Base58(s) != text {
		return Signature{}, fmt.Errorf("%w: %q", ErrText, text)
	}
	return s, nil
}

// parse32 parses 32 bytes and compares their encoding with the text.
func parse32(text string) (v [32]byte, err error) {
	if len(text) > base58.EncodedMaxLen32 {
		return v, fmt.Errorf("%w: it has %d characters", ErrText, len(text))
	}
	if base58.Decode32(text, &v) != nil || base58.Encode32(&v) != text {
		return [32]byte{}, fmt.Errorf("%w: %q", ErrText, text)
	}
	return v, nil
}

// Base58 returns the base58 text of an address, a hash or a signature.
func Base58[T Address | Hash | Signature](v T) string {
	switch v := any(v).(type) {
	case Address:
		return base58.Encode32((*[32]byte)(&v))
	case Hash:
		return base58.Encode32((*[32]byte)(&v))
	case Signature:
		return base58.Encode64((*[64]byte)(&v))
	}
	return ""
}

// String returns the base58.
func (h Hash) String() string { return Base58(h) }

// String returns the base58.
func (s Signature) String() string { return Base58(s) }
