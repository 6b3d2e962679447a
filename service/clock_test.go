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
	"blockdesk/market"
)

// lockDesk is a desk with only a global lock. The mutex is the test's, but while virtual
// time passes.
type lockDesk struct {
	sync.Mutex
	lock  rfq.Lock
	busy  bool
	tries int
}

func (d *lockDesk) Do(r rfq.Request) (*desk.Result, error) {
	d.Lock()
	defer d.Unlock()
	d.tries++
	if d.busy {
		return nil, desk.ErrBusy
	}
	set := r.(*rfq.SetLock)
	d.lock = rfq.Lock{Scope: set.Scope, Locked: set.Locked, By: set.Operator, Reason: set.Reason}
	return &desk.Result{}, nil
}

func (d *lockDesk) view() *rfq.View {
	d.Lock()
	defer d.Unlock()
	return &rfq.View{Locks: []rfq.Lock{d.lock}}
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

// TestClockLock: a jump locks everything until the clocks agree; an operator's lock stays.
func TestClockLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &lockDesk{}
		c := &setClock{Mutex: &d.Mutex, changed: make(chan struct{}, 1)}
		g := &clockGuard{clock: c, desk: d, view: d.view, log: slog.New(slog.DiscardHandler)}
		ctx, stop := context.WithCancel(t.Context())
		d.Lock()
		go g.Run(ctx)
		check := func(when string, locked bool, by market.OperatorID) {
			t.Helper()
			if d.lock.Locked != locked || locked && d.lock.By != by {
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
		check("without a jump", false, 0)
		c.set(2 * time.Second)
		check("after a jump", true, 0)
		if d.lock.Reason != clockLockReason || d.lock.Scope != rfq.LockAll {
			t.Errorf("%+v", d.lock)
		}
		c.set(0)
		check("when the clocks agree", false, 0)

		d.busy = true
		c.set(-time.Hour)
		check("while the desk is busy", false, 0)
		d.busy = false
		wait()
		check("a moment later", true, 0)
		d.lock.Locked = false // by an operator
		wait()
		check("after an operator has unlocked", true, 0)
		d.lock = rfq.Lock{Scope: rfq.LockAll, Locked: true, By: 7, Reason: "maintenance"}
		c.set(0)
		wait()
		check("an operator's lock", true, 7)

		c.set(time.Minute)
		check("an operator's lock during a jump", true, 7)
		c.set(0)
		d.lock = rfq.Lock{}
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
	d := &lockDesk{lock: rfq.Lock{Scope: rfq.LockAll, Locked: true, Reason: clockLockReason}}
	g := &clockGuard{clock: &setClock{Mutex: new(sync.Mutex)}, desk: d, view: d.view, log: slog.New(slog.DiscardHandler)}
	if g.follow(); d.lock.Locked {
		t.Errorf("%+v", d.lock)
	}
}
