// Package ladder is the fast order book: an array of price levels around the
// touch, so that adding and cancelling an order take a few cache lines and no
// search.
//
// The levels of 16,384 prices, the window, lie in a ring indexed by price; both
// sides share it, since a book never crosses. A two-level bitmap finds the next
// level in use. Prices outside the window are far: they live in a tree, and the
// window slides after the touch once that has paid for the move. Orders are 32
// bytes without pointers in a slab, linked by index; what a plain order does
// not need lies in a second slab that it never touches.
//
// Invariants:
//  1. A price has its level in the window exactly when base <= price <
//     base+window, else in far; a level in use has an order, its bit or its
//     tree key; one without has neither.
//  2. best[s] is sign(s) × the best price of side s, noBest when s is empty;
//     bids are below asks, so behind a side's best everything is of that side.
//  3. A level's shown and hidden are the sums over its queue, and their total
//     stays within book.MaxLevelQty.
//  4. Every live order is in ids once, and in exactly one list: its level's
//     queue or its trigger's; between commands the elected list is empty.
//  5. Slots, levels and tree nodes are reused last in, first out, so a book
//     that was busy stays in cache.
//
// Cost: adding and cancelling near the touch are O(1), far from it O(log n) in
// far levels. A trade is O(1). A FOK looks at every order it could meet when
// its owner has live orders, else at levels. MassCancel of a participant walks
// the book until it has found all of the participant's orders. No allocation
// once the slabs have grown to the largest number of live orders.
//
// Limits: Options.MaxOrders, book.MaxLevelQty. Not for concurrent use.
package ladder

import (
	"blockdesk/engine/book"
	"blockdesk/engine/event"
	"blockdesk/market"
)

// Book is one order book.
type Book struct {
	orders []order
	cold   []cold
	free   int32 // list of unused slots
	live   int
	room   int // live orders up to which Submit need not look at maxOrders or grow ids
	ids    idTable
	open   []int32 // live orders by participant

	levels     []level
	freeLevels int32
	used       bitmap
	base       int64
	best       [4]int64 // by side; 0 and 3 are not used
	far        tree
	misses     int // operations on far prices since the window last moved

	stops    [4]tree // triggers to levels, by side; 0 and 3 are not used
	waiting  int     // stops in them
	elected  queue   // stops that are to be processed, first in, first out
	expiries tree    // ExpireAt to buckets
	next     int64   // NextExpiry
	due      []market.OrderID

	last       market.Price
	trades     *market.TradeID
	maxOrders  int
	instrument market.InstrumentID
}

// queue is a list of orders by their next.
type queue struct{ head, tail int32 }

// New returns an empty book. It panics on options that do not Validate.
func New(opt book.Options) *Book {
	if err := opt.Validate(); err != nil {
		panic(err)
	}
	opt = opt.WithDefaults()
	b := &Book{
		orders: make([]order, 1), cold: make([]cold, 1), ids: newIDTable(),
		levels: make([]level, window), far: newTree(), expiries: newTree(),
		trades: opt.Trades, maxOrders: opt.MaxOrders, instrument: opt.Instrument,
	}
	b.room = min(b.maxOrders, b.ids.limit)
	b.best = [4]int64{noBest, noBest, noBest, noBest}
	b.stops[market.Buy], b.stops[market.Sell] = newTree(), newTree()
	return b
}

// Submit enters a new order: rule 2 of package book. The plain case, a limit
// order that crosses nothing and rests, is written out here, and so is Cancel:
// between them they are nine commands of ten. out.Next is written out too, since
// the compiler does not inline it.
func (b *Book) Submit(o *book.Order, at int64, seq uint64, out *event.Sink) {
	h := hashOf(o.ID)
	slot, pos := b.find(o.ID, h)
	p, s := o.Price, o.Side
	key := sign(s) * int64(p)
	if slot != 0 || o.Type != book.Limit || o.TIF == book.IOC || o.TIF == book.FOK || o.Display != 0 ||
		key+b.best[s.Opposite()&3] >= 0 || b.live >= b.room || int(o.Participant) >= len(b.open) {
		b.submit(o, slot, &command{at, seq, out, b.instrument})
		return
	}
	li := b.levelFor(p, s)
	if lv := &b.levels[li]; lv.shown+lv.hidden+o.Qty > book.MaxLevelQty {
		c := command{at, seq, out, b.instrument}
		c.refuse(o, event.ReasonLevelFull, int64(book.MaxLevelQty))
		return
	}
	slot = b.alloc()
	state := flagsOf(o)
	if o.ExpireAt != 0 {
		state |= expires
		b.addExpiry(slot, o.ExpireAt)
	}
	lv, x := &b.levels[li], &b.orders[slot]
	x.id = o.ID
	x.owner = ownerOf(p, o.Participant)
	x.state = state | uint64(o.Qty)
	x.next, x.prev = 0, lv.tail
	if lv.tail == 0 {
		lv.head = slot
		b.opened(li, p)
	} else {
		b.orders[lv.tail].next = slot
	}
	lv.tail = slot
	lv.shown += o.Qty
	if key > b.best[s&3] {
		b.best[s&3] = key
	}
	b.ids.put(pos, h, slot)
	b.open[o.Participant]++
	b.live++

	if out.Pos >= out.Limit {
		out.MakeRoom(out)
	}
	e := out.At(out.Pos)
	out.Pos++
	e.Seq, e.At, e.OrderID, e.Other = seq, at, o.ID, 0
	e.Price, e.Qty, e.Aux = p, o.Qty, int64(o.Qty)
	e.Kind, e.Side, e.Instrument = event.Accepted, s, b.instrument
	e.Participant, e.Code = o.Participant, uint16(o.Type)|uint16(o.TIF)<<8
}

