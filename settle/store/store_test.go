package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/build"
	"blockdesk/market"
	"blockdesk/persist/kv"
	"blockdesk/persist/kv/kvtest"
	"blockdesk/settle/binding"
	"blockdesk/settle/cosign"
	"blockdesk/settle/store"
	"blockdesk/settle/store/storetest"
)

// now is a time, in nanoseconds of Unix time.
const now = 1_800_000_000_000_000_000

func open(t testing.TB, kv kv.Store) *store.Store {
	t.Helper()
	s, err := store.Open(kv)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func buildOf(claim market.ClaimID, fill byte) *store.Build {
	return &store.Build{Claim: claim, Way: rfq.Atomic, Taker: solana.Address{9}, Raw: []byte{1, fill, 3}, LastValid: 1000, BuiltAt: now}
}

func signature(n int) (s solana.Signature) {
	copy(s[:], fmt.Sprintf("signature %08d", n))
	return s
}

func unmatchedOf(n int) *store.UnmatchedPayment {
	return &store.UnmatchedPayment{
		Signature: signature(n), Rail: market.RailUSDC, Amount: 250_000_000, Reason: "missing_reference",
		Payer: solana.Address{4}, Slot: 77, SeenAt: now, Claim: 5,
	}
}

func sameBuild(a, b *store.Build) bool {
	return a.Claim == b.Claim && a.Way == b.Way && a.Taker == b.Taker && bytes.Equal(a.Raw, b.Raw) && a.LastValid == b.LastValid && a.BuiltAt == b.BuiltAt
}

func TestOpen(t *testing.T) {
	kv := kvtest.New()
	open(t, kv)
	if got, ok, _ := kv.Get([]byte{1}); !ok || !bytes.Equal(got, []byte{1}) {
		t.Errorf("layout %x", got)
	}
	open(t, kv)
	set := func(key, value []byte) *kvtest.Memory {
		kv := kvtest.New()
		err := kv.Commit(func(set func(key, value []byte), _ func(lo, hi []byte)) { set(key, value) }, true)
		if err != nil {
			t.Fatal(err)
		}
		return kv
	}
	open(t, set([]byte{0x20}, []byte("another's"))) // the map is shared
	for name, kv := range map[string]*kvtest.Memory{
		"next layout":        set([]byte{1}, []byte{2}),
		"long layout":        set([]byte{1}, []byte("something else entirely")),
		"no layout, entries": set([]byte{0x1f, 1}, nil),
	} {
		if _, err := store.Open(kv); !errors.Is(err, store.ErrLayout) {
			t.Errorf("%s: %v", name, err)
		}
	}
	broken, unwritable := errors.New("broken"), kvtest.New()
	unwritable.FailCommits(broken)
	if _, err := store.Open(unwritable); !errors.Is(err, broken) {
		t.Errorf("a map that cannot be written: %v", err)
	}
}

func TestBuild(t *testing.T) {
	kv := kvtest.New()
	s := open(t, kv)
	if b, ok, err := s.Build(1); b != nil || ok || err != nil {
		t.Errorf("%v %v %v", b, ok, err)
	}
	first := buildOf(1, 1)
	stored, err := s.PutBuild(first, true)
	if err != nil || !sameBuild(stored, first) {
		t.Fatalf("%+v, %v", stored, err)
	}
	first.Raw[1] = 99 // the caller's bytes are the caller's
	want := buildOf(1, 1)
	for name, put := range map[string]func() (*store.Build, error){
		"second":       func() (*store.Build, error) { return s.PutBuild(buildOf(1, 2), false) },
		"second, sync": func() (*store.Build, error) { return s.PutBuild(buildOf(1, 2), true) },
		"read":         func() (*store.Build, error) { b, _, err := s.Build(1); return b, err },
		"after a restart": func() (*store.Build, error) {
			b, _, err := open(t, kv).Build(1)
			return b, err
		},
	} {
		if stored, err = put(); err != nil || !sameBuild(stored, want) {
			t.Errorf("%s: %+v, %v", name, stored, err)
		}
	}
}

// TestBuildSynced: a caller with sync has the build on disk, even if another has
// stored it without.
func TestBuildSynced(t *testing.T) {
	var synced []bool
	kv := kvtest.New()
	kv.Before(func(sync bool) error { synced = append(synced, sync); return nil })
	s := open(t, kv)
	synced = nil
	for _, sync := range []bool{false, false, true} {
		if _, err := s.PutBuild(buildOf(1, 1), sync); err != nil {
			t.Fatal(err)
		}
	}
	if fmt.Sprint(synced) != "[false true]" {
		t.Errorf("commits: %v", synced)
	}
}

func TestBuildInvalid(t *testing.T) {
	s := open(t, kvtest.New())
	for name, spoil := range map[string]func(b *store.Build){
		"no claim": func(b *store.Build) { b.Claim = 0 },
		"no way":   func(b *store.Build) { b.Way = 0 },
		"way 3":    func(b *store.Build) { b.Way = 3 },
		"no taker": func(b *store.Build) { b.Taker = solana.Address{} },
		"no bytes": func(b *store.Build) { b.Raw = nil },
		"no time":  func(b *store.Build) { b.BuiltAt = 0 },
		"too long": func(b *store.Build) { b.Raw = make([]byte, store.MaxRaw+1) },
	} {
		b := buildOf(1, 1)
		spoil(b)
		if _, err := s.PutBuild(b, true); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	b := buildOf(1, 1)
	b.Raw = make([]byte, store.MaxRaw)
	if _, err := s.PutBuild(b, true); err != nil {
		t.Errorf("at the limit: %v", err)
	}
}

// TestFirstWins: of all that put at once, all get the same.
func TestFirstWins(t *testing.T) {
	const putters, claims = 8, 200
	kv := kvtest.New()
	s := open(t, kv)
	var got [putters][claims + 1]byte
	var wg sync.WaitGroup
	for p := range putters {
		wg.Go(func() {
			for c := 1; c <= claims; c++ {
				b, err := s.PutBuild(buildOf(market.ClaimID(c), byte(p)), p%2 == 0)
				if err != nil {
					t.Error(err)
					return
				}
				got[p][c] = b.Raw[1]
			}
		})
	}
	wg.Wait()
	s = open(t, kv)
	for c := 1; c <= claims; c++ {
		b, _, err := s.Build(market.ClaimID(c))
		if err != nil {
			t.Fatal(err)
		}
		for p := range putters {
			if got[p][c] != b.Raw[1] {
				t.Fatalf("claim %d: putter %d got that of %d, kept is that of %d", c, p, got[p][c], b.Raw[1])
			}
		}
	}
}

func TestPrune(t *testing.T) {
	s := open(t, kvtest.New())
	const old = store.MaxPrunedACall + 10
	for c := 1; c <= old; c++ {
		b := buildOf(market.ClaimID(c), 1)
		b.BuiltAt = now + int64(c)
		if _, err := s.PutBuild(b, false); err != nil {
			t.Fatal(err)
		}
	}
	// One of them was signed, one is younger.
	if _, err := s.PutTransaction(storetest.Atomic(t, 3, 1, build.Desk), 1000, now); err != nil {
		t.Fatal(err)
	}
	young := buildOf(old+1, 1)
	young.BuiltAt = now + int64(store.BuildRetention)
	if _, err := s.PutBuild(young, false); err != nil {
		t.Fatal(err)
	}
	prune := func(at int64, want int) {
		t.Helper()
		if n, err := s.Prune(at); n != want || err != nil {
			t.Errorf("pruned %d, %v; want %d", n, err, want)
		}
	}
	prune(0, 0)
	prune(now+int64(store.BuildRetention)+1, 0)              // none is older than
	prune(now+int64(store.BuildRetention)+2, 1)              // the first is
	prune(now+int64(store.BuildRetention)+old+1, 1024)       // bounded
	prune(now+int64(store.BuildRetention)+old+1, old-2-1024) // the rest
	prune(now+int64(store.BuildRetention)+old+1, 0)
	for c, want := range map[market.ClaimID]bool{1: false, 2: false, 3: true, 4: false, old: false, old + 1: true} {
		if _, ok, err := s.Build(c); ok != want || err != nil {
			t.Errorf("build of claim %d: %v %v", c, ok, err)
		}
	}
}

func TestKeep(t *testing.T) {
	kv := kvtest.New()
	s := open(t, kv)
	x := storetest.Atomic(t, 7, 1, build.Taker)
	k, err := s.PutTransaction(x, 1234, now)
	if err != nil {
		t.Fatal(err)
	}
	same := func(name string, k store.Transaction) {
		t.Helper()
		if k.Claim() != 7 || k.Kind() != cosign.Cosign || k.Hash() != x.Hash() || k.Signature() != x.Signature() ||
			!bytes.Equal(k.Bytes(), x.Bytes()) || k.LastValid() != 1234 || k.SignedAt() != now {
			t.Errorf("%s: %+v", name, k)
		}
	}
	same("kept", k)
	k, err = s.PutTransaction(x, 9999, now+1) // the same again is the same
	if err != nil {
		t.Fatal(err)
	}
	same("again", k)
	s = open(t, kv)
	k, ok, err := s.Transaction(7, x.Hash())
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	same("after a restart", k)
	if id, ok, err := s.ClaimOf(x.Signature()); id != 7 || !ok || err != nil {
		t.Errorf("whose: %d %v %v", id, ok, err)
	}
	if id, ok, err := s.ClaimOf(signature(1)); id != 0 || ok || err != nil {
		t.Errorf("a stranger's: %d %v %v", id, ok, err)
	}
	if _, ok, err := s.Transaction(7, solana.Hash{1}); ok || err != nil {
		t.Errorf("another hash: %v %v", ok, err)
	}
	if _, ok, err := s.Transaction(8, x.Hash()); ok || err != nil {
		t.Errorf("another claim: %v %v", ok, err)
	}
	if _, err := s.PutTransaction(cosign.Signed{}, 1, now); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("nothing signed: %v", err)
	}
	if _, err := s.PutTransaction(storetest.Atomic(t, 9, 1, build.Desk), 1, 0); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("no time: %v", err)
	}
	if _, err := s.PutTransaction(storetest.Atomic(t, 9, 1, build.Desk), 0, now); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("no height: %v", err)
	}
}

