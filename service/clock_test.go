package service

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
)

// lockDesk is a desk with an operator's lock of everything and the clock's. The mutex is the
// test's, but while virtual time passes.
type lockDesk struct {
	sync.Mutex
	operators, lock rfq.Lock
	busy            bool
	tries           int
}

func (d *lockDesk) Do(r rfq.Request) (*desk.Result, error) {
	d.Lock()
	defer d.Unlock()
	d.tries++
	if d.busy {
		return nil, desk.ErrBusy
	}
	set := r.(*rfq.SetLock)
	if set.Scope != rfq.LockClock {
		return nil, desk.ErrBusy
	}
	d.lock = rfq.Lock{Scope: set.Scope, Locked: set.Locked, Reason: set.Reason}
	return &desk.Result{}, nil
}

func (d *lockDesk) view() *rfq.View {
	d.Lock()
	defer d.Unlock()
	return &rfq.View{Locks: []rfq.Lock{d.operators, d.lock}}
}

// setClock is a clock whose jump a test sets.
type setClock struct {
	*sync.Mutex
	jump    time.Duration
	changed chan struct{}
}

func (c *setClock) Jump() time.Duration {
	c.Lock()
	defer c.Unlock()
	return c.jump
}

func (c *setClock) Jumps() uint64                 { return 0 }
func (c *setClock) Changed() <-chan struct{}      { return c.changed }
func (c *setClock) Run(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }

func (c *setClock) set(jump time.Duration) {
	c.jump = jump
	c.Unlock()
	c.changed <- struct{}{}
	synctest.Wait()
	c.Lock()
}

// TestClockLock: a jump locks everything until the clocks agree; the lock is not an
// operator's, whatever that does meanwhile.
func TestClockLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &lockDesk{}
		c := &setClock{Mutex: &d.Mutex, changed: make(chan struct{}, 1)}
		g := &clockGuard{clock: c, desk: d, view: d.view, log: slog.New(slog.DiscardHandler)}
		ctx, stop := context.WithCancel(t.Context())
		d.Lock()
		go g.Run(ctx)
		check := func(when string, locked bool) {
			t.Helper()
			if d.lock.Locked != locked {
				t.Errorf("%s: %+v", when, d.lock)
			}
		}
		wait := func() {
			d.Unlock()
			time.Sleep(2 * clockLockRetry) // sleep: virtual time
			synctest.Wait()
			d.Lock()
		}
		wait()
		check("without a jump", false)
		c.set(2 * time.Second)
		check("after a jump", true)
		if d.lock.Reason != clockLockReason {
			t.Errorf("%+v", d.lock)
		}
		c.set(0)
		check("when the clocks agree", false)

		d.busy = true
		c.set(-time.Hour)
		check("while the desk is busy", false)
		d.busy = false
		wait()
		check("a moment later", true)
		maintenance := rfq.Lock{Scope: rfq.LockAll, Locked: true, By: 7, Reason: "maintenance"}
		d.operators = maintenance // during the jump
		c.set(0)
		wait()
		check("after the jump", false)
		if d.operators != maintenance {
			t.Errorf("the operator's lock: %+v", d.operators)
		}
		tries := d.tries
		wait()
		if d.tries != tries {
			t.Error("requests without a jump")
		}
		d.Unlock()
		stop()
		synctest.Wait()
	})
}

// TestClockLockOfLastRun: a lock that was left by the run before ends at the start.
func TestClockLockOfLastRun(t *testing.T) {
	d := &lockDesk{lock: rfq.Lock{Scope: rfq.LockClock, Locked: true, Reason: clockLockReason}}
	g := &clockGuard{clock: &setClock{Mutex: new(sync.Mutex)}, desk: d, view: d.view, log: slog.New(slog.DiscardHandler)}
	if g.follow(); d.lock.Locked {
		t.Errorf("%+v", d.lock)
	}
}
