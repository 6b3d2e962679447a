package ladder

import (
	"blockdesk/engine/book"
	"blockdesk/engine/event"
	"blockdesk/market"
)

// taker is an active order: new, amended, or a triggered stop.
type taker struct {
	id          market.OrderID
	limit       market.Price // 0 for a market order
	reach       int64        // sign × limit, or marketReach
	rem         market.Qty   // still to trade
	taken       market.Qty   // traded or lost by decrement, ever
	display     market.Qty
	least       market.Qty // must be able to trade at once; 0 = anything
	expire      int64
	state       uint64 // flags alone
	slot        int32  // its slot when it has one already, else 0
	participant market.ParticipantID
	side        market.Side
	stp         book.STP
	rests       bool // what remains may rest
	// Prices of the first and last trade; a sweep goes one way, so they bound the others.
	// 0 = no trade.
	first, final market.Price
}

// marketReach reaches every price, but not an empty side.
const marketReach = 1 << 61

// rejectReason returns why t, which is not in the book, must be rejected, and the limit
// that it breaks. The reason of a FOK is that of a new order.
func (b *Book) rejectReason(t *taker) (event.Reason, int64) {
	if t.rests && b.levelSum(t.limit)+t.rem > book.MaxLevelQty {
		return event.ReasonLevelFull, int64(book.MaxLevelQty)
	}
	if t.state&flagPostOnly != 0 && b.crosses(t) {
		return event.ReasonPostOnly, b.best[t.side.Opposite()&3] * -sign(t.side)
	}
	if tifOf(t.state) == book.FOK {
		if q := b.fillable(t); q < t.rem {
			return event.ReasonFOKUnfillable, int64(q)
		}
	}
	if t.least > 0 {
		if q := b.fillable(t); q < t.least {
			return event.ReasonMinQtyUnfillable, int64(q)
		}
	}
	return event.ReasonNone, 0
}

// levelSum returns the open quantity at price p.
func (b *Book) levelSum(p market.Price) market.Qty {
	if li := b.levelAt(p); li != none && b.levels[li].head != 0 {
		return b.levels[li].shown + b.levels[li].hidden
	}
	return 0
}

func (b *Book) crosses(t *taker) bool { return t.reach+b.best[t.side.Opposite()&3] >= 0 }

// slice returns the quantity that t would display if it rested now.
func (t *taker) slice() market.Qty {
	if t.display == 0 {
		return t.rem
	}
	return min(t.display, t.rem)
}

// fillable returns the quantity that t could trade at once, at most t.rem: the last
// paragraph of rule 5.
func (b *Book) fillable(t *taker) market.Qty {
	opp := t.side.Opposite()
	each := b.sweeping || t.participant != 0 && b.OpenOrders(t.participant) > 0
	var sum market.Qty
	for key := b.best[opp&3]; key+t.reach >= 0 && sum < t.rem; {
		p := market.Price(key * sign(opp))
		lv := &b.levels[b.levelAt(p)]
		if !each {
			sum += lv.shown + lv.hidden
		} else {
			q, met := b.fillableAt(t, lv)
			sum += q
			if met {
				break
			}
		}
		key = b.after(p, opp)
	}
	return min(sum, t.rem)
}

// fillableAt is fillable at one level; met reports that t's owner's order there stops it.
func (b *Book) fillableAt(t *taker, lv *level) (q market.Qty, met bool) {
	var ahead, others market.Qty
	for slot := lv.head; slot != 0; slot = b.orders[slot].next {
		x := &b.orders[slot]
		switch {
		case b.sweeping && b.endReason(slot) != event.ReasonNone:
		case x.participant() != t.participant || t.participant == 0:
			ahead += x.qty()
			others += b.openOf(slot)
		case t.stp != book.STPCancelOldest:
			return ahead, true
		}
	}
	return others, false
}

// process matches t, then rests or cancels the remainder. quiet: the caller knows that t
// rests whole and has written its event.
func (b *Book) process(t *taker, quiet bool, c *command) {
	opp := t.side.Opposite()
	for t.rem > 0 && t.reach+b.best[opp&3] >= 0 {
		b.matchLevel(t, b.levelAt(market.Price(b.best[opp&3]*sign(opp))), opp, c)
	}
	switch {
	case t.rem == 0:
		b.freeSlot(t)
	case !t.rests:
		c.ofTaker(t, event.Cancelled, 0, event.ReasonIOCRemainder)
		b.freeSlot(t)
	default:
		shown := b.rest(t)
		if !quiet {
			c.ofTaker(t, event.Rested, shown, 0)
		}
	}
}

// freeSlot frees t's slot, if it has one, because t has ended.
func (b *Book) freeSlot(t *taker) {
	if t.slot != 0 {
		_, pos := b.find(t.id, hashOf(t.id))
		b.release(t.slot, pos)
	}
}

// rest adds the remainder of t to the back of its level and returns the displayed quantity.
// It reuses t's slot, if it has one.
func (b *Book) rest(t *taker) (shown market.Qty) {
	slot := t.slot
	if slot == 0 {
		slot = b.addOrder(t.id, t.participant, t.side, t.expire)
		if t.expire != 0 {
			t.state |= expires
		}
	}
	shown = t.slice()
	x, d := &b.orders[slot], &b.cold[slot]
	if t.display != 0 {
		d.display, d.hidden = t.display, t.rem-shown
		t.state |= hasDisplay
	}
	if t.taken != 0 {
		d.taken = t.taken
		t.state |= hasTaken
	}
	x.owner = ownerOf(t.limit, t.participant)
	x.state = t.state | uint64(shown)
	li := b.levelFor(t.limit, t.side)
	if b.levels[li].head == 0 {
		b.opened(li, t.limit)
	}
	b.append(li, slot)
	b.levels[li].shown += shown
	b.levels[li].hidden += t.rem - shown
	b.best[t.side&3] = max(b.best[t.side&3], t.reach)
	return shown
}