// TestKeepConflict: one set of signatures a message, one cosigned message a claim.
func TestKeepConflict(t *testing.T) {
	s := open(t, kvtest.New())
	a := build.Atomic{
		Common: storetest.Common(7, 1), Taker: storetest.AddressOf(storetest.Key(2)), Desk: storetest.AddressOf(storetest.Key(1)),
		Payment: build.Leg{Rail: market.RailSOL, Amount: 7, To: solana.Address{8}}, Base: storetest.Mint(t), BaseAmount: 5,
		FeePayer: build.Taker, RentPayer: build.Taker,
	}
	x := storetest.Atomic(t, 7, 1, build.Taker)
	u := storetest.Build(t, &a)
	// The taker can sign the same message in more than one way.
	one := storetest.Desk{Key: storetest.Key(1)}.Cosign(t, 7, u, storetest.Key(2))
	two := storetest.Desk{Key: storetest.Key(1)}.CosignBy(t, 7, u, a.Taker, storetest.Resign(t, storetest.Key(2), u.Message()))
	if one.Hash() != two.Hash() || one.Signature() == two.Signature() {
		t.Fatal("the test signs the same way twice")
	}
	if _, err := s.PutTransaction(one, 1, now); err != nil {
		t.Fatal(err)
	}
	if _, err := s.PutTransaction(two, 1, now); !errors.Is(err, store.ErrConflict) {
		t.Errorf("other signatures: %v", err)
	}
	if _, err := s.PutTransaction(x, 1, now); !errors.Is(err, store.ErrConflict) {
		t.Errorf("another cosigned message: %v", err)
	}
	if list, err := s.Transactions(7); len(list) != 1 || err != nil || list[0].Signature() != one.Signature() {
		t.Errorf("kept: %v, %v", list, err)
	}
}

