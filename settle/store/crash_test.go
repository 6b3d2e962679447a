package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"blockdesk/internal/solana"
	"blockdesk/market"
	"blockdesk/persist"
	"blockdesk/settle/cosign"
	"blockdesk/settle/store"
	"blockdesk/settle/store/storetest"
)

func openKV(t testing.TB, fs vfs.FS) *persist.KV {
	t.Helper()
	kv, err := persist.OpenKV("/settle", fs, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return kv
}

// acknowledged is what a store has said before a crash.
type acknowledged struct {
	stored    []store.Transaction
	builds    []*store.Build
	unmatched []solana.Signature
	resolved  []solana.Signature
	cursor    solana.Signature
}

// TestCrash: what was acknowledged as on disk is there after a crash, and nothing
// that stays has lost what came before it.
func TestCrash(t *testing.T) {
	var signed []cosign.Signed
	for c := 1; c <= 6; c++ {
		for step := 1; step <= 3; step++ {
			signed = append(signed, storetest.Delivery(t, market.ClaimID(c), byte(step)))
		}
	}
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 2))
		mem := vfs.NewCrashableMem()
		kv := openKV(t, mem)
		p := work(t, rng, open(t, kv), signed)
		crashed := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rng})
		if err := kv.Close(); err != nil {
			t.Fatal(err)
		}
		kv = openKV(t, crashed)
		p.check(t, seed, open(t, kv))
		if err := kv.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// work does some of everything, and returns what was acknowledged.
func work(t *testing.T, rng *rand.Rand, s *store.Store, signed []cosign.Signed) (p acknowledged) {
	t.Helper()
	for n := range rng.IntN(60) {
		var err error
		switch rng.IntN(5) {
		case 0:
			var k store.Transaction
			k, err = s.PutTransaction(signed[rng.IntN(len(signed))], uint64(n+1), now)
			p.stored = append(p.stored, k)
		case 1:
			sync := rng.IntN(2) == 0
			var b *store.Build
			b, err = s.PutBuild(buildOf(market.ClaimID(1+rng.IntN(20)), byte(n)), sync)
			if sync {
				p.builds = append(p.builds, b)
			}
		case 2:
			err = s.AddUnmatched(unmatchedOf(n))
			p.unmatched = append(p.unmatched, signature(n))
		case 3:
			if sig := signature(rng.IntN(n + 1)); len(p.unmatched) > 0 && s.ResolveUnmatched(sig, "ops", "", now) == nil {
				p.resolved = append(p.resolved, sig)
			}
		default:
			// The cursor follows the payments: it may not outlive them.
			p.cursor = signature(n)
			err = s.SetCursor(solana.Address{1}, p.cursor)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func (p *acknowledged) check(t *testing.T, seed uint64, s *store.Store) {
	t.Helper()
	for _, want := range p.stored {
		k, ok, err := s.Transaction(want.Claim(), want.Hash())
		if err != nil || !ok || !bytes.Equal(k.Bytes(), want.Bytes()) || k.LastValid() != want.LastValid() {
			t.Fatalf("seed %d: kept %v, %v: %+v, want %+v", seed, ok, err, k, want)
		}
		if id, ok, err := s.ClaimOf(want.Signature()); err != nil || !ok || id != want.Claim() {
			t.Fatalf("seed %d: whose is %s: %d %v %v", seed, want.Signature(), id, ok, err)
		}
	}
	for _, want := range p.builds {
		if b, ok, err := s.Build(want.Claim); err != nil || !ok || !sameBuild(b, want) {
			t.Fatalf("seed %d: build %v, %v: %+v, want %+v", seed, ok, err, b, want)
		}
	}
	for _, sig := range p.unmatched {
		if _, ok, err := s.UnmatchedPayment(sig); err != nil || !ok {
			t.Fatalf("seed %d: unmatched %v, %v", seed, ok, err)
		}
	}
	for _, sig := range p.resolved {
		if x, ok, err := s.UnmatchedPayment(sig); err != nil || !ok || x.Resolved == 0 {
			t.Fatalf("seed %d: resolved %v, %v", seed, ok, err)
		}
	}
	if want := len(p.unmatched) - len(p.resolved); s.UnmatchedCount() != want {
		t.Fatalf("seed %d: %d unmatched, want %d", seed, s.UnmatchedCount(), want)
	}
}

// TestCursorFollows: a cursor that survives a crash has everything that was written
// before it, although no sync was waited for.
func TestCursorFollows(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 3))
		mem := vfs.NewCrashableMem()
		kv := openKV(t, mem)
		s := open(t, kv)
		const last = 30
		for n := 1; n <= last; n++ {
			_, putErr := s.PutBuild(buildOf(market.ClaimID(n), byte(n)), false)
			if err := errors.Join(putErr, s.SetCursor(solana.Address{1}, signature(n))); err != nil {
				t.Fatal(err)
			}
		}
		crashed := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rng})
		if err := kv.Close(); err != nil {
			t.Fatal(err)
		}
		kv = openKV(t, crashed)
		s = open(t, kv)
		cursor, _, err := s.Cursor(solana.Address{1})
		if err != nil {
			t.Fatal(err)
		}
		for n := 1; n <= last && string(cursor[:]) >= fmt.Sprintf("signature %08d", n); n++ {
			if _, ok, err := s.Build(market.ClaimID(n)); !ok || err != nil {
				t.Fatalf("seed %d: the cursor is at %s and build %d is lost, %v", seed, cursor[:18], n, err)
			}
		}
		if err := kv.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
