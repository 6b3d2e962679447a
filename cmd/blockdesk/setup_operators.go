package main

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

	"blockdesk/httpgw/admin"
	"blockdesk/market"
	"blockdesk/service/config"
)

// newToken returns 256 random bits as text.
func newToken() string {
	var random [32]byte
	_, _ = rand.Read(random[:]) // never fails, says crypto/rand
	return hex.EncodeToString(random[:])
}

// localToken returns the token in the data folder, made where there is none.
func localToken(dataDir string) (string, error) {
	path := filepath.Join(dataDir, operatorTokenFile)
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		token := newToken()
		return token, replaceFile(path, []byte(token+"\n"))
	case err != nil:
		return "", err
	}
	token := strings.TrimSpace(string(text))
	if len(token) < 2*sha256.Size {
		return "", fmt.Errorf("%s holds no token of ours: delete it, and the next start makes one", path)
	}
	return token, nil
}

// plainOperators returns the operators of a service without a desk. Their numbers
// are in no journal.
func plainOperators(c *config.Config) ([]admin.Operator, error) {
	list, _, err := makeOperators(c)
	for i := range list {
		list[i].ID = market.OperatorID(i + 1)
	}
	return list, err
}

// makeOperators returns the configured operators, or the local one where none is
// configured, and the demo's with its token. The local token is written where it
// is not there yet.
func makeOperators(c *config.Config) (list []admin.Operator, demoToken string, err error) {
	for i, o := range c.Operators {
		hash, err := o.TokenHash()
		if err != nil {
			return nil, "", fmt.Errorf("operators[%d].token_sha256: %w", i, err)
		}
		list = append(list, admin.Operator{Name: o.Name, TokenSHA256: hash})
	}
	if len(list) == 0 {
		token, err := localToken(c.DataDir)
		if err != nil {
			return nil, "", fmt.Errorf("operator %s: %w", config.LocalOperator, err)
		}
		list = append(list, admin.Operator{Name: config.LocalOperator, TokenSHA256: sha256.Sum256([]byte(token))})
	}
	if c.Demo {
		demoToken = newToken()
		list = append(list, admin.Operator{Name: config.DemoOperator, TokenSHA256: sha256.Sum256([]byte(demoToken))})
	}
	return list, demoToken, nil
}
