package engine

import (
	"errors"
	"fmt"
)

// ErrJournal is an error of Run that wraps the journal's error.
var ErrJournal = errors.New("engine: the journal failed")

// Journal makes commands durable: persist implements it on Pebble, persist/quorum on raft.
// The engine makes one call at a time.
type Journal interface {
	// Append writes one frame: the commands of a, then of b, in order of Seq, beginning
	// with the first of a batch. priorDigest is the digest of all events of the commands
	// before them. Append returns when the frame is durable; only then are its events
	// published. It must not keep the commands. After an error the engine is read-only.
	Append(priorDigest uint64, a, b []Command) error
}

// runJournaler appends frames, each with all batches stamped so far, until the matcher has
// ended or the engine has failed. While one frame is being written, the commands of the next
// one gather.
func (e *Engine) runJournaler() {
	if e.options.Journal == nil {
		return
	}
	for {
		e.journalWait.wait(e.journalReady, nil)
		matched := e.matcherDone.Load() // loaded before stamped, which is then final
		if e.failure.Load() != nil || matched && e.ingress.stamped.Load() == e.ingress.journaled.Load() {
			return
		}
		if e.appendFrame() {
			e.egress.wake()
		}
	}
}

// journalReady reports whether the journaler has a frame to write or must end.
func (e *Engine) journalReady() bool {
	return e.ingress.stamped.Load() != e.ingress.journaled.Load() || e.matcherDone.Load() || e.failure.Load() != nil
}

// appendFrame appends one frame, if commands wait for it, and moves the watermark. Only
// the owner of the journaler's role may call it, and must wake the consumers if it returns
// true.
func (e *Engine) appendFrame() bool {
	r := &e.ingress
	from := r.journaled.Load()
	to := r.stamped.Load()
	if to == from {
		return false
	}
	to = r.frameEnd(from, to, MaxFrame)
	a, b := r.segments(from, to)
	if err := e.options.Journal.Append(r.priorDigest[from&r.mask], a, b); err != nil {
		e.fail(fmt.Errorf("%w at seq %d: %w", ErrJournal, e.ingress.firstSeq+from, err))
		return false
	}
	e.durable.Store(e.ingress.firstSeq + to - 1)
	r.journaled.Store(to)
	return true
}

// fail makes the engine read-only for good. Durable events remain visible.
func (e *Engine) fail(err error) {
	e.failure.Store(&err)
	e.close(tailFailed)
	e.egress.wakeAwaits()
}
