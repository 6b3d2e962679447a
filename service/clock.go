package service

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"blockdesk/engine/rfq"
	"blockdesk/httpgw/admin"
	"blockdesk/internal/clock"
	"blockdesk/service/task"
)

// clockLockReason is the reason of the lock that the service sets while the wall clock and
// the engine's time disagree.
const clockLockReason = "clock jumped: wait until it agrees"

// clockLockRetry is the time between two tries to set or to end the lock.
const clockLockRetry = time.Second

// clockGuard locks everything while the wall clock and the engine's time disagree, because
// deadlines and the ages of prices would be wrong. Its lock is of a scope of its own, so it
// neither lifts an operator's lock, nor does an operator lift it.
type clockGuard struct {
	clock interface {
		Jump() time.Duration
		Jumps() uint64
		Changed() <-chan struct{}
		Run(ctx context.Context) error
	}
	desk requester        // nil: the desk is not enabled, so it makes no quote, claim or signature
	view func() *rfq.View // of the desk
	log  *slog.Logger
}

// newClockGuard makes the guard of a service's clock.
func newClockGuard(c *clock.Clock, desk requester, view func() *rfq.View, log *slog.Logger) *clockGuard {
	return &clockGuard{clock: c, desk: desk, view: view, log: log}
}

// run starts the clock and its guard in a group.
func (g *clockGuard) run(ctx context.Context, group *errgroup.Group) {
	task.Go(ctx, group, task.Task{Name: "clock", Run: g.clock.Run}, task.Task{Name: "clock's lock", Run: g.Run})
}

// Run sets and ends the lock until ctx ends.
func (g *clockGuard) Run(ctx context.Context) error {
	retry := time.NewTicker(clockLockRetry)
	defer retry.Stop()
	for {
		waiting := retry.C
		if g.follow() {
			waiting = nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-g.clock.Changed():
		case <-waiting:
		}
	}
}

// follow sets or ends the lock. It returns false if it must be called again soon.
func (g *clockGuard) follow() (done bool) {
	jump := g.clock.Jump()
	if jump != 0 {
		g.log.Error("wall clock jumped: no quote, claim or signature is made until it agrees with the engine's time", "wall_ahead", jump)
	}
	if g.desk == nil {
		return true
	}
	if locked := g.locked(); locked == (jump != 0) {
		return true
	}
	if jump == 0 {
		g.log.Info("wall clock agrees with the engine's time again")
	}
	return g.lock(jump != 0)
}

// locked reports whether the lock is set.
func (g *clockGuard) locked() bool {
	v := g.view()
	for i := range v.Locks {
		if v.Locks[i].Scope == rfq.LockClock {
			return v.Locks[i].Locked
		}
	}
	return false
}

func (g *clockGuard) lock(locked bool) (done bool) {
	result, err := g.desk.Do(&rfq.SetLock{Scope: rfq.LockClock, Locked: locked, Reason: clockLockReason})
	switch {
	case err != nil:
		g.log.Warn("locking or unlocking the desk for the clock jump failed", "locked", locked, "error", err)
	case result.Reason != 0:
		g.log.Warn("desk refused the lock for the clock jump", "locked", locked, "reason", result.Reason.String())
	}
	return err == nil && result.Reason == 0
}

// collector has the metrics of the clock.
func (g *clockGuard) collector() prometheus.Collector {
	type reading struct{ jump, jumps float64 }
	read := func() reading { return reading{g.clock.Jump().Seconds(), float64(g.clock.Jumps())} }
	return admin.NewMetrics("blockdesk_clock_", read).
		Gauge("jump_seconds", "How far the wall clock is ahead of the engine's time; 0 within a second. Otherwise the desk signs and quotes nothing.",
			func(r *reading) float64 { return r.jump }).
		Counter("jumps_total", "Jumps of the wall clock since the start.", func(r *reading) float64 { return r.jumps })
}
