package naive

import (
	"cmp"
	"fmt"
	"slices"

	"blockdesk/engine/book"
	"blockdesk/engine/event"
	"blockdesk/market"
)

// emit writes e with the fields that all events of the command share.
func (b *Book) emit(e event.Event) {
	e.Seq, e.At, e.Instrument = b.seq, b.at, b.opt.Instrument
	*b.out.Next() = e
}

// emitFor writes e with the fields that all events about the order m share.
func (b *Book) emitFor(m *order, e event.Event) {
	e.OrderID, e.Side, e.Participant, e.Price, e.Qty = m.ID, m.Side, m.Participant, m.Price, m.open
	b.emit(e)
}

func (b *Book) cancelled(m *order, reason event.Reason) {
	b.emitFor(m, event.Event{Kind: event.Cancelled, Aux: int64(m.shown), Code: uint16(reason)})
}

func (b *Book) side(s market.Side) *[]*order {
	if s == market.Buy {
		return &b.bids
	}
	return &b.asks
}

func (b *Book) stops(s market.Side) *[]*order {
	if s == market.Buy {
		return &b.buyStops
	}
	return &b.sellStops
}

// rest adds m to the back of its level and displays its slice.
func (b *Book) rest(m *order) {
	m.shown = slice(m)
	insertByPrice(b.side(m.Side), m)
}

// insertByPrice puts m behind all orders with its price or a better one.
func insertByPrice(orders *[]*order, m *order) {
	at := 0
	for at < len(*orders) {
		p := (*orders)[at].Price
		if m.Side == market.Buy && p < m.Price || m.Side == market.Sell && p > m.Price {
			break
		}
		at++
	}
	insert(orders, at, m)
}

func insert(orders *[]*order, at int, m *order) { *orders = slices.Insert(*orders, at, m) }

// unlink removes m from its slice and returns its index there.
func (b *Book) unlink(m *order) int {
	orders := b.side(m.Side)
	switch {
	case isGathered(m):
		orders = b.gathered(m.Side)
	case m.waiting:
		orders = b.stops(m.Side)
	}
	at := slices.Index(*orders, m)
	*orders = slices.Delete(*orders, at, at+1)
	return at
}

// remove takes a live order out of its slice and forgets its ID.
func (b *Book) remove(m *order) {
	b.unlink(m)
	delete(b.live, m.ID)
}

// all returns the live orders in canonical order, as a copy.
func (b *Book) all() []*order {
	return slices.Concat(b.bids, b.asks, b.buyStops, b.sellStops, b.gatheredBuys, b.gatheredSells)
}

func compare[T cmp.Ordered](x, y T) int { return cmp.Compare(x, y) }

// NextExpiry returns the earliest ExpireAt of a live order; 0 = none expires.
func (b *Book) NextExpiry() int64 {
	var next int64
	for _, m := range b.all() {
		if m.ExpireAt > 0 && (next == 0 || m.ExpireAt < next) {
			next = m.ExpireAt
		}
	}
	return next
}

// OpenOrders returns the participant's number of orders that are not ending by a mass cancel.
func (b *Book) OpenOrders(participant market.ParticipantID) int {
	n := 0
	for _, m := range b.all() {
		if m.Participant == participant && m.ending == event.ReasonNone {
			n++
		}
	}
	return n
}

// OrderCount returns the number of live and ending orders.
func (b *Book) OrderCount() int { return len(b.live) }

// LastTrade returns the price of the last trade; 0 = none.
func (b *Book) LastTrade() market.Price { return b.last }

// SetMaxOrders sets the limit of live orders.
func (b *Book) SetMaxOrders(n int) { b.opt.MaxOrders = n }

// SetLastTrade sets the price of the last trade, for a restore.
func (b *Book) SetLastTrade(p market.Price) { b.last = p }

// Best returns the best price of a side and the quantity displayed there.
func (b *Book) Best(side market.Side) (market.Price, market.Qty) {
	orders := b.standing(*b.side(side))
	if len(orders) == 0 {
		return 0, 0
	}
	var shown market.Qty
	for _, m := range levelFrom(orders, 0) {
		shown += m.shown
	}
	return orders[0].Price, shown
}

// Depth writes the displayed levels of a side, best first, to dst[:0] up to cap(dst).
func (b *Book) Depth(side market.Side, dst []market.Level) []market.Level {
	dst = dst[:0]
	orders := *b.side(side)
	for i := 0; i < len(orders) && len(dst) < cap(dst); {
		level := levelFrom(orders, i)
		i += len(level)
		l := market.Level{Price: level[0].Price}
		for _, m := range level {
			l.Qty += m.shown
		}
		dst = append(dst, l)
	}
	return dst
}

// Get returns a live order as Export passes it.
func (b *Book) Get(id market.OrderID) (book.LiveOrder, bool) {
	if m := b.live[id]; m != nil && b.endReason(m) == event.ReasonNone {
		return liveOrder(m), true
	}
	return book.LiveOrder{}, false
}

func liveOrder(m *order) book.LiveOrder {
	r := book.LiveOrder{Order: m.Order, Open: m.open, Shown: m.shown, Waiting: m.waiting, EnteredSeq: m.entered}
	r.Flags |= endingFlag(m)
	return r
}

// Export calls visit with every live order in canonical order.
func (b *Book) Export(visit func(book.LiveOrder)) {
	for _, m := range b.all() {
		visit(liveOrder(m))
	}
}

// Import adds an order in the order of Export. Errors: book.ErrLiveOrder, ErrDuplicate,
// ErrFull, ErrCrossed.
func (b *Book) Import(r book.LiveOrder) error {
	if err := book.CheckLiveOrder(&r); err != nil {
		return err
	}
	m := &order{Order: r.Order, open: r.Open, entered: r.EnteredSeq, waiting: r.Waiting, ending: reasonOf(r.Flags)}
	m.Flags &= book.FlagPostOnly | book.FlagQuote
	b.sweeping = b.sweeping || m.ending != event.ReasonNone
	reason, _ := b.enterRejectReason(m, 0)
	switch {
	case reason != event.ReasonNone:
	case !r.Waiting:
		reason, _ = b.restRejectReason(m)
	case isGathered(m) && b.gatheredSum(m.Side, m.Price)+m.open > book.MaxLevelQty:
		reason = event.ReasonLevelFull
	}
	switch reason {
	case event.ReasonDuplicateOrder:
		return fmt.Errorf("order %d: %w", r.ID, book.ErrDuplicate)
	case event.ReasonBookFull, event.ReasonLevelFull:
		return fmt.Errorf("order %d: %w", r.ID, book.ErrFull)
	}
	if r.Waiting {
		if isGathered(m) {
			b.gather(m)
		} else {
			b.insertStop(m)
		}
		b.live[m.ID] = m
		return nil
	}
	if b.crosses(m) {
		return fmt.Errorf("order %d: %w", r.ID, book.ErrCrossed)
	}
	b.rest(m)
	m.shown = r.Shown
	b.live[m.ID] = m
	return nil
}
