package engine

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"blockdesk/engine/event"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/market"
)

// TestOneCommandOverflowsEgress: a mass cancel has forty times more events than the ring
// has slots, and a consumer sees all of them in order.
func TestOneCommandOverflowsEgress(t *testing.T) {
	const orders, size = 160, 4
	j := &slowJournal{}
	e := newEngine(t, Options{Journal: j, EgressSize: size})
	c := e.Consumer("reader")
	e.mustSubmit(t, head()...)
	for i := range orders {
		e.mustSubmit(t, order(market.OrderID(i+1), 1, market.Buy, market.Price(10+i), 1))
	}
	mass := Command{Kind: MassCancel}
	mass.Order.Participant = 1
	e.mustSubmit(t, mass)
	e.start(t)
	cancelled, summed := 0, false
	var whole uint64
	for cancelled < orders {
		events, err := c.Next(context.Background())
		if err != nil || len(events) > size {
			t.Fatalf("%d events, err %v", len(events), err)
		}
		for i := range events {
			if events[i].Kind == event.Cancelled {
				cancelled++
			}
			summed = summed || events[i].Kind == event.MassCancelled
		}
		if got := c.CompleteSeq(); got < whole || got > events[len(events)-1].Seq {
			t.Fatalf("CompleteSeq %d after %d, last event of %d", got, whole, events[len(events)-1].Seq)
		}
		whole = c.CompleteSeq()
		if cancelled > 0 && cancelled < orders && whole != events[0].Seq-1 && events[0].Seq == events[len(events)-1].Seq {
			t.Fatalf("CompleteSeq %d in the middle of the events of %d", whole, events[0].Seq)
		}
		c.Release(len(events))
	}
	last := collect(c)
	if err := e.finish(t); err != nil {
		t.Fatal(err)
	}
	rest := <-last
	if summed = summed || len(rest) == 1 && rest[0].Kind == event.MassCancelled; !summed {
		t.Fatalf("after the cancels: %+v", rest)
	}
	if c.CompleteSeq() != e.replica.State.Seq() {
		t.Fatalf("CompleteSeq %d, want %d", c.CompleteSeq(), e.replica.State.Seq())
	}
}

// TestFailsWhileRingIsFull: the matcher waits for space that no consumer can ever free,
// because the journal fails. It must end, and must not overwrite events that consumers
// still hold.
func TestFailsWhileRingIsFull(t *testing.T) {
	j := &slowJournal{gate: make(chan struct{}), failAt: 2}
	e := newEngine(t, Options{Journal: j, EgressSize: 4, MaxBatch: 1})
	c := e.Consumer("reader")
	e.start(t)
	j.gate <- struct{}{} // StartEpoch is durable
	held, err := c.Next(context.Background())
	if err != nil || len(held) != 1 || held[0].Kind != event.EpochStarted {
		t.Fatalf("%+v, err %v", held, err)
	}
	want := slices.Clone(held)
	e.mustSubmit(t, head()...)
	await.True(t, "a full ring", func() bool { return e.Stats().Egress == 4 && e.egress.spaceWait.state.Load() != waiterAwake })
	close(j.gate)
	await.True(t, "the failure", func() bool { return e.Stats().Failed != nil })
	if err := e.finish(t); !errors.Is(err, errDisk) {
		t.Fatal(err)
	}
	if !slices.Equal(held, want) {
		t.Fatal("an event that was not released has been written over")
	}
	if again := c.Poll(); !slices.Equal(again, want) {
		t.Fatalf("after the failure %+v, want %+v", again, want)
	}
}

