package feed

import (
	"context"
	"slices"
	"sync/atomic"

	"blockdesk/engine/book"
	"blockdesk/engine/event"
	"blockdesk/engine/marketdata"
	"blockdesk/engine/orders"
	"blockdesk/market"
)

// orderTracker follows the order-by-order books for the channel l3. Run applies events to all
// of them, because an order may be older than its first subscriber; a view has the orders only
// while a subscription needs them.
type orderTracker struct {
	on         bool
	books      []orders.Book  // Run's, by instrument
	wanted     []atomic.Int64 // uses by other packages, by instrument
	subscribed atomic.Bool    // a client has just subscribed to orders
	wait       atomic.Pointer[context.CancelFunc]

	scratch []orders.Order // Run's
}

// OrderSource has the live orders of an instrument; *engine.State is one.
type OrderSource interface {
	Orders(market.InstrumentID, func(book.LiveOrder))
}

func (t *orderTracker) track(source OrderSource, instruments int) {
	t.on, t.books, t.wanted = true, make([]orders.Book, instruments), make([]atomic.Int64, instruments)
	for i := range t.books {
		source.Orders(market.InstrumentID(i), func(o book.LiveOrder) {
			if !o.Waiting {
				t.books[i].Add(o.Side, orders.Order{ID: o.ID, Price: o.Price, Qty: o.Shown})
			}
		})
	}
}

// has reports whether there are orders of an instrument: the book of a mirror has none.
func (t *orderTracker) has(in *market.Instrument) bool {
	return t.on && in != nil && in.Source == market.Matched
}

func (t *orderTracker) apply(e *event.Event) {
	if t.on && int(e.Instrument) < len(t.books) {
		t.books[e.Instrument].Apply(e)
	}
}

// wakeRun wakes Run, which makes views with orders.
func (t *orderTracker) wakeRun() {
	t.subscribed.Store(true)
	if wake := t.wait.Load(); wake != nil {
		(*wake)()
	}
}

// setWake gives wakeRun the function that ends the wait for events.
func (t *orderTracker) setWake(wake context.CancelFunc) {
	t.wait.Store(&wake)
	if t.subscribed.Swap(false) { // before the wait began
		wake()
	}
}

// needsOrders reports whether views of an instrument are to have their orders. topic is that of l3.
func (t *orderTracker) needsOrders(in market.InstrumentID, topic *sharedTopic) bool {
	return t.on && (topic.subscribers.Load() > 0 || topic.linger.Load() > 0 || t.wanted[in].Load() > 0)
}

// add gives next, which is not published yet, its orders.
func (t *orderTracker) add(prev, next *marketdata.View, topic *sharedTopic) {
	next.Orders = nil
	switch was := prev.Orders; {
	case !t.needsOrders(next.Instrument, topic):
	case was != nil && prev.DepthSeq == next.DepthSeq && prev.Epoch == next.Epoch:
		next.Orders = was
	default:
		b := &t.books[next.Instrument]
		next.Orders = &orders.Sides{}
		t.scratch = b.Append(t.scratch[:0], market.Buy, next.Bids)
		next.Orders.Bids = slices.Clone(t.scratch)
		t.scratch = b.Append(t.scratch[:0], market.Sell, next.Asks)
		next.Orders.Asks = slices.Clone(t.scratch)
	}
}
