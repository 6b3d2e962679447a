package access

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"sync"
	"time"

	"blockdesk/desk"
	"blockdesk/internal/solana"
)

// A nonce, before it is base64 (contract, section E; the layout is our choice):
//
//	┌────────────────────────────┬───┬──────────┬─────────────────┬─────────────┬──────────┐
//	│ "svc_dvp_handshake_v1"[20] │ 0 │ key [32] │ expires, ms u64 │ random [32] │ tag [16] │
//	└────────────────────────────┴───┴──────────┴─────────────────┴─────────────┴──────────┘
//	0                            20  21         53                61            93        109
//
// expires is Unix time, most significant byte first. tag is the beginning of the
// HMAC-SHA256 of all before it, under a key that the process makes when it starts.
// Text is the standard alphabet with padding, 148 characters; no other text of the
// same bytes is taken. What a client signs begins with the protocol's name, so that
// it is no transaction, nor anything else that a wallet may be asked to sign.
const (
	// Protocol names the handshake, and keeps its nonces apart from whatever else
	// a key signs.
	Protocol = "svc_dvp_handshake_v1"
	// NonceTTL is how long a nonce may be presented.
	NonceTTL = time.Minute
	// NonceText is the length of a nonce's base64.
	NonceText = (nonceSize + 2) / 3 * 4

	nonceKey    = len(Protocol) + 1
	nonceExpiry = nonceKey + 32
	nonceRandom = nonceExpiry + 8
	nonceTag    = nonceRandom + 32
	nonceSize   = nonceTag + tagSize
	tagSize     = 16
)

type nonce [nonceSize]byte

// newNonce is not sealed yet. It expires NonceTTL after now, rounded down to a
// millisecond: a promise is never told longer than it is.
func newNonce(key solana.Address, now int64) (n nonce) {
	copy(n[:], Protocol)
	copy(n[nonceKey:], key[:])
	expires := time.Duration(now).Milliseconds() + NonceTTL.Milliseconds()
	binary.BigEndian.PutUint64(n[nonceExpiry:], uint64(expires))
	rand.Read(n[nonceRandom:nonceTag]) // it ends the process where it fails
	return n
}

// parseNonce reads the one text of a nonce. Whether it is ours, its seal tells.
func parseNonce(text string) (n nonce, ok bool) {
	if len(text) != NonceText {
		return n, false
	}
	// The decoder passes over line ends; then fewer bytes come out.
	var b [NonceText / 4 * 3]byte
	size, err := base64.StdEncoding.Strict().Decode(b[:], []byte(text))
	return nonce(b[:nonceSize]), err == nil && size == nonceSize
}

func (n *nonce) text() string          { return base64.StdEncoding.EncodeToString(n[:]) }
func (n *nonce) key() solana.Address   { return solana.Address(n[nonceKey:nonceExpiry]) }
func (n *nonce) random() (r [32]byte)  { return [32]byte(n[nonceRandom:nonceTag]) }
func (n *nonce) tag() []byte           { return n[nonceTag:] }
func (n *nonce) seal(process [32]byte) { copy(n.tag(), n.mac(process)) }

// expires is Unix nanoseconds, of a nonce whose seal is right.
func (n *nonce) expires() int64 {
	return int64(binary.BigEndian.Uint64(n[nonceExpiry:])) * int64(time.Millisecond)
}

// sealed reports whether this process has sealed the nonce; comparing takes the
// same time whatever differs.
func (n *nonce) sealed(process [32]byte) bool { return hmac.Equal(n.tag(), n.mac(process)) }

func (n *nonce) mac(process [32]byte) []byte {
	h := hmac.New(sha256.New, process[:])
	h.Write(n[:nonceTag])
	return h.Sum(nil)[:tagSize]
}

// burnt are the nonces that have been presented, by their random bytes, until they
// have expired. They are in two halves: when the older half has expired as a whole
// it goes, and the younger takes its place. So one stays for twice NonceTTL at most.
type usedNonces struct {
	clock *clock
	max   int // of both halves

	mu         sync.Mutex
	young, old map[[32]byte]struct{}
	rotateAt   int64 // when young will be old
}

// burn takes a nonce's only presentation. The clock is read under the lock: whoever
// comes after a half has gone sees the time at which it went. Errors:
// [ErrNonceExpired], [ErrNonceUsed], [desk.ErrTokensFull].
func (b *usedNonces) use(n *nonce) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock.now()
	if now >= n.expires() {
		return ErrNonceExpired
	}
	if late := now - b.rotateAt; late >= 0 {
		b.old, b.young = b.young, map[[32]byte]struct{}{}
		if late >= int64(NonceTTL) {
			b.old = nil
		}
		b.rotateAt = now + int64(NonceTTL)
	}
	name := n.random()
	if _, used := b.young[name]; used {
		return ErrNonceUsed
	}
	if _, used := b.old[name]; used {
		return ErrNonceUsed
	}
	if len(b.young)+len(b.old) >= b.max {
		return desk.ErrTokensFull
	}
	b.young[name] = struct{}{}
	return nil
}
