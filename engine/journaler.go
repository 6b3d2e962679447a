package engine

import "fmt"

// journal appends whole batches to the journal, all that wait at once, and moves
// the watermark after each frame. One frame is under way at a time: while it is,
// the next one gathers.
func (e *Engine) journal() {
	if e.options.Journal == nil {
		return
	}
	r := &e.ingress
	var from uint64
	ready := func() bool { return r.stamped.Load() != from || e.matched.Load() }
	for {
		e.journalWait.wait(ready, nil)
		matched := e.matched.Load() // before stamped: then stamped is final
		to := r.stamped.Load()
		if to == from {
			if matched {
				return
			}
			continue
		}
		to = r.cut(from, to, MaxFrame)
		a, b := r.segments(from, to)
		if err := e.options.Journal.Append(r.prior[from&r.mask], a, b); err != nil {
			e.fail(fmt.Errorf("%w at seq %d: %w", ErrJournal, e.ingress.firstSeq+from, err))
			return
		}
		from = to
		e.durable.Store(e.ingress.firstSeq + to - 1)
		r.journaled.Store(to)
		e.egress.wake()
	}
}

// fail makes the engine read-only for good. What is durable stays visible.
func (e *Engine) fail(err error) {
	e.failure.Store(&err)
	e.close(tailFailed)
}
