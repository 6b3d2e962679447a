package bench

import (
	"context"
	"time"
)

// OpenLoop calls send(i) at a fixed rate for n operations, each at the time it
// is due or, when the one before took too long or the timer is coarse, as soon as
// possible. The i-th is due i/perSecond seconds after start: what latencies are
// counted from, so that a stall is charged to every operation that it delayed.
// It sleeps and does not spin: on two cores a spinning sender takes one from
// what it measures.
func OpenLoop(ctx context.Context, start time.Time, n, perSecond int, send func(i int) error) error {
	for i := range n {
		due := time.Duration(int64(i) * int64(time.Second) / int64(perSecond))
		if ahead := due - time.Since(start); ahead > 0 {
			time.Sleep(ahead)
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
		if err := send(i); err != nil {
			return err
		}
	}
	return nil
}
