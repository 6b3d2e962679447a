package ladder

import (
	"fmt"

	"blockdesk/engine/book"
	"blockdesk/market"
)

// OpenOrders returns how many live orders who has.
func (b *Book) OpenOrders(who market.ParticipantID) int {
	if int(who) >= len(b.open) {
		return 0
	}
	return int(b.open[who])
}

// OrderCount returns how many orders are live.
func (b *Book) OrderCount() int { return b.live }

// LastTrade returns the price of the last trade, 0 before the first.
func (b *Book) LastTrade() market.Price { return b.last }

// SetLastTrade restores the price of the last trade.
func (b *Book) SetLastTrade(p market.Price) { b.last = p }

// SetMaxOrders sets how many orders may be live, 1..book.MaxMaxOrders. A book
// that has more keeps them, and refuses new ones until it has fewer.
func (b *Book) SetMaxOrders(n int) {
	b.maxOrders = n
	b.room = min(n, b.ids.limit)
}

// Best returns the best price of a side and the quantity displayed there.
func (b *Book) Best(side market.Side) (market.Price, market.Qty) {
	key := b.best[side&3]
	if key == noBest {
		return 0, 0
	}
	p := market.Price(key * sign(side))
	return p, b.levels[b.peek(p)].shown
}

// peek is levelAt for a reader: it does not count as an operation.
func (b *Book) peek(p market.Price) int32 {
	if b.near(p) {
		return int32(p & ringMask)
	}
	return b.far.find(int64(p))
}

// Depth writes the displayed levels of a side, best first, over dst[:0] up to
// cap(dst).
func (b *Book) Depth(side market.Side, dst []market.Level) []market.Level {
	dst = dst[:0]
	for key := b.best[side&3]; key != noBest && len(dst) < cap(dst); {
		p := market.Price(key * sign(side))
		dst = append(dst, market.Level{Price: p, Qty: b.levels[b.peek(p)].shown})
		key = b.after(p, side)
	}
	return dst
}

// Get returns a live order as Export would give it.
func (b *Book) Get(id market.OrderID) (book.LiveOrder, bool) {
	slot, _ := b.find(id, hashOf(id))
	if slot == 0 {
		return book.LiveOrder{}, false
	}
	return b.resting(slot), true
}

func (b *Book) resting(slot int32) book.LiveOrder {
	x, d := &b.orders[slot], &b.cold[slot]
	open := b.openOf(slot)
	r := book.LiveOrder{Open: open, Shown: x.qty()}
	r.ID, r.Price, r.Participant = x.id, x.price(), x.participant()
	r.Side, r.TIF, r.STP, r.Type = x.side(), tifOf(x.state), stpOf(x.state), book.Limit
	r.Qty = open + b.takenOf(slot)
	if x.state&flagPostOnly != 0 {
		r.Flags = book.FlagPostOnly
	}
	if x.state&hasDisplay != 0 {
		r.Display = d.display
	}
	if x.state&expires != 0 {
		r.ExpireAt = d.expireAt
	}
	if x.state&flagWaiting != 0 {
		r.Waiting, r.Shown, r.Stop, r.EnteredSeq, r.Type = true, 0, d.stop, d.entered, book.StopLimit
		if x.state&flagMarket != 0 {
			r.Type = book.Stop
		}
	}
	return r
}

// Export gives every live order in canonical order.
func (b *Book) Export(give func(book.LiveOrder)) {
	for s := market.Buy; s <= market.Sell; s++ {
		for key := b.best[s]; key != noBest; {
			p := market.Price(key * sign(s))
			b.exportQueue(b.peek(p), give)
			key = b.after(p, s)
		}
	}
	for s := market.Buy; s <= market.Sell; s++ {
		for stop, li := b.firstStop(s); li != none; stop, li = b.nextStop(s, stop) {
			b.exportQueue(li, give)
		}
	}
}

func (b *Book) exportQueue(li int32, give func(book.LiveOrder)) {
	for slot := b.levels[li].head; slot != 0; slot = b.orders[slot].next {
		give(b.resting(slot))
	}
}

// Import adds an order that Export gave, behind those added before. Errors:
// book.ErrLiveOrder, ErrDuplicate, ErrFull, ErrCrossed.
func (b *Book) Import(r book.LiveOrder) error {
	if err := book.CheckLiveOrder(&r); err != nil {
		return err
	}
	if slot, _ := b.find(r.ID, hashOf(r.ID)); slot != 0 {
		return fmt.Errorf("order %d: %w", r.ID, book.ErrDuplicate)
	}
	if b.live >= b.maxOrders || !r.Waiting && b.levelSum(r.Price)+r.Open > book.MaxLevelQty {
		return fmt.Errorf("order %d: %w", r.ID, book.ErrFull)
	}
	b.knowParticipant(r.Participant)
	if r.Waiting {
		slot := b.enterStop(&r.Order, r.Open)
		if taken := r.Qty - r.Open; taken > 0 {
			b.take(slot, taken)
		}
		b.placeStop(slot, r.Stop, r.EnteredSeq)
		return nil
	}
	t := taker{
		id: r.ID, limit: r.Price, reach: sign(r.Side) * int64(r.Price), rem: r.Open, taken: r.Qty - r.Open,
		display: r.Display, expire: r.ExpireAt, state: flagsOf(&r.Order), who: r.Participant, side: r.Side, stp: r.STP,
	}
	if b.crosses(&t) {
		return fmt.Errorf("order %d: %w", r.ID, book.ErrCrossed)
	}
	b.rest(&t)
	b.setShown(r.ID, r.Shown)
	return nil
}

// setShown makes the order id, which rests, show q of its open quantity.
func (b *Book) setShown(id market.OrderID, q market.Qty) {
	slot, _ := b.find(id, hashOf(id))
	x := &b.orders[slot]
	more := x.qty() - q
	if more == 0 {
		return
	}
	lv := &b.levels[b.peek(x.price())]
	x.state = x.state&^qtyMask | uint64(q)
	b.cold[slot].hidden += more
	lv.shown -= more
	lv.hidden += more
}