// matchLevel trades t with the queue of the best opposite level until either is used up.
func (b *Book) matchLevel(t *taker, li int32, opp market.Side, c *command) {
	lv := &b.levels[li]
	p := lv.price
	for t.rem > 0 && lv.head != 0 {
		slot := lv.head
		x := &b.orders[slot]
		if b.sweeping {
			if reason := b.endReason(slot); reason != event.ReasonNone {
				b.cancelHead(li, slot, reason, c)
				continue
			}
		}
		if x.participant() == t.participant && t.participant != 0 {
			b.preventSelfTrade(t, li, slot, c)
			continue
		}
		shown := x.qty()
		q := min(t.rem, shown)
		t.rem -= q
		t.taken += q
		lv.shown -= q
		b.last = p
		if t.first == 0 {
			t.first = p
		}
		t.final = p
		*b.trades++

		e := c.out.Next()
		e.Seq, e.At, e.OrderID, e.Other = c.seq, c.at, t.id, uint64(x.id)
		e.Price, e.Qty, e.Aux = p, q, int64(*b.trades)
		e.Kind, e.Side, e.Instrument = event.Traded, t.side, b.instrument
		e.Participant, e.Code = t.participant, uint16(x.participant())
		if (x.state|t.state)&flagQuote != 0 {
			b.noteQuotes(t, x, q)
		}

		switch {
		case q < shown:
			x.state -= uint64(q)
			b.take(slot, q)
		case x.state&hasDisplay != 0 && b.cold[slot].hidden > 0:
			x.state -= uint64(q)
			b.take(slot, q)
			b.replenish(li, slot, c)
		default:
			b.unlinkHead(lv, x)
			_, pos := b.find(x.id, hashOf(x.id))
			b.release(slot, pos)
		}
	}
	if lv.head == 0 {
		b.emptied(li, opp)
	}
}

// noteQuotes appends a trade of q between t and x to the fills of quotes.
func (b *Book) noteQuotes(t *taker, x *order, q market.Qty) {
	if x.state&flagQuote != 0 {
		*b.fills = append(*b.fills, book.QuoteFill{ID: x.id, Qty: q, Participant: x.participant(), Instrument: b.instrument})
	}
	if t.state&flagQuote != 0 {
		*b.fills = append(*b.fills, book.QuoteFill{ID: t.id, Qty: q, Participant: t.participant, Instrument: b.instrument})
	}
}

// unlinkHead removes x, the head of lv, from its queue.
func (b *Book) unlinkHead(lv *level, x *order) {
	lv.head = x.next
	if x.next == 0 {
		lv.tail = 0
	} else {
		b.orders[x.next].prev = 0
	}
}

// replenish displays the next slice of an iceberg whose displayed part is used up, at the
// back of its level's queue.
func (b *Book) replenish(li, slot int32, c *command) {
	lv, x, d := &b.levels[li], &b.orders[slot], &b.cold[slot]
	next := min(d.display, d.hidden)
	open := d.hidden
	d.hidden -= next
	lv.hidden -= next
	lv.shown += next
	x.state |= uint64(next)
	b.unlink(li, slot)
	b.append(li, slot)
	c.ofOrder(&b.orders[slot], event.Replenished, open, next, event.ReasonNone)
}

// preventSelfTrade applies rule 5 to t and its owner's order at the head of level li. The
// caller removes an emptied level.
func (b *Book) preventSelfTrade(t *taker, li, slot int32, c *command) {
	switch t.stp {
	case book.STPCancelNewest:
		b.cancelTaker(t, c)
	case book.STPCancelOldest:
		b.cancelHead(li, slot, event.ReasonSelfTrade, c)
	case book.STPCancelBoth:
		b.cancelHead(li, slot, event.ReasonSelfTrade, c)
		b.cancelTaker(t, c)
	case book.STPDecrement:
		b.decrement(t, li, slot, c)
	default:
		panic("ladder: order without a self-trade prevention mode")
	}
}

func (b *Book) cancelTaker(t *taker, c *command) {
	c.ofTaker(t, event.Cancelled, 0, event.ReasonSelfTrade)
	t.rem = 0
}

// cancelHead cancels the head of level li. The caller removes an emptied level.
func (b *Book) cancelHead(li, slot int32, reason event.Reason, c *command) {
	lv, x := &b.levels[li], &b.orders[slot]
	shown, hidden := x.qty(), b.hidden(slot)
	lv.shown -= shown
	lv.hidden -= hidden
	b.unlinkHead(lv, x)
	c.ofOrder(x, event.Cancelled, shown+hidden, shown, reason)
	_, pos := b.find(x.id, hashOf(x.id))
	b.release(slot, pos)
}

func (b *Book) decrement(t *taker, li, slot int32, c *command) {
	lv, x := &b.levels[li], &b.orders[slot]
	q := min(t.rem, x.qty())
	if open := b.openOf(slot); open == q {
		b.cancelHead(li, slot, event.ReasonSelfTrade, c)
	} else {
		lv.shown -= q
		x.state -= uint64(q)
		b.take(slot, q)
		c.ofOrder(&b.orders[slot], event.Reduced, open-q, q, event.ReasonSelfTrade)
		if x.qty() == 0 {
			b.replenish(li, slot, c)
		}
	}
	if t.rem == q {
		b.cancelTaker(t, c)
		return
	}
	t.rem -= q
	t.taken += q
	c.ofTaker(t, event.Reduced, 0, event.ReasonSelfTrade)
}
