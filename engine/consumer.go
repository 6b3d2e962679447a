package engine

import (
	"context"
	"fmt"
	"io"
	"math"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"blockdesk/engine/event"
)

// Consumer reads all events of the engine in order, each once its command is durable.
// Events stay in the egress ring until the consumer releases them, so a stalled consumer
// stops the engine when the ring is full, until Close.
//
// A consumer is woken for every event, unless WakeFor or Gather says otherwise: a wake-up
// costs the goroutine that causes it more than an order costs the matcher.
//
// One goroutine at a time may use a Consumer; only Await may be called from any.
type Consumer struct {
	name     string
	engine   *Engine
	waiting  *waiter
	ready    func() bool // hasWork, bound once so that Next does not allocate
	mustRead func() bool // whether Next must not wait for more events; bound once, too

	kinds  uint32               // bit k: an event of kind k wakes the consumer
	gather func() time.Duration // the shortest time between two wake-ups now; nil = none
	rest   *time.Timer          // of a consumer that is not woken for every event
	began  time.Time            // when Next last returned events, if gather is set

	next       uint64 // first position not released
	seen       uint64 // position after the last event returned
	last       uint64 // Seq of the last event returned
	seqAtClose uint64 // CompleteSeq at Close
	closed     bool

	_      cacheLine
	cursor atomic.Uint64 // = next, for the matcher; the largest number once closed
	// gathering: Next waits for the end of gather. An Await, or a backlog, ends it.
	gathering atomic.Bool
	_         cacheLine
	// wanted is the position after the last published event of kinds.
	wanted atomic.Uint64
	_      cacheLine

	waiters cursorWaiters // callers of Await
}

func newConsumer(name string, e *Engine) *Consumer {
	c := &Consumer{name: name, engine: e, waiting: newWaiter(e.options.Wait), last: e.ingress.firstSeq - 1}
	c.ready, c.kinds = c.hasWork, allKinds
	c.mustRead = func() bool { return c.waiters.any() || e.ended.Load() || c.backlogged() }
	c.waiters.lowest.Store(math.MaxUint64)
	return c
}

const (
	// maxLazyBacklog bounds the events that a consumer is not woken for: a quarter of the
	// ring, and this many.
	maxLazyBacklog = 4096
	// maxLazyWait bounds how long they stay with a consumer that sleeps.
	maxLazyWait = time.Second
)

// WakeFor says that only events of these kinds wake the consumer. It gets the others with
// them, or when 4,096 have gathered, or after a second. Before Run. It returns c.
func (c *Consumer) WakeFor(kinds ...event.Kind) *Consumer {
	c.kinds = 0
	for _, k := range kinds {
		c.kinds |= 1 << k
	}
	c.rest = newStoppedTimer()
	return c
}

// Gather says that Next returns at most once in a time d. The first event after a quiet
// time is returned at once. Before Run. It returns c.
func (c *Consumer) Gather(d time.Duration) *Consumer {
	return c.GatherBy(func() time.Duration { return d })
}

// GatherBy is Gather with a time that may change: Next asks for it each time, on its
// goroutine.
func (c *Consumer) GatherBy(d func() time.Duration) *Consumer {
	c.gather, c.rest = d, newStoppedTimer()
	return c
}

func newStoppedTimer() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

// Name returns the name given to Engine.Consumer.
func (c *Consumer) Name() string { return c.name }

// Next waits for at least one durable event that is not released, and returns what Poll
// does. Without a Release in between it returns the same events again, or more.
//
// Errors: io.EOF once the engine has stopped and all durable events are released, or
// after Close; ctx's error if ctx ends while there is nothing to return. A consumer that
// must see every event passes a context that outlives that of Engine.Run and stops on
// io.EOF.
func (c *Consumer) Next(ctx context.Context) ([]event.Event, error) {
	c.awaitGather(ctx)
	for {
		ended := c.engine.ended.Load()
		if events := c.Poll(); len(events) > 0 {
			if c.gather != nil {
				c.began = time.Now()
			}
			return events, nil
		}
		if ended || c.closed {
			return nil, io.EOF
		}
		if !c.sleep(ctx) {
			return nil, ctx.Err()
		}
	}
}

