package desk

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"blockdesk/engine"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/persist/kv"
	"blockdesk/persist/projection"
)

// Desk joins the doors to the engine's desk: see the package. New, Replay, then
// Start or Reconcile, then Run; Do, View, Claim and Stats from any goroutine once
// Start has returned, as long as the store is open.
type Desk struct {
	o         Options
	submit    Submitter
	store     *projection.Store
	table     table
	projector projector
	view      atomic.Pointer[rfq.View]

	running atomic.Bool
	failed  chan struct{} // closed: the engine is read-only for good, or the store has failed
	stopped chan struct{} // closed: Run has returned

	counts struct {
		busy, timeouts, replayed, conflicts atomic.Uint64
		claims                              [rfq.ClaimRefundDue + 1]atomic.Uint64 // by the state that they came into
	}
}

// New reads the store.
func New(o Options, submit Submitter, store kv.Store) (*Desk, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	d := &Desk{
		o: o.withDefaults(), submit: submit,
		failed: make(chan struct{}), stopped: make(chan struct{}),
	}
	d.table.init(d.o.MaxWaiting)
	d.projector.init(d)
	var err error
	if d.store, err = projection.Open(kv.Named(store, "desk store"), d.projector.layout()); err != nil {
		return nil, err
	}
	return d, d.projector.load()
}

// Cursor returns the Seq up to which everything is in the store, though perhaps
// not synced. Replay wants the events of every later command.
func (d *Desk) Cursor() uint64 { return d.store.Cursor() }

// DurableCursor returns the Cursor that a crash of the machine leaves: the journal
// must keep the events after it.
func (d *Desk) DurableCursor() uint64 { return d.store.DurableCursor() }

// Replay takes events that the store may not have seen: before Start those of
// the journal after Cursor, or from before it; after Start, and before Run, those
// of the running engine. In their order; a command's events may be cut between
// two calls.
func (d *Desk) Replay(events []event.Event) error {
	if err := d.projector.follow(events); err != nil {
		return err
	}
	if !d.projector.started {
		return nil
	}
	return d.projector.flush(false)
}

// Start ends the recovery: board is Machine.ReadModel of the recovered state, seq its
// State.Seq. The store must have seen the events of every command up to seq.
// Errors: projection.ErrAhead where it has seen later ones, see Reconcile;
// projection.ErrDiverged where it has not kept what they said, or was another journal's.
// After either, nothing has happened.
func (d *Desk) Start(board *rfq.ReadModel, seq uint64) error {
	if d.projector.applied > seq {
		return fmt.Errorf("desk store: %w: it has seen seq %d, the journal ends at %d", projection.ErrAhead, d.projector.applied, seq)
	}
	if err := d.projector.compareTickets(board.View()); err != nil {
		return err
	}
	return d.projector.start(board, seq)
}

// View returns the newest durable view; nil before Start.
func (d *Desk) View() *rfq.View { return d.view.Load() }

// Shown returns nil once View shows all events that Run had released before the call.
// All are shown when they are released, but those of a command whose end is not known
// yet: that takes the engine a moment, and the desk a millisecond to see. Any goroutine.
// Errors: ErrStopped once Run has ended, and ctx's.
func (d *Desk) AwaitView(ctx context.Context) error {
	at := d.projector.incompleteSeq.Load()
	if at == 0 {
		return nil
	}
	look := time.NewTicker(incompleteWait / 4)
	defer look.Stop()
	for d.projector.incompleteSeq.Load() == at {
		select {
		case <-look.C:
		case <-d.stopped:
			return ErrStopped
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Run follows c until it ends, also past the end of ctx, but no longer than
// DrainTimeout then. It returns nil when the engine has stopped, else the error of
// c. Whoever waits in Do gets ErrStopped. When the store fails Run stays, so that
// readers can be served on; it returns the failure at its end.
func (d *Desk) Run(ctx context.Context, c projection.Consumer) error {
	if d.running.Swap(true) || !d.projector.started {
		return errors.New("desk: Run was called twice, or before Start")
	}
	defer close(d.stopped)
	following, cut := projection.Drain(ctx, d.o.DrainTimeout, errDrainTimeout)
	defer cut()
	keeping, stopKeeping := context.WithCancel(following)
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		d.watchStore(keeping)
	}()
	err := d.projector.run(following, c)
	stopKeeping()
	<-kept
	return errors.Join(err, d.projector.storeError())
}

// errDrainTimeout ends Run when the engine's events do not.
var errDrainTimeout = errors.New("desk: the engine's events did not end in time")

// keep looks whether the engine or the store has failed, and makes the cursor
// durable.
func (d *Desk) watchStore(ctx context.Context) {
	tick := time.NewTicker(failedEvery)
	defer tick.Stop()
	synced, failed := time.Now(), false
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if time.Since(synced) >= d.o.SyncEvery {
			synced = time.Now()
			if !d.projector.storeFailed() {
				_ = d.projector.fail(d.store.Sync()) // it keeps the error
			}
		}
		if !failed && (d.o.Failed() != nil || d.projector.storeFailed()) {
			failed = true
			close(d.failed)
		}
	}
}

// refused names what a submission was refused for.
func (d *Desk) submitError(err error) error {
	switch {
	case errors.Is(err, engine.ErrFull):
		d.counts.busy.Add(1)
		return ErrBusy
	case errors.Is(err, engine.ErrReadOnly):
		return ErrReadOnly
	case errors.Is(err, engine.ErrStopped):
		return ErrStopped
	}
	return fmt.Errorf("desk: submitting: %w", err)
}

// Stats is a moment's figures, each read by itself.
type Stats struct {
	Waiting   int    // calls of Do under way, and keyed requests without a caller
	Keys      uint64 // answers kept
	Cursor    uint64
	Busy      uint64 // ErrBusy, of the ring or of MaxWaiting
	Timeouts  uint64
	Replayed  uint64 // answers from the store
	Conflicts uint64
	// Claims counts the records of claims that were followed, by the state in them.
	Claims [rfq.ClaimRefundDue + 1]uint64
}

// count notes that a claim came into a state.
func (d *Desk) count(s rfq.ClaimState) {
	if int(s) < len(d.counts.claims) {
		d.counts.claims[s].Add(1)
	}
}

// Stats returns the figures.
func (d *Desk) Stats() Stats {
	s := Stats{
		Waiting: int(d.table.slots.Load()), Keys: d.projector.committedKeys.Load(), Cursor: d.Cursor(),
		Busy: d.counts.busy.Load(), Timeouts: d.counts.timeouts.Load(),
		Replayed: d.counts.replayed.Load(), Conflicts: d.counts.conflicts.Load(),
	}
	for i := range s.Claims {
		s.Claims[i] = d.counts.claims[i].Load()
	}
	return s
}
