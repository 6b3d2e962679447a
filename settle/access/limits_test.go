package access

import (
	"errors"
	"testing"

	"blockdesk/desk"
)

// TestMaxTokens: at the limit there is a place, past it none until the oldest is
// over. Revoking makes none: the log of seven days is what is bounded.
func TestMaxTokens(t *testing.T) {
	w, p := newWatch(), newPerson(1)
	kv := newMemKV()
	o := w.options()
	o.MaxTokens = 3
	a := mustOpen(t, o, kv)
	var all []desk.Grant
	for i := range byte(3) {
		all = append(all, a.mustProve(t, p, client(i)))
		w.pass(second)
	}
	if _, err := a.prove(t, p, client(9)); !errors.Is(err, desk.ErrTokensFull) {
		t.Errorf("one more: %v", err)
	}
	if _, err := a.Revoke(all[1].ID, "ann"); err != nil {
		t.Fatal(err)
	}
	a = mustOpen(t, o, kv)
	if _, err := a.prove(t, p, client(9)); !errors.Is(err, desk.ErrTokensFull) {
		t.Errorf("after a revocation and a restart: %v", err)
	}
	w.pass(week - 3*second - 1)
	if _, err := a.prove(t, p, client(9)); !errors.Is(err, desk.ErrTokensFull) {
		t.Errorf("a nanosecond before the first is over: %v", err)
	}
	w.pass(1)
	a.admits(t, all[2], true)
	a.mustProve(t, p, client(9))
	if _, err := a.prove(t, p, client(8)); !errors.Is(err, desk.ErrTokensFull) {
		t.Errorf("and one more: %v", err)
	}
	w.pass(week)
	for i := range byte(3) {
		a.mustProve(t, p, client(i))
	}
	if tokens, live, hours := a.remembers(); tokens != 3 || live != 3 || a.Live() != 3 || hours != 3 {
		t.Errorf("%d tokens, %d live, %d hours", tokens, live, hours)
	}
}

// TestMaxUsedNonces: at the limit nothing is looked at, until the older half of the
// used ones has expired.
func TestMaxUsedNonces(t *testing.T) {
	w, p := newWatch(), newPerson(1)
	o := w.options()
	o.MaxUsedNonces = 4
	a := mustOpen(t, o, newMemKV())
	spend := func(want error) string {
		t.Helper()
		nonce := a.mustChallenge(t, p.key)
		if _, err := a.Issue(p.key, nonce, newPerson(2).sign(nonce), client(1)); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
		return nonce
	}
	spend(desk.ErrBadProof)
	spend(desk.ErrBadProof)
	w.pass(59 * second)
	spend(desk.ErrBadProof)
	last := spend(desk.ErrBadProof)
	remembered := spend(desk.ErrTokensFull)
	w.pass(second) // the first two expire; they are still remembered
	spend(desk.ErrTokensFull)
	if _, err := a.Issue(p.key, last, p.sign(last), client(1)); !errors.Is(err, ErrNonceUsed) {
		t.Errorf("used: %v", err)
	}
	w.pass(57 * second)
	if _, err := a.Issue(p.key, remembered, p.sign(remembered), client(1)); !errors.Is(err, desk.ErrTokensFull) {
		t.Errorf("refused for want of a place, at its end: %v", err)
	}
	w.pass(3 * second)
	for range 2 {
		for range 4 {
			spend(desk.ErrBadProof)
		}
		spend(desk.ErrTokensFull)
		w.pass(120 * second) // both halves expire
	}
}

// TestUsedNonces: no nonce is forgotten before it has expired, whenever in a period
// of the halves it came.
func TestUsedNonces(t *testing.T) {
	w, p := newWatch(), newPerson(1)
	a := mustOpen(t, w.options(), newMemKV())
	type spent struct {
		nonce string
		at    int64
	}
	var all []spent
	most := 0
	for step := range 400 {
		nonce := a.mustChallenge(t, p.key)
		a.Issue(p.key, nonce, p.sign(""), client(1))
		all = append(all, spent{nonce, w.elapsed.Load()})
		w.pass(int64(step%7) * second)
		for _, s := range all {
			_, err := a.Issue(p.key, s.nonce, p.sign(s.nonce), client(1))
			if !errors.Is(err, ErrNonceUsed) && !errors.Is(err, ErrNonceExpired) {
				t.Fatalf("of %d s before: %v", (w.elapsed.Load()-s.at)/second, err)
			}
		}
		for len(all) > 0 && w.elapsed.Load()-all[0].at > 70*second {
			all = all[1:]
		}
		most = max(most, len(a.usedNonces.young)+len(a.usedNonces.old))
	}
	if most > 60 {
		t.Errorf("remembers %d, of 120 s and 3 s each", most)
	}
}
