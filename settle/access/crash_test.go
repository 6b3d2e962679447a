package access_test

import (
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"blockdesk/desk"
	"blockdesk/internal/solana"
	"blockdesk/persist"
	"blockdesk/settle/access"
)

func openKV(t testing.TB, fs vfs.FS, dir string) *persist.KV {
	t.Helper()
	kv, err := persist.OpenKV(dir, fs, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return kv
}

func keyPair(n uint64) (ed25519.PrivateKey, solana.Address) {
	var seed [32]byte
	binary.BigEndian.PutUint64(seed[:], n)
	private := ed25519.NewKeyFromSeed(seed[:])
	return private, solana.Address(private.Public().(ed25519.PublicKey))
}

func client(n uint32) (c [16]byte) {
	binary.BigEndian.PutUint32(c[12:], n)
	return c
}

// prove runs the handshake.
func prove(a *access.Access, private ed25519.PrivateKey, key solana.Address, from [16]byte) (desk.Grant, error) {
	c, err := a.Challenge(key)
	if err != nil {
		return desk.Grant{}, err
	}
	return a.Issue(key, c.Nonce, solana.Signature(ed25519.Sign(private, []byte(c.Nonce))), from)
}

// life is what callers have been answered.
type life struct {
	mu      sync.Mutex
	granted map[uint32]desk.Grant // by client
	revoked map[string]bool       // by id: true = answered, false = requested
}

func (l *life) record(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
}

// TestCrash: what was answered before the machine stopped holds after it, on the real
// store: an issued token is admitted and its client's hour is used, a revoked token is
// not admitted. Anything else happened or did not.
func TestCrash(t *testing.T) {
	t.Parallel()
	for seed := range uint64(24) {
		rng := rand.New(rand.NewPCG(seed, 20))
		var fs vfs.FS = vfs.NewCrashableMem()
		l := &life{granted: map[uint32]desk.Grant{}, revoked: map[string]bool{}}
		next := uint32(1)
		for range 4 {
			mem := fs.(*vfs.MemFS)
			kv := openKV(t, mem, "settle")
			a, err := access.Open(access.Options{}, kv)
			if err != nil {
				t.Fatal(err)
			}
			l.holds(t, a)
			fs = l.work(t, a, mem, rng, &next)
			if err := kv.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if len(l.granted) < 20 {
			t.Errorf("seed %d: only %d tokens", seed, len(l.granted))
		}
	}
}

// work issues and revokes from several goroutines, and returns the disk after a crash
// in the middle of it. Answers after the crash do not count.
func (l *life) work(t *testing.T, a *access.Access, mem *vfs.MemFS, rng *rand.Rand, next *uint32) vfs.FS {
	const workers, each = 3, 12
	var crashed bool
	var left vfs.FS
	at := rng.IntN(workers * each)
	done := make(chan struct{}, workers*each)
	crash := func() {
		l.record(func() {
			left = mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rng})
			crashed = true
		})
	}
	var all sync.WaitGroup
	for w := range uint32(workers) {
		first := *next + w*each
		private, key := keyPair(uint64(w))
		all.Go(func() {
			for n := range uint32(each) {
				g, err := prove(a, private, key, client(first+n))
				if err != nil {
					t.Error(err)
				}
				l.record(func() {
					if !crashed {
						l.granted[first+n] = g
					}
				})
				if n%3 == 0 {
					l.record(func() {
						if !crashed {
							l.revoked[g.ID] = false
						}
					})
					if _, err := a.Revoke(g.ID, "ann"); err != nil {
						t.Error(err)
					}
					l.record(func() {
						if !crashed {
							l.revoked[g.ID] = true
						}
					})
				}
				done <- struct{}{}
			}
		})
	}
	for range at {
		<-done
	}
	crash()
	all.Wait()
	*next += workers * each
	return left
}

func (l *life) holds(t *testing.T, a *access.Access) {
	t.Helper()
	private, key := keyPair(99)
	for from, g := range l.granted {
		reported, asked := l.revoked[g.ID]
		at, ok := a.Admit([]byte(g.Secret))
		if ok && (reported || at != g.Key) || !ok && !asked {
			t.Fatalf("client %d, token %s: admitted %v, revocation requested %v, answered %v", from, g.ID, ok, asked, reported)
		}
		var soon *desk.TooSoon
		if _, err := prove(a, private, key, client(from)); !errors.As(err, &soon) {
			t.Fatalf("client %d has had a token: %v", from, err)
		}
	}
	list, err := a.List("", access.MaxPage, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range l.granted {
		if !slices.ContainsFunc(list, func(e access.Entry) bool {
			return e.ID == g.ID && e.Key == g.Key && e.ExpiresAt == g.ExpiresAt && (e.RevokedAt > 0 || !l.revoked[g.ID])
		}) {
			t.Fatalf("token %s is not in the log", g.ID)
		}
	}
}
