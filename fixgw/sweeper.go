package fixgw

import (
	"context"
	"errors"
	"sync"
	"time"

	"blockdesk/engine"
	"blockdesk/engine/book"
	"blockdesk/market"
)

// sweeper cancels the orders of sessions that have gone.
type sweeper struct {
	gateway *Gateway
	wake    chan struct{} // capacity 1

	mu    sync.Mutex
	tasks []sweep
}

// sweep is one order to cancel.
type sweep struct {
	owner      *blotter
	id         market.OrderID
	instrument market.InstrumentID
}

// sweepPause is how long to wait when the engine's queue is full.
const sweepPause = time.Millisecond

func newSweeper(g *Gateway) *sweeper {
	return &sweeper{gateway: g, wake: make(chan struct{}, 1)}
}

// add takes every order that s has now, accepted or on its way.
func (w *sweeper) add(s *blotter) {
	s.mu.Lock()
	var tasks []sweep
	for id, o := range s.orders {
		tasks = append(tasks, sweep{s, id, o.Instrument})
	}
	for _, r := range s.refs {
		if r.answer == 0 && r.msgType == 'D' {
			tasks = append(tasks, sweep{s, r.id, r.instrument})
		}
	}
	s.mu.Unlock()
	w.mu.Lock()
	w.tasks = append(w.tasks, tasks...)
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Run cancels until ctx ends. Some time after the start it also takes the
// sessions that want cancel on disconnect and have not come back.
func (w *sweeper) Run(ctx context.Context) error {
	grace := time.NewTimer(w.gateway.options.RestartGrace)
	defer grace.Stop()
	for {
		w.mu.Lock()
		tasks := w.tasks
		w.tasks = nil
		w.mu.Unlock()
		for i := range tasks {
			if !w.cancel(ctx, &tasks[i]) {
				return nil
			}
		}
		select {
		case <-w.wake:
		case <-grace.C:
			for _, s := range w.gateway.blotters() {
				if s.conn.Load() == nil && s.cancelOnDisconnect.Load() {
					w.add(s)
				}
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// cancel submits one cancel, waiting while the engine is full. False ends the
// sweeper.
func (w *sweeper) cancel(ctx context.Context, t *sweep) bool {
	c := engine.Command{
		Kind: engine.CancelOrder, Instrument: t.instrument, Origin: t.owner.number,
		Order: book.Order{ID: t.id, Participant: t.owner.participant.Number},
	}
	c.SetRef([]byte(disconnectRef))
	for {
		err := w.gateway.engine.Submit(&c)
		if !errors.Is(err, engine.ErrFull) {
			return !errors.Is(err, engine.ErrStopped)
		}
		select {
		case <-time.After(sweepPause):
		case <-ctx.Done():
			return false
		}
	}
}
