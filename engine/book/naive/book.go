// Package naive is the simple order book: two sorted slices of orders and two of stops,
// with every rule written as package book states it. It exists to check book/ladder, and
// to be used instead of it for a second opinion.
//
// Invariants:
//  1. Between two commands bids, asks, buyStops and sellStops are in canonical order and
//     hold each live order once, and so do gatheredBuys and gatheredSells.
//  2. live has exactly the orders of the six slices.
//  3. The best bid is below the best ask.
//
// Cost: every operation is linear in the orders of its side, and allocates.
// Limits: Options.MaxOrders, book.MaxLevelQty. Not for concurrent use.
package naive

import (
	"slices"

	"blockdesk/engine/book"
	"blockdesk/engine/event"
	"blockdesk/market"
)

// order is one live or new order. Order.Qty is the total, as amended.
type order struct {
	book.Order
	open    market.Qty   // neither traded, cancelled nor decremented
	shown   market.Qty   // displayed; 0 unless it rests
	entered uint64       // Seq that placed a waiting order
	waiting bool         // a stop outside the book, or gathered for an auction
	ending  event.Reason // of the mass cancel that ended it; 0 = none
	trigger market.Price
	least   market.Qty // must be able to trade at once; 0 = anything
}

// Book is one order book.
type Book struct {
	opt                         book.Options
	bids                        []*order
	asks                        []*order
	buyStops                    []*order
	sellStops                   []*order
	gatheredBuys, gatheredSells []*order // for an auction, in canonical order
	live                        map[market.OrderID]*order
	last                        market.Price
	sweeping                    bool // there may be ending orders

	// The current command.
	at  int64
	seq uint64
	out *event.Sink
	// The lowest and highest trade price of the active order; 0 = no trade.
	low, high market.Price
}

// New returns an empty book. It panics on invalid options.
func New(opt book.Options) *Book {
	if err := opt.Validate(); err != nil {
		panic(err)
	}
	return &Book{opt: opt.WithDefaults(), live: map[market.OrderID]*order{}}
}

func (b *Book) begin(at int64, seq uint64, out *event.Sink) {
	b.at, b.seq, b.out = at, seq, out
}

// Submit enters a new order: rule 2.
func (b *Book) Submit(o *book.Order, at int64, seq uint64, out *event.Sink) {
	b.begin(at, seq, out)
	n := newOrder(o)
	if reason, limit := b.rejectReason(n, 0); reason != event.ReasonNone {
		b.emit(event.Event{
			Kind: event.Rejected, OrderID: o.ID, Side: o.Side, Participant: o.Participant,
			Price: o.Price, Qty: o.Qty, Aux: limit, Code: uint16(reason),
		})
		return
	}
	accepted := event.Event{Kind: event.Accepted, Code: uint16(o.Type) | uint16(o.TIF)<<8}
	if isStop(n) {
		b.emitFor(n, accepted)
		b.live[n.ID] = n
		b.wait(n)
		return
	}
	quiet := !b.crosses(n) && mayRest(n)
	if quiet {
		accepted.Aux = int64(slice(n))
	}
	b.emitFor(n, accepted)
	b.live[n.ID] = n
	b.process(n, quiet)
	b.electAll(b.elect())
}

func newOrder(o *book.Order) *order {
	n := &order{Order: *o, open: o.Qty}
	if n.Flags&book.FlagMinQty != 0 {
		n.least, n.Display = n.Display, 0
	}
	n.Flags &= book.FlagPostOnly | book.FlagQuote
	return n
}

// Check returns why Submit would reject o if the book had more orders than it has, and the limit
// that o breaks. Like Submit it first takes out the ending orders that o meets.
func (b *Book) Check(o *book.Order, more int, at int64, seq uint64, out *event.Sink) (event.Reason, int64) {
	b.begin(at, seq, out)
	return b.rejectReason(newOrder(o), more)
}

func (b *Book) rejectReason(n *order, more int) (event.Reason, int64) {
	b.takeOut(b.live[n.ID])
	reason, limit := b.enterRejectReason(n, more)
	if reason == event.ReasonNone && !isStop(n) {
		b.clearTop(n)
		reason, limit = b.takerRejectReason(n)
	}
	return reason, limit
}

// enterRejectReason returns why a new order must be rejected whatever it meets, if the book had
// more orders than it has, and the limit that it breaks.
func (b *Book) enterRejectReason(n *order, more int) (event.Reason, int64) {
	if b.live[n.ID] != nil {
		return event.ReasonDuplicateOrder, 0
	}
	if book.TooManySlices(n.open, n.Display) {
		return event.ReasonInvalidDisplay, book.MaxSlices
	}
	if (isStop(n) || mayRest(n)) && len(b.live)+more >= b.opt.MaxOrders {
		return event.ReasonBookFull, int64(b.opt.MaxOrders)
	}
	return event.ReasonNone, 0
}

