package ladder

import (
	"blockdesk/engine/book"
	"blockdesk/engine/event"
	"blockdesk/market"
)

// Gathered orders (rule 11 of package book) wait as stops do, in lists of their own, because
// the levels of the window have one side each: a book that crosses does not fit in.

// Gather enters a new order in a call: rule 11.
func (b *Book) Gather(o *book.Order, at int64, seq uint64, out *event.Sink) {
	c := command{at, seq, out, b.instrument}
	b.growAccounts(o.Participant)
	stop := o.Type == book.Stop || o.Type == book.StopLimit
	slot, pos := b.find(o.ID, hashOf(o.ID))
	if slot != 0 && b.sweeping && b.takeOut(slot, pos, &c) {
		slot = 0
	}
	switch {
	case slot != 0:
		c.reject(o, event.ReasonDuplicateOrder, 0)
	case book.TooManySlices(o.Qty, o.Display):
		c.reject(o, event.ReasonInvalidDisplay, book.MaxSlices)
	case b.live >= b.maxOrders:
		c.reject(o, event.ReasonBookFull, int64(b.maxOrders))
	case stop:
		c.accept(o, 0)
		b.placeStop(b.enterStop(o, o.Qty), o.Stop, seq)
	case b.gatheredSum(o.Side, o.Price)+o.Qty > book.MaxLevelQty:
		c.reject(o, event.ReasonLevelFull, int64(book.MaxLevelQty))
	default:
		c.accept(o, 0)
		b.placeGathered(b.enterStop(o, o.Qty), seq)
	}
}

// gatheredSum returns what counts for MaxLevelQty when an order at p is gathered: all gathered
// orders of the side, and what rests at p. So the sums over an auction never overflow.
func (b *Book) gatheredSum(s market.Side, p market.Price) market.Qty {
	return b.gathered[s&3] + b.levelSum(p)
}

// Gathered returns the open quantity of the gathered orders of a side.
func (b *Book) Gathered(side market.Side) market.Qty { return b.gathered[side&3] }

// placeGathered adds the waiting order in slot to the back of its limit's queue.
func (b *Book) placeGathered(slot int32, entered uint64) {
	x := &b.orders[slot]
	s, p, q := x.side(), int64(x.price()), x.qty()
	b.cold[slot].stop, b.cold[slot].enteredSeq = 0, entered
	t := &b.stops[gathered(s)&3]
	li := t.find(p)
	if li == none {
		li = b.newLevel()
		t.insert(p, li)
	}
	b.append(li, slot)
	b.levels[li].shown += q
	b.gathered[s&3] += q
}

// lessGathered takes q of the gathered order in slot from the sums.
func (b *Book) lessGathered(slot int32, q market.Qty) {
	x := &b.orders[slot]
	s := x.side()
	b.gathered[s&3] -= q
	b.levels[b.stops[gathered(s)&3].find(int64(x.price()))].shown -= q
}

// regather gives a resting or gathered order new terms and the last place among the gathered.
func (b *Book) regather(slot int32, o *book.Order, p market.Price, wanted market.Qty, c *command) {
	x := &b.orders[slot]
	s, participant, open, rests := x.side(), x.participant(), b.openOf(slot), x.state&flagWaiting == 0
	sum := b.gatheredSum(s, p) + wanted
	if !rests || p == x.price() {
		sum -= open
	}
	switch {
	case x.state&flagPostOnly != 0:
		c.amendRejected(o, s, participant, event.ReasonAuction, 0)
		return
	case sum > book.MaxLevelQty:
		c.amendRejected(o, s, participant, event.ReasonLevelFull, int64(book.MaxLevelQty))
		return
	}
	if rests {
		c.ofOrder(x, event.Unrested, open, x.qty(), event.ReasonNone)
		b.withdraw(slot)
	} else {
		b.withdrawStop(slot)
	}
	b.amendTerms(slot, o)
	if x.state&hasDisplay != 0 {
		b.cold[slot].hidden = 0
	}
	x.owner = ownerOf(p, participant)
	x.state = x.state&^qtyMask | flagWaiting | uint64(wanted)
	c.ofOrder(x, event.Amended, wanted, 0, event.ReasonNone)
	b.placeGathered(slot, c.seq)
}

// NextLevel returns the best price of a side behind after (0 = the best of all) and the open
// quantity there of resting and gathered orders that are not ending; 0, 0 = none.
func (b *Book) NextLevel(side market.Side, after market.Price) (market.Price, market.Qty) {
	sg, key, list := sign(side), b.best[side&3], gathered(side)
	var p int64
	var li int32
	if after == 0 {
		p, li = b.firstStop(list)
	} else {
		p, li = b.nextStop(list, int64(after))
		if key != noBest && key >= sg*int64(after) {
			key = b.after(after, side)
		}
	}
	var q market.Qty
	if li != none && sg*p >= key {
		q = b.standing(li)
		if sg*p > key {
			return market.Price(p), q
		}
	}
	if key == noBest {
		return 0, 0
	}
	price := market.Price(sg * key)
	return price, q + b.standing(b.peek(price))
}

// standing returns the open quantity of a level's orders that are not ending.
func (b *Book) standing(li int32) market.Qty {
	lv := &b.levels[li]
	if !b.sweeping {
		return lv.shown + lv.hidden
	}
	var q market.Qty
	for slot := lv.head; slot != 0; slot = b.orders[slot].next {
		if b.endReason(slot) == event.ReasonNone {
			q += b.openOf(slot)
		}
	}
	return q
}

