// Package repeat calls a function at a steady pace until a context ends.
package repeat

import (
	"context"
	"time"
)

// Every calls do at once and then once a period, until ctx ends. Calls do not
// overlap: after a call that takes longer than the period the next one follows
// immediately.
func Every(ctx context.Context, period time.Duration, do func(context.Context)) {
	tick := time.NewTicker(period)
	defer tick.Stop()
	for {
		do(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
