// Package clock keeps the engine's time steady where the machine's clock is not.
//
// The time follows the machine's monotonic clock. Ten times a second it is compared with
// the wall clock. A difference of at most [MaxStep] is corrected at [SlowRate]. A larger
// one means that the wall clock was set, that the machine was suspended, or that the
// journal was written while the wall clock was ahead. Then the time approaches the wall
// clock at [FastRate], without a jump, and [Clock.Jump] returns the difference, so that
// the service makes no quote, claim or signature until both agree again. So deadlines do not all expire
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
	line         atomic.Pointer[line]
	jump         atomic.Int64
	jumps        atomic.Uint64
	changed      chan struct{}
}

// line is the time as a function of the monotonic clock since the last comparison.
type line struct {
	steady, at int64 // of the comparison
	ahead      int64 // of the wall clock then
	rate       int64 // correction in nanoseconds a second, of the sign of ahead
}

// now returns the time. The correction ends when it has made up for ahead, or after a
// second without a comparison.
func (l *line) now(steady int64) int64 {
	passed := steady - l.steady
	correction := min(max(passed, 0), int64(time.Second)) * l.rate / int64(time.Second)
	if l.ahead < 0 {
		correction = max(correction, l.ahead)
	} else {
		correction = min(correction, l.ahead)
	}
	return l.at + passed + correction
}

// New returns a clock that follows the machine's. last is the newest time in the journal,
// 0 if it is empty: the clock starts at the wall clock's time, but not before last.
func New(last int64) *Clock {
	start := time.Now()
	return newClock(last, func() int64 { return time.Now().UnixNano() }, func() int64 { return int64(time.Since(start)) })
}

func newClock(last int64, wall, steady func() int64) *Clock {
	c := &Clock{wall: wall, steady: steady, changed: make(chan struct{}, 1)}
	c.line.Store(&line{steady: steady(), at: wall()})
	c.NotBefore(last)
	return c
}

// NotBefore moves the time forward to last, the newest time in the journal. Call it before
// Run.
func (c *Clock) NotBefore(last int64) {
	steady := c.steady()
	c.line.Store(&line{steady: steady, at: max(c.line.Load().now(steady), last)})
	c.compare()
}

// Now returns the time in Unix nanoseconds. It does not go back, except by the moment that
// a call takes while a comparison changes the correction.
func (c *Clock) Now() int64 { return c.line.Load().now(c.steady()) }

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

// compare measures the difference and begins to correct it.
func (c *Clock) compare() {
	l := &line{steady: c.steady()}
	l.at = c.line.Load().now(l.steady)
	l.ahead = c.wall() - l.at
	rate, jump := SlowRate, int64(0)
	if l.ahead > MaxStep || l.ahead < -MaxStep {
		rate, jump = FastRate, l.ahead
	}
	if l.rate = rate; l.ahead < 0 {
		l.rate = -rate
	}
	c.line.Store(l)
	if was := c.jump.Swap(jump); (was == 0) != (jump == 0) {
		if jump != 0 {
			c.jumps.Add(1)
		}
		select {
		case c.changed <- struct{}{}:
		default: // a value waits already
		}
	}
}
