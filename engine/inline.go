package engine

// Inline matching. Waking the matcher, the journaler and a consumer one after the other
// takes longer than all their work on one command. So a producer whose command finds
// them asleep may do their work itself, one step each (RunInline). Each of the three
// waits in a waiter, and the goroutine that moves its state to awake owns the role, so
// there is still one writer at a time and no lock.

// inlineBatch is the most commands that one RunInline applies. The matcher's goroutine
// applies the rest.
const inlineBatch = 16

// RunInline applies, journals and publishes what Enqueue has queued: in the caller's
// goroutine as far as the engine's goroutines sleep, else in theirs. The caller journals
// only with Options.InlineJournal. If the consumer first (nil = none) waits in Next, its
// events are then handled by step, which may use first like the goroutine in Next until
// it returns.
//
// Any goroutine may call RunInline. It waits only for step, for the journal, and for a
// slow consumer if one command fills half the egress ring.
func (e *Engine) RunInline(first *Consumer, step func()) {
	if !e.matcherWait.takeOver() {
		e.matcherWait.wake()
		return
	}
	journal := e.matcher.runOnce()
	e.matcherWait.handBack(e.matcher.ready)
	if !journal {
		return
	}
	if !e.options.InlineJournal || !e.journalWait.takeOver() {
		e.journalWait.wake()
		return
	}
	visible := e.appendFrame()
	e.journalWait.handBack(e.journalReady)
	if !visible {
		return
	}
	if first != nil {
		first.runStep(step)
	}
	e.egress.wake()
}

// runOnce applies one small batch if the egress ring has more free slots than it can
// need, and reports whether the batch must be journaled.
func (m *matcher) runOnce() (journal bool) {
	e := m.engine
	if e.stopping.Load() || m.discarding {
		return false
	}
	if room := uint64(len(e.egress.events)) / 2; m.sink.Limit-m.sink.Pos < room {
		if m.sink.Limit = e.egress.limit(m.sink.Pos); m.sink.Limit-m.sink.Pos < room {
			return false
		}
	}
	n := e.ingress.countFilled(m.next, min(inlineBatch, e.options.MaxBatch))
	if n == 0 {
		return false
	}
	m.batch(uint64(n), false)
	return e.options.Journal != nil
}

// runStep calls step in place of the goroutine that sleeps in Next, if one does.
func (c *Consumer) runStep(step func()) {
	if !c.waiting.takeOver() {
		return
	}
	e := c.engine
	// Both are loaded before step, so that events which step did not see count as more
	// work.
	published, durable := e.egress.published.Load(), e.durable.Load()
	step()
	c.waiting.handBack(func() bool {
		return e.egress.published.Load() != published || e.durable.Load() != durable || e.ended.Load()
	})
}
