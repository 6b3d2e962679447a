package desk

import (
	"errors"
	"log/slog"
	"time"

	"blockdesk/market"
)

// Errors of issuing an access token.
var (
	// ErrBadKey: the public key is a weak one, for which signatures prove nothing.
	ErrBadKey = errors.New("access: weak public key: a signature by it could be forged")
	// ErrBadNonce: the nonce is malformed, expired, used, or was issued to another
	// key.
	ErrBadNonce = errors.New("access: the nonce is not valid")
	// ErrBadProof: the signature is not by the key over the nonce.
	ErrBadProof = errors.New("access: the signature is not that of the key over the nonce")
	// ErrTokensFull: the number of tokens, or of used nonces, is at its limit.
	ErrTokensFull = errors.New("access: too many tokens or nonces: try again later")
)

// TooSoon is the error of a client that was issued a token a short time ago.
type TooSoon struct{ RetryAfter time.Duration }

// Error returns the time to wait.
func (e *TooSoon) Error() string {
	return "access: one token an hour and client: the next in " + e.RetryAfter.String()
}

// Challenge is a nonce that a client signs to prove that it has a key.
type Challenge struct {
	Nonce     string // base64; the signature is over these characters
	ExpiresAt int64  // Unix nanoseconds
}

// Grant is a token that was just issued. Printing or logging it shows its ID and
// not its secret.
type Grant struct {
	Secret    string // what the client sends after "Bearer "; only the client has it
	ID        string // the operators' name of the token
	ExpiresAt int64  // Unix nanoseconds
	Key       market.Address
}

// String returns the token's ID.
func (g Grant) String() string { return "token " + g.ID }

// GoString returns the token's ID.
func (g Grant) GoString() string { return g.String() }

// LogValue returns the token's ID.
func (g Grant) LogValue() slog.Value { return slog.StringValue(g.ID) }
