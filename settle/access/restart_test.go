package access

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"blockdesk/desk"
	"blockdesk/internal/await"
)

// TestRestart: tokens, hours and revocations are there again; nonces are not.
func TestRestart(t *testing.T) {
	w, p := newWatch(), newPerson(1)
	kv := newMemKV()
	a := mustOpen(t, w.options(), kv)
	valid, revoked := a.mustProve(t, p, client(1)), a.mustProve(t, p, client(2))
	nonce := a.mustChallenge(t, p.key)
	if _, err := a.Revoke(revoked.ID, "ann"); err != nil {
		t.Fatal(err)
	}
	w.pass(30 * second)
	w = w.rebooted()
	a = mustOpen(t, w.options(), kv)
	a.admits(t, valid, true)
	a.admits(t, revoked, false)
	if _, err := a.Issue(p.key, nonce, p.sign(nonce), client(3)); !errors.Is(err, desk.ErrBadNonce) {
		t.Errorf("the nonce of another life: %v", err)
	}
	for i := range byte(2) {
		_, err := a.prove(t, p, client(1+i))
		if rest := tooSoon(t, err); rest < hour-30*second || rest > hour-30*second+1 {
			t.Errorf("client %d: wait %d", 1+i, rest)
		}
	}
	w.pass(week - 30*second - 1)
	a = mustOpen(t, w.options(), kv)
	a.admits(t, valid, true)
	w.pass(1)
	a = mustOpen(t, w.options(), kv)
	a.admits(t, valid, false)
	if tokens, live, hours := a.remembers(); tokens > 1 || live+hours > 0 { // the second came a nanosecond later
		t.Errorf("%d tokens, %d live, %d hours after a week", tokens, live, hours)
	}
}

// TestClockSetBack: hours and tokens last as long as they would have, by the monotonic
// clock.
func TestClockSetBack(t *testing.T) {
	w, p := newWatch(), newPerson(1)
	a := mustOpen(t, w.options(), newMemKV())
	g := a.mustProve(t, p, client(1))
	w.set(-3 * hour)
	_, err := a.prove(t, p, client(1))
	if rest := tooSoon(t, err); rest != hour {
		t.Errorf("wait %d", rest)
	}
	nonce := a.mustChallenge(t, p.key)
	w.pass(59 * second)
	w.set(-hour)
	w.pass(second)
	if _, err := a.Issue(p.key, nonce, p.sign(nonce), client(2)); !errors.Is(err, ErrNonceExpired) {
		t.Errorf("a minute after its nonce: %v", err)
	}
	w.pass(hour - 60*second - 1)
	_, err = a.prove(t, p, client(1))
	if rest := tooSoon(t, err); rest != 1 {
		t.Errorf("wait %d", rest)
	}
	w.pass(1)
	a.mustProve(t, p, client(1))
	w.pass(week - hour - 1)
	a.admits(t, g, true)
	w.pass(1)
	a.admits(t, g, false)
	w.set(-week)
	a.admits(t, g, false)
	// A used nonce does not come back with the time that it was made at.
	nonce = a.mustChallenge(t, p.key)
	if _, err := a.Issue(p.key, nonce, p.sign(nonce), client(3)); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		w.pass(50 * second)
		w.set(-50 * second)
		a.prove(t, p, client(3)) // swaps the halves
		if _, err := a.Issue(p.key, nonce, p.sign(nonce), client(4)); !errors.Is(err, desk.ErrBadNonce) {
			t.Errorf("used before: %v", err)
		}
	}
}

