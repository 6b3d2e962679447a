package store_test

import (
	"errors"
	"strings"
	"testing"

	"blockdesk/internal/solana"
	"blockdesk/market"
	"blockdesk/persist/kv/kvtest"
	"blockdesk/settle/store"
	"blockdesk/settle/store/storetest"
)

func TestUnmatched(t *testing.T) {
	kv := kvtest.New()
	s := open(t, kv)
	for n := range 5 {
		if err := s.AddUnmatched(unmatchedOf(n)); err != nil {
			t.Fatal(err)
		}
	}
	again := unmatchedOf(2)
	again.Reason, again.Amount = "too_old", 1
	if err := s.AddUnmatched(again); err != nil {
		t.Fatal(err)
	}
	if x, ok, err := s.UnmatchedPayment(signature(2)); err != nil || !ok || *x != *unmatchedOf(2) {
		t.Errorf("the first one stays: %+v, %v", x, err)
	}
	if err := s.ResolveUnmatched(signature(2), "ops", "paid back by hand – 5 µSOL", now+5); err != nil {
		t.Fatal(err)
	}
	s = open(t, kv)
	if s.UnmatchedCount() != 4 {
		t.Errorf("%d unresolved", s.UnmatchedCount())
	}
	want := *unmatchedOf(2)
	want.Resolved, want.By, want.Note = now+5, "ops", "paid back by hand – 5 µSOL"
	if x, ok, err := s.UnmatchedPayment(signature(2)); err != nil || !ok || *x != want {
		t.Errorf("resolved: %+v, %v", x, err)
	}
	if err := s.AddUnmatched(unmatchedOf(2)); err != nil || s.UnmatchedCount() != 4 {
		t.Errorf("one that was resolved came up again: %v", err)
	}
	var seen []string
	for from := (solana.Signature{}); ; {
		page, err := s.UnmatchedPayments(from, 3)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for i := range page {
			seen = append(seen, strings.TrimRight(string(page[i].Signature[:]), "\x00"))
		}
		from = page[len(page)-1].Signature
	}
	if got := strings.Join(seen, ", "); got != "signature 00000000, signature 00000001, signature 00000003, signature 00000004" {
		t.Errorf("listed: %s", got)
	}
	if list, err := s.UnmatchedPayments(solana.Signature{}, 0); len(list) != 0 || err != nil {
		t.Errorf("none asked for: %v %v", list, err)
	}
}

