package broadcast

import (
	"context"
	"sync"
	"time"

	"blockdesk/internal/solana/rpc"
)

// each calls do with every element of a list, at most most of them at the same time.
type each[T any] struct {
	list []T
	most int
	do   func(context.Context, T)
}

// Run returns after the last call.
func (e *each[T]) Run(ctx context.Context) {
	var wg sync.WaitGroup
	next := make(chan T)
	for range min(e.most, len(e.list)) {
		wg.Go(func() {
			for x := range next {
				e.do(ctx, x)
			}
		})
	}
	for _, x := range e.list {
		next <- x
	}
	close(next)
	wg.Wait()
}

// pace dispatches entries when it is time to send or report them again.
func (t *Tracker) pace(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-t.dispatchWake:
		}
		timer.Reset(t.dispatchDue())
	}
}

// dispatchDue dispatches the due entries, and returns the time until the next one
// is due.
func (t *Tracker) dispatchDue() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	now, q := t.now().UnixNano(), &t.queues[bySend]
	for e, ok := q.Pop(now); ok; e, ok = q.Pop(now) {
		if e.result.End != 0 {
			t.dispatch(e, t.reports)
		} else {
			t.dispatch(e, t.again)
		}
	}
	if _, due, ok := q.First(); ok {
		return time.Duration(due - now)
	}
	return time.Hour // dispatchWake wakes pace earlier
}

// sendAll sends dispatched entries, new ones first.
func (t *Tracker) sendAll(ctx context.Context) {
	for ctx.Err() == nil {
		var e *entry
		select {
		case e = <-t.fresh:
		default:
			select {
			case <-ctx.Done():
				return
			case e = <-t.fresh:
			case e = <-t.again:
			}
		}
		t.send(ctx, e)
	}
}

// send sends an entry's bytes to a node, unless a poll has found it meanwhile.
func (t *Tracker) send(ctx context.Context, e *entry) {
	t.mu.Lock()
	needed := e.sends()
	if !needed {
		e.sending = false
	}
	t.mu.Unlock()
	if !needed {
		return
	}
	_, err := t.node.Send(ctx, e.raw, rpc.SendOptions{SkipPreflight: !t.options.Preflight})
	pause := t.options.ResendEvery
	if err != nil {
		pause = max(pause, retryAfter(err))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	e.sending = false
	e.sent++
	t.stats.Sends++
	if e.sendProblem = ""; err != nil {
		e.sendProblem = problemOf(err)
		t.stats.SendErrors++
	}
	if e.sends() {
		t.later(e, pause)
	}
}

// sends reports whether an entry must be sent. The caller holds the tracker's mu.
func (e *entry) sends() bool { return e.raw != nil && e.result.End == 0 && e.level < rpc.Confirmed }

func (t *Tracker) reportAll(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-t.reports:
			t.reportEnd(ctx, e)
		}
	}
}

// reportEnd calls ended, and forgets the entry if ended has taken the result.
func (t *Tracker) reportEnd(ctx context.Context, e *entry) {
	// The result no longer changes.
	err := t.ended(ctx, e.result)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		e.pause = min(max(2*e.pause, firstPause), lastPause)
		t.later(e, e.pause)
		return
	}
	t.stats.Reporting--
	t.forget(e)
}