// TestClockSetBackOverARestart: the store knows what time it was.
func TestClockSetBackOverARestart(t *testing.T) {
	w, p := newWatch(), newPerson(1)
	kv := newMemKV()
	a := mustOpen(t, w.options(), kv)
	g := a.mustProve(t, p, client(1))
	w = w.rebooted()
	w.set(-2 * hour)
	a = mustOpen(t, w.options(), kv)
	_, err := a.prove(t, p, client(1))
	if rest := tooSoon(t, err); rest != hour {
		t.Errorf("wait %d", rest)
	}
	w.pass(hour)
	a.mustProve(t, p, client(1))

	w.pass(week - hour)
	a.admits(t, g, false)
	if err := a.maintain(); err != nil { // as Run does each minute, and at its end
		t.Fatal(err)
	}
	w = w.rebooted()
	w.set(-week)
	a = mustOpen(t, w.options(), kv)
	a.admits(t, g, false)
	// Nor does the log of a token that is over.
	if list, err := a.List("", 10, false); err != nil || len(list) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestClockSetForward: time follows. A time limit by the clock ends by the clock.
func TestClockSetForward(t *testing.T) {
	w, p := newWatch(), newPerson(1)
	a := mustOpen(t, w.options(), newMemKV())
	g := a.mustProve(t, p, client(1))
	w.set(hour)
	a.mustProve(t, p, client(1))
	w.set(week - hour)
	a.admits(t, g, false)
}

// TestStoreFails: nothing is issued, the hour is not used, and the nonce is burnt.
func TestStoreFails(t *testing.T) {
	w, p := newWatch(), newPerson(1)
	kv := newMemKV()
	a := mustOpen(t, w.options(), kv)
	valid := a.mustProve(t, p, client(1))
	for _, half := range []bool{false, true} {
		if kv.Break(errDisk); half {
			kv.Break(nil)
			a.kv = takesAndFails{kv}
		}
		g, err := a.prove(t, p, client(2))
		if !errors.Is(err, errDisk) || g != (desk.Grant{}) {
			t.Errorf("half %v: granted %+v, %v", half, g, err)
		}
		if len(a.live) != 1 {
			t.Errorf("half %v: %d live", half, len(a.live))
		}
		a.admits(t, valid, true)
		if _, err := a.List("", 1, false); !errors.Is(err, errDisk) {
			t.Errorf("list: %v", err)
		}
		if err := a.maintain(); !errors.Is(err, errDisk) {
			t.Errorf("tend: %v", err)
		}
		if _, err := Open(w.options(), a.kv); !errors.Is(err, errDisk) {
			t.Errorf("open: %v", err)
		}
	}
	a.kv = kv
	a.mustProve(t, p, client(2))
	list, err := a.List("", 10, false)
	if err != nil || len(list) != 3 || list[1].ID == list[2].ID {
		t.Errorf("the log, with what the disk took and did not say: %+v, %v", list, err)
	}
}

// TestRevokeWhileTheStoreFails: the token is dead here, and dead for good when it
// is revoked again.
func TestRevokeWhileTheStoreFails(t *testing.T) {
	w, p := newWatch(), newPerson(1)
	kv := newMemKV()
	a := mustOpen(t, w.options(), kv)
	g := a.mustProve(t, p, client(1))
	a.kv = commitFails{kv}
	if _, err := a.Revoke(g.ID, "ann"); !errors.Is(err, errDisk) {
		t.Errorf("revoke: %v", err)
	}
	a.admits(t, g, false)
	mustOpen(t, w.options(), kv).admits(t, g, true)
	a.kv = kv
	if e, err := a.Revoke(g.ID, "ann"); err != nil || e.RevokedBy != "ann" {
		t.Errorf("again: %+v, %v", e, err)
	}
	a.admits(t, g, false)
	mustOpen(t, w.options(), kv).admits(t, g, false)
	kv.Break(errDisk)
	if _, err := a.Revoke(g.ID, "ann"); !errors.Is(err, errDisk) {
		t.Errorf("while nothing can be read: %v", err)
	}
}

// commitFails reads, and does not write.
type commitFails struct{ *memKV }

func (commitFails) Commit(func(set func(key, value []byte), deleteRange func(lo, hi []byte)), bool) error {
	return errDisk
}

// TestEveryPrefix: every prefix of the commits opens, and has all that was answered
// before its end.
func TestEveryPrefix(t *testing.T) {
	w, p := newWatch(), newPerson(1)
	kv := newMemKV()
	a := mustOpen(t, w.options(), kv)
	type reported struct {
		commits int
		grant   desk.Grant
		ok      bool
	}
	var all []reported
	for i := range byte(6) {
		g := a.mustProve(t, p, client(i))
		all = append(all, reported{kv.Commits(), g, true})
		w.pass(7 * second)
		if i%2 == 1 {
			if _, err := a.Revoke(g.ID, "ann"); err != nil {
				t.Fatal(err)
			}
			all = append(all, reported{kv.Commits(), g, false})
		}
	}
	for n := range kv.Commits() {
		a := mustOpen(t, w.options(), kv.Prefix(n+1))
		now := map[string]reported{}
		for _, s := range all {
			if s.commits <= n+1 {
				now[s.grant.ID] = s
			}
		}
		for _, s := range now {
			a.admits(t, s.grant, s.ok)
		}
		if len(a.queue) != len(now) || len(a.lastIssued) != len(now) {
			t.Errorf("commit %d: %d tokens and %d hours of %d", n, len(a.queue), len(a.lastIssued), len(now))
		}
	}
}

// TestRun: it writes down the time each minute and at its end, and lets go what is
// older than the retention, both entries of a token at once.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newMemKV()
		a := mustOpen(t, Options{}, kv)
		g := a.mustProve(t, newPerson(1), client(1))
		if _, err := a.Revoke(g.ID, "ann"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- a.Run(ctx) }()
		count := func() int {
			list, err := a.List("", 10, true)
			if err != nil {
				t.Fatal(err)
			}
			return len(list)
		}
		start := time.Now()
		await.VirtualSleep(t, 10*time.Minute+time.Second)
		if at, err := readTime(kv); err != nil || at != start.Add(10*time.Minute).UnixNano() {
			t.Errorf("wrote down %d, %v", at-start.UnixNano(), err)
		}
		if tokens, live, hours := a.remembers(); tokens != 1 || live != 0 || hours != 1 {
			t.Errorf("%d tokens, %d live, %d hours after 10 minutes", tokens, live, hours)
		}
		await.VirtualSleep(t, TokenLifetime)
		if tokens, live, hours := a.remembers(); tokens+live+hours != 0 {
			t.Errorf("%d tokens, %d live, %d hours after a week", tokens, live, hours)
		}
		await.VirtualSleep(t, Retention-TokenLifetime-12*time.Minute)
		if count() != 1 {
			t.Error("the log has lost a token before its time")
		}
		await.VirtualSleep(t, pruneEvery+2*time.Minute)
		synctest.Wait()
		if n, r := count(), len(kv.Content()); n != 0 || r != 2 { // version and time
			t.Errorf("the log keeps %d tokens, the store %d entries", n, r)
		}
		if days := int(time.Since(start) / pruneEvery); kv.cuts < 2 || kv.cuts > 2*(days+1) {
			t.Errorf("cut the log %d times in %d days", kv.cuts, days)
		}
		await.VirtualSleep(t, time.Second)
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
		if at, err := readTime(kv); err != nil || at != time.Now().UnixNano() {
			t.Errorf("at its end wrote down %d, %v", time.Now().UnixNano()-at, err)
		}
	})
}

// TestRunEndsWithTheStore, and tokens are admitted on.
func TestRunEndsWithTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newMemKV()
		a := mustOpen(t, Options{}, kv)
		g := a.mustProve(t, newPerson(1), client(1))
		kv.Break(errDisk)
		if err := a.Run(t.Context()); !errors.Is(err, errDisk) {
			t.Errorf("run: %v", err)
		}
		a.admits(t, g, true)
	})
}
