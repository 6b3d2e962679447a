package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"blockdesk/market"
)

// Errors of Apply. The first two are final: nothing of the commands was applied,
// and no more will be.
var (
	// ErrOutOfSequence: the commands are not the next ones.
	ErrOutOfSequence = errors.New("engine: not the commands that come next")
	// ErrDiverged: the commands before these caused other events here than where
	// they were made durable.
	ErrDiverged = errors.New("engine: other events than the leader's")
	// ErrNotFollower: the engine was made by New and takes commands by Submit.
	ErrNotFollower = errors.New("engine: it leads and does not follow")
)

// following is what an engine has beside its rings when it follows another's
// journal.
type following struct {
	// turn belongs to who uses the matcher: Apply, and Run at the end.
	turn sync.Mutex
}

// Follow prepares an engine that goes on where r ends with commands that another
// engine has stamped and made durable: who calls Apply takes the matcher's place.
// It begins no epoch, makes no command of its own, and Submit says ErrReadOnly.
// Consumers see what those of the other engine see, in the same order, from the
// first event after r on; all that is applied is visible. Journal, Clock,
// MaxOrders, MaxBatch and IngressSize of o are not used, and OrderIDs must not be.
// The engine owns r as New says. Errors: those of Options.Validate.
func Follow(o Options, r *Replica) (*Engine, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o.Journal, o.IngressSize = nil, MinRing
	o = o.withDefaults()
	e := &Engine{
		options: o, replica: r, following: &following{},
		matcherWait: newWaiter(o.Wait), journalWait: newWaiter(o.Wait), expiryWait: newWaiter(Park),
	}
	e.ids.epoch = r.State.Epoch()
	e.ingress.init(o.IngressSize, r.State.Seq()+1)
	e.egress.init(o.EgressSize, o.Wait)
	e.matcher.init(e)
	e.durable.Store(math.MaxUint64)
	e.ingress.journaled.Store(math.MaxUint64)
	e.ingress.tail.Store(tailFailed)
	e.admission.Store(uint32(AdmitNone))
	return e, nil
}

// Apply applies the commands of one frame, whole batches, stamped, in the order
// of the journal, and shows their events. prior is the digest of all events
// before them. It waits while the ring of events is full, until Run's end. The
// commands are not kept. One goroutine, while Run works.
//
// Errors: ErrOutOfSequence, ErrDiverged; ErrStopped once Run has ended, or where consumers
// held up its end; ErrNotFollower.
func (e *Engine) Apply(prior uint64, commands []Command) error {
	f := e.following
	if f == nil {
		return ErrNotFollower
	}
	f.turn.Lock()
	defer f.turn.Unlock()
	m := &e.matcher
	switch {
	case e.failure.Load() != nil:
		return e.failed()
	case e.stopping.Load():
		return ErrStopped
	case len(commands) == 0:
		return nil
	}
	next := e.ingress.firstSeq + m.next
	for i := range commands {
		if c := &commands[i]; c.Seq != next+uint64(i) {
			return e.diverge(fmt.Errorf("%w: seq %d, want %d", ErrOutOfSequence, c.Seq, next+uint64(i)))
		}
	}
	if prior != m.digest {
		return e.diverge(fmt.Errorf("%w: before seq %d the digest is %016x, the leader's %016x", ErrDiverged, next, m.digest, prior))
	}
	state := e.replica.State
	for i := range commands {
		state.Apply(&commands[i], &m.sink)
	}
	m.publish()
	m.next += uint64(len(commands))
	e.ingress.tail.Store(m.next | tailFailed)
	e.ingress.applied.Store(m.next)
	if m.blind {
		return ErrStopped
	}
	return nil
}

// Digest returns the digest of all events that Apply has caused, and the Seq of
// the last command, as of one moment. Any goroutine; it waits for an Apply under
// way. Of an engine that leads it is zero: the journal has it in its frames.
func (e *Engine) Digest() (digest, seq uint64) {
	f := e.following
	if f == nil {
		return 0, 0
	}
	f.turn.Lock()
	defer f.turn.Unlock()
	return e.matcher.digest, e.ingress.firstSeq + e.matcher.next - 1
}

// Instruments returns a copy of the instruments that Apply has come to, by ID. Any
// goroutine; it waits for an Apply under way. Of an engine that leads it is nil.
func (e *Engine) Instruments() []market.Instrument {
	f := e.following
	if f == nil {
		return nil
	}
	f.turn.Lock()
	defer f.turn.Unlock()
	return e.replica.State.Instruments()
}

// diverge ends the following for good. What was shown stays.
func (e *Engine) diverge(err error) error {
	e.failure.Store(&err)
	e.egress.giveUp()
	return err
}

// followRun is Run of an engine that follows.
func (e *Engine) followRun(ctx context.Context) error {
	<-ctx.Done()
	e.stopping.Store(true)
	patience := time.AfterFunc(e.options.DrainTimeout, func() {
		e.abandoned.Store(true)
		e.egress.room.wake()
	})
	e.following.turn.Lock() // no Apply is under way, and none will be
	defer e.following.turn.Unlock()
	patience.Stop()
	e.replica.Digest = e.matcher.digest
	e.matched.Store(true)
	e.end()
	if failure := e.failed(); failure != nil {
		return failure
	}
	if e.matcher.blind {
		return fmt.Errorf("%w: %s", ErrDrainTimeout, e.egress.laggard())
	}
	return nil
}
