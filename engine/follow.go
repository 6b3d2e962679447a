package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"blockdesk/market"
)

// Errors of Apply. After one of the first two the engine applies no more commands.
var (
	// ErrOutOfSequence: the commands do not follow the last ones.
	ErrOutOfSequence = errors.New("engine: commands are out of sequence")
	// ErrDiverged: earlier commands caused other events here than on the leader.
	ErrDiverged = errors.New("engine: diverged from the leader's events")
	// ErrNotFollower: the engine was made by New or Open and takes commands by Submit.
	ErrNotFollower = errors.New("engine: not a follower")
)

// follower is the extra state of an engine that follows another engine's journal.
type follower struct {
	mu sync.Mutex // held by the user of the matcher: Apply, and Run at the end
}

// Follow returns an engine that continues from r with commands that another engine has
// stamped and made durable, given to Apply. It starts no epoch and no command of its own,
// and Submit returns ErrReadOnly. Its consumers see the same events in the same order as
// those of the other engine, from the first event after r; everything that is applied is
// visible. Options Journal, Clock, MaxOrders, MaxBatch and IngressSize have no effect, and
// OrderIDs must not be used. The engine owns r as BeginEpoch says. Errors: those of
// Options.Validate.
func Follow(o Options, r *Replica) (*Engine, error) {
	e, err := Open(o)
	if err != nil {
		return nil, err
	}
	e.options.Journal, e.options.IngressSize = nil, MinRing
	e.follower = &follower{}
	e.attach(r)
	e.ids.epoch = r.State.Epoch()
	e.ingress.tail.Store(tailFailed)
	e.admission.Store(uint32(AdmitNone))
	return e, nil
}

// Apply applies the stamped commands of one frame (whole batches, in journal order) and
// publishes their events. priorDigest is the digest of all events before them. Apply waits
// while the egress ring is full, until Run ends, and does not keep the commands. One
// goroutine may call it while Run runs.
//
// Errors: ErrOutOfSequence, ErrDiverged; ErrStopped once Run has ended or a slow consumer
// delayed its end; ErrNotFollower.
func (e *Engine) Apply(priorDigest uint64, commands []Command) error {
	f := e.follower
	if f == nil {
		return ErrNotFollower
	}
	f.mu.Lock()
	defer f.mu.Unlock()
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
	if priorDigest != m.digest {
		return e.diverge(fmt.Errorf("%w: before seq %d the digest is %016x, the leader's %016x", ErrDiverged, next, m.digest, priorDigest))
	}
	state := e.replica.State
	for i := range commands {
		state.Apply(&commands[i], &m.sink)
	}
	m.publish()
	m.next += uint64(len(commands))
	e.ingress.tail.Store(m.next | tailFailed)
	e.ingress.applied.Store(m.next)
	if m.discarding {
		return ErrStopped
	}
	return nil
}

// Digest returns the digest of all events so far and the Seq of the last command, as of
// one moment. It waits for a concurrent Apply. Any goroutine. It returns zeros unless the
// engine is a follower: the journal of a leader has the digest in its frames.
func (e *Engine) Digest() (digest, seq uint64) {
	f := e.follower
	if f == nil {
		return 0, 0
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return e.matcher.digest, e.ingress.firstSeq + e.matcher.next - 1
}

// Instruments returns a copy of the instruments defined so far, by ID, or nil unless the
// engine is a follower. It waits for a concurrent Apply. Any goroutine.
func (e *Engine) Instruments() []market.Instrument {
	f := e.follower
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return e.replica.State.Instruments()
}

// diverge stops replication for good. Published events remain readable.
func (e *Engine) diverge(err error) error {
	e.failure.Store(&err)
	e.egress.wakeAwaits()
	return err
}

// runFollower is Run of a follower.
func (e *Engine) runFollower(ctx context.Context) error {
	<-ctx.Done()
	e.stopping.Store(true)
	timeout := time.AfterFunc(e.options.DrainTimeout, func() {
		e.drainExpired.Store(true)
		e.egress.spaceWait.wake()
	})
	e.follower.mu.Lock() // no Apply is under way, and none will be
	defer e.follower.mu.Unlock()
	timeout.Stop()
	e.replica.Digest = e.matcher.digest
	e.matcherDone.Store(true)
	e.end()
	if failure := e.failed(); failure != nil {
		return failure
	}
	if e.matcher.discarding {
		return fmt.Errorf("%w: %s", ErrDrainTimeout, e.egress.slowestConsumer())
	}
	return nil
}
