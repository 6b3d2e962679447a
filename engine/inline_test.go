package engine

import (
	"errors"
	"testing"

	"blockdesk/internal/await"
)

// asleep reports whether all that a RunInline needs sleeps.
func (r *running) asleep(c *Consumer) func() bool {
	return func() bool { return r.matcherWait.sleeps() && r.journalWait.sleeps() && c.waiting.sleeps() }
}

// TestTurn: where the engine is idle, the command that was placed is applied,
// durable and followed when RunInline returns, and no goroutine was needed.
func TestTurn(t *testing.T) {
	j := &slowJournal{}
	e := newEngine(t, Options{Journal: j, InlineJournal: true})
	c, other := e.Consumer("first"), e.Consumer("other")
	e.mustSubmit(t, head()...)
	e.start(t)
	collect(c)
	all := collect(other)
	flow := newFlow(1)
	flow.head = nil
	stepped := 0
	for range 1000 {
		await.True(t, "sleep", e.asleep(c))
		command := flow.next()
		if err := e.Enqueue(&command); err != nil {
			t.Fatal(err)
		}
		seq := e.Stats().Seq + 1
		e.RunInline(c, func() {
			for events := c.Poll(); len(events) > 0; events = c.Poll() {
				if events[len(events)-1].Seq != seq {
					t.Errorf("step sees Seq %d, want %d", events[len(events)-1].Seq, seq)
				}
				c.Release(len(events))
				stepped++
			}
		})
		if s := e.Stats(); s.Seq != seq || s.Durable != seq {
			t.Fatalf("placed %d: applied %d, durable %d", seq, s.Seq, s.Durable)
		}
	}
	if stepped < 900 { // some commands have no events
		t.Errorf("%d steps of 1000 turns", stepped)
	}
	if err := e.finish(t); err != nil {
		t.Fatal(err)
	}
	if got := digestOf(<-all); got != e.replica.Digest {
		t.Errorf("another consumer has digest %x, the engine %x", got, e.replica.Digest)
	}
}

// TestTurnWakes: where the journal waits for a disk, or somebody is awake, the
// goroutines do it.
func TestTurnWakes(t *testing.T) {
	j := &slowJournal{}
	e := newEngine(t, Options{Journal: j})
	c := e.Consumer("first")
	e.mustSubmit(t, head()...)
	e.start(t)
	collect(c)
	await.True(t, "sleep", e.asleep(c))
	command := newFlow(1).next()
	command.Kind = Tick
	if err := e.Enqueue(&command); err != nil {
		t.Fatal(err)
	}
	seq := e.Stats().Seq + 1
	e.RunInline(c, func() { t.Error("lent before it was durable") })
	await.True(t, "the journaler", func() bool { return e.Stats().Durable == seq })
	if err := e.finish(t); err != nil {
		t.Fatal(err)
	}
}

// TestTurnOfFailedJournal: a failure in a turn is a failure of the engine.
func TestTurnOfFailedJournal(t *testing.T) {
	e := newEngine(t, Options{Journal: &slowJournal{failAt: 2}, InlineJournal: true})
	c := e.Consumer("first")
	e.start(t)
	await.True(t, "sleep", func() bool { return e.matcherWait.sleeps() && e.journalWait.sleeps() })
	command := Command{Kind: Tick}
	if err := e.Enqueue(&command); err != nil {
		t.Fatal(err)
	}
	e.RunInline(c, func() { t.Error("lent what is not durable") })
	if err := e.Submit(&command); !errors.Is(err, ErrReadOnly) {
		t.Errorf("got %v", err)
	}
	if err := e.finish(t); !errors.Is(err, ErrJournal) {
		t.Errorf("got %v", err)
	}
}
