package solana

import (
	"errors"
	"fmt"

	"github.com/mr-tron/base58"

	"blockdesk/market"
)

// Address is an account: a wallet, a mint, a program. Its text is base58.
type Address = market.Address

// Hash is a blockhash or the SHA-256 of a message. Its text is base58.
type Hash [32]byte

// Signature is an ed25519 signature; a transaction is named by its first one.
// Its text is base58. The zero value is an empty slot.
type Signature [64]byte

// LamportsPerSOL is how many atoms of the SOL rail make one SOL.
const LamportsPerSOL = 1_000_000_000

// ErrText means a text that is not the base58 of as many bytes as are wanted.
var ErrText = errors.New("solana: not base58 of the right length")

// The longest texts of 32 and of 64 bytes.
const (
	maxText32 = 44
	maxText64 = 88
)

// ParseAddress reads the one base58 text of an address. Errors: [ErrText].
func ParseAddress(text string) (a Address, err error) {
	return a, parse(a[:], text, maxText32)
}

// ParseHash reads a blockhash. Errors: [ErrText].
func ParseHash(text string) (h Hash, err error) {
	return h, parse(h[:], text, maxText32)
}

// ParseSignature reads a transaction's signature. Errors: [ErrText].
func ParseSignature(text string) (s Signature, err error) {
	return s, parse(s[:], text, maxText64)
}

// parse fills dst. The length is bounded first: decoding is quadratic.
func parse(dst []byte, text string, most int) error {
	if len(text) > most {
		return fmt.Errorf("%w: %d characters", ErrText, len(text))
	}
	b, err := base58.FastBase58Decoding(text)
	if err != nil || len(b) != len(dst) {
		return fmt.Errorf("%w: %q", ErrText, text)
	}
	copy(dst, b)
	return nil
}

// Text returns the base58 of an address, a hash or a signature.
func Text[T Address | Hash | Signature](v T) string {
	switch v := any(v).(type) {
	case Address:
		return base58.FastBase58Encoding(v[:])
	case Hash:
		return base58.FastBase58Encoding(v[:])
	case Signature:
		return base58.FastBase58Encoding(v[:])
	}
	return ""
}

// String returns the base58.
func (h Hash) String() string { return Text(h) }

// String returns the base58.
func (s Signature) String() string { return Text(s) }
