package orders

import (
	"context"
	"errors"
	"sync"
	"time"

	"blockdesk/engine"
	"blockdesk/engine/book"
	"blockdesk/engine/quotes"
	"blockdesk/fixgw/reports"
	"blockdesk/fixgw/session"
	"blockdesk/market"
)

// disconnectClOrdID is the ClOrdID of a cancel on disconnect.
const disconnectClOrdID = "\x01disconnect"

// Canceller cancels the orders of sessions whose client has disconnected.
type Canceller struct {
	entry    *Entry
	sessions session.Directory[Session]
	grace    time.Duration
	wake     chan struct{} // capacity 1

	mu    sync.Mutex
	tasks []pendingCancel
}

// pendingCancel is one order to cancel, or all quotes of the session.
type pendingCancel struct {
	owner      *Session
	id         market.OrderID // 0 = the quotes
	instrument market.InstrumentID
}

// cancelPause is how long to wait when the engine's queue is full.
const cancelPause = time.Millisecond

// NewCanceller returns a canceller. grace is how long after the start a client with cancel on
// disconnect may stay away before its orders are cancelled.
func NewCanceller(entry *Entry, sessions session.Directory[Session], grace time.Duration) *Canceller {
	return &Canceller{entry: entry, sessions: sessions, grace: grace, wake: make(chan struct{}, 1)}
}

// Cancel takes the orders of s, accepted or on its way to the engine, that are to end with its
// connection: by their own CancelOrdersOnDisconnect (8013), else by that of the Logon. It does
// not wait.
func (w *Canceller) Cancel(s *Session) {
	logon := s.CancelOnDisconnect.Load()
	var tasks []pendingCancel
	quotes := false
	found := make(map[market.OrderID]bool)
	// Requests first: one that is accepted meanwhile is an order afterwards.
	s.Pending(func(r *reports.Request) {
		quotes = quotes || logon && r.MsgType == 'i'
		if r.MsgType == 'D' && r.Terms.OnDisconnect.Cancels(logon) {
			found[r.ID] = true
			tasks = append(tasks, pendingCancel{s, r.ID, r.Instrument})
		}
	})
	s.mu.Lock()
	for id, o := range s.orders {
		switch {
		case o.QuoteSet != 0:
			quotes = quotes || logon
		case !found[id] && o.OnDisconnect.Cancels(logon):
			tasks = append(tasks, pendingCancel{s, id, o.Instrument})
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

// Run cancels until ctx ends. After the grace it also takes the sessions whose clients have
// not come back.
func (w *Canceller) Run(ctx context.Context) error {
	grace := time.NewTimer(w.grace)
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
			for _, s := range w.sessions.All() {
				if !s.Connected() {
					w.Cancel(s)
				}
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// cancel submits one cancel, and waits while the engine's queue is full. False ends Run.
func (w *Canceller) cancel(ctx context.Context, t *pendingCancel) bool {
	c := []engine.Command{{
		Kind: engine.CancelOrder, Instrument: t.instrument, Origin: t.owner.Number,
		Order: book.Order{ID: t.id, Participant: t.owner.Participant.Number},
	}}
	c[0].SetRef([]byte(disconnectClOrdID))
	if t.id == 0 {
		if w.entry.Format1 {
			return true // no mass quote was taken
		}
		var err error
		if c, err = t.owner.makeCommands(c[:0], &quotes.Mass{Ref: []byte(disconnectClOrdID), STP: t.owner.Terms().STP, CancelAll: true}); err != nil {
			t.owner.Fail(err)
			return false
		}
	}
	for {
		err := w.entry.Engine.SubmitAll(c)
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
