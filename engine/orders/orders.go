// Package orders computes the order-by-order book of an instrument from events: which orders
// are displayed, in their priority, and the changes between two of such books.
//
// Invariants:
//  1. A Book is a function of the events after those that its first orders come from. The
//     orders of a price, summed, are the level of marketdata.Data.
//  2. An order leaves its queue, or joins it at the back. So a client that appends each new
//     order to the queue of its price has the queues of the engine.
//
// Cost: two map operations an order that comes, and two one that goes. It allocates only for
// the growth of a book. One goroutine at a time.
package orders

import (
	"fmt"

	"blockdesk/engine/event"
	"blockdesk/market"
)

// MaxOrders is the most orders a side of the book that is published.
const MaxOrders = 1000

// Order is a displayed order.
type Order struct {
	ID    market.OrderID
	Price market.Price
	Qty   market.Qty // displayed
}

// Sides are the first orders of a book: best price first, each price in priority. They are
// immutable once published.
type Sides struct{ Bids, Asks []Order }

// Book has all displayed orders of one instrument. The zero value is empty.
type Book struct {
	nodes  []node // by slot; slot 0 is unused
	free   int32  // first free slot, linked by node.next; 0 = none
	ids    map[market.OrderID]int32
	queues map[int64]*queue // by price; negative for asks
	spare  []*queue         // empty ones
}

type node struct {
	Order
	queue      *queue
	prev, next int32 // in the queue; 0 = none
}

type queue struct {
	key         int64 // in Book.queues
	first, last int32
}

func key(side market.Side, p market.Price) int64 {
	if side == market.Sell {
		return -int64(p)
	}
	return int64(p)
}

// Len returns the number of displayed orders.
func (b *Book) Len() int { return len(b.ids) }

// Apply applies an event of the book's instrument. It panics on an event that only a broken
// engine writes.
func (b *Book) Apply(e *event.Event) {
	switch e.Kind {
	case event.Accepted, event.Rested, event.Amended, event.Replenished:
		if e.Aux > 0 {
			b.Add(e.Side, Order{e.OrderID, e.Price, market.Qty(e.Aux)})
		}
	case event.Cancelled, event.Unrested, event.Reduced:
		if e.Aux > 0 {
			b.reduce(e, e.OrderID, market.Qty(e.Aux))
		}
	case event.Traded:
		b.reduce(e, market.OrderID(e.Other), e.Qty)
	}
}

// Add appends an order to the queue of its price.
func (b *Book) Add(side market.Side, o Order) {
	if b.ids == nil {
		b.nodes, b.ids, b.queues = make([]node, 1, 64), make(map[market.OrderID]int32), make(map[int64]*queue)
	}
	slot := b.free
	if slot != 0 {
		b.free = b.nodes[slot].next
	} else {
		slot = int32(len(b.nodes))
		b.nodes = append(b.nodes, node{})
	}
	known := len(b.ids)
	if b.ids[o.ID] = slot; len(b.ids) == known {
		panic(fmt.Sprintf("engine: order %d is displayed twice", o.ID))
	}
	q := b.queue(key(side, o.Price))
	b.nodes[slot] = node{Order: o, queue: q, prev: q.last}
	if q.last != 0 {
		b.nodes[q.last].next = slot
	} else {
		q.first = slot
	}
	q.last = slot
}

func (b *Book) queue(key int64) *queue {
	q := b.queues[key]
	if q == nil {
		if n := len(b.spare); n > 0 {
			q, b.spare = b.spare[n-1], b.spare[:n-1]
		} else {
			q = &queue{}
		}
		q.key, b.queues[key] = key, q
	}
	return q
}

// reduce takes a displayed quantity from an order, which leaves its queue when none is left.
func (b *Book) reduce(e *event.Event, id market.OrderID, q market.Qty) {
	slot := b.ids[id]
	if slot == 0 || b.nodes[slot].Qty < q {
		panic(fmt.Sprintf("engine: seq %d takes %d from order %d, which displays less", e.Seq, q, id))
	}
	if n := &b.nodes[slot]; n.Qty > q {
		n.Qty -= q
		return
	}
	b.remove(slot)
}

func (b *Book) remove(slot int32) {
	n := &b.nodes[slot]
	q := n.queue
	if n.prev != 0 {
		b.nodes[n.prev].next = n.next
	} else {
		q.first = n.next
	}
	if n.next != 0 {
		b.nodes[n.next].prev = n.prev
	} else {
		q.last = n.prev
	}
	if q.first == 0 {
		delete(b.queues, q.key)
		b.spare = append(b.spare, q)
	}
	delete(b.ids, n.ID)
	*n = node{next: b.free}
	b.free = slot
}

// Append appends the orders of the levels of a side, best first, at most MaxOrders.
func (b *Book) Append(dst []Order, side market.Side, levels []market.Level) []Order {
	left := MaxOrders
	for _, l := range levels {
		q := b.queues[key(side, l.Price)]
		if q == nil {
			continue // a level without orders: of a mirrored book
		}
		for slot := q.first; slot != 0; slot = b.nodes[slot].next {
			if left--; left < 0 {
				return dst
			}
			dst = append(dst, b.nodes[slot].Order)
		}
	}
	return dst
}
