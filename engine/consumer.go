package engine

import (
	"context"
	"fmt"
	"io"
	"math"
	"sort"
	"sync/atomic"

	"blockdesk/engine/event"
)

// Consumer is one reader of the engine's events. It sees every event from the
// engine's first on, in order, once its command is durable. What it has not
// released stays in the ring, so a consumer that stands still stops the engine
// when the ring is full; Close ends that.
//
// One goroutine at a time may use a Consumer; Await alone is for any.
type Consumer struct {
	name    string
	engine  *Engine
	waiting *waiter
	ready   func() bool // more, bound once so that Next does not allocate

	next   uint64 // first position not released
	seen   uint64 // position after the last event returned
	last   uint64 // Seq of the last event returned
	final  uint64 // CompleteSeq at Close
	closed bool

	_      cacheLine
	cursor atomic.Uint64 // = next, for the matcher; the largest number once closed
	_      cacheLine

	awaited awaited // who waits for the cursor
}

func newConsumer(name string, e *Engine) *Consumer {
	c := &Consumer{name: name, engine: e, waiting: newWaiter(e.options.Wait), last: e.ingress.firstSeq - 1}
	c.ready = c.more
	c.awaited.lowest.Store(math.MaxUint64)
	return c
}

// Name returns the name given to Engine.Consumer.
func (c *Consumer) Name() string { return c.name }

// Next waits for at least one durable event and returns the oldest ones that
// have not been released, as Poll does. Called again without a Release it
// returns the same events, perhaps more of them.
//
// Errors: io.EOF when the engine has stopped and everything durable has been
// released, or after Close; ctx's error when ctx ends while there is nothing to
// return. A consumer that must see everything passes a context that outlives
// that of Engine.Run, and ends on io.EOF.
func (c *Consumer) Next(ctx context.Context) ([]event.Event, error) {
	for {
		ended := c.engine.ended.Load()
		if events := c.Poll(); len(events) > 0 {
			return events, nil
		}
		if ended || c.closed {
			return nil, io.EOF
		}
		if !c.waiting.wait(c.ready, ctx.Done()) {
			return nil, ctx.Err()
		}
	}
}

// Poll returns the oldest durable events that have not been released, as far as
// they lie together in the ring; nothing if there are none. The slice is the
// ring itself: it must not be written, and not be read after its events have
// been released. It may end, and begin, in the middle of a command's events:
// see CompleteSeq.
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

// Release gives the n oldest events back to the ring. n is at most the length of
// what Next or Poll returned last; more than that panics.
func (c *Consumer) Release(n int) {
	if c.closed {
		return
	}
	if n < 0 || uint64(n) > c.seen-c.next {
		panic(fmt.Sprintf("engine: consumer %s releases %d events of %d", c.name, n, c.seen-c.next))
	}
	c.next += uint64(n)
	c.cursor.Store(c.next)
	c.awaited.reach(c.next)
	c.engine.egress.room.wake()
}

// CompleteSeq returns the highest Seq up to which every command is durable and Next
// and Poll have returned all of its events. A command's last event may have been
// returned while CompleteSeq still leaves it out; the next Poll settles that. After
// Close it stays what it was.
func (c *Consumer) CompleteSeq() uint64 {
	if c.closed {
		return c.final
	}
	e := c.engine
	// Loaded before published, so all that these commands caused is below it.
	applied, durable := e.ingress.firstSeq+e.ingress.applied.Load()-1, e.durable.Load()
	if blind := e.blindFrom.Load(); blind != 0 {
		applied = min(applied, blind-1)
	}
	switch {
	case c.seen < e.egress.published.Load():
		return min(e.egress.at(c.seen).Seq-1, durable)
	case applied < c.last:
		return min(c.last-1, durable)
	default:
		return min(applied, durable)
	}
}

// AtBatchEnd reports whether what Next and Poll have returned ends with a batch:
// every batch of which they have returned something is returned whole, and
// nothing more is visible. A batch's last event may have been returned while
// AtBatchEnd still says no; that ends within the time that the engine needs to look
// up from it, or never where the engine has failed within the batch.
func (c *Consumer) AtBatchEnd() bool {
	e := c.engine
	// Loaded before what is visible: all that a batch applied by now has caused
	// is visible then.
	applied := e.ingress.firstSeq + e.ingress.applied.Load() - 1
	if blind := e.blindFrom.Load(); blind != 0 {
		applied = min(applied, blind-1)
	}
	return applied >= c.last && c.visible() == c.seen
}

// Close takes the consumer off the ring: the engine no longer waits for it, and
// it sees nothing any more. Idempotent.
func (c *Consumer) Close() {
	c.final, c.closed = c.CompleteSeq(), true
	c.cursor.Store(math.MaxUint64)
	c.awaited.reach(math.MaxUint64)
	c.engine.egress.room.wake()
}

// more reports whether Next has a reason to return.
func (c *Consumer) more() bool { return c.engine.ended.Load() || c.visible() != c.next }

// visible returns the position after the last event that may be seen.
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
