package wire

import (
	"encoding/base64"

	"github.com/gagliardetto/solana-go/base58"

	"blockdesk/market"
)

// Lengths of 32 and of 64 bytes in base58. The shortest text is all ones: zero bytes.
const (
	MinAddressText, MaxAddressText     = 32, 44
	minSignatureText, MaxSignatureText = 64, 88
)

// ParseAddress parses a Solana address in canonical base58. It refuses the zero
// address, which is the system program and never a wallet.
func ParseAddress(text []byte) (a market.Address, ok bool) {
	if len(text) < MinAddressText || len(text) > MaxAddressText {
		return market.Address{}, false
	}
	ok = ParseBase58(a[:], text) && a != market.Address{}
	return a, ok
}

// ParseSignature parses a transaction signature in canonical base58. It refuses the
// zero signature, which fills the slot of a missing one.
func ParseSignature(text []byte) (s [64]byte, ok bool) {
	if len(text) < minSignatureText || len(text) > MaxSignatureText {
		return [64]byte{}, false
	}
	ok = ParseBase58(s[:], text) && s != [64]byte{}
	return s, ok
}

// ParseBase58 decodes text into dst. It reports whether text is the canonical base58
// of exactly len(dst) bytes.
func ParseBase58(dst, text []byte) bool {
	raw, err := base58.Decode(string(text))
	if err != nil || len(raw) != len(dst) || base58.Encode(raw) != string(text) {
		return false
	}
	copy(dst, raw)
	return true
}

// ParseAnySignature parses a signature in canonical base58 or base64. No text is both,
// because 64 bytes in base64 end with "==".
func ParseAnySignature(text []byte) (s [64]byte, ok bool) {
	if raw, isBase64 := ParseBase64(text, len(s)); isBase64 && len(raw) == len(s) {
		s = [64]byte(raw)
		return s, s != [64]byte{}
	}
	return ParseSignature(text)
}

// ParseBase64 parses at most most bytes in canonical padded base64 without line breaks.
func ParseBase64(text []byte, most int) ([]byte, bool) {
	if len(text) == 0 || len(text) > base64.StdEncoding.EncodedLen(most) {
		return nil, false
	}
	raw := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	n, err := base64.StdEncoding.Strict().Decode(raw, text)
	// The decoder ignores line breaks, hence the comparison of lengths.
	if err != nil || n > most || base64.StdEncoding.EncodedLen(n) != len(text) {
		return nil, false
	}
	return raw[:n], true
}

// AppendSignature appends a signature in base58 as a JSON string; zero is null.
func AppendSignature(dst []byte, s *[64]byte) []byte {
	if *s == ([64]byte{}) {
		return append(dst, "null"...)
	}
	return append(append(append(dst, '"'), base58.Encode(s[:])...), '"')
}
