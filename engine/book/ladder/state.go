package ladder

import (
	"fmt"
	"runtime"

	"blockdesk/engine/book"
	"blockdesk/engine/event"
	"blockdesk/market"
)

// OrderCount returns the number of live and ending orders.
func (b *Book) OrderCount() int { return b.live }

// LastTrade returns the price of the last trade; 0 = none.
func (b *Book) LastTrade() market.Price { return b.last }

// SetLastTrade sets the price of the last trade, for a restore.
func (b *Book) SetLastTrade(p market.Price) { b.last = p }

// SetMaxOrders sets the limit of live orders, 1..book.MaxMaxOrders. A book with more keeps
// them and rejects new orders until it has fewer.
func (b *Book) SetMaxOrders(n int) {
	b.maxOrders = n
	if b.reserved != 0 && b.reserved <= n {
		b.reserve()
	}
	b.setFreeBelow()
}

// Best returns the best price of a side and the quantity displayed there.
func (b *Book) Best(side market.Side) (market.Price, market.Qty) {
	if b.sweeping {
		return b.bestLive(side & 3)
	}
	key := b.best[side&3]
	if key == noBest {
		return 0, 0
	}
	p := market.Price(key * sign(side))
	return p, b.levels[b.peek(p)].shown
}

// Depth writes the displayed levels of a side, best first, to dst[:0] up to cap(dst).
func (b *Book) Depth(side market.Side, dst []market.Level) []market.Level {
	defer runtime.KeepAlive(b) // its memory is released with it
	dst = dst[:0]
	for key := b.best[side&3]; key != noBest && len(dst) < cap(dst); {
		p := market.Price(key * sign(side))
		dst = append(dst, market.Level{Price: p, Qty: b.levels[b.peek(p)].shown})
		key = b.after(p, side)
	}
	return dst
}

// Get returns a live order as Export passes it.
func (b *Book) Get(id market.OrderID) (book.LiveOrder, bool) {
	defer runtime.KeepAlive(b) // its memory is released with it
	slot, _ := b.find(id, hashOf(id))
	if slot == 0 || b.sweeping && b.endReason(slot) != event.ReasonNone {
		return book.LiveOrder{}, false
	}
	return b.liveOrder(slot), true
}

func (b *Book) liveOrder(slot int32) book.LiveOrder {
	x, d := &b.orders[slot], &b.cold[slot]
	open := b.openOf(slot)
	r := book.LiveOrder{Open: open, Shown: x.qty()}
	r.ID, r.Price, r.Participant = x.id, x.price(), x.participant()
	r.Side, r.TIF, r.STP, r.Type = x.side(), tifOf(x.state), stpOf(x.state), book.Limit
	r.Qty = open + b.takenOf(slot)
	if x.state&flagPostOnly != 0 {
		r.Flags = book.FlagPostOnly
	}
	if x.state&flagQuote != 0 {
		r.Flags |= book.FlagQuote
	}
	if b.ending > 0 && b.isMassCancelled(x) {
		r.Flags |= markedFlag(b.endReason(slot))
	}
	if x.state&hasDisplay != 0 {
		r.Display = d.display
	}
	if x.state&expires != 0 {
		r.ExpireAt = d.expireAt
	}
	if x.state&flagWaiting != 0 {
		r.Waiting, r.Shown, r.Stop, r.EnteredSeq, r.Type = true, 0, d.stop, d.enteredSeq, book.StopLimit
		switch {
		case d.stop == 0:
			r.Type = book.Limit
		case x.state&flagMarket != 0:
			r.Type = book.Stop
		}
	}
	return r
}

// Export calls visit with every live order in canonical order.
func (b *Book) Export(visit func(book.LiveOrder)) {
	defer runtime.KeepAlive(b) // its memory is released with it
	for s := market.Buy; s <= market.Sell; s++ {
		for key := b.best[s]; key != noBest; {
			p := market.Price(key * sign(s))
			b.exportQueue(b.peek(p), visit)
			key = b.after(p, s)
		}
	}
	for _, list := range waitingLists {
		for stop, li := b.firstStop(list); li != none; stop, li = b.nextStop(list, stop) {
			b.exportQueue(li, visit)
		}
	}
}

func (b *Book) exportQueue(li int32, visit func(book.LiveOrder)) {
	for slot := b.levels[li].head; slot != 0; slot = b.orders[slot].next {
		visit(b.liveOrder(slot))
	}
}

// Import adds an order in the order of Export. Errors: book.ErrLiveOrder, ErrDuplicate,
// ErrFull, ErrCrossed.
func (b *Book) Import(r book.LiveOrder) error {
	if err := book.CheckLiveOrder(&r); err != nil {
		return err
	}
	if slot, _ := b.find(r.ID, hashOf(r.ID)); slot != 0 {
		return fmt.Errorf("order %d: %w", r.ID, book.ErrDuplicate)
	}
	toGather := r.Waiting && r.Stop == 0
	if b.live >= b.maxOrders || !r.Waiting && b.levelSum(r.Price)+r.Open > book.MaxLevelQty ||
		toGather && b.gatheredSum(r.Side, r.Price)+r.Open > book.MaxLevelQty {
		return fmt.Errorf("order %d: %w", r.ID, book.ErrFull)
	}
	b.growAccounts(r.Participant)
	if r.Waiting {
		slot := b.enterStop(&r.Order, r.Open)
		if taken := r.Qty - r.Open; taken > 0 {
			b.take(slot, taken)
		}
		if toGather {
			b.placeGathered(slot, r.EnteredSeq)
		} else {
			b.placeStop(slot, r.Stop, r.EnteredSeq)
		}
		b.importMark(slot, r.Flags)
		return nil
	}
	t := taker{
		id: r.ID, limit: r.Price, reach: sign(r.Side) * int64(r.Price), rem: r.Open, taken: r.Qty - r.Open,
		display: r.Display, expire: r.ExpireAt, state: flagsOf(&r.Order) | b.accounts[r.Participant].marks&genMask, participant: r.Participant, side: r.Side, stp: r.STP,
	}
	if b.crosses(&t) {
		return fmt.Errorf("order %d: %w", r.ID, book.ErrCrossed)
	}
	b.rest(&t)
	b.setShown(r.ID, r.Shown)
	slot, _ := b.find(r.ID, hashOf(r.ID))
	b.importMark(slot, r.Flags)
	return nil
}

// setShown sets the displayed quantity of the resting order id to q.
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
