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

// clockLockReason is the reason of the global lock that the service sets while the wall
// clock and the engine's time disagree. The lock has no operator.
const clockLockReason = "clock jumped: wait until it agrees"

// clockLockRetry is the time between two tries to set or to end the lock.
const clockLockRetry = time.Second

// clockGuard locks everything while the wall clock and the engine's time disagree, because
// deadlines and the ages of prices would be wrong. An operator's lock stays as it is.
type clockGuard struct {
	clock interface {
		Jump() time.Duration
		Jumps() uint64
		Changed() <-chan struct{}
		Run(ctx context.Context) error
	}
	desk requester        // nil: the desk is not enabled, so nothing is promised
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
		g.log.Error("wall clock jumped: nothing new is promised until it agrees with the engine's time", "wall_ahead", jump)
	}
	if g.desk == nil {
		return true
	}
	locked, ours := g.locked()
	switch {
	case jump != 0 && !locked:
		return g.lock(true)
	case jump == 0 && ours:
		g.log.Info("wall clock agrees with the engine's time again")
		return g.lock(false)
	}
	// An operator may unlock while the clocks disagree.
	return jump == 0
}

// locked reports whether everything is locked, and by this guard.
func (g *clockGuard) locked() (locked, ours bool) {
	v := g.view()
	for i := range v.Locks {
		if l := &v.Locks[i]; l.Scope == rfq.LockAll && l.Locked {
			return true, l.By == 0 && l.Reason == clockLockReason
		}
	}
	return false, false
}

func (g *clockGuard) lock(locked bool) (done bool) {
	r := &rfq.SetLock{Scope: rfq.LockAll, Locked: locked, Reason: clockLockReason}
	result, err := g.desk.Do(r)
	switch {
	case err != nil:
		g.log.Warn("clock's lock was not changed", "locked", locked, "error", err)
	case result.Reason != 0:
		g.log.Warn("clock's lock was refused", "locked", locked, "reason", result.Reason.String())
	}
	return err == nil && result.Reason == 0 && !locked
}

// collector has the metrics of the clock.
func (g *clockGuard) collector() prometheus.Collector {
	type reading struct{ jump, jumps float64 }
	read := func() reading { return reading{g.clock.Jump().Seconds(), float64(g.clock.Jumps())} }
	return admin.NewMetrics("blockdesk_clock_", read).
		Gauge("jump_seconds", "How far the wall clock is ahead of the engine's time, negative if it is behind; 0 while they differ by at most a second. Nothing new is promised otherwise.",
			func(r *reading) float64 { return r.jump }).
		Counter("jumps_total", "How often the wall clock has jumped since the start.", func(r *reading) float64 { return r.jumps })
}
