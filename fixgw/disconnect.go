package fixgw

import (
	"context"
	"errors"
	"sync"
	"time"

	"blockdesk/engine"
	"blockdesk/engine/book"
	"blockdesk/engine/quotes"
	"blockdesk/market"
)

// disconnectCanceller cancels the orders of sessions whose client has disconnected.
type disconnectCanceller struct {
	gateway *Gateway
	wake    chan struct{} // capacity 1

	mu    sync.Mutex
	tasks []pendingCancel
}

// pendingCancel is one order to cancel, or all quotes of the session.
type pendingCancel struct {
	owner      *blotter
	id         market.OrderID // 0 = the quotes
	instrument market.InstrumentID
}

// cancelPause is how long to wait when the engine's queue is full.
const cancelPause = time.Millisecond

func newDisconnectCanceller(g *Gateway) *disconnectCanceller {
	return &disconnectCanceller{gateway: g, wake: make(chan struct{}, 1)}
}

// add takes every order of s, accepted or on its way to the engine.
func (w *disconnectCanceller) add(s *blotter) {
	s.mu.Lock()
	var tasks []pendingCancel
	quotes := false
	for id, o := range s.orders {
		if o.QuoteSet != 0 {
			quotes = true
			continue
		}
		tasks = append(tasks, pendingCancel{s, id, o.Instrument})
	}
	for _, r := range s.requests {
		quotes = quotes || r.answer == 0 && r.msgType == 'i'
		if r.answer == 0 && r.msgType == 'D' {
			tasks = append(tasks, pendingCancel{s, r.id, r.instrument})
		}
	}
	s.mu.Unlock()
	if quotes {
		tasks = append(tasks, pendingCancel{owner: s})
	}
	w.mu.Lock()
	w.tasks = append(w.tasks, tasks...)
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Run cancels until ctx ends. RestartGrace after the start it also takes the sessions
// with cancel on disconnect whose clients have not come back.
func (w *disconnectCanceller) Run(ctx context.Context) error {
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
				if !s.Connected() && s.CancelOnDisconnect.Load() {
					w.add(s)
				}
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// cancel submits one cancel, and waits while the engine's queue is full. False ends Run.
func (w *disconnectCanceller) cancel(ctx context.Context, t *pendingCancel) bool {
	c := []engine.Command{{
		Kind: engine.CancelOrder, Instrument: t.instrument, Origin: t.owner.Number,
		Order: book.Order{ID: t.id, Participant: t.owner.Participant.Number},
	}}
	c[0].SetRef([]byte(disconnectClOrdID))
	if t.id == 0 {
		if w.gateway.options.Format1 {
			return true // no mass quote was taken
		}
		var err error
		if c, err = t.owner.quoter.makeCommands(c[:0], &quotes.Mass{Ref: []byte(disconnectClOrdID), STP: t.owner.Terms().STP, CancelAll: true}); err != nil {
			w.gateway.Fail(err)
			return false
		}
	}
	for {
		err := w.gateway.engine.SubmitAll(c)
		if !errors.Is(err, engine.ErrFull) {
			return !errors.Is(err, engine.ErrStopped)
		}
		select {
		case <-time.After(cancelPause):
		case <-ctx.Done():
			return false
		}
	}
}