// sleep waits until there are events or the engine has ended. It returns false if ctx
// ends first.
func (c *Consumer) sleep(ctx context.Context) bool {
	if c.kinds == allKinds {
		return c.waiting.wait(c.ready, ctx.Done()) || c.hasWork()
	}
	for {
		c.rest.Reset(maxLazyWait)
		if c.waiting.waitTimer(c.ready, ctx.Done(), c.rest.C) || c.hasWork() {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
	}
}

// awaitGather waits until gather has passed since Next last returned events.
func (c *Consumer) awaitGather(ctx context.Context) {
	if c.gather == nil || c.closed {
		return
	}
	rest := c.gather() - time.Since(c.began)
	if rest <= 0 {
		return
	}
	c.rest.Reset(rest)
	c.gathering.Store(true)
	c.waiting.waitTimer(c.mustRead, ctx.Done(), c.rest.C)
	c.gathering.Store(false)
}

// wakes reports whether the consumer must be woken for what is visible now. A reader that has
// run it inline leaves it nothing.
func (c *Consumer) wakes() bool {
	switch cursor := c.cursor.Load(); {
	case cursor >= c.engine.egress.published.Load():
		return false
	case c.rest == nil || c.waiters.any():
		return true
	case c.gathering.Load():
		return c.backlogged()
	default:
		return c.kinds == allKinds || c.wanted.Load() > cursor || c.backlogged()
	}
}

// backlogged reports whether so many events have gathered that the consumer must run.
func (c *Consumer) backlogged() bool {
	g := &c.engine.egress
	published, cursor := g.published.Load(), c.cursor.Load()
	return cursor < published && published-cursor > min(uint64(len(g.events))/4, maxLazyBacklog)
}

// Poll returns the oldest durable events that are not released, up to the end of the
// ring's memory, or nothing. The slice is the ring itself: the caller must not write to
// it, nor read it after releasing the events. It may begin and end between the events of
// one command: see CompleteSeq.
func (c *Consumer) Poll() []event.Event {
	if c.closed {
		return nil
	}
	end := c.visible()
	if end == c.next {
		return nil
	}
	ring := c.engine.egress.events
	first := c.next & uint64(len(ring)-1)
	end = min(end, c.next+uint64(len(ring))-first)
	if end > c.seen {
		c.seen, c.last = end, c.engine.egress.at(end-1).Seq
	}
	return ring[first : first+end-c.next]
}

// Release returns the n oldest events to the ring. It panics if n is larger than the
// length of what Next or Poll returned last.
func (c *Consumer) Release(n int) {
	if c.closed {
		return
	}
	if n < 0 || uint64(n) > c.seen-c.next {
		panic(fmt.Sprintf("engine: consumer %s releases %d events but holds %d", c.name, n, c.seen-c.next))
	}
	c.next += uint64(n)
	c.cursor.Store(c.next)
	c.waiters.notify(c.next)
	c.engine.egress.spaceWait.wake()
}

// CompleteSeq returns the highest Seq up to which all commands are durable and Next and
// Poll have returned all their events. It may lag behind by the last command returned
// until the next Poll. After Close it no longer changes.
func (c *Consumer) CompleteSeq() uint64 {
	if c.closed {
		return c.seqAtClose
	}
	e := c.engine
	// applied is loaded before published, so that all events of these commands are below
	// published.
	applied, durable := e.publishedSeq(), e.durable.Load()
	switch {
	case c.seen < e.egress.published.Load():
		return min(e.egress.at(c.seen).Seq-1, durable)
	case applied < c.last:
		return min(c.last-1, durable)
	default:
		return min(applied, durable)
	}
}

// AtBatchEnd reports whether Next and Poll have returned every visible event and the last
// one ends a batch. It may still be false right after the last event of a batch, until
// the matcher has finished the batch; it stays false if the engine fails within one.
func (c *Consumer) AtBatchEnd() bool {
	// applied is loaded before visible is called, so that all events of these commands are
	// visible.
	applied := c.engine.publishedSeq()
	return applied >= c.last && c.visible() == c.seen
}

// Close removes the consumer from the ring: the engine no longer waits for it, and it
// returns no more events. Close may be called again.
func (c *Consumer) Close() {
	c.seqAtClose, c.closed = c.CompleteSeq(), true
	c.cursor.Store(math.MaxUint64)
	c.waiters.notify(math.MaxUint64)
	c.engine.egress.spaceWait.wake()
}

// hasWork reports whether Next can return.
func (c *Consumer) hasWork() bool { return c.engine.ended.Load() || c.visible() != c.next }

// visible returns the position after the last durable event.
func (c *Consumer) visible() uint64 {
	durable := c.engine.durable.Load()
	g := &c.engine.egress
	end := g.published.Load()
	if end == c.next || g.at(end-1).Seq <= durable {
		return end
	}
	n := sort.Search(int(end-c.next), func(i int) bool {
		return g.at(c.next+uint64(i)).Seq > durable
	})
	return c.next + uint64(n)
}

// Await returns nil once all events before pos, a value of Engine.Position, are durable
// and c has released them. With it a read of the state behind c is linearizable: it is not
// older than what any other consumer had shown when pos was taken. Any number of
// goroutines may call Await at once.
//
// Errors: ErrStopped once the engine has ended or c is closed; ErrReadOnly once the
// journal has failed, because events before pos may never become durable; ctx's.
func (c *Consumer) Await(ctx context.Context, pos uint64) error {
	for {
		// Usually pos is reached already, and the consumer's goroutine has nothing to do.
		if done, err := c.checkPosition(pos); done {
			return err
		}
		again := c.waiters.add(pos)
		if c.rest != nil {
			c.waiting.wake()
		}
		if done, err := c.checkPosition(pos); done {
			return err
		}
		select {
		case <-again:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// checkPosition reports whether the cursor has reached pos, or will never reach it (err).
func (c *Consumer) checkPosition(pos uint64) (done bool, err error) {
	switch cursor := c.cursor.Load(); {
	case cursor == math.MaxUint64:
		return true, ErrStopped
	case cursor >= pos:
		return true, nil
	case c.engine.ended.Load():
		return true, ErrStopped
	case c.engine.failed() != nil:
		return true, ErrReadOnly
	}
	return false, nil
}

// wakeAwaits wakes every Await, because its position may never be reached.
func (g *egress) wakeAwaits() {
	for _, c := range g.consumers {
		c.waiters.notify(math.MaxUint64)
	}
}

// cursorWaiters wakes all callers of Await when the cursor reaches the lowest position
// that one of them waits for. It costs the consumer one load while there is no waiter.
type cursorWaiters struct {
	lowest atomic.Uint64 // math.MaxUint64: nobody waits

	mu      sync.Mutex
	reached chan struct{} // closed when lowest is reached; nil while nobody waits
}

// add registers a wait for pos. The returned channel is closed once the lowest registered
// position is reached; the caller must check its own again.
func (a *cursorWaiters) add(pos uint64) <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.reached == nil {
		a.reached = make(chan struct{})
	}
	a.lowest.Store(min(a.lowest.Load(), pos))
	return a.reached
}

// any reports whether somebody waits.
func (a *cursorWaiters) any() bool { return a.lowest.Load() != math.MaxUint64 }

// notify wakes the waiters if the cursor, pos, has reached lowest. The caller stores the
// cursor first, so that a concurrent add cannot miss it.
func (a *cursorWaiters) notify(pos uint64) {
	if pos < a.lowest.Load() {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lowest.Store(math.MaxUint64)
	if a.reached != nil {
		close(a.reached)
		a.reached = nil
	}
}
