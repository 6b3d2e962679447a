// Package ladder is the fast order book: an array of price levels around the best prices,
// so that adding and cancelling an order touch a few cache lines and need no search.
//
// The levels of 262,144 prices, the window, are found by a page table of 64 prices a page.
// Only a page with a used level has memory, so a quiet book is small, and one whose price
// swings reuses the same few pages. Both sides share the window, because a book never
// crosses. Bitmaps find the next used level. Prices outside the window are far: they are in
// a tree, and the window slides to the best price, in steps, as look-ups there pay for the
// moves. Orders are 32 bytes without pointers in a slab, linked by index; what a plain order
// does not need is in a second slab that it never touches.
//
// Invariants:
//  1. The level of a price is in a page exactly if base <= price < base+width, else
//     in far. A used level has an order and its bit or tree key; an unused one has neither.
//     A page has a used level.
//  2. best[s] is sign(s) × the best price of side s, or noBest if s is empty. Bids are
//     below asks, so everything behind a side's best price is of that side.
//  3. A level's shown and hidden are the sums over its queue, and their total is at most
//     book.MaxLevelQty.
//  4. Every live order is in ids once, and in exactly one list: its level's queue or its
//     trigger's. Between commands the elected list is empty.
//  5. Slots, pages, levels and tree nodes are reused last in, first out, so that a book which was
//     busy stays in cache.
//
// Cost: adding and cancelling are O(1) in the window and O(log n) in the far levels. A
// trade is O(1). A FOK visits every order that it could meet if its owner has live orders,
// else only levels; while there are ending orders, every order. MassCancel of a participant walks
// the book until it has found all of the participant's orders; EndLater visits accounts only, and
// the Sweeps after it visit each order about once together. There is no allocation once the slabs have grown to the most
// live orders. Growth copies nothing but a small book: see memory.go, and ids.go for the table of ids. A step of either, or of the
// window, takes some ten microseconds.
//
// Limits: Options.MaxOrders, book.MaxLevelQty. Not for concurrent use.
package ladder

import (
	"runtime"

	"blockdesk/engine/book"
	"blockdesk/engine/event"
	"blockdesk/market"
)

// Book is one order book.
type Book struct {
	orders    []order
	cold      []cold
	free      int32 // free list of slots
	live      int
	freeBelow int  // live orders below which Submit need not check maxOrders or grow ids
	sweeping  bool // there may be ending orders
	general   bool // sweeping or growing: Cancel takes its general path
	ids       idTable
	accounts  []account // by participant

	levels     []level // pages of the window, and pages divided into single levels
	freePages  int32
	freeLevels int32
	pages      pageTable
	base       int64    // first price of the window
	width      uint64   // prices in it; window, but while it moves
	target     int64    // base of the window when it has moved
	best       [4]int64 // by side; 0 and 3 are not used
	far        tree
	misses     int // operations on far prices since the window last moved

	// stops has triggers to levels, by side, and, at the index that gathered returns, limits
	// of orders gathered for an auction to levels, whose shown is the sum over the queue.
	stops    [4]tree
	waiting  int           // number of stops in them
	gathered [4]market.Qty // sums over the gathered orders, by side; 0 and 3 are not used
	elected  queue         // triggered stops to process, FIFO
	expiries tree          // ExpireAt to buckets
	next     int64         // NextExpiry
	byID     []market.OrderID

	ending  int      // orders ending by a mass cancel
	due     *int64   // Options.Due
	sweptTo int64    // the last time of Sweep that made orders ending; 0 = none since the last one was out
	places  [4]int64 // by side: no resting order with a better key is ending; 0 and 3 are not used
	// stopPlaces is the same for triggers and gathered orders, by index of stops.
	stopPlaces [4]int64

	last      market.Price
	trades    *market.TradeID
	fills     *[]book.QuoteFill
	maxOrders int
	memory    []byte // reserved; nil = the slices grow by append
	reserved  int    // orders that memory has room for; 0 while the book is small
	cleanup   runtime.Cleanup
	tables    []byte  // of memory: room for id tables
	growing   *growth // the next id table
	dropping  []byte  // of memory: the id table before, not given back yet

	prefetched uint64 // no meaning: it keeps the compiler from leaving out Prefetch's loads
	instrument market.InstrumentID
}

