package naive

import (
	"blockdesk/engine/book"
	"blockdesk/engine/event"
	"blockdesk/market"
)

// wait puts the stop n behind its equals, or triggers it at once if the last trade
// satisfies it.
func (b *Book) wait(n *order) {
	if b.last != 0 && satisfied(n, b.last, b.last) {
		n.trigger = b.last
		b.electAll([]*order{n})
		return
	}
	b.park(n)
}

// park puts the stop n behind its equals.
func (b *Book) park(n *order) {
	n.waiting, n.entered = true, b.seq
	b.insertStop(n)
}

// satisfied reports whether trades from low to high trigger n.
func satisfied(n *order, low, high market.Price) bool {
	if n.Side == market.Buy {
		return high >= n.Stop
	}
	return low <= n.Stop
}

// elect removes and returns the stops that the last active order's trades triggered, in the
// order of rule 6.
func (b *Book) elect() []*order {
	low, high := b.low, b.high
	b.low, b.high = 0, 0
	if high == 0 {
		return nil
	}
	var elected []*order
	for len(b.buyStops) > 0 && satisfied(b.buyStops[0], low, high) {
		b.buyStops[0].trigger = high
		elected = append(elected, b.buyStops[0])
		b.buyStops = b.buyStops[1:]
	}
	for len(b.sellStops) > 0 && satisfied(b.sellStops[0], low, high) {
		b.sellStops[0].trigger = low
		elected = append(elected, b.sellStops[0])
		b.sellStops = b.sellStops[1:]
	}
	return elected
}

// electAll processes triggered stops, FIFO, with all that they trigger in turn.
func (b *Book) electAll(fifo []*order) {
	for len(fifo) > 0 {
		n := fifo[0]
		fifo = fifo[1:]
		b.activate(n)
		fifo = append(fifo, b.elect()...)
	}
}

// activate turns a triggered stop into a market or limit order and processes it.
func (b *Book) activate(n *order) {
	if reason := b.endReason(n); reason != event.ReasonNone {
		b.cancelled(n, reason)
		delete(b.live, n.ID)
		return
	}
	b.emitFor(n, event.Event{Kind: event.Triggered, Aux: int64(n.trigger)})
	n.waiting, n.entered, n.Stop, n.trigger = false, 0, 0, 0
	if n.Type == book.Stop {
		n.Type = book.Market
	} else {
		n.Type = book.Limit
	}
	b.clearTop(n)
	reason, _ := b.restRejectReason(n)
	if reason == event.ReasonNone && n.TIF == book.FOK && b.fillable(n) < n.open {
		reason = event.ReasonFOK
	}
	if reason != event.ReasonNone {
		b.cancelled(n, reason)
		delete(b.live, n.ID)
		return
	}
	b.process(n, false)
}

// insertStop puts n behind all stops that precede it or are its equals.
func (b *Book) insertStop(n *order) {
	stops := b.stops(n.Side)
	at := 0
	for at < len(*stops) {
		s := (*stops)[at].Stop
		if n.Side == market.Buy && s > n.Stop || n.Side == market.Sell && s < n.Stop {
			break
		}
		at++
	}
	insert(stops, at, n)
}

func (b *Book) gathered(s market.Side) *[]*order {
	if s == market.Buy {
		return &b.gatheredBuys
	}
	return &b.gatheredSells
}

// isGathered reports whether m waits for an auction.
func isGathered(m *order) bool { return m.waiting && m.Type == book.Limit }

func (b *Book) gather(m *order) { insertByPrice(b.gathered(m.Side), m) }

// gatheredSum returns what counts for MaxLevelQty when an order at p is gathered: all gathered
// orders of the side, and what rests at p, on either side.
func (b *Book) gatheredSum(s market.Side, p market.Price) market.Qty {
	sum := b.Gathered(s)
	for _, orders := range [...][]*order{b.bids, b.asks} {
		for _, m := range orders {
			if m.Price == p {
				sum += m.open
			}
		}
	}
	return sum
}

