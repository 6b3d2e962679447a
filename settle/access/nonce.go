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

// A nonce, before base64 (docs/specification.md C.5; the layout is our choice):
//
//	┌────────────────────────────┬───┬──────────┬─────────────────┬─────────────┬──────────┐
//	│ "svc_dvp_handshake_v1"[20] │ 0 │ key [32] │ expires, ms u64 │ random [32] │ tag [16] │
//	└────────────────────────────┴───┴──────────┴─────────────────┴─────────────┴──────────┘
//	0                            20  21         53                61            93        109
//
// expires is Unix time, big-endian. tag is the beginning of the HMAC-SHA256 of all
// before it, under a key that the process makes at its start. The text is the standard
// alphabet with padding, 148 characters; no other encoding is accepted. The text that a
// client signs begins with the protocol's name, so that it is no transaction, nor anything else
// that a wallet may be asked to sign.
const (
	// Protocol names the handshake, and distinguishes its nonces from anything else
	// that a key signs.
	Protocol = "svc_dvp_handshake_v1"
	// NonceTTL is how long a nonce is valid.
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

// newNonce returns a nonce without its tag. It expires NonceTTL after now, rounded
// down to a millisecond.
func newNonce(key solana.Address, now int64) (n nonce) {
	copy(n[:], Protocol)
	copy(n[nonceKey:], key[:])
	expires := time.Duration(now).Milliseconds() + NonceTTL.Milliseconds()
	binary.BigEndian.PutUint64(n[nonceExpiry:], uint64(expires))
	rand.Read(n[nonceRandom:nonceTag]) // it never fails: it would end the process
	return n
}

// parseNonce decodes the text of a nonce. It does not check the tag.
func parseNonce(text string) (n nonce, ok bool) {
	if len(text) != NonceText {
		return n, false
	}
	// The decoder skips line ends; then there are fewer bytes.
	var b [NonceText / 4 * 3]byte
	size, err := base64.StdEncoding.Strict().Decode(b[:], []byte(text))
	return nonce(b[:nonceSize]), err == nil && size == nonceSize
}

func (n *nonce) text() string          { return base64.StdEncoding.EncodeToString(n[:]) }
func (n *nonce) key() solana.Address   { return solana.Address(n[nonceKey:nonceExpiry]) }
func (n *nonce) random() (r [32]byte)  { return [32]byte(n[nonceRandom:nonceTag]) }
func (n *nonce) tag() []byte           { return n[nonceTag:] }
func (n *nonce) seal(process [32]byte) { copy(n.tag(), n.mac(process)) }

// expires returns Unix nanoseconds. The tag must have been checked.
func (n *nonce) expires() int64 {
	return int64(binary.BigEndian.Uint64(n[nonceExpiry:])) * int64(time.Millisecond)
}

// sealed reports, in constant time, whether this process has made the tag.
func (n *nonce) sealed(process [32]byte) bool { return hmac.Equal(n.tag(), n.mac(process)) }

func (n *nonce) mac(process [32]byte) []byte {
	h := hmac.New(sha256.New, process[:])
	h.Write(n[:nonceTag])
	return h.Sum(nil)[:tagSize]
}

// usedNonces are the nonces that have been presented, by their random bytes, until
// they have expired. They are in two halves: when the whole older half has expired it
// is dropped, and the younger one takes its place. So a nonce is kept for at most
// twice NonceTTL.
type usedNonces struct {
	clock *clock
	max   int // of both halves

	mu         sync.Mutex
	young, old map[[32]byte]struct{}
	rotateAt   int64 // when young becomes old
}

// use records a nonce's only presentation. It reads the clock under the lock, so that
// a call after a half was dropped sees at least that time. Errors: [ErrNonceExpired],
// [ErrNonceUsed], [desk.ErrTokensFull].
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