// queue is a list of orders, linked by next.
type queue struct{ head, tail int32 }

// New returns an empty book. It panics on invalid options.
func New(opt book.Options) *Book {
	if err := opt.Validate(); err != nil {
		panic(err)
	}
	opt = opt.WithDefaults()
	b := &Book{
		orders: make([]order, 1), cold: make([]cold, 1), ids: newIDTable(),
		levels: make([]level, pagePrices), pages: pageTable{used: make([]uint64, 1)}, far: newTree(), expiries: newTree(),
		trades: opt.Trades, fills: opt.Fills, due: opt.Due, maxOrders: opt.MaxOrders, instrument: opt.Instrument,
	}
	b.width = window
	b.setFreeBelow()
	b.best = [4]int64{noBest, noBest, noBest, noBest}
	for i := range b.stops {
		b.stops[i] = newTree()
	}
	return b
}

// Submit enters a new order: rule 2 of package book. The common case, a limit order that
// rests without crossing, is written out here, and so is Cancel: together nine commands of
// ten. So is out.Next, because the compiler does not inline it.
func (b *Book) Submit(o *book.Order, at int64, seq uint64, out *event.Sink) {
	h := hashOf(o.ID)
	slot, pos := b.find(o.ID, h)
	p, s := o.Price, o.Side
	key := sign(s) * int64(p)
	if slot != 0 || o.Type != book.Limit || o.TIF == book.IOC || o.TIF == book.FOK || o.Display != 0 ||
		key+b.best[s.Opposite()&3] >= 0 || b.live >= b.freeBelow || int(o.Participant) >= len(b.accounts) {
		b.submitGeneral(o, slot, &command{at, seq, out, b.instrument})
		return
	}
	li := b.levelFor(p, s)
	if lv := &b.levels[li]; lv.shown+lv.hidden+o.Qty > book.MaxLevelQty {
		c := command{at, seq, out, b.instrument}
		c.reject(o, event.ReasonLevelFull, int64(book.MaxLevelQty))
		return
	}
	slot = b.alloc()
	a := &b.accounts[o.Participant]
	a.open[(s-market.Buy)&1]++
	state := flagsOf(o) | a.marks&genMask
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

// Cancel cancels a live order: rule 8.
func (b *Book) Cancel(id market.OrderID, participant market.ParticipantID, at int64, seq uint64, out *event.Sink) {
	slot, pos := b.find(id, hashOf(id))
	x := &b.orders[slot]
	owner := x.participant()
	p := x.price()
	if slot == 0 || participant != owner && participant != 0 || x.state&(flagWaiting|hasDisplay) != 0 || !b.near(p) || b.general {
		b.cancelGeneral(id, participant, slot, pos, &command{at, seq, out, b.instrument})
		return
	}
	s, open := x.side(), x.qty()
	li := b.pages.at(p)
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
	b.accounts[owner].open[(s-market.Buy)&1]--
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

// cancelGeneral is Cancel for all other cases.
func (b *Book) cancelGeneral(id market.OrderID, participant market.ParticipantID, slot int32, pos uint64, c *command) {
	if slot == 0 || participant != 0 && participant != b.orders[slot].participant() {
		c.write(event.CancelRejected, id, 0, participant, 0, 0, 0, uint16(event.ReasonUnknownOrder))
		return
	}
	if b.sweeping && b.takeOut(slot, pos, c) {
		c.write(event.CancelRejected, id, 0, participant, 0, 0, 0, uint16(event.ReasonUnknownOrder))
		return
	}
	b.cancelOrder(slot, pos, event.ReasonUser, c)
}

// CancelFor cancels a live order for a reason of the engine's. It reports whether the order
// was live and not ending; if not, it writes nothing.
func (b *Book) CancelFor(id market.OrderID, reason event.Reason, at int64, seq uint64, out *event.Sink) bool {
	slot, pos := b.find(id, hashOf(id))
	if slot == 0 || b.sweeping && b.endReason(slot) != event.ReasonNone {
		return false
	}
	c := command{at, seq, out, b.instrument}
	b.cancelOrder(slot, pos, reason, &c)
	return true
}

// MassCancel cancels the participant's orders (0 = everybody's) on side (0 = both) that are not
// ending by a mass cancel, in canonical order, and returns their number.
func (b *Book) MassCancel(participant market.ParticipantID, side market.Side, reason event.Reason, at int64, seq uint64, out *event.Sink) int {
	c := command{at, seq, out, b.instrument}
	before := b.live
	if participant == 0 || b.OpenOrders(participant) > 0 {
		for s := market.Buy; s <= market.Sell; s++ {
			if side == 0 || side == s {
				b.massCancelSide(participant, s, reason, &c)
			}
		}
		for _, i := range waitingLists {
			if side == 0 || side == sideOfList(i) {
				b.massCancelStops(participant, i, reason, &c)
			}
		}
	}
	return before - b.live
}

func (b *Book) massCancelSide(participant market.ParticipantID, s market.Side, reason event.Reason, c *command) {
	for key := b.best[s]; key != noBest; {
		p := market.Price(key * sign(s))
		if b.cancelLevel(b.peek(p), participant, reason, c) {
			return
		}
		key = b.after(p, s)
	}
}

// submitGeneral is Submit for all other cases. live is the slot of a live order with the
// same id, or 0.
func (b *Book) submitGeneral(o *book.Order, live int32, c *command) {
	var t taker
	if reason, limit := b.judge(o, live, 0, &t, c); reason != event.ReasonNone {
		c.reject(o, reason, limit)
		return
	}
	if o.Type == book.Stop || o.Type == book.StopLimit {
		b.submitStop(o, c)
		return
	}
	shown := market.Qty(0)
	quiet := t.rests && !b.crosses(&t)
	if quiet {
		shown = t.slice()
	}
	c.accept(o, shown)
	b.process(&t, quiet, c)
	b.elect(&t, c)
}

// Check returns why Submit would reject o if the book had more orders than it has, and the limit
// that o breaks. Like Submit it first takes out the ending orders that o meets; it changes
// nothing else.
func (b *Book) Check(o *book.Order, more int, at int64, seq uint64, out *event.Sink) (event.Reason, int64) {
	slot, _ := b.find(o.ID, hashOf(o.ID))
	return b.judge(o, slot, more, &taker{}, &command{at, seq, out, b.instrument})
}

// judge is Check; live is the slot of a live order with the same id, or 0. It sets t to the
// active order of o, if that is no stop.
func (b *Book) judge(o *book.Order, live int32, more int, t *taker, c *command) (event.Reason, int64) {
	b.growAccounts(o.Participant)
	stop := o.Type == book.Stop || o.Type == book.StopLimit
	rests := o.Type == book.Limit && o.TIF != book.IOC && o.TIF != book.FOK
	if live != 0 && b.sweeping {
		if _, pos := b.find(o.ID, hashOf(o.ID)); b.takeOut(live, pos, c) {
			live = 0
		}
	}
	switch {
	case live != 0:
		return event.ReasonDuplicateOrder, 0
	case o.Flags&book.FlagMinQty == 0 && book.TooManySlices(o.Qty, o.Display):
		return event.ReasonInvalidDisplay, book.MaxSlices
	case (stop || rests) && b.live+more >= b.maxOrders:
		return event.ReasonBookFull, int64(b.maxOrders)
	case stop:
		return event.ReasonNone, 0
	}
	*t = taker{
		id: o.ID, limit: o.Price, reach: sign(o.Side) * int64(o.Price), rem: o.Qty, display: o.Display,
		expire: o.ExpireAt, state: flagsOf(o) | b.accounts[o.Participant].marks&genMask, participant: o.Participant, side: o.Side, stp: o.STP, rests: rests,
	}
	if o.Type == book.Market {
		t.reach = marketReach
	}
	if b.sweeping {
		b.clearTop(t.side.Opposite(), t.reach, c)
	}
	if o.Flags&book.FlagMinQty != 0 {
		t.display, t.least = 0, o.Display
	}
	return b.rejectReason(t)
}