func TestTransactions(t *testing.T) {
	s := open(t, kvtest.New())
	if list, err := s.Transactions(1); len(list) != 0 || err != nil {
		t.Errorf("%v %v", list, err)
	}
	for _, other := range []market.ClaimID{1<<32 - 1, 1<<32 + 1} {
		if _, err := s.PutTransaction(storetest.Delivery(t, other, 1), 1, now); err != nil {
			t.Fatal(err)
		}
	}
	// The clock goes backwards; the order is that of keeping.
	for i := range store.MaxTransactions {
		if _, err := s.PutTransaction(storetest.Delivery(t, 1<<32, byte(i+1)), uint64(i+1), now-int64(i)); err != nil {
			t.Fatal(err)
		}
	}
	list, err := s.Transactions(1 << 32)
	if len(list) != store.MaxTransactions || err != nil {
		t.Fatalf("%d, %v", len(list), err)
	}
	for i, k := range list {
		if k.LastValid() != uint64(i+1) {
			t.Errorf("place %d has number %d", i, k.LastValid())
		}
	}
	if _, err := s.PutTransaction(storetest.Delivery(t, 1<<32, store.MaxTransactions+1), 1, now); !errors.Is(err, store.ErrFull) {
		t.Errorf("one more: %v", err)
	}
	if _, err := s.PutTransaction(storetest.Delivery(t, 1<<32, store.MaxTransactions), 1, now); err != nil {
		t.Errorf("the last one again: %v", err)
	}
}

