package desk

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/internal/await"
	"blockdesk/persist/kv/kvtest"
)

// incompleteConsumer returns all events at once. CompleteSeq leaves out the last command
// until it has ended, which no event says.
type incompleteConsumer struct {
	events   []event.Event
	given    bool
	ended    atomic.Bool
	released chan struct{} // closed by Release
	over     chan struct{} // Next says io.EOF
}

func (c *incompleteConsumer) Next(ctx context.Context) ([]event.Event, error) {
	if !c.given {
		c.given = true
		return c.events, nil
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-c.over:
		return nil, io.EOF
	}
}

func (c *incompleteConsumer) Poll() []event.Event { return nil }

func (c *incompleteConsumer) Release(n int) {
	if n > 0 {
		close(c.released)
	}
}

func (c *incompleteConsumer) CompleteSeq() uint64 {
	last := c.events[len(c.events)-1].Seq
	if !c.ended.Load() {
		last--
	}
	return last
}

// TestShown: events are released when they are shown, but those of a command whose end
// is not known; Shown waits for that.
func TestShown(t *testing.T) {
	t.Parallel()
	r := newRig(t).start()
	ticket := r.open(1_000_000, 250).ID
	r.work(rand.New(rand.NewPCG(4, 6)), ticket, 10, 1)
	r.must(take(ticket, 1))
	before := r.View()
	r.expire()
	await.True(t, "claims expire", func() bool { return r.View() != before })
	if err := r.finish(); err != nil {
		t.Fatal(err)
	}

	events := r.deskEvents()
	for _, ends := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) { shownAtTheEnd(t, events, ends) })
	}
}

// shownAtTheEnd follows events, of whose last command the end is not known, and then
// either is or never will be.
func shownAtTheEnd(t *testing.T, events []event.Event, ends bool) {
	c := &incompleteConsumer{events: events, released: make(chan struct{}), over: make(chan struct{})}
	last := c.events[len(c.events)-1].Seq
	d := started(t)
	if err := d.AwaitView(t.Context()); err != nil {
		t.Fatalf("nothing has happened: %v", err)
	}
	ran := make(chan error, 1)
	go func() { ran <- d.Run(context.Background(), c) }()
	<-c.released
	if seq := d.View().Seq; seq >= last {
		t.Fatalf("a view of seq %d, whose end is unknown", seq)
	}
	soon, stop := context.WithTimeout(t.Context(), time.Second)
	if err := d.AwaitView(soon); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the end of seq %d is not known: %v", last, err)
	}
	stop()
	shown := make(chan error, 1)
	go func() { shown <- d.AwaitView(context.Background()) }()
	if ends {
		c.ended.Store(true)
		if err := <-shown; err != nil || d.View().Seq != last {
			t.Errorf("a view of seq %d, want %d: %v", d.View().Seq, last, err)
		}
		close(c.over)
	} else {
		close(c.over)
		if err := <-shown; !errors.Is(err, ErrStopped) {
			t.Errorf("the engine ends within seq %d: %v", last, err)
		}
	}
	if err := <-ran; err != nil {
		t.Error(err)
	}
}

// started is a desk at the beginning, which does not run.
func started(t *testing.T) *Desk {
	t.Helper()
	d, err := New(Options{}, nil, kvtest.New())
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Start(&rfq.ReadModel{}, 0); err != nil {
		t.Fatal(err)
	}
	return d
}