// Gathered returns the open quantity of the gathered orders of a side.
func (b *Book) Gathered(side market.Side) market.Qty {
	var sum market.Qty
	for _, m := range *b.gathered(side) {
		sum += m.open
	}
	return sum
}

// Gather enters a new order in a call: rule 11.
func (b *Book) Gather(o *book.Order, at int64, seq uint64, out *event.Sink) {
	b.begin(at, seq, out)
	n := &order{Order: *o, open: o.Qty}
	n.Flags &= book.FlagPostOnly | book.FlagQuote
	b.takeOut(b.live[n.ID])
	reason, limit := b.enterRejectReason(n, 0)
	if reason == event.ReasonNone && !isStop(n) && b.gatheredSum(n.Side, n.Price)+n.open > book.MaxLevelQty {
		reason, limit = event.ReasonLevelFull, int64(book.MaxLevelQty)
	}
	if reason != event.ReasonNone {
		b.emit(event.Event{
			Kind: event.Rejected, OrderID: o.ID, Side: o.Side, Participant: o.Participant,
			Price: o.Price, Qty: o.Qty, Aux: limit, Code: uint16(reason),
		})
		return
	}
	b.emitFor(n, event.Event{Kind: event.Accepted, Code: uint16(o.Type) | uint16(o.TIF)<<8})
	b.live[n.ID] = n
	if isStop(n) {
		b.park(n)
		return
	}
	n.waiting, n.entered = true, b.seq
	b.gather(n)
}

// regather gives a resting or gathered order new terms and the last place among the gathered.
func (b *Book) regather(m *order, o *book.Order, open market.Qty) {
	p := m.Price
	if o.Price != 0 {
		p = o.Price
	}
	sum := b.gatheredSum(m.Side, p) + open
	if m.waiting || p == m.Price {
		sum -= m.open
	}
	switch {
	case m.Flags&book.FlagPostOnly != 0:
		b.amendRejected(o, m.Side, m.Participant, event.ReasonAuction, 0)
		return
	case sum > book.MaxLevelQty:
		b.amendRejected(o, m.Side, m.Participant, event.ReasonLevelFull, int64(book.MaxLevelQty))
		return
	}
	if !m.waiting {
		b.emitFor(m, event.Event{Kind: event.Unrested, Aux: int64(m.shown)})
	}
	b.unlink(m)
	m.Order = o.Amended(m.Order)
	setOpen(m, open)
	m.Price, m.shown, m.waiting, m.entered = p, 0, true, b.seq
	b.emitFor(m, event.Event{Kind: event.Amended})
	b.gather(m)
}

// NextLevel returns the best price of a side behind after (0 = the best of all) and the open
// quantity there of resting and gathered orders that are not ending; 0, 0 = none.
func (b *Book) NextLevel(side market.Side, after market.Price) (market.Price, market.Qty) {
	var p market.Price
	var q market.Qty
	for _, orders := range [...][]*order{*b.side(side), *b.gathered(side)} {
		for _, m := range orders {
			if after != 0 && !better(side, after, m.Price) {
				continue
			}
			if p == 0 || better(side, m.Price, p) {
				p, q = m.Price, 0
			}
			if m.Price == p && b.endReason(m) == event.ReasonNone {
				q += m.open
			}
		}
	}
	return p, q
}

// better reports whether p is a better price than q for an order of the side.
func better(side market.Side, p, q market.Price) bool {
	return side == market.Buy && p > q || side == market.Sell && p < q
}

// Uncross trades up to n pairs of orders at price: rule 12. It returns their number; if it is
// less than n, no pair is left.
func (b *Book) Uncross(price market.Price, n int, at int64, seq uint64, out *event.Sink) int {
	b.begin(at, seq, out)
	for done := range n {
		bid, ask := b.first(market.Buy, price), b.first(market.Sell, price)
		if bid == nil || ask == nil {
			return done
		}
		younger, older := ask, bid
		if !ask.waiting || bid.waiting && bid.entered > ask.entered {
			younger, older = bid, ask
		}
		b.meet(younger, older, price)
	}
	return n
}

