package engine

import (
	"context"
	"errors"
	"time"
)

const (
	// minTickInterval is the shortest time between two ticks.
	minTickInterval = time.Millisecond
	// maxTickSleep bounds a sleep, so that a clock that jumps is noticed.
	maxTickSleep = time.Second
)

// runTicker submits a Tick when something expires and no other command has advanced the
// time since. It sleeps while nothing expires.
func (e *Engine) runTicker(ctx context.Context) {
	timer := time.NewTimer(maxTickSleep)
	defer timer.Stop()
	has := func() bool { return e.nextExpiry.Load() != 0 }
	for e.expiryWait.wait(has, ctx.Done()) {
		due := e.nextExpiry.Load()
		if due == 0 {
			continue
		}
		sleep := time.Duration(due - e.options.Clock())
		if sleep <= 0 {
			sleep = e.submitTick()
		}
		timer.Reset(min(sleep, maxTickSleep))
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
	}
}

// submitTick submits a Tick and returns how long to wait before the next check. A refused
// Tick is not counted: the commands of a full ring advance the time too.
func (e *Engine) submitTick() time.Duration {
	tick := Command{Kind: Tick}
	if !Admission(e.admission.Load()).admits(&tick) {
		return maxTickSleep
	}
	err := e.ingress.put(&tick)
	switch {
	case err == nil:
		e.matcherWait.wake()
		return minTickInterval
	case errors.Is(err, ErrFull):
		return minTickInterval
	default:
		return maxTickSleep
	}
}
