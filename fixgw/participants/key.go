package participants

import (
	"encoding/base64"
	"errors"

	"github.com/gagliardetto/solana-go/base58"

	"blockdesk/internal/solana/eddsa"
)

var errKeySyntax = errors.New("must be an Ed25519 public key, 32 bytes in base58 or base64")

// parseKey reads a public key: base64 with its padding, or base58. It refuses weak keys,
// for which signatures can be made without the private key.
func parseKey(text string) (key [32]byte, err error) {
	var raw []byte
	if len(text) > len(key)*2 {
		return key, errKeySyntax
	}
	if len(text) > 0 && text[len(text)-1] == '=' {
		raw, err = base64.StdEncoding.Strict().DecodeString(text)
	} else {
		raw, err = base58.Decode(text)
	}
	if err != nil || len(raw) != len(key) {
		return key, errKeySyntax
	}
	if copy(key[:], raw); !eddsa.ValidKey(key) {
		return key, errors.New("is a weak key: signatures for it can be forged")
	}
	return key, nil
}