// Uncross trades up to n pairs of orders at price: rule 12. It returns their number; if it is
// less than n, no pair is left.
func (b *Book) Uncross(price market.Price, n int, at int64, seq uint64, out *event.Sink) int {
	c := command{at, seq, out, b.instrument}
	for done := range n {
		bid, bidRests := b.first(market.Buy, price)
		ask, askRests := b.first(market.Sell, price)
		switch {
		case bid == 0 || ask == 0:
			return done
		case bidRests || !askRests && b.cold[bid].enteredSeq <= b.cold[ask].enteredSeq:
			b.meet(ask, bid, bidRests, price, &c)
		default:
			b.meet(bid, ask, askRests, price, &c)
		}
	}
	return n
}

// first returns the first order of a side that may trade at price, 0 = none, and whether it
// rests. A resting order is older than the gathered ones of its price.
func (b *Book) first(s market.Side, price market.Price) (slot int32, rests bool) {
	key, best := b.best[s&3], int64(noBest)
	p, li := b.firstStop(gathered(s))
	if li != none {
		best = sign(s) * p
	}
	switch {
	case max(key, best) < sign(s)*int64(price):
		return 0, false
	case key >= best:
		return b.levels[b.peek(market.Price(sign(s)*key))].head, true
	}
	return b.levels[li].head, false
}

// meet trades the gathered order younger with older at price, or prevents it because both
// are of one participant.
func (b *Book) meet(younger, older int32, rests bool, price market.Price, c *command) {
	y, o := &b.orders[younger], &b.orders[older]
	q := min(y.qty(), o.qty())
	if y.participant() == o.participant() && y.participant() != 0 {
		switch stpOf(y.state) {
		case book.STPCancelNewest:
			b.lose(younger, y.qty(), c)
		case book.STPCancelOldest:
			b.lose(older, b.openOf(older), c)
		case book.STPCancelBoth:
			b.lose(older, b.openOf(older), c)
			b.lose(younger, y.qty(), c)
		default:
			b.lose(older, q, c)
			b.lose(younger, q, c)
		}
		return
	}
	b.last = price
	*b.trades++
	e := c.out.Next()
	e.Seq, e.At, e.OrderID, e.Other = c.seq, c.at, y.id, uint64(o.id)
	e.Price, e.Qty, e.Aux = price, q, int64(*b.trades)
	e.Kind, e.Side, e.Instrument = event.AuctionTraded, y.side(), b.instrument
	e.Participant, e.Code = y.participant(), uint16(o.participant())
	b.noteFill(o, q)
	b.noteFill(y, q)
	if rests {
		c.ofOrder(o, event.Reduced, b.openOf(older)-q, q, event.ReasonAuctionTrade)
	}
	b.spend(older, q, c)
	b.spend(younger, q, c)
}

// noteFill appends a trade of q to the fills of quotes, if x is one.
func (b *Book) noteFill(x *order, q market.Qty) {
	if x.state&flagQuote != 0 {
		*b.fills = append(*b.fills, book.QuoteFill{ID: x.id, Qty: q, Participant: x.participant(), Instrument: b.instrument})
	}
}

// lose takes q from an order for self-trade prevention.
func (b *Book) lose(slot int32, q market.Qty, c *command) {
	x, open := &b.orders[slot], b.openOf(slot)
	if q == open {
		_, pos := b.find(x.id, hashOf(x.id))
		b.cancelOrder(slot, pos, event.ReasonSelfTrade, c)
		return
	}
	shown := q
	if x.state&flagWaiting != 0 {
		shown = 0
	}
	c.ofOrder(x, event.Reduced, open-q, shown, event.ReasonSelfTrade)
	b.spend(slot, q, c)
}

// spend takes q, at most the displayed quantity of a resting order, from an order. An order
// of which nothing is left is gone; an iceberg shows its next slice.
func (b *Book) spend(slot int32, q market.Qty, c *command) {
	x := &b.orders[slot]
	switch {
	case b.openOf(slot) == q:
		if x.state&flagWaiting != 0 {
			b.withdrawStop(slot)
		} else {
			b.withdraw(slot)
		}
		_, pos := b.find(x.id, hashOf(x.id))
		b.release(slot, pos)
		return
	case x.state&flagWaiting != 0:
		b.lessGathered(slot, q)
		x.state -= uint64(q)
		b.take(slot, q)
		return
	}
	li := b.levelAt(x.price())
	b.levels[li].shown -= q
	x.state -= uint64(q)
	b.take(slot, q)
	if x.qty() == 0 {
		b.replenish(li, slot, c)
	}
}

// Release rests up to n gathered orders: rule 12. It returns their number; if it is less than
// n, none is left.
func (b *Book) Release(n int, at int64, seq uint64, out *event.Sink) int {
	c := command{at, seq, out, b.instrument}
	done := 0
	for s := market.Buy; s <= market.Sell; s++ {
		for ; done < n; done++ {
			_, li := b.firstStop(gathered(s))
			if li == none {
				break
			}
			slot := b.levels[li].head
			b.withdrawStop(slot)
			t := b.takerOf(slot)
			c.ofTaker(&t, event.Rested, b.rest(&t), event.ReasonNone)
		}
	}
	return done
}

// Elect triggers the stops that the last trade satisfies: the end of an auction.
func (b *Book) Elect(at int64, seq uint64, out *event.Sink) {
	b.elect(&taker{first: b.last, final: b.last}, &command{at, seq, out, b.instrument})
}