// takerRejectReason returns why a new order that is no stop must be rejected because of what
// it meets.
func (b *Book) takerRejectReason(n *order) (event.Reason, int64) {
	if reason, limit := b.restRejectReason(n); reason != event.ReasonNone {
		return reason, limit
	}
	if n.TIF == book.FOK {
		if q := b.fillable(n); q < n.open {
			return event.ReasonFOKUnfillable, int64(q)
		}
	}
	if n.least > 0 {
		if q := b.fillable(n); q < n.least {
			return event.ReasonMinQtyUnfillable, int64(q)
		}
	}
	return event.ReasonNone, 0
}

// restRejectReason returns whether the level of n is too full, or a post-only n would take.
// n must not be in the book.
func (b *Book) restRejectReason(n *order) (event.Reason, int64) {
	if mayRest(n) {
		sum := n.open
		for _, m := range *b.side(n.Side) {
			if m.Price == n.Price {
				sum += m.open
			}
		}
		if sum > book.MaxLevelQty {
			return event.ReasonLevelFull, int64(book.MaxLevelQty)
		}
	}
	if n.Flags&book.FlagPostOnly != 0 && b.crosses(n) {
		best, _ := b.Best(n.Side.Opposite())
		return event.ReasonPostOnly, int64(best)
	}
	return event.ReasonNone, 0
}

// fillable returns the quantity that n could trade at once, at most its open quantity: the
// last paragraph of rule 5.
func (b *Book) fillable(n *order) market.Qty {
	var sum market.Qty
	makers := b.standing(*b.side(n.Side.Opposite()))
	for i := 0; i < len(makers) && reaches(n, makers[i].Price) && sum < n.open; {
		level := levelFrom(makers, i)
		i += len(level)
		own := slices.IndexFunc(level, func(m *order) bool { return sameOwner(n, m) })
		if own >= 0 && n.STP != book.STPCancelOldest {
			for _, m := range level[:own] {
				sum += m.shown
			}
			break
		}
		for _, m := range level {
			if !sameOwner(n, m) {
				sum += m.open
			}
		}
	}
	return min(sum, n.open)
}

// levelFrom returns the orders of makers from i on that have the price of i.
func levelFrom(makers []*order, i int) []*order {
	end := i
	for end < len(makers) && makers[end].Price == makers[i].Price {
		end++
	}
	return makers[i:end]
}

// process matches an active order, then rests or cancels its remainder. quiet: the caller
// knows that n rests whole and has written its event.
func (b *Book) process(n *order, quiet bool) {
	b.match(n)
	switch {
	case n.open == 0:
		delete(b.live, n.ID)
	case !mayRest(n):
		b.cancelled(n, event.ReasonIOCRemainder)
		delete(b.live, n.ID)
	default:
		b.rest(n)
		if !quiet {
			b.emitFor(n, event.Event{Kind: event.Rested, Aux: int64(n.shown)})
		}
	}
}

// match trades n against the other side until nothing is in reach or n is used up (open 0).
func (b *Book) match(n *order) {
	makers := b.side(n.Side.Opposite())
	for n.open > 0 && len(*makers) > 0 && reaches(n, (*makers)[0].Price) {
		m := (*makers)[0]
		if b.takeOut(m) {
			continue
		}
		if sameOwner(n, m) {
			b.preventSelfTrade(n, m)
			continue
		}
		q := min(n.open, m.shown)
		n.open -= q
		m.open -= q
		m.shown -= q
		b.print(m.Price)
		*b.opt.Trades++
		b.emit(event.Event{
			Kind: event.Traded, OrderID: n.ID, Other: uint64(m.ID), Price: m.Price, Qty: q,
			Aux: int64(*b.opt.Trades), Side: n.Side, Participant: n.Participant, Code: uint16(m.Participant),
		})
		for _, o := range [...]*order{m, n} {
			if o.Flags&book.FlagQuote != 0 {
				*b.opt.Fills = append(*b.opt.Fills, book.QuoteFill{ID: o.ID, Qty: q, Participant: o.Participant, Instrument: b.opt.Instrument})
			}
		}
		if m.open == 0 {
			b.remove(m)
		} else {
			b.replenish(m)
		}
	}
}

// print records a trade at p.
func (b *Book) print(p market.Price) {
	b.last = p
	b.high = max(b.high, p)
	if b.low == 0 || p < b.low {
		b.low = p
	}
}

// replenish displays the next slice of an iceberg whose last one is used up.
func (b *Book) replenish(m *order) {
	if m.shown > 0 {
		return
	}
	b.unlink(m)
	b.rest(m)
	b.emitFor(m, event.Event{Kind: event.Replenished, Aux: int64(m.shown)})
}

