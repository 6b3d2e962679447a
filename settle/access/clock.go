package access

import (
	"sync/atomic"
	"time"
)

// clock tells time in Unix nanoseconds. It follows the system's clock forwards.
// When that is set back, time goes on from where it was, at the pace of a clock
// that nobody sets: it neither returns nor stands still.
type clock struct {
	wall    func() int64         // Unix nanoseconds
	elapsed func() time.Duration // since some moment; never goes back
	offset  atomic.Int64         // of elapsed; only grows
}

// since makes time t at least. Only before the first now.
func (c *clock) startAt(t int64) { c.offset.Store(t - int64(c.elapsed())) }

// now is not less than what any call that has returned before it said.
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