// Cancel takes a live order out: rule 8.
func (b *Book) Cancel(id market.OrderID, who market.ParticipantID, at int64, seq uint64, out *event.Sink) {
	slot, pos := b.find(id, hashOf(id))
	x := &b.orders[slot]
	owner := x.participant()
	p := x.price()
	if slot == 0 || who != owner && who != 0 || x.state&(flagWaiting|hasDisplay) != 0 || !b.near(p) {
		b.cancelOther(id, who, slot, pos, &command{at, seq, out, b.instrument})
		return
	}
	s, open := x.side(), x.qty()
	li := int32(p & ringMask)
	lv := &b.levels[li]
	lv.shown -= open
	b.unlink(li, slot)
	if lv.head == 0 {
		b.emptied(li, s)
	}
	if x.state&expires != 0 {
		b.dropExpiry(slot)
	}
	b.ids.deleteAt(pos)
	b.open[owner]--
	b.live--
	x.next = b.free
	b.free = slot

	if out.Pos >= out.Limit {
		out.MakeRoom(out)
	}
	e := out.At(out.Pos)
	out.Pos++
	e.Seq, e.At, e.OrderID, e.Other = seq, at, id, 0
	e.Price, e.Qty, e.Aux = p, open, int64(open)
	e.Kind, e.Side, e.Instrument = event.Cancelled, s, b.instrument
	e.Participant, e.Code = owner, uint16(event.ReasonUser)
}

// withdraw takes a resting order out of its level, and the level out of the
// book when it is the last, and returns its hidden quantity.
func (b *Book) withdraw(slot int32) (hidden market.Qty) {
	x := &b.orders[slot]
	hidden = b.hidden(slot)
	li := b.levelAt(x.price())
	lv := &b.levels[li]
	lv.shown -= x.qty()
	lv.hidden -= hidden
	b.unlink(li, slot)
	if lv.head == 0 {
		b.emptied(li, x.side())
	}
	return hidden
}

// cancelOther is Cancel for whatever is not plain.
func (b *Book) cancelOther(id market.OrderID, who market.ParticipantID, slot int32, pos uint64, c *command) {
	if slot == 0 || who != 0 && who != b.orders[slot].participant() {
		c.write(event.CancelRejected, id, 0, who, 0, 0, 0, uint16(event.ReasonUnknownOrder))
		return
	}
	b.end(slot, pos, event.ReasonUser, c)
}

// end cancels the live order in slot, resting or waiting, for a reason; pos is
// its position in the id table.
func (b *Book) end(slot int32, pos uint64, why event.Reason, c *command) {
	x := &b.orders[slot]
	if x.state&flagWaiting != 0 {
		b.withdrawStop(slot)
		c.ofOrder(x, event.Cancelled, x.qty(), 0, why)
	} else {
		shown := x.qty()
		hidden := b.withdraw(slot)
		c.ofOrder(x, event.Cancelled, shown+hidden, shown, why)
	}
	b.release(slot, pos)
}

// endQueue is end for the orders of who (0 = everybody) in the queue of a level.
// It reports whether who has none left.
func (b *Book) endQueue(li int32, who market.ParticipantID, why event.Reason, c *command) bool {
	for slot := b.levels[li].head; slot != 0; {
		x := &b.orders[slot]
		next := x.next
		if who == 0 || x.participant() == who {
			_, pos := b.find(x.id, hashOf(x.id))
			b.end(slot, pos, why, c)
			if who != 0 && b.open[who] == 0 {
				return true
			}
		}
		slot = next
	}
	return false
}

// MassCancel cancels the live orders of who (0 = everybody) on side (0 = both)
// in canonical order and returns how many.
func (b *Book) MassCancel(who market.ParticipantID, side market.Side, why event.Reason, at int64, seq uint64, out *event.Sink) int {
	c := command{at, seq, out, b.instrument}
	before := b.live
	if who == 0 || b.OpenOrders(who) > 0 {
		for s := market.Buy; s <= market.Sell; s++ {
			if side == 0 || side == s {
				b.massCancelSide(who, s, why, &c)
			}
		}
		for s := market.Buy; s <= market.Sell; s++ {
			if side == 0 || side == s {
				b.massCancelStops(who, s, why, &c)
			}
		}
	}
	return before - b.live
}

func (b *Book) massCancelSide(who market.ParticipantID, s market.Side, why event.Reason, c *command) {
	for key := b.best[s]; key != noBest; {
		p := market.Price(key * sign(s))
		if b.endQueue(b.peek(p), who, why, c) {
			return
		}
		key = b.after(p, s)
	}
}
