package engine

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"blockdesk/engine/event"
	"blockdesk/internal/await"
	"blockdesk/market"
)

// everywhere is the position of all published events.
const everywhere = math.MaxUint64

// followLazily releases all events of c until the engine ends, and counts them.
func followLazily(c *Consumer) (seen chan uint64) {
	seen = make(chan uint64, 1)
	go func() {
		n := uint64(0)
		for {
			events, err := c.Next(context.Background())
			if err != nil {
				seen <- n
				return
			}
			n += uint64(len(events))
			c.Release(len(events))
		}
	}()
	return seen
}

// traffic makes orders that rest, and orders that trade with the last of them.
type traffic struct{ n int }

func (f *traffic) rest() Command {
	f.n++
	return order(market.OrderID(1<<40+f.n), 1, market.Buy, market.Price(100+f.n), 1)
}

func (f *traffic) trade() Command {
	c := order(market.OrderID(1<<40+f.n+1), 2, market.Sell, market.Price(100+f.n), 1)
	f.n++
	return c
}

// TestWakeFor: events of other kinds do not wake the consumer, until one of the kinds comes, a caller
// waits, a backlog has gathered, or the engine ends. None is lost.
func TestWakeFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, Options{EgressSize: 1 << 10})
		var orders traffic
		all, lazy := e.Consumer("all"), e.Consumer("lazy").WakeFor(event.Traded)
		ctx, stop := context.WithCancel(context.Background())
		e.stop = stop
		go func() { e.err <- e.Run(ctx) }()
		everything, few := followLazily(all), followLazily(lazy)
		quiet := func(wantLazy uint64) {
			t.Helper()
			synctest.Wait()
			wantLazy = min(wantLazy, e.Position())
			if at := all.cursor.Load(); at != e.Position() {
				t.Fatalf("the consumer of all is at %d of %d", at, e.Position())
			}
			if at := lazy.cursor.Load(); at != wantLazy {
				t.Fatalf("the lazy one is at %d, want %d of %d", at, wantLazy, e.Position())
			}
		}
		synctest.Wait()
		time.Sleep(2 * maxLazyWait) // sleep: virtual
		quiet(everywhere)

		before := e.Position()
		e.mustSubmit(t, head()...)
		quiet(before)
		if err := lazy.Await(context.Background(), e.Position()); err != nil {
			t.Fatal(err)
		}
		quiet(everywhere)

		before = e.Position()
		e.mustSubmit(t, orders.rest())
		quiet(before)
		e.mustSubmit(t, orders.trade())
		quiet(everywhere)

		before = e.Position()
		for e.Position()-before <= 1<<10/4 {
			quiet(before)
			e.mustSubmit(t, orders.rest())
			synctest.Wait()
		}
		quiet(everywhere)

		before = e.Position()
		e.mustSubmit(t, orders.rest())
		quiet(before)
		time.Sleep(maxLazyWait) // sleep: virtual
		quiet(everywhere)

		e.mustSubmit(t, orders.rest())
		stop()
		if a, b := <-everything, <-few; a != b {
			t.Fatalf("%d events for one, %d for the other", a, b)
		}
		if err := <-e.err; err != nil {
			t.Fatal(err)
		}
	})
}