func TestUnmatchedErrors(t *testing.T) {
	s := open(t, kvtest.New())
	if err := s.AddUnmatched(unmatchedOf(1)); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", store.MaxWord+1)
	for name, spoil := range map[string]func(x *store.UnmatchedPayment){
		"no signature":  func(x *store.UnmatchedPayment) { x.Signature = solana.Signature{} },
		"rail 9":        func(x *store.UnmatchedPayment) { x.Rail = 9 },
		"no reason":     func(x *store.UnmatchedPayment) { x.Reason = "" },
		"long reason":   func(x *store.UnmatchedPayment) { x.Reason = long },
		"control":       func(x *store.UnmatchedPayment) { x.Reason = "a\nb" },
		"not ASCII":     func(x *store.UnmatchedPayment) { x.Reason = "é" },
		"resolved":      func(x *store.UnmatchedPayment) { x.Resolved, x.By = now, "ops" },
		"half resolved": func(x *store.UnmatchedPayment) { x.By = "ops" },
	} {
		x := unmatchedOf(2)
		spoil(x)
		if err := s.AddUnmatched(x); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, c := range map[string]struct {
		sig      solana.Signature
		by, note string
		at       int64
		want     error
	}{
		"unknown":      {signature(2), "ops", "", now, store.ErrNotFound},
		"by nobody":    {signature(1), "", "", now, store.ErrInvalid},
		"long by":      {signature(1), long, "", now, store.ErrInvalid},
		"long note":    {signature(1), "ops", strings.Repeat("x", store.MaxNote+1), now, store.ErrInvalid},
		"control":      {signature(1), "ops", "a\x1b[2J", now, store.ErrInvalid},
		"broken UTF-8": {signature(1), "ops", "a\xff", now, store.ErrInvalid},
		"no time":      {signature(1), "ops", "", 0, store.ErrInvalid},
		"before 1970":  {signature(1), "ops", "", -1, store.ErrInvalid},
	} {
		if err := s.ResolveUnmatched(c.sig, c.by, c.note, c.at); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if s.UnmatchedCount() != 1 {
		t.Errorf("%d unresolved", s.UnmatchedCount())
	}
	if err := s.ResolveUnmatched(signature(1), strings.Repeat("x", store.MaxWord), strings.Repeat("x", store.MaxNote), now); err != nil {
		t.Errorf("at the limits: %v", err)
	}
	if err := s.ResolveUnmatched(signature(1), "ops", "", now); !errors.Is(err, store.ErrResolved) {
		t.Errorf("again: %v", err)
	}
	other := unmatchedOf(3)
	other.Rail, other.Amount, other.Payer, other.Claim = 0, 0, solana.Address{}, 0 // as little as may be known
	if err := s.AddUnmatched(other); err != nil {
		t.Error(err)
	}
}

// TestUnmatchedLimit: what has no amount is never dropped, and fills the list.
func TestUnmatchedLimit(t *testing.T) {
	s := open(t, kvtest.New())
	ownOf := func(n int) *store.UnmatchedPayment {
		x := unmatchedOf(n)
		x.Rail, x.Amount, x.Payer = 0, 0, solana.Address{}
		return x
	}
	for n := range store.MaxUnmatched {
		if err := s.AddUnmatched(ownOf(n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.AddUnmatched(ownOf(store.MaxUnmatched)); !errors.Is(err, store.ErrFull) {
		t.Errorf("one more: %v", err)
	}
	if err := s.AddUnmatched(ownOf(1)); err != nil {
		t.Errorf("one that is there: %v", err)
	}
	if page, err := s.UnmatchedPayments(solana.Signature{}, store.MaxUnmatched); len(page) != store.MaxUnmatchedPage || err != nil {
		t.Errorf("a page of %d, %v", len(page), err)
	}
	if err := s.ResolveUnmatched(signature(1), "ops", "", now); err != nil {
		t.Fatal(err)
	}
	if err := s.AddUnmatched(unmatchedOf(store.MaxUnmatched)); err != nil || s.UnmatchedCount() != store.MaxUnmatched {
		t.Errorf("after one was resolved: %v", err)
	}
}

// TestFlood: a stranger fills the list with payments of a dollar and goes on. Real money is
// listed all the same, in place of the least, over a restart too; never the reverse.
func TestFlood(t *testing.T) {
	kv := kvtest.New()
	s := open(t, kv)
	add := func(n int, rail market.Rail, amount uint64) {
		t.Helper()
		x := unmatchedOf(n)
		x.Rail, x.Amount = rail, amount
		if err := s.AddUnmatched(x); err != nil {
			t.Fatal(err)
		}
	}
	listed := func(n int) bool {
		t.Helper()
		_, ok, err := s.UnmatchedPayment(signature(n))
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	for n := range store.MaxUnmatched + 10 {
		add(n, market.RailUSDC, 1_000_000)
	}
	if d := s.Dropped(); s.UnmatchedCount() != store.MaxUnmatched || d.Count != 10 || d.Atoms[market.RailUSDC] != 10_000_000 {
		t.Errorf("%d listed, dropped %+v", s.UnmatchedCount(), d)
	}
	const first = 10 * store.MaxUnmatched
	add(first, market.RailUSDC, 250_000_000)
	s = open(t, kv)
	add(first+1, market.RailSOL, 2_000_000_000)
	for n := range 1000 {
		add(first+2+n, market.RailUSDC, 1_000_001)
		add(first+2000+n, market.RailUSDC, 999_999)
	}
	for n, want := range map[int]bool{first: true, first + 1: true, first + 2: true, first + 1001: true, first + 2000: false, first + 2999: false} {
		if listed(n) != want {
			t.Errorf("payment %d is listed: %v", n, !want)
		}
	}
	if d := s.Dropped(); s.UnmatchedCount() != store.MaxUnmatched || d.Count != 10+2+1000+1000 || d.Atoms[market.RailUSDC] != (10+2+1000)*1_000_000+1000*999_999 {
		t.Errorf("%d listed, dropped %+v", s.UnmatchedCount(), d)
	}
}

// TestDamaged: an entry that cannot have been written is an error and not used.
func TestDamaged(t *testing.T) {
	kv := kvtest.New()
	s := open(t, kv)
	x := storetest.Delivery(t, 7, 1)
	k, err := s.PutTransaction(x, 1, now)
	if err != nil {
		t.Fatal(err)
	}
	put := func(key, value []byte) {
		t.Helper()
		err := kv.Commit(func(set func(key, value []byte), _ func(lo, hi []byte)) { set(key, value) }, true)
		if err != nil {
			t.Fatal(err)
		}
	}
	put(append([]byte{2}, "\x00\x00\x00\x00\x00\x00\x00\x07"...), []byte{1})
	put(store.UnmatchedKey(false, signature(1)), []byte{1})
	sig := x.Signature()
	put(append([]byte{4}, sig[:]...), []byte{7})
	put(append([]byte{7}, make([]byte, 32)...), []byte{7})
	put([]byte{8, 0}, nil)
	_, _, buildErr := s.Build(7)
	_, putErr := s.PutBuild(buildOf(7, 1), true)
	_, _, getErr := s.UnmatchedPayment(signature(1))
	_, listErr := s.UnmatchedPayments(solana.Signature{}, 1)
	_, _, oursErr := s.ClaimOf(sig)
	_, _, cursorErr := s.Cursor(solana.Address{})
	_, pruneErr := s.Prune(now)
	put(store.TransactionKey(8, k.Hash()), append(store.EncodeTransaction(k), 0))
	_, _, storedErr := s.Transaction(8, k.Hash())
	_, ofErr := s.Transactions(8)
	_, keepErr := s.PutTransaction(storetest.Delivery(t, market.ClaimID(8), 1), 1, now)
	for name, err := range map[string]error{
		"build": buildErr, "put": putErr, "get": getErr, "list": listErr, "ours": oursErr, "cursor": cursorErr, "prune": pruneErr,
		"kept": storedErr, "kept of": ofErr, "keep": keepErr, "resolve": s.ResolveUnmatched(signature(1), "ops", "", now), "add": s.AddUnmatched(unmatchedOf(1)),
	} {
		if !errors.Is(err, store.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
