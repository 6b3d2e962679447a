package access

import (
	"sync/atomic"
	"time"
)

// clock returns Unix nanoseconds. It follows the system's clock forwards. If that is
// set back, the clock continues from where it was at the pace of a monotonic clock: it
// neither goes back nor stands still.
type clock struct {
	wall    func() int64         // Unix nanoseconds
	elapsed func() time.Duration // since some moment; never goes back
	offset  atomic.Int64         // of elapsed; only grows
}

// startAt sets the earliest time. Call it before the first now.
func (c *clock) startAt(t int64) { c.offset.Store(t - int64(c.elapsed())) }

// now returns the time, not less than any call has returned before.
func (c *clock) now() int64 {
	wall, elapsed := c.wall(), int64(c.elapsed())
	for {
		ahead := c.offset.Load()
		if wall-elapsed <= ahead {
			return elapsed + ahead
		}
		if c.offset.CompareAndSwap(ahead, wall-elapsed) {
			return wall
		}
	}
}
