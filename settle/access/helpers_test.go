package access

import (
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"sync/atomic"
	"time"

	"pgregory.net/rapid"

	"blockdesk/desk"
	"blockdesk/internal/solana"
	"blockdesk/persist/kv"
	"blockdesk/persist/kv/kvtest"
)

const (
	second = int64(time.Second)
	hour   = int64(IssueWindow)
	week   = int64(TokenLifetime)
	// day0 is when the tests' clocks begin: 2026-11-20, not on a millisecond.
	day0 = 1_795_132_800_123_456_789
)

// watch is a clock that a test sets.
type watch struct{ wall, elapsed atomic.Int64 }

func newWatch() *watch {
	w := new(watch)
	w.wall.Store(day0)
	return w
}

// pass lets d nanoseconds pass.
func (w *watch) pass(d int64) {
	w.wall.Add(d)
	w.elapsed.Add(d)
}

// set moves the system's clock by d, while no time passes.
func (w *watch) set(d int64) { w.wall.Add(d) }

// rebooted is the same clock after a restart.
func (w *watch) rebooted() *watch {
	n := new(watch)
	n.wall.Store(w.wall.Load())
	return n
}

func (w *watch) options() Options {
	return Options{Now: w.wall.Load, Elapsed: func() time.Duration { return time.Duration(w.elapsed.Load()) }}
}

// memKV is a store in memory that counts what is deleted.
type memKV struct {
	*kvtest.Memory
	cuts int // ranges that were deleted
}

func newMemKV() *memKV { return &memKV{Memory: kvtest.New()} }

func (k *memKV) Commit(fill kv.Fill, sync bool) error {
	return k.Memory.Commit(func(set func(key, value []byte), deleteRange func(lo, hi []byte)) {
		fill(set, func(lo, hi []byte) {
			k.cuts++
			deleteRange(lo, hi)
		})
	}, sync)
}

// takesAndFails is a store whose every call fails, but does what it was asked.
type takesAndFails struct{ *memKV }

func (k takesAndFails) Get(key []byte) ([]byte, bool, error) {
	value, ok, _ := k.memKV.Get(key)
	return value, ok, errDisk
}

func (k takesAndFails) Scan([]byte, []byte, func(key, value []byte) bool) error { return errDisk }

func (k takesAndFails) Commit(fill kv.Fill, sync bool) error {
	_ = k.memKV.Commit(fill, sync)
	return errDisk
}

var errDisk = errors.New("disk")

// person is a key that can sign.
type person struct {
	private ed25519.PrivateKey
	key     solana.Address
}

func newPerson(n uint64) person {
	var seed [32]byte
	binary.BigEndian.PutUint64(seed[:], n)
	private := ed25519.NewKeyFromSeed(seed[:])
	return person{private, solana.Address(private.Public().(ed25519.PublicKey))}
}

func (p person) sign(text string) solana.Signature {
	return solana.Signature(ed25519.Sign(p.private, []byte(text)))
}

func client(n byte) (c [16]byte) {
	copy(c[:], []byte{10: 0xff, 11: 0xff, 12: 192, 13: 0, 14: 2, 15: n})
	return c
}

func mustOpen(t rapid.TB, o Options, kv kv.Store) *Access {
	t.Helper()
	a, err := Open(o, kv)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *Access) mustChallenge(t rapid.TB, key solana.Address) string {
	t.Helper()
	c, err := a.Challenge(key)
	if err != nil {
		t.Fatal(err)
	}
	return c.Nonce
}

// prove runs the whole handshake.
func (a *Access) prove(t rapid.TB, p person, from [16]byte) (desk.Grant, error) {
	t.Helper()
	nonce := a.mustChallenge(t, p.key)
	return a.Issue(p.key, nonce, p.sign(nonce), from)
}

func (a *Access) mustProve(t rapid.TB, p person, from [16]byte) desk.Grant {
	t.Helper()
	g, err := a.prove(t, p, from)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// admits fails the test unless what Admit says of a grant is ok.
func (a *Access) admits(t rapid.TB, g desk.Grant, ok bool) {
	t.Helper()
	key, admitted := a.Admit([]byte(g.Secret))
	if admitted != ok || ok && key != g.Key || !ok && key != (solana.Address{}) {
		t.Errorf("token %s of %s: admitted %v as %s, want %v", g.ID, solana.Base58(g.Key), admitted, solana.Base58(key), ok)
	}
}

// remembers counts what is in memory.
func (a *Access) remembers() (tokens, live, hours int) {
	a.writer.Lock()
	defer a.writer.Unlock()
	a.mu.RLock()
	defer a.mu.RUnlock()
	return len(a.queue), len(a.live), len(a.lastIssued)
}

// tooSoon returns how long err says to wait, and fails the test where it does not.
func tooSoon(t rapid.TB, err error) int64 {
	t.Helper()
	var soon *desk.TooSoon
	if !errors.As(err, &soon) {
		t.Fatalf("not too soon: %v", err)
	}
	return int64(soon.RetryAfter)
}