// TestGather: the first event after a quiet time comes at once, the next ones when gather has
// passed, or when a caller of Await waits.
func TestGather(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var orders traffic
		gather := 100 * time.Microsecond
		e := newEngine(t, Options{})
		c := e.Consumer("feed").GatherBy(func() time.Duration { return gather })
		ctx, stop := context.WithCancel(context.Background())
		e.stop = stop
		go func() { e.err <- e.Run(ctx) }()
		seen := followLazily(c)
		e.mustSubmit(t, head()...)
		time.Sleep(time.Second) // sleep: virtual
		at := func(want uint64) {
			t.Helper()
			synctest.Wait()
			want = min(want, e.Position())
			if c.cursor.Load() != want {
				t.Fatalf("at %d, want %d of %d", c.cursor.Load(), want, e.Position())
			}
		}
		at(everywhere)

		e.mustSubmit(t, orders.rest())
		at(everywhere)
		first := e.Position()
		e.mustSubmit(t, orders.rest(), orders.rest())
		at(first)
		time.Sleep(gather - 1) // sleep: virtual
		at(first)
		time.Sleep(time.Nanosecond) // sleep: virtual
		at(everywhere)

		first = e.Position()
		e.mustSubmit(t, orders.rest())
		at(first)
		if err := c.Await(context.Background(), e.Position()); err != nil {
			t.Fatal(err)
		}
		at(everywhere)

		time.Sleep(time.Second) // sleep: virtual
		gather *= 10
		e.mustSubmit(t, orders.rest())
		at(everywhere)
		first = e.Position()
		e.mustSubmit(t, orders.rest())
		time.Sleep(gather - 1) // sleep: virtual
		at(first)
		time.Sleep(time.Nanosecond) // sleep: virtual
		at(everywhere)

		e.mustSubmit(t, orders.rest())
		stop()
		if n := <-seen; n != e.Position() {
			t.Fatalf("%d events, want %d", n, e.Position())
		}
		if err := <-e.err; err != nil {
			t.Fatal(err)
		}
	})
}

// TestInlineLeavesNothing: a consumer whose events a reader has handled inline is not woken
// for them, and is for events that the reader left.
func TestInlineLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var orders traffic
		e := newEngine(t, Options{Journal: &slowJournal{}, InlineJournal: true})
		c := e.Consumer("fix")
		ctx, stop := context.WithCancel(context.Background())
		e.stop = stop
		go func() { e.err <- e.Run(ctx) }()
		woken := 0
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for {
				events, err := c.Next(context.Background())
				if err != nil {
					return
				}
				woken++
				c.Release(len(events))
			}
		}()
		e.mustSubmit(t, head()...)
		synctest.Wait()
		inline := func(step func()) {
			t.Helper()
			command := orders.rest()
			if err := e.Enqueue(&command); err != nil {
				t.Fatal(err)
			}
			before := woken
			e.RunInline(c, step)
			if c.waiting.state.Load() == waiterAsleep != (c.cursor.Load() == e.Position()) {
				t.Errorf("state %d at %d of %d", c.waiting.state.Load(), c.cursor.Load(), e.Position())
			}
			synctest.Wait()
			if handled := c.cursor.Load() == e.Position(); !handled {
				t.Errorf("at %d of %d after %d wake-ups", c.cursor.Load(), e.Position(), woken-before)
			}
		}
		before := woken
		inline(func() { c.Release(len(c.Poll())) })
		if woken != before {
			t.Error("woken for events that were handled")
		}
		inline(func() {})
		if woken != before+1 {
			t.Errorf("woken %d times for events that were left", woken-before)
		}
		stop()
		<-ended
		if err := <-e.err; err != nil {
			t.Fatal(err)
		}
	})
}

// TestLazyConsumersSeeAll: under constant load, with a journal that is slower than the
// matcher and a small ring, every consumer gets every event, and no Await hangs.
func TestLazyConsumersSeeAll(t *testing.T) {
	const commands = 20_000
	e := newEngine(t, Options{Journal: &slowJournal{}, EgressSize: 256})
	consumers := []*Consumer{
		e.Consumer("all"), e.Consumer("trades").WakeFor(event.Traded), e.Consumer("desk").WakeFor(event.Desk),
		e.Consumer("feed").Gather(50 * time.Microsecond), e.Consumer("both").WakeFor(event.Cancelled).Gather(time.Millisecond),
	}
	e.start(t)
	var seen []chan uint64
	for _, c := range consumers {
		seen = append(seen, followLazily(c))
	}
	e.mustSubmit(t, head()...)
	var orders traffic
	for i := range commands {
		c := orders.trade
		if i%3 != 2 {
			c = orders.rest
		}
		command := c()
		await.True(t, "room", func() bool { return e.Submit(&command) == nil })
		if i%997 == 0 {
			for _, c := range consumers {
				if err := c.Await(context.Background(), e.Position()); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if err := e.finish(t); err != nil {
		t.Fatal(err)
	}
	for i, n := range seen {
		if got := await.Receive(t, "the end of "+consumers[i].Name(), n); got != e.Position() {
			t.Errorf("%s: %d events, want %d", consumers[i].Name(), got, e.Position())
		}
	}
}