// first returns the first order of a side that may trade at price, or nil. A resting order
// is older than the gathered ones of its price.
func (b *Book) first(s market.Side, price market.Price) *order {
	var m *order
	for _, orders := range [...][]*order{*b.side(s), *b.gathered(s)} {
		if len(orders) > 0 && (m == nil || better(s, orders[0].Price, m.Price)) {
			m = orders[0]
		}
	}
	if m == nil || better(s, price, m.Price) {
		return nil
	}
	return m
}

// tradable returns what m may trade at once: a resting iceberg only its shown part.
func tradable(m *order) market.Qty {
	if m.waiting {
		return m.open
	}
	return m.shown
}

// meet trades the gathered order younger with older at price, or prevents it because both
// are of one participant.
func (b *Book) meet(younger, older *order, price market.Price) {
	q := min(younger.open, tradable(older))
	if sameOwner(younger, older) {
		switch younger.STP {
		case book.STPCancelNewest:
			b.cancel(younger, event.ReasonSelfTrade)
		case book.STPCancelOldest:
			b.cancel(older, event.ReasonSelfTrade)
		case book.STPCancelBoth:
			b.cancel(older, event.ReasonSelfTrade)
			b.cancel(younger, event.ReasonSelfTrade)
		default:
			b.lose(older, q)
			b.lose(younger, q)
		}
		return
	}
	b.last = price
	*b.opt.Trades++
	b.emit(event.Event{
		Kind: event.AuctionTraded, OrderID: younger.ID, Other: uint64(older.ID), Price: price, Qty: q,
		Aux: int64(*b.opt.Trades), Side: younger.Side, Participant: younger.Participant, Code: uint16(older.Participant),
	})
	for _, m := range [...]*order{older, younger} {
		if m.Flags&book.FlagQuote != 0 {
			*b.opt.Fills = append(*b.opt.Fills, book.QuoteFill{ID: m.ID, Qty: q, Participant: m.Participant, Instrument: b.opt.Instrument})
		}
		b.spend(m, q, event.ReasonAuctionTrade)
	}
}

// lose takes q from m for self-trade prevention.
func (b *Book) lose(m *order, q market.Qty) {
	if m.open == q {
		b.cancel(m, event.ReasonSelfTrade)
		return
	}
	b.spend(m, q, event.ReasonSelfTrade)
}

// spend takes q from m. A Reduced has the quantity that a resting order no longer displays, or
// that a gathered one loses without a trade.
func (b *Book) spend(m *order, q market.Qty, reason event.Reason) {
	m.open -= q
	reduced := event.Event{Kind: event.Reduced, Code: uint16(reason)}
	if !m.waiting {
		m.shown -= q
		reduced.Aux = int64(q)
	}
	if !m.waiting || reason == event.ReasonSelfTrade {
		b.emitFor(m, reduced)
	}
	switch {
	case m.open == 0:
		b.remove(m)
	case !m.waiting:
		b.replenish(m)
	}
}

// Release rests up to n gathered orders: rule 12. It returns their number; if it is less than
// n, none is left.
func (b *Book) Release(n int, at int64, seq uint64, out *event.Sink) int {
	b.begin(at, seq, out)
	done := 0
	for s := market.Buy; s <= market.Sell; s++ {
		for orders := b.gathered(s); done < n && len(*orders) > 0; done++ {
			m := (*orders)[0]
			b.unlink(m)
			m.waiting, m.entered = false, 0
			b.rest(m)
			b.emitFor(m, event.Event{Kind: event.Rested, Aux: int64(m.shown)})
		}
	}
	return done
}

// Elect triggers the stops that the last trade satisfies: the end of an auction.
func (b *Book) Elect(at int64, seq uint64, out *event.Sink) {
	b.begin(at, seq, out)
	if b.last != 0 {
		b.print(b.last)
		b.electAll(b.elect())
	}
}