// TestPutTransactionFailed: what could not be written is not stored, and is there after a try
// that succeeds.
func TestPutTransactionFailed(t *testing.T) {
	broken, fail := errors.New("broken"), false
	kv := kvtest.New()
	kv.Before(func(sync bool) error {
		if fail {
			return broken
		}
		if !sync {
			t.Error("a commit that does not wait for the disk")
		}
		return nil
	})
	s := open(t, kv)
	x := storetest.Delivery(t, 7, 1)
	fail = true
	if _, err := s.PutTransaction(x, 1, now); !errors.Is(err, broken) || !strings.Contains(err.Error(), binding.Memo(7)) {
		t.Errorf("%v", err)
	}
	if list, err := s.Transactions(7); len(list) != 0 || err != nil {
		t.Errorf("%v %v", list, err)
	}
	fail = false
	if _, err := s.PutTransaction(x, 1, now); err != nil {
		t.Error(err)
	}
	// Even what is there is written again: the first time may have failed at the
	// disk only.
	fail = true
	if _, err := s.PutTransaction(x, 1, now); !errors.Is(err, broken) {
		t.Errorf("again: %v", err)
	}
}

func TestCursor(t *testing.T) {
	s := open(t, kvtest.New())
	if _, ok, err := s.Cursor(solana.Address{1}); ok || err != nil {
		t.Errorf("%v %v", ok, err)
	}
	for i := range store.MaxCursors {
		if err := s.SetCursor(solana.Address{1, byte(i)}, signature(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.SetCursor(solana.Address{2}, signature(1)); !errors.Is(err, store.ErrFull) {
		t.Errorf("one more: %v", err)
	}
	if err := s.SetCursor(solana.Address{1, 7}, signature(70)); err != nil {
		t.Errorf("one that is there: %v", err)
	}
	for i, want := range map[byte]solana.Signature{6: signature(6), 7: signature(70)} {
		if sig, ok, err := s.Cursor(solana.Address{1, i}); sig != want || !ok || err != nil {
			t.Errorf("cursor %d: %v %v %v", i, sig, ok, err)
		}
	}
	all, err := s.Cursors()
	if err != nil || len(all) != store.MaxCursors || all[solana.Address{1, 7}] != signature(70) || all[solana.Address{1, 6}] != signature(6) {
		t.Errorf("%d cursors, %v", len(all), err)
	}
}

// TestCursorsDamaged: an entry that cannot have been written here is an error.
func TestCursorsDamaged(t *testing.T) {
	for _, key := range [][]byte{append([]byte{7}, make([]byte, 31)...), append([]byte{7}, make([]byte, 32)...)} {
		kv := kvtest.New()
		s := open(t, kv)
		err := kv.Commit(func(set func(key, value []byte), _ func(lo, hi []byte)) { set(key, make([]byte, 95-len(key))) }, false)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Cursors(); !errors.Is(err, store.ErrDamaged) {
			t.Errorf("%d bytes of key: %v", len(key), err)
		}
	}
}

// TestConcurrent: everything at once, for the race detector.
func TestConcurrent(t *testing.T) {
	s := open(t, kvtest.New())
	var signed []cosign.Signed
	for c := 1; c <= 8; c++ {
		signed = append(signed, storetest.Delivery(t, market.ClaimID(c), 1), storetest.Delivery(t, market.ClaimID(c), 2))
	}
	var wg sync.WaitGroup
	for w := range 4 {
		rng := rand.New(rand.NewPCG(uint64(w), 1))
		wg.Go(func() {
			for range 100 {
				x := signed[rng.IntN(len(signed))]
				n := rng.IntN(20)
				_, err := s.PutBuild(buildOf(x.Claim(), byte(w)), false)
				_, keepErr := s.PutTransaction(x, 1, now)
				_, ofErr := s.Transactions(x.Claim())
				_, pruneErr := s.Prune(now + 2*int64(store.BuildRetention))
				unmatchedErr := s.AddUnmatched(unmatchedOf(n))
				resolveErr := s.ResolveUnmatched(signature(n), "ops", "", now)
				if errors.Is(resolveErr, store.ErrResolved) {
					resolveErr = nil
				}
				if err := errors.Join(err, keepErr, ofErr, pruneErr, unmatchedErr, resolveErr, s.SetCursor(solana.Address{1}, signature(n))); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	for c := 1; c <= 8; c++ {
		list, err := s.Transactions(market.ClaimID(c))
		if err != nil || len(list) > 2 {
			t.Errorf("claim %d: %d, %v", c, len(list), err)
		}
	}
	if s.UnmatchedCount() != 0 {
		t.Errorf("%d unmatched", s.UnmatchedCount())
	}
}
