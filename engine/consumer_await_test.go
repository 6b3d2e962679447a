package engine

import (
	"context"
	"errors"
	"sync"
	"testing"

	"blockdesk/engine/event"
	"blockdesk/internal/await"
	"blockdesk/market"
)

// TestAwait: Await returns once the events before its position are durable and released, no
// sooner; waits for later positions go on.
func TestAwait(t *testing.T) {
	j := &slowJournal{gate: make(chan struct{})}
	e := newEngine(t, Options{Journal: j, MaxBatch: 1})
	c := e.Consumer("reader")
	if err := c.Await(context.Background(), e.Position()); err != nil {
		t.Fatalf("nothing has happened: %v", err)
	}
	e.start(t)
	await.True(t, "the first event", func() bool { return e.Position() == 1 })
	early := e.Position()
	first := awaiting(c, early)
	e.mustSubmit(t, head()...)
	await.True(t, "more events", func() bool { return e.Position() > 1 })
	late := e.Position()
	later := awaiting(c, late)

	waits(t, c, early, first, "nothing is durable")
	j.gate <- struct{}{}
	events, err := c.Next(context.Background())
	if err != nil || len(events) == 0 { // a frame may have more than the first command
		t.Fatalf("%+v, err %v", events, err)
	}
	waits(t, c, early, first, "nothing is released")
	c.Release(1)
	if err := <-first; err != nil {
		t.Fatal(err)
	}
	waits(t, c, late, later, "only the first event is released")
	close(j.gate)
	seen := collect(c)
	if err := <-later; err != nil {
		t.Fatal(err)
	}
	if err := e.finish(t); err != nil {
		t.Fatal(err)
	}
	<-seen
}

// TestAwaitEnds: a wait that can never succeed ends with the reason.
func TestAwaitEnds(t *testing.T) {
	j := &slowJournal{gate: make(chan struct{})}
	e := newEngine(t, Options{Journal: j})
	c, closed := e.Consumer("reader"), e.Consumer("closed")
	e.start(t)
	await.True(t, "the first event", func() bool { return e.Position() == 1 })

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := c.Await(ctx, e.Position()); !errors.Is(err, context.Canceled) {
		t.Fatalf("ctx has ended: %v", err)
	}
	waiting := awaiting(closed, e.Position())
	waits(t, closed, e.Position(), waiting, "the consumer is open")
	closed.Close()
	if err := <-waiting; !errors.Is(err, ErrStopped) {
		t.Fatalf("the consumer is closed: %v", err)
	}
	waiting = awaiting(c, e.Position())
	waits(t, c, e.Position(), waiting, "the engine runs")
	close(j.gate)
	if err := e.finish(t); err != nil {
		t.Fatal(err)
	}
	if err := <-waiting; !errors.Is(err, ErrStopped) {
		t.Fatalf("the engine has ended: %v", err)
	}
	if err := c.Await(context.Background(), e.Position()); !errors.Is(err, ErrStopped) {
		t.Fatalf("the engine had ended: %v", err)
	}
}

// TestAwaitFailedJournal: events that the journal refused never become visible, and no wait
// hangs.
func TestAwaitFailedJournal(t *testing.T) {
	j := &slowJournal{gate: make(chan struct{}), failAt: 2}
	e := newEngine(t, Options{Journal: j, MaxBatch: 1})
	c := e.Consumer("reader")
	e.start(t)
	j.gate <- struct{}{}
	e.mustSubmit(t, head()...)
	await.True(t, "more events", func() bool { return e.Position() > 1 })
	waiting := awaiting(c, e.Position())
	waits(t, c, e.Position(), waiting, "the journal works")
	close(j.gate)
	if err := <-waiting; !errors.Is(err, ErrReadOnly) {
		t.Fatalf("the journal has failed: %v", err)
	}
	if err := e.finish(t); !errors.Is(err, errDisk) {
		t.Fatal(err)
	}
}

// TestAwaitManyReaders: under constant load each of many readers sees everything that
// happened before it called Await.
func TestAwaitManyReaders(t *testing.T) {
	const readers, commands, reads = 8, 2000, 300
	e := newEngine(t, Options{Journal: &slowJournal{}, EgressSize: 64})
	c := e.Consumer("reader")
	var shown struct {
		sync.Mutex
		events uint64
	}
	followed := make(chan error, 1)
	go func() {
		_, err := drain(c, 3, func(*event.Event) error {
			shown.Lock()
			defer shown.Unlock()
			shown.events++
			return nil
		})
		followed <- err
	}()
	e.start(t)
	var work sync.WaitGroup
	for range readers {
		work.Go(func() {
			for range reads {
				pos := e.Position()
				if err := c.Await(context.Background(), pos); err != nil {
					t.Error(err)
					return
				}
				shown.Lock()
				behind := shown.events < pos
				shown.Unlock()
				if behind {
					t.Errorf("a read after position %d misses an earlier event", pos)
					return
				}
			}
		})
	}
	e.mustSubmit(t, head()...)
	for i := range commands {
		e.mustSubmit(t, order(market.OrderID(i+1), 1, market.Buy, 10, 1))
	}
	work.Wait()
	if err := e.finish(t); err != nil {
		t.Fatal(err)
	}
	if err := <-followed; err != nil {
		t.Fatal(err)
	}
}

// awaiting calls Await in the background.
func awaiting(c *Consumer, pos uint64) <-chan error {
	done := make(chan error, 1)
	go func() { done <- c.Await(context.Background(), pos) }()
	return done
}

// waits fails the test unless the wait has begun and not ended.
func waits(t *testing.T, c *Consumer, pos uint64, done <-chan error, why string) {
	t.Helper()
	await.True(t, "a caller to wait for the position", func() bool { return c.waiters.lowest.Load() <= pos || len(done) > 0 })
	if len(done) > 0 {
		t.Fatalf("%s, but Await returned: %v", why, <-done)
	}
}
