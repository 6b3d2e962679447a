package engine

import (
	"context"
	"errors"
	"time"
)

const (
	// tickPause is the shortest time between two ticks of the engine's own.
	tickPause = time.Millisecond
	// tickNap is the longest sleep while something has an expiry, so that a
	// clock that jumps is noticed.
	tickNap = time.Second
)

// tick submits a Tick when the time of an order or of something of the desk's has
// come and no other command has brought the time forward since. It sleeps while
// nothing has an expiry.
func (e *Engine) tick(ctx context.Context) {
	timer := time.NewTimer(tickNap)
	defer timer.Stop()
	has := func() bool { return e.nextExpiry.Load() != 0 }
	for e.expiryWait.wait(has, ctx.Done()) {
		due := e.nextExpiry.Load()
		if due == 0 {
			continue
		}
		nap := time.Duration(due - e.options.Clock())
		if nap <= 0 {
			nap = e.tickNow()
		}
		timer.Reset(min(nap, tickNap))
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
	}
}

// tickNow submits a Tick and returns how long to wait before looking again. Its
// refusals are not counted: a full ring brings the time forward by itself.
func (e *Engine) tickNow() time.Duration {
	tick := Command{Kind: Tick}
	if !Admission(e.admission.Load()).admits(&tick) {
		return tickNap
	}
	err := e.ingress.put(&tick)
	switch {
	case err == nil:
		e.matcherWait.wake()
		return tickPause
	case errors.Is(err, ErrFull):
		return tickPause
	default:
		return tickNap
	}
}
