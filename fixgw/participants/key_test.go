package participants

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/gagliardetto/solana-go/base58"
)

func TestParseKey(t *testing.T) {
	t.Parallel()
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))[ed25519.SeedSize:]
	file := fmt.Appendf(nil, "participants:\n  - {name: mm, number: 1, comp_ids: [MM], ed25519: %s}", base58.Encode(key))
	if list, err := Parse(file); err != nil || list[0].Ed25519 != base58.Encode(key) {
		t.Errorf("without a password: %v", err)
	}
	for _, text := range []string{base58.Encode(key), base64.StdEncoding.EncodeToString(key)} {
		if got, err := parseKey(text); err != nil || string(got[:]) != string(key) {
			t.Errorf("%s: %x, %v", text, got, err)
		}
	}
	identity := [32]byte{1}
	for _, text := range []string{
		"", "=", "0", "x", base58.Encode(key[:31]), base58.Encode(append(key, 1)), base64.RawStdEncoding.EncodeToString(key),
		base64.StdEncoding.EncodeToString(key[:31]), strings.Repeat("1", 65), base58.Encode(identity[:]), base58.Encode(make([]byte, 32)),
	} {
		if _, err := parseKey(text); err == nil {
			t.Errorf("%q passed", text)
		}
	}
}
