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
