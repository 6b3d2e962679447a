package wire

import (
	"bytes"
	"crypto/sha256"
	"strings"
	"testing"

	"github.com/gagliardetto/solana-go/base58"
)

// FuzzAddress: an accepted address or signature is exactly what base58 encodes.
func FuzzAddress(f *testing.F) {
	wallet := base58.Encode([]byte("the wallet of a bot, 32 bytes of"))
	signature := base58.Encode(bytes.Repeat([]byte("signature of a payment, "), 3)[:64])
	for _, seed := range []string{wallet, signature, strings.Repeat("1", 32), strings.Repeat("z", 44), "é" + wallet[2:], "0OIl", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if a, ok := ParseAddress([]byte(text)); ok && base58.Encode(a[:]) != text {
			t.Fatalf("address %q is %q", text, base58.Encode(a[:]))
		}
		if s, ok := ParseSignature([]byte(text)); ok && base58.Encode(s[:]) != text {
			t.Fatalf("signature %q is %q", text, base58.Encode(s[:]))
		}
		// All that base58 writes of 32 bytes is read again.
		a := sha256.Sum256([]byte(text))
		if got, ok := ParseAddress([]byte(base58.Encode(a[:]))); !ok || got != a {
			t.Fatalf("%x is not read again", a)
		}
	})
}
