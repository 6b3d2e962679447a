package operator

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"blockdesk/internal/atomicfile"
)

// TokenFile, in the data folder, holds the token of the local operator, which a
// service makes if no operator is configured.
const TokenFile = "operator.token"

// NewToken returns 256 random bits in hexadecimal.
func NewToken() string {
	var random [32]byte
	_, _ = rand.Read(random[:]) // crypto/rand documents that it never fails
	return hex.EncodeToString(random[:])
}

// LocalToken returns the token in TokenFile of the data folder, and makes the file
// if there is none.
func LocalToken(dataDir string) (string, error) {
	path := filepath.Join(dataDir, TokenFile)
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		token := NewToken()
		return token, atomicfile.Write(path, []byte(token+"\n"))
	case err != nil:
		return "", err
	}
	token := strings.TrimSpace(string(text))
	if len(token) < 2*sha256.Size {
		return "", fmt.Errorf("%s: not an operator token (64 hexadecimal digits): delete the file, and the next start makes one", path)
	}
	return token, nil
}
