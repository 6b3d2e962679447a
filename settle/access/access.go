// Package access hands out the bearer tokens of the DvP surface.
package access

import (
	"context"
	"errors"
	"fmt"
	"time"

	"blockdesk/internal/solana"
)

// Errors of an Access; the store's come wrapped.
var (
	ErrKey          = errors.New("access: not a key that signatures prove something about")
	ErrNonce        = errors.New("access: nonce refused")
	ErrNonceExpired = fmt.Errorf("%w: expired", ErrNonce)
	ErrNonceUsed    = fmt.Errorf("%w: presented before", ErrNonce)
	ErrProof        = errors.New("access: the signature is not the key's over the nonce")
	ErrFull         = errors.New("access: full")
	ErrUnknownToken = errors.New("access: no such token")
	ErrName         = errors.New("access: not a name")
	ErrLayout       = errors.New("access: record cannot be read")
)

// TooSoon refuses a client's second token within an hour.
type TooSoon struct{ RetryAfter time.Duration }

// Error says how long the client must wait.
func (t *TooSoon) Error() string {
	return fmt.Sprintf("access: one token an hour: the next in %s", t.RetryAfter)
}

// Options of an Access.
type Options struct {
	Now           func() int64         // Unix nanoseconds; default: the system's clock
	Elapsed       func() time.Duration // of a clock that is never set
	MaxTokens     int
	MaxUsedNonces int
}

// KV is the durable map that settlement's parts share.
type KV interface {
	Get(key []byte) ([]byte, bool, error)
	Scan(lo, hi []byte, f func(key, value []byte) bool) error
	Commit(fill func(set func(key, value []byte), deleteRange func(lo, hi []byte)), sync bool) error
}

// Access issues, admits and revokes.
type Access struct{}

// Challenge is what a client signs.
type Challenge struct {
	Nonce     string // base64
	ExpiresAt int64  // Unix nanoseconds
}

// Grant is a token.
type Grant struct {
	Secret    string
	ID        string
	ExpiresAt int64
	Key       solana.Address
}

// Entry is one token of the log.
type Entry struct {
	ID                             string
	Key                            solana.Address
	IssuedAt, ExpiresAt, RevokedAt int64
	RevokedBy                      string
}

// Open reads the log.
func Open(Options, KV) (*Access, error) { return &Access{}, nil }

// Challenge returns a nonce for key.
func (a *Access) Challenge(solana.Address) (Challenge, error) { return Challenge{}, ErrKey }

// Issue returns a token for a proof.
func (a *Access) Issue(_ solana.Address, _ string, _ solana.Signature, _ [16]byte) (Grant, error) {
	return Grant{}, ErrNonce
}

// Admit returns the key of a token that is valid.
func (a *Access) Admit([]byte) (solana.Address, bool) { return solana.Address{}, false }

// Revoke ends a token.
func (a *Access) Revoke(string, string) (Entry, error) { return Entry{}, ErrUnknownToken }

// List returns tokens in the order of their issue, from the one after the named.
func (a *Access) List(string, int, bool) ([]Entry, error) { return nil, nil }

// Run keeps the log and the memory short.
func (a *Access) Run(ctx context.Context) error { <-ctx.Done(); return nil }
