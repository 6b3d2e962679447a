package participants

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/argon2"
)

// PasswordHash is one argon2id hash in the PHC form
// $argon2id$v=19$m=KiB,t=passes,p=lanes$salt$hash, with unpadded base64.
type PasswordHash struct {
	memory  uint32 // KiB
	passes  uint32
	lanes   uint8
	salt    []byte
	derived []byte
}

// Cost of a new hash: OWASP's first choice for argon2id. The cost that a file may
// ask for is bounded, since checking a password spends it.
const (
	argonMemory, argonPasses, argonLanes = 19 << 10, 2, 1
	argonSalt, argonDerived              = 16, 32
	maxArgonMemory                       = 256 << 10 // KiB
	maxArgonPasses                       = 16
	maxArgonLanes                        = 8
)

// MaxPassword is the longest password, in bytes.
const MaxPassword = 256

// HashPassword returns the argon2id hash of password for a participants file.
func HashPassword(password string) (string, error) {
	if password == "" || len(password) > MaxPassword {
		return "", fmt.Errorf("password has %d bytes: must be 1 to %d", len(password), MaxPassword)
	}
	salt := make([]byte, argonSalt)
	if _, err := rand.Read(salt); err != nil {
		return "", fmt.Errorf("making a salt: %w", err)
	}
	h := PasswordHash{memory: argonMemory, passes: argonPasses, lanes: argonLanes, salt: salt}
	h.derived = h.derive([]byte(password), argonDerived)
	return h.String(), nil
}

func (h *PasswordHash) derive(password []byte, size uint32) []byte {
	return argon2.IDKey(password, h.salt, h.passes, h.memory, h.lanes, size)
}

// String returns the PHC form.
func (h *PasswordHash) String() string {
	b64 := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=19$m=%d,t=%d,p=%d$%s$%s", h.memory, h.passes, h.lanes,
		b64.EncodeToString(h.salt), b64.EncodeToString(h.derived))
}

// Verify reports whether password has this hash. Its time does not depend on
// the password.
func (h *PasswordHash) Verify(password []byte) bool {
	if len(password) > MaxPassword {
		password = password[:MaxPassword]
	}
	got := h.derive(password, uint32(len(h.derived)))
	return subtle.ConstantTimeCompare(got, h.derived) == 1
}

var errHashSyntax = errors.New("must be $argon2id$v=19$m=…,t=…,p=…$salt$hash")

// parseHash reads the PHC form. It does not name the text in an error: that is a
// secret.
func parseHash(text string) (*PasswordHash, error) {
	parts := strings.Split(text, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" || parts[2] != "v=19" {
		return nil, errHashSyntax
	}
	var h PasswordHash
	if n, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &h.memory, &h.passes, &h.lanes); n != 3 || err != nil {
		return nil, errHashSyntax
	}
	if parts[3] != fmt.Sprintf("m=%d,t=%d,p=%d", h.memory, h.passes, h.lanes) {
		return nil, errHashSyntax
	}
	if h.memory < 8 || h.memory > maxArgonMemory || h.passes < 1 || h.passes > maxArgonPasses || h.lanes < 1 || h.lanes > maxArgonLanes {
		return nil, fmt.Errorf("cost %s: m must be 8 to %d, t 1 to %d, p 1 to %d", parts[3], maxArgonMemory, maxArgonPasses, maxArgonLanes)
	}
	var err error
	if h.salt, err = base64.RawStdEncoding.DecodeString(parts[4]); err != nil || len(h.salt) < 8 || len(h.salt) > 64 {
		return nil, errHashSyntax
	}
	if h.derived, err = base64.RawStdEncoding.DecodeString(parts[5]); err != nil || len(h.derived) < 16 || len(h.derived) > 64 {
		return nil, errHashSyntax
	}
	return &h, nil
}

// RandomHash returns a hash that no password has.
func RandomHash() (*PasswordHash, error) {
	h := &PasswordHash{
		memory: argonMemory, passes: argonPasses, lanes: argonLanes,
		salt: make([]byte, argonSalt), derived: make([]byte, argonDerived),
	}
	if _, err := rand.Read(h.salt); err != nil {
		return nil, err
	}
	_, err := rand.Read(h.derived)
	return h, err
}