// preventSelfTrade applies rule 5 to the taker n and the maker m.
func (b *Book) preventSelfTrade(n, m *order) {
	switch n.STP {
	case book.STPCancelNewest:
		b.cancelTaker(n)
	case book.STPCancelOldest:
		b.cancel(m, event.ReasonSelfTrade)
	case book.STPCancelBoth:
		b.cancel(m, event.ReasonSelfTrade)
		b.cancelTaker(n)
	case book.STPDecrement:
		b.decrement(n, m)
	default:
		panic("naive: order without a self-trade prevention mode")
	}
}

func (b *Book) cancelTaker(n *order) {
	b.cancelled(n, event.ReasonSelfTrade)
	n.open = 0
}

func (b *Book) decrement(n, m *order) {
	q := min(n.open, m.shown)
	if m.open == q {
		b.cancel(m, event.ReasonSelfTrade)
	} else {
		m.open -= q
		m.shown -= q
		b.emitFor(m, event.Event{Kind: event.Reduced, Aux: int64(q), Code: uint16(event.ReasonSelfTrade)})
		b.replenish(m)
	}
	if n.open == q {
		b.cancelTaker(n)
		return
	}
	n.open -= q
	b.emitFor(n, event.Event{Kind: event.Reduced, Code: uint16(event.ReasonSelfTrade)})
}

// Cancel cancels a live order: rule 8.
func (b *Book) Cancel(id market.OrderID, participant market.ParticipantID, at int64, seq uint64, out *event.Sink) {
	b.begin(at, seq, out)
	m := b.live[id]
	if m == nil || !mayChange(participant, m) {
		b.emit(event.Event{
			Kind: event.CancelRejected, OrderID: id, Participant: participant,
			Code: uint16(event.ReasonUnknownOrder),
		})
		return
	}
	if b.takeOut(m) {
		b.emit(event.Event{
			Kind: event.CancelRejected, OrderID: id, Participant: participant,
			Code: uint16(event.ReasonUnknownOrder),
		})
		return
	}
	b.cancel(m, event.ReasonUser)
}

// CancelFor cancels a live order for a reason of the engine's. It reports whether the order
// was live and not ending; if not, it writes nothing.
func (b *Book) CancelFor(id market.OrderID, reason event.Reason, at int64, seq uint64, out *event.Sink) bool {
	b.begin(at, seq, out)
	m := b.live[id]
	if m == nil || b.endReason(m) != event.ReasonNone {
		return false
	}
	b.cancel(m, reason)
	return true
}

// cancel cancels a live order that is in one of the six slices.
func (b *Book) cancel(m *order, reason event.Reason) {
	b.cancelled(m, reason)
	b.remove(m)
}

// MassCancel cancels the participant's orders (0 = everybody's) on side (0 = both) that are not
// ending by a mass cancel, in canonical order, and returns their number.
func (b *Book) MassCancel(participant market.ParticipantID, side market.Side, reason event.Reason, at int64, seq uint64, out *event.Sink) int {
	b.begin(at, seq, out)
	n := 0
	for _, m := range b.all() {
		if covers(participant, side, m) && m.ending == event.ReasonNone {
			b.cancel(m, reason)
			n++
		}
	}
	return n
}

// Expire cancels every order with ExpireAt <= at.
func (b *Book) Expire(at int64, seq uint64, out *event.Sink) {
	b.begin(at, seq, out)
	var due []*order
	for _, m := range b.all() {
		if m.ExpireAt > 0 && m.ExpireAt <= at {
			due = append(due, m)
		}
	}
	slices.SortFunc(due, func(x, y *order) int {
		if c := compare(x.ExpireAt, y.ExpireAt); c != 0 {
			return c
		}
		return compare(x.ID, y.ID)
	})
	for _, m := range due {
		b.cancel(m, event.ReasonExpired)
	}
}

func mayChange(participant market.ParticipantID, m *order) bool {
	return participant == 0 || participant == m.Participant
}

func sameOwner(n, m *order) bool { return n.Participant != 0 && n.Participant == m.Participant }

func isStop(n *order) bool { return n.Type == book.Stop || n.Type == book.StopLimit }

func mayRest(n *order) bool {
	return n.Type == book.Limit && n.TIF != book.IOC && n.TIF != book.FOK
}

// slice returns the quantity that n displays when it rests.
func slice(n *order) market.Qty {
	if n.Display == 0 {
		return n.open
	}
	return min(n.Display, n.open)
}

// reaches reports whether the active order n may trade at p.
func reaches(n *order, p market.Price) bool {
	return n.Type == book.Market || n.Side == market.Buy && p <= n.Price || n.Side == market.Sell && p >= n.Price
}

func (b *Book) crosses(n *order) bool {
	makers := *b.side(n.Side.Opposite())
	return len(makers) > 0 && reaches(n, makers[0].Price)
}
