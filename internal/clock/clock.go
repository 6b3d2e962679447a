// Package clock keeps the engine's time steady where the machine's clock is not.
//
// The time runs with the machine's monotonic clock. Ten times a second it is compared
// with the wall clock: a difference of at most [MaxStep] is made up little by little, at
// [SlowRate]. A greater one means that somebody has set the wall clock, that the machine
// slept, or that the journal was written while the clock was ahead. Then the time closes
// up at [FastRate], never by a jump, and [Clock.Jump] reports the difference, so that
// nothing new is promised until the two agree again. So deadlines neither fall due at
// once when the wall clock jumps ahead, nor stand still after it has been set back.
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
	// SlowRate and FastRate are how many nanoseconds a second are made up.
	SlowRate = int64(500 * time.Microsecond)
	FastRate = int64(100 * time.Millisecond)

	ticksPerSecond = 10
)

// Clock is the engine's clock.
type Clock struct {
	wall, steady func() int64
	offset       atomic.Int64 // Now = steady + offset
	jump         atomic.Int64
}

// New returns a clock that reads the machine's. last is the newest time in the journal,
// 0 for none: the clock starts at the wall clock's time, but never before last.
func New(last int64) *Clock {
	start := time.Now()
	return newClock(last, func() int64 { return time.Now().UnixNano() }, func() int64 { return int64(time.Since(start)) })
}

func newClock(last int64, wall, steady func() int64) *Clock {
	c := &Clock{wall: wall, steady: steady}
	now := wall()
	c.offset.Store(max(now, last) - steady())
	c.compare()
	return c
}

// Now returns the time in Unix nanoseconds. It may go back by less than the hundredth
// part of a second, where it runs ahead of the wall clock.
func (c *Clock) Now() int64 { return c.steady() + c.offset.Load() }

// Jump returns by how many nanoseconds the wall clock is ahead of the time, or behind it
// where it is negative; 0 while they differ by at most MaxStep.
func (c *Clock) Jump() time.Duration { return time.Duration(c.jump.Load()) }

// Run makes up for differences until ctx ends.
func (c *Clock) Run(ctx context.Context) error {
	repeat.Every(ctx, time.Second/ticksPerSecond, func(context.Context) { c.compare() })
	return nil
}

// compare makes up for a part of the difference.
func (c *Clock) compare() {
	ahead := c.wall() - c.Now()
	rate, jump := SlowRate, int64(0)
	if ahead > MaxStep || ahead < -MaxStep {
		rate, jump = FastRate, ahead
	}
	c.jump.Store(jump)
	most := rate / ticksPerSecond
	c.offset.Add(min(max(ahead, -most), most))
}
