package access

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"blockdesk/desk"
	"blockdesk/persist/kv"
)

// TestManyProofsOfOneClient: of those that come at once one wins, and where the
// store fails it, the next. The store is slow: all are proved before the first one
// is written.
func TestManyProofsOfOneClient(t *testing.T) {
	kv := newMemKV()
	a := mustOpen(t, newWatch().options(), kv)
	once := &failsOnce{memKV: kv}
	a.kv = once
	for from := range byte(8) {
		once.done.Store(from%2 == 0)
		var granted, soon, failed atomic.Int32
		var all sync.WaitGroup
		for n := range 16 {
			p := newPerson(uint64(n))
			nonce := a.mustChallenge(t, p.key)
			all.Go(func() {
				_, err := a.Issue(p.key, nonce, p.sign(nonce), client(from))
				var early *desk.TooSoon
				switch {
				case err == nil:
					granted.Add(1)
				case errors.As(err, &early):
					soon.Add(1)
				case errors.Is(err, errDisk):
					failed.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		all.Wait()
		if granted.Load() != 1 || failed.Load() != int32(from%2) || granted.Load()+soon.Load()+failed.Load() != 16 {
			t.Errorf("client %d: %d granted, %d too soon, %d failed", from, granted.Load(), soon.Load(), failed.Load())
		}
	}
	if len(a.queue) != 8 {
		t.Errorf("%d tokens", len(a.queue))
	}
}

// failsOnce is slow, and fails one Commit while done is not set.
type failsOnce struct {
	*memKV
	done atomic.Bool
}

func (k *failsOnce) Commit(fill kv.Fill, sync bool) error {
	time.Sleep(5 * time.Millisecond) // sleep: a slow disk; the counts are right at any speed
	if !k.done.Swap(true) {
		return errDisk
	}
	return k.memKV.Commit(fill, sync)
}

// TestManyPresentationsOfOneNonce: one of them is looked at.
func TestManyPresentationsOfOneNonce(t *testing.T) {
	a := mustOpen(t, newWatch().options(), newMemKV())
	p := newPerson(1)
	for range 20 {
		nonce := a.mustChallenge(t, p.key)
		var looked atomic.Int32
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				_, err := a.Issue(p.key, nonce, newPerson(2).sign(nonce), client(1))
				switch {
				case errors.Is(err, desk.ErrBadProof):
					looked.Add(1)
				case !errors.Is(err, ErrNonceUsed):
					t.Error(err)
				}
			})
		}
		all.Wait()
		if looked.Load() != 1 {
			t.Errorf("looked at %d times", looked.Load())
		}
	}
}

// TestReadersAndWriters: while tokens are issued, revoked, listed and forgotten,
// readers see each as it is.
func TestReadersAndWriters(t *testing.T) {
	w := newWatch()
	a := mustOpen(t, w.options(), newMemKV())
	forever := a.mustProve(t, newPerson(1), client(0))
	var stop atomic.Bool
	var readers, writers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for !stop.Load() {
				a.admits(t, forever, true)
				if _, err := a.List("", 20, true); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for n := range byte(4) {
		p := newPerson(uint64(n))
		writers.Go(func() {
			for i := range byte(40) {
				g := a.mustProve(t, p, client(1+4*i+n))
				a.admits(t, g, true)
				if _, err := a.Revoke(g.ID, "ann"); err != nil {
					t.Error(err)
				}
				a.admits(t, g, false)
			}
		})
	}
	writers.Go(func() {
		for range 40 {
			if err := a.maintain(); err != nil {
				t.Error(err)
			}
		}
	})
	writers.Wait()
	w.pass(hour + second)
	if err := a.maintain(); err != nil {
		t.Error(err)
	}
	stop.Store(true)
	readers.Wait()
	if tokens, live, hours := a.remembers(); tokens != 161 || live != 1 || hours != 0 {
		t.Errorf("%d tokens, %d live, %d hours", tokens, live, hours)
	}
}
