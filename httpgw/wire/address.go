package wire

import (
	"github.com/gagliardetto/solana-go/base58"

	"blockdesk/market"
)

// Lengths of base58 texts of 32 and of 64 bytes: the shortest is all ones, for
// zero bytes.
const (
	MinAddressText, MaxAddressText     = 32, 44
	minSignatureText, MaxSignatureText = 64, 88
)

// ParseAddress reads a Solana account in base58, exactly as AppendAddress writes
// it. The zero address is refused: it is the system program, and nobody's wallet.
func ParseAddress(text []byte) (a market.Address, ok bool) {
	if len(text) < MinAddressText || len(text) > MaxAddressText {
		return market.Address{}, false
	}
	ok = ParseBase58(a[:], text) && a != market.Address{}
	return a, ok
}

// ParseSignature reads a transaction's signature in base58, canonical only. One
// of zeros is refused: it is the place of a signature that is not there.
func ParseSignature(text []byte) (s [64]byte, ok bool) {
	if len(text) < minSignatureText || len(text) > MaxSignatureText {
		return [64]byte{}, false
	}
	ok = ParseBase58(s[:], text) && s != [64]byte{}
	return s, ok
}

// ParseBase58 fills dst with what text means, and reports whether text is how
// base58 writes exactly that.
func ParseBase58(dst, text []byte) bool {
	raw, err := base58.Decode(string(text))
	if err != nil || len(raw) != len(dst) || base58.Encode(raw) != string(text) {
		return false
	}
	copy(dst, raw)
	return true
}

// AppendSignature appends a signature in base58 as a JSON string, or null for
// one of zeros.
func AppendSignature(dst []byte, s *[64]byte) []byte {
	if *s == ([64]byte{}) {
		return append(dst, "null"...)
	}
	return append(append(append(dst, '"'), base58.Encode(s[:])...), '"')
}