// TestDrainTimeout: a stalled consumer with a full ring delays shutdown by at most
// DrainTimeout.
func TestDrainTimeout(t *testing.T) {
	e := newEngine(t, Options{EgressSize: 2, DrainTimeout: 5 * time.Millisecond})
	c := e.Consumer("the sleeper")
	e.mustSubmit(t, head()...)
	e.start(t)
	await.True(t, "a full ring", func() bool { return e.Stats().Egress == 2 })
	err := e.finish(t)
	if !errors.Is(err, ErrDrainTimeout) || !strings.Contains(err.Error(), "the sleeper") {
		t.Fatalf("Run: %v", err)
	}
	if events := c.Poll(); len(events) != 2 || events[0].Seq != 1 {
		t.Fatalf("%+v", events)
	}
}

// TestDrainTimeoutIsNotComplete: events that the engine gave up publishing are not in
// CompleteSeq, or their reader would not read them after the restart.
func TestDrainTimeoutIsNotComplete(t *testing.T) {
	e := newEngine(t, Options{EgressSize: 4, DrainTimeout: 10 * time.Millisecond})
	c := e.Consumer("still")
	e.mustSubmit(t, head()...)
	e.mustSubmit(t, order(1, 1, market.Buy, 10, 5))
	e.start(t)
	await.True(t, "full ring", func() bool { return e.Stats().Egress == 4 })
	if err := e.finish(t); !errors.Is(err, ErrDrainTimeout) {
		t.Fatalf("%v, want ErrDrainTimeout", err)
	}
	last := uint64(0)
	n, err := drain(c, 1, func(ev *event.Event) error { last = ev.Seq; return nil })
	if err != nil || n != 4 {
		t.Fatalf("%d events: %v", n, err)
	}
	if c.CompleteSeq() != last {
		t.Errorf("CompleteSeq %d, but the last event is of %d", c.CompleteSeq(), last)
	}
}

// TestClose: a closed consumer delays nothing and sees nothing.
func TestClose(t *testing.T) {
	e := newEngine(t, Options{EgressSize: 2, DrainTimeout: runtest.HangTimeout})
	closed, reader := e.Consumer("gone"), e.Consumer("reader")
	e.mustSubmit(t, head()...)
	e.start(t)
	all := collect(reader)
	if _, err := closed.Next(context.Background()); err != nil {
		t.Fatal(err)
	}
	whole := closed.CompleteSeq()
	closed.Close()
	if err := e.finish(t); err != nil {
		t.Fatal(err)
	}
	if n := len(<-all); n != 1+len(head()) {
		t.Fatalf("%d events", n)
	}
	closed.Close()
	closed.Release(0)
	if _, err := closed.Next(context.Background()); !errors.Is(err, io.EOF) || closed.Poll() != nil || closed.CompleteSeq() != whole {
		t.Fatalf("after Close: %v, CompleteSeq %d, it was %d", err, closed.CompleteSeq(), whole)
	}
	if lag := e.Stats().Consumers[0]; lag != (Lag{Name: "gone"}) {
		t.Fatalf("%+v", lag)
	}
}

// TestConsumerSemantics: without Release the same events come again; releasing more than
// was returned panics; Next ends with its context.
func TestConsumerSemantics(t *testing.T) {
	e := newEngine(t, Options{})
	c := e.Consumer("reader")
	if c.Poll() != nil || c.CompleteSeq() != 0 {
		t.Fatalf("events before Run; whole %d", c.CompleteSeq())
	}
	e.mustSubmit(t, head()...)
	e.start(t)
	want := 1 + len(head())
	await.True(t, "all", func() bool { return e.Stats().Egress == want })
	for range 2 {
		if events, err := c.Next(context.Background()); err != nil || len(events) != want {
			t.Fatalf("%d events, want %d; err %v", len(events), want, err)
		}
	}
	c.Release(want - 1)
	if events := c.Poll(); len(events) != 1 || c.CompleteSeq() != uint64(want) {
		t.Fatalf("%d events, CompleteSeq %d", len(events), c.CompleteSeq())
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Fatal("Release of more than was returned does not panic")
			}
		}()
		c.Release(2)
	}()
	c.Release(1)
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	if _, err := c.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("Next: %v", err)
	}
	if err := e.finish(t); err != nil {
		t.Fatal(err)
	}
}
