package httpgw

import (
	"context"
	"time"

	"blockdesk/desk"
	"blockdesk/market"
)

// What the handshake promises (contract, section E). Whoever is behind
// [Handshake] keeps it; cmd sees to that.
const (
	NonceLifetime = time.Minute
	TokenLifetime = 7 * 24 * time.Hour
	TokenWindow   = time.Hour // a client IP gets one token in it (spec, 5.3)
)

// Handshake gives DvP tokens to those who prove that they have the key of an
// address (spec, part 5). Any goroutine may call it.
type Handshake interface {
	// Challenge returns a nonce for the key to sign. desk.ErrBadKey: no signature of
	// this key is ever taken.
	Challenge(key market.Address) (desk.Challenge, error)
	// Issue returns a token for the key whose signature over the UTF-8 bytes of
	// nonce this is. client is who asks, as the rate limits count him. Errors:
	// ErrBadKey, ErrBadNonce, ErrBadProof, *TooSoon, ErrTokensFull of package desk; any other is
	// our fault.
	Issue(key market.Address, nonce string, signature [64]byte, client [16]byte) (desk.Grant, error)
	// Admit returns the key that a token was issued to; ok is false where it is
	// unknown, expired or revoked. It does not keep secret, and must not block.
	Admit(secret []byte) (key market.Address, ok bool)
}

// DvP co-signs the atomic transactions that Settlement.Package builds. Any
// goroutine may call it.
type DvP interface {
	// Submit signs and sends a build that its taker has signed, once for ever; for
	// one that was submitted before it tells what has become of it. A *desk.Refusal
	// says why the desk does not sign: then no signature of it exists. Other
	// errors: desk.ErrUnknownBuild, those of package desk, or that it could not be done
	// now; then it may come to be done all the same, and the same submission
	// says so.
	Submit(ctx context.Context, s *desk.Submission) (desk.Submitted, error)
	// Build tells where a build stands; ok is false where there is none.
	Build(ctx context.Context, id market.ClaimID) (b desk.BuildState, ok bool, err error)
}

// ChainHealth is what the settlement knows of the chain and of the desk on it.
type ChainHealth struct {
	Desk  market.Address // that delivers, co-signs and sponsors; zero = not told
	Nodes []ChainNode    // in the order of preference
	Slot  uint64         // the newest that a node has shown; 0 = none yet
	// BlockhashAge is that of the blockhash that the next package gets, and
	// BlockhashSlot the slot that it is as of; 0 = there is none.
	BlockhashAge  time.Duration
	BlockhashSlot uint64
	Tracked       int // signed transactions whose end is not known yet
	Landed        int // of them in a block that is confirmed
}

// ChainNode is one upstream.
type ChainNode struct {
	Name      string // without credentials: it is published
	Available bool
	Slot      uint64 // the newest that it has shown; 0 = none yet
	Lag       uint64 // slots behind ChainHealth.Slot
}

// MaxTransaction is the longest transaction that a Solana node takes, in bytes.
const MaxTransaction = 1232
