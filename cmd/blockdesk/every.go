package main

import (
	"context"
	"time"
)

// every looks at once, and then each time that pause has passed, until ctx ends. A look
// that takes longer has the next one follow it.
func every(ctx context.Context, pause time.Duration, look func(context.Context)) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		look(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
