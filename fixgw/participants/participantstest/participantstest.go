// Package participantstest has the fixtures of tests with participants.
package participantstest

import (
	"encoding/base64"
	"fmt"

	"golang.org/x/crypto/argon2"
)

// Hash returns a hash of a password in the form of a participants file, with the lowest
// cost that the file may have.
func Hash(password string) string {
	const salt = "saltsalt"
	b64 := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=19$m=8,t=1,p=1$%s$%s", b64.EncodeToString([]byte(salt)),
		b64.EncodeToString(argon2.IDKey([]byte(password), []byte(salt), 1, 8, 1, 16)))
}
