package engine

import (
	"errors"
	"testing"

	"blockdesk/internal/await"
)

// asleep reports whether all goroutines whose role RunInline takes over sleep.
func (r *running) asleep(c *Consumer) func() bool {
	return func() bool { return r.matcherWait.sleeps() && r.journalWait.sleeps() && c.waiting.sleeps() }
}

// TestRunInline: if the engine is idle, the enqueued command is applied, durable and
// handled when RunInline returns, without any other goroutine.
func TestRunInline(t *testing.T) {
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
		t.Errorf("%d steps in 1000 calls of RunInline", stepped)
	}
	if err := e.finish(t); err != nil {
		t.Fatal(err)
	}
	if got := digestOf(<-all); got != e.replica.Digest {
		t.Errorf("another consumer has digest %x, the engine %x", got, e.replica.Digest)
	}
}

// TestRunInlineWakes: without InlineJournal, or if a goroutine is awake, the goroutines do
// the work.
func TestRunInlineWakes(t *testing.T) {
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
	e.RunInline(c, func() { t.Error("step ran before the event was durable") })
	await.True(t, "the journaler", func() bool { return e.Stats().Durable == seq })
	if err := e.finish(t); err != nil {
		t.Fatal(err)
	}
}

// TestRunInlineJournalFails: a journal failure within RunInline makes the engine read-only.
func TestRunInlineJournalFails(t *testing.T) {
	e := newEngine(t, Options{Journal: &slowJournal{failAt: 2}, InlineJournal: true})
	c := e.Consumer("first")
	e.start(t)
	await.True(t, "sleep", func() bool { return e.matcherWait.sleeps() && e.journalWait.sleeps() })
	command := Command{Kind: Tick}
	if err := e.Enqueue(&command); err != nil {
		t.Fatal(err)
	}
	e.RunInline(c, func() { t.Error("step ran on events that are not durable") })
	if err := e.Submit(&command); !errors.Is(err, ErrReadOnly) {
		t.Errorf("got %v", err)
	}
	if err := e.finish(t); !errors.Is(err, ErrJournal) {
		t.Errorf("got %v", err)
	}
}
