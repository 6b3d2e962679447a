// Package repeat calls a function at a steady pace until a context ends: at once, then
// once a period. It is for background work that must not pile up, such as refreshes and
// watches.
//
// Calls never overlap and none is made up for: a call that takes longer than the period is
// followed by the next one immediately, and the missed ones are dropped. The function gets
// the context and must return when it ends; panics are its own.
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
