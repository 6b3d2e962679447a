package desk

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/persist/kv"
	"blockdesk/persist/projection"
)

// Desk connects gateways to the engine's desk: see the package documentation. Call
// New, Replay, then Start or Reconcile, then Run. Do, View, Claim and Stats may be
// called from any goroutine after Start, as long as the store is open.
type Desk struct {
	shared
	submit    Submitter
	projector projector

	running atomic.Bool
	failed  chan struct{} // closed: the engine is read-only for good, or the store has failed
	stopped chan struct{} // closed: Run has returned
}

// New returns a Desk over a store, which it reads.
func New(o Options, submit Submitter, store kv.Store) (*Desk, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	d := &Desk{submit: submit, failed: make(chan struct{}), stopped: make(chan struct{})}
	d.o = o.withDefaults()
	d.table.init(d.o.MaxWaiting)
	d.projector.init(&d.shared)
	var err error
	if d.store, err = projection.Open(kv.Named(store, "desk store"), d.projector.layout()); err != nil {
		return nil, err
	}
	return d, d.projector.load()
}

// Cursor returns the Seq up to which the store has everything, though perhaps not
// synced. Replay needs the events of every later command.
func (d *Desk) Cursor() uint64 { return d.store.Cursor() }

// DurableCursor returns the Cursor that a crash of the machine leaves: the journal
// must keep the events after it.
func (d *Desk) DurableCursor() uint64 { return d.store.DurableCursor() }

// Replay applies events in their order. Before Start they are those of the journal
// after Cursor, or from before it; between Start and Run, those of the running
// engine. Two calls may share a command's events.
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
// State.Seq. Replay must have applied the events of every command up to seq. Errors:
// projection.ErrAhead if the store has later commands, see Reconcile;
// projection.ErrDiverged if it has lost data or belongs to another journal. After
// either, nothing has happened.
func (d *Desk) Start(board *rfq.ReadModel, seq uint64) error {
	if d.projector.applied > seq {
		return fmt.Errorf("desk store: %w: the store is at seq %d, the journal ends at %d", projection.ErrAhead, d.projector.applied, seq)
	}
	if err := d.projector.compareTickets(board.View()); err != nil {
		return err
	}
	return d.projector.start(board, seq)
}

// View returns the newest durable view; nil before Start.
func (d *Desk) View() *rfq.View { return d.view.Load() }

// AwaitView returns nil once View contains all events that Run had released before the
// call. View contains released events, except those of a command that may have more:
// the desk notices the end of such a command within about a millisecond. It may be
// called from any goroutine. Errors: ErrStopped once Run has ended, and ctx.Err().
func (d *Desk) AwaitView(ctx context.Context) error {
	at := d.projector.incompleteSeq.Load()
	if at == 0 {
		return nil
	}
	tick := time.NewTicker(incompleteWait / 4)
	defer tick.Stop()
	for d.projector.incompleteSeq.Load() == at {
		select {
		case <-tick.C:
		case <-d.stopped:
			return ErrStopped
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Run follows c until c ends. After the end of ctx it continues for at most
// DrainTimeout. It returns nil when the engine has stopped, and otherwise the error of
// c. Waiting calls of Do get ErrStopped. Run does not end when the store fails, so that
// readers can still be served; it returns that failure at its end.
func (d *Desk) Run(ctx context.Context, c projection.Consumer) error {
	if d.running.Swap(true) || !d.projector.started {
		return errors.New("desk: Run was called twice, or before Start")
	}
	defer close(d.stopped)
	following, cut := projection.Drain(ctx, d.o.DrainTimeout, errDrainTimeout)
	defer cut()
	watching, stopWatching := context.WithCancel(following)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		d.watchStore(watching)
	}()
	err := d.projector.run(following, c)
	stopWatching()
	<-watched
	return errors.Join(err, d.projector.storeError())
}

// errDrainTimeout ends Run if the engine's events do not end.
var errDrainTimeout = errors.New("desk: the engine's last events did not arrive in time")

// watchStore syncs the store, and closes failed when the engine or the store has
// failed.
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
				_ = d.projector.fail(d.store.Sync()) // fail keeps the error
			}
		}
		if !failed && (d.o.Failed() != nil || d.projector.storeFailed()) {
			failed = true
			close(d.failed)
		}
	}
}

// Stats are the current figures, each read by itself.
type Stats struct {
	Waiting   int    // calls of Do, and keyed requests in flight without a caller
	Keys      uint64 // stored answers
	Cursor    uint64
	Busy      uint64 // ErrBusy, of the ring or of MaxWaiting
	Timeouts  uint64
	Replayed  uint64 // answers from the store
	Conflicts uint64
	// Claims counts the records of claims, by state.
	Claims [rfq.ClaimRefundDue + 1]uint64
}

// Stats returns the current figures.
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
