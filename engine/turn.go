package engine

// Between two goroutines that sleep, a command waits longer for them to wake up
// than for all that they do. Where the engine is idle, who has a command can do
// the work itself: it takes the turns of the goroutines that sleep, one after the
// other, each for one step. There is still one writer at a time; who is awake is
// never disturbed, and finds what came meanwhile.

// turnCommands is the most commands that one RunInline applies. What is more goes to
// the matcher's own goroutine.
const turnCommands = 16

// Enqueue is Submit that wakes nobody: the caller calls RunInline at once, from the same
// goroutine. Errors: those of Submit.
func (e *Engine) Enqueue(c *Command) error {
	err := ErrReadOnly
	if Admission(e.admission.Load()).admits(c) {
		err = e.ingress.put(c)
	}
	if err != nil {
		e.refused.Add(1)
	}
	return err
}

// RunInline has what Enqueue has placed applied, journaled and followed: as far as the
// engine's goroutines sleep by the caller itself, else by them. The journaler's
// part is the caller's with Options.InlineJournal alone. Then, where the consumer
// first (nil = none) waits in Next, step is called in its place: it may use first
// as the goroutine in Next may, until it returns. Any goroutine; it waits for
// nothing but what step and the journal wait for, and for a consumer that lags
// only where one command fills half the ring of events.
func (e *Engine) RunInline(first *Consumer, step func()) {
	if !e.matcherWait.take() {
		e.matcherWait.wake()
		return
	}
	journal := e.matcher.turn()
	e.matcherWait.give(e.matcher.ready)
	if !journal {
		return
	}
	if !e.options.InlineJournal || !e.journalWait.take() {
		e.journalWait.wake()
		return
	}
	visible := e.frame()
	e.journalWait.give(e.journalReady)
	if !visible {
		return
	}
	if first != nil {
		first.lend(step)
	}
	e.egress.wake()
}

// turn applies one small batch, if the ring of events has room for more than it
// can need, and reports whether the journaler has to do with it.
func (m *matcher) turn() (journal bool) {
	e := m.engine
	if e.stopping.Load() || m.blind {
		return false
	}
	if room := uint64(len(e.egress.events)) / 2; m.sink.Limit-m.sink.Pos < room {
		if m.sink.Limit = e.egress.limit(m.sink.Pos); m.sink.Limit-m.sink.Pos < room {
			return false
		}
	}
	n := e.ingress.run(m.next, min(turnCommands, e.options.MaxBatch))
	if n == 0 {
		return false
	}
	m.batch(uint64(n), false)
	return e.options.Journal != nil
}

// lend calls step in the place of the goroutine that sleeps in Next, if one does.
func (c *Consumer) lend(step func()) {
	if !c.waiting.take() {
		return
	}
	e := c.engine
	// What step has not seen has come after this.
	published, durable := e.egress.published.Load(), e.durable.Load()
	step()
	c.waiting.give(func() bool {
		return e.egress.published.Load() != published || e.durable.Load() != durable || e.ended.Load()
	})
}
