package engine

import "fmt"

// journal appends whole batches to the journal, all that wait at once, and moves
// the watermark after each frame. One frame is under way at a time: while it is,
// the next one gathers.
func (e *Engine) journal() {
	if e.options.Journal == nil {
		return
	}
	for {
		e.journalWait.wait(e.journalReady, nil)
		matched := e.matched.Load() // before stamped: then stamped is final
		if e.failure.Load() != nil || matched && e.ingress.stamped.Load() == e.ingress.journaled.Load() {
			return
		}
		if e.frame() {
			e.egress.wake()
		}
	}
}

// journalReady reports whether the journaler has something to do, or nothing for
// ever.
func (e *Engine) journalReady() bool {
	return e.ingress.stamped.Load() != e.ingress.journaled.Load() || e.matched.Load() || e.failure.Load() != nil
}

// frame appends one frame, if there are commands for it, and moves the watermark.
// Who may call it has the journaler's turn. The consumers are to be woken where
// it returns true.
func (e *Engine) frame() bool {
	r := &e.ingress
	from := r.journaled.Load()
	to := r.stamped.Load()
	if to == from {
		return false
	}
	to = r.cut(from, to, MaxFrame)
	a, b := r.segments(from, to)
	if err := e.options.Journal.Append(r.prior[from&r.mask], a, b); err != nil {
		e.fail(fmt.Errorf("%w at seq %d: %w", ErrJournal, e.ingress.firstSeq+from, err))
		return false
	}
	e.durable.Store(e.ingress.firstSeq + to - 1)
	r.journaled.Store(to)
	return true
}

// fail makes the engine read-only for good. What is durable stays visible.
func (e *Engine) fail(err error) {
	e.failure.Store(&err)
	e.close(tailFailed)
	e.egress.giveUp()
}
