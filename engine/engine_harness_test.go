package engine

import (
	"context"
	"errors"
	"io"
	"testing"

	"go.uber.org/goleak"

	"blockdesk/engine/book"
	"blockdesk/engine/event"
	"blockdesk/internal/await"
	"blockdesk/market"
)

// running is a running engine.
type running struct {
	*Engine
	replica *Replica
	stop    context.CancelFunc
	err     chan error
}

func newEngine(t *testing.T, o Options) *running {
	t.Helper()
	r := NewReplica(StateOptions{})
	e, err := New(o, r)
	if err != nil {
		t.Fatal(err)
	}
	return &running{Engine: e, replica: r, err: make(chan error, 1)}
}

// start runs the engine; the test fails if a goroutine is left at its end.
func (r *running) start(t *testing.T) {
	t.Helper()
	leaks := goleak.IgnoreCurrent()
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	go func() { r.err <- r.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		goleak.VerifyNone(t, leaks)
	})
}

// finish stops the engine and returns the error of Run.
func (r *running) finish(t *testing.T) error {
	t.Helper()
	r.stop()
	return await.Receive(t, "the end of Run", r.err)
}

func (r *running) mustSubmit(t *testing.T, commands ...Command) {
	t.Helper()
	for i := range commands {
		err := ErrFull
		await.True(t, "room in the ring", func() bool {
			err = r.Submit(&commands[i])
			return !errors.Is(err, ErrFull)
		})
		if err != nil {
			t.Fatalf("command %d: %v", i, err)
		}
	}
}

// drain reads c until it ends, in steps of at most step events (0 = all), calls visit with
// each, and returns their number.
func drain(c *Consumer, step int, visit func(*event.Event) error) (int, error) {
	n := 0
	for {
		events, err := c.Next(context.Background())
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
		if step > 0 {
			events = events[:min(step, len(events))]
		}
		for i := range events {
			if err := visit(&events[i]); err != nil {
				return n, err
			}
		}
		n += len(events)
		c.Release(len(events))
	}
}

// collect drains c in the background; the channel returns all its events.
func collect(c *Consumer) <-chan []event.Event {
	out := make(chan []event.Event, 1)
	go func() {
		var all []event.Event
		if _, err := drain(c, 0, func(e *event.Event) error { all = append(all, *e); return nil }); err != nil {
			panic(err)
		}
		out <- all
	}()
	return out
}

func digestOf(events []event.Event) uint64 {
	var sum uint64
	for i := range events {
		sum = event.Digest(sum, &events[i])
	}
	return sum
}

func order(id market.OrderID, participant market.ParticipantID, side market.Side, p market.Price, q market.Qty) Command {
	return Command{Kind: NewOrder, Order: book.Order{
		ID: id, Price: p, Qty: q, Participant: participant, Side: side,
		Type: book.Limit, TIF: book.GTC, STP: book.STPCancelNewest,
	}}
}

func head() []Command { return newFlow(0).head }
