// Package clock keeps the engine's time steady where the machine's clock is not.
//
// The time follows the machine's monotonic clock. Ten times a second it is compared with
// the wall clock. A difference of at most [MaxStep] is corrected at [SlowRate]. A larger
// one means that the wall clock was set, that the machine was suspended, or that the
// journal was written while the wall clock was ahead. Then the time approaches the wall
// clock at [FastRate], without a jump, and [Clock.Jump] returns the difference, so that
// the service promises nothing new until both agree again. So deadlines do not all expire
// when the wall clock jumps ahead, and expiry continues after it was set back.
//
// Concurrency: Now and Jump may be called by any goroutine while Run runs; both are
// lock-free and allocate nothing.
package clock

import (
	"context"
	"sync/atomic"
	"time"

	"blockdesk/internal/repeat"
)

const (
	// MaxStep is the greatest difference, in nanoseconds, that is no jump.
	MaxStep = int64(time.Second)
	// SlowRate and FastRate are corrections in nanoseconds a second.
	SlowRate = int64(500 * time.Microsecond)
	FastRate = int64(500 * time.Millisecond)

	ticksPerSecond = 10
)

// Clock is the engine's clock.
type Clock struct {
	wall, steady func() int64
	offset       atomic.Int64 // Now = steady + offset
	jump         atomic.Int64
	jumps        atomic.Uint64
	changed      chan struct{}
}

// New returns a clock that follows the machine's. last is the newest time in the journal,
// 0 if it is empty: the clock starts at the wall clock's time, but not before last.
func New(last int64) *Clock {
	start := time.Now()
	return newClock(last, func() int64 { return time.Now().UnixNano() }, func() int64 { return int64(time.Since(start)) })
}

func newClock(last int64, wall, steady func() int64) *Clock {
	c := &Clock{wall: wall, steady: steady, changed: make(chan struct{}, 1)}
	c.offset.Store(wall() - steady())
	c.NotBefore(last)
	return c
}

// NotBefore moves the time forward to last, the newest time in the journal. Call it before
// Run.
func (c *Clock) NotBefore(last int64) {
	if ahead := last - c.Now(); ahead > 0 {
		c.offset.Add(ahead)
	}
	c.compare()
}

// Now returns the time in Unix nanoseconds. While the time is ahead of the wall clock it
// may go back by at most 50 ms.
func (c *Clock) Now() int64 { return c.steady() + c.offset.Load() }

// Jump returns how far the wall clock is ahead of the time, negative if it is behind; 0
// while they differ by at most MaxStep.
func (c *Clock) Jump() time.Duration { return time.Duration(c.jump.Load()) }

// Jumps returns how often the wall clock and the time have begun to disagree.
func (c *Clock) Jumps() uint64 { return c.jumps.Load() }

// Changed returns a channel that receives after Jump has become, or ceased to be, 0.
func (c *Clock) Changed() <-chan struct{} { return c.changed }

// Run corrects differences until ctx ends.
func (c *Clock) Run(ctx context.Context) error {
	repeat.Every(ctx, time.Second/ticksPerSecond, func(context.Context) { c.compare() })
	return nil
}

// compare corrects a part of the difference.
func (c *Clock) compare() {
	ahead := c.wall() - c.Now()
	rate, jump := SlowRate, int64(0)
	if ahead > MaxStep || ahead < -MaxStep {
		rate, jump = FastRate, ahead
	}
	if was := c.jump.Swap(jump); (was == 0) != (jump == 0) {
		if jump != 0 {
			c.jumps.Add(1)
		}
		select {
		case c.changed <- struct{}{}:
		default: // a value waits already
		}
	}
	most := rate / ticksPerSecond
	c.offset.Add(min(max(ahead, -most), most))
}
