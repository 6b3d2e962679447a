package book_test

import (
	"cmp"
	"fmt"
	"slices"

	"blockdesk/engine/book"
	"blockdesk/engine/event"
	"blockdesk/market"
)

// laws follows the events and checks the books against them: the sum of the L2 effects is
// the displayed book, and every lot of an order's total is open, traded, cancelled or
// decremented.
type laws struct {
	depth [3]map[market.Price]market.Qty
	left  map[market.OrderID]market.Qty // open, by the events
	ended map[market.OrderID]bool       // ending by a mass cancel
}

func newLaws() *laws {
	l := &laws{left: map[market.OrderID]market.Qty{}, ended: map[market.OrderID]bool{}}
	l.depth[market.Buy], l.depth[market.Sell] = map[market.Price]market.Qty{}, map[market.Price]market.Qty{}
	return l
}

// follow applies the events of one command.
func (l *laws) follow(o *op, events []event.Event) error {
	var fok, took market.Qty
	for i := range events {
		e := &events[i]
		l.effect(e)
		if err := l.conserve(e); err != nil {
			return err
		}
		if e.Kind == event.Accepted && o.order.TIF == book.FOK && (o.order.Type == book.Limit || o.order.Type == book.Market) {
			fok = o.order.Qty
		}
		if e.Kind == event.Traded && e.OrderID == o.order.ID {
			took += e.Qty
		}
	}
	if fok != 0 && took != fok {
		return fmt.Errorf("an accepted FOK of %d traded %d", fok, took)
	}
	return nil
}

// effect applies e's L2 column to the displayed book.
func (l *laws) effect(e *event.Event) {
	side, delta := e.Side, market.Qty(0)
	switch e.Kind {
	case event.Accepted, event.Rested, event.Amended, event.Replenished:
		delta = market.Qty(e.Aux)
	case event.Cancelled, event.Reduced, event.Unrested:
		delta = -market.Qty(e.Aux)
	case event.Traded:
		side, delta = e.Side.Opposite(), -e.Qty
	}
	if delta == 0 {
		return
	}
	levels := l.depth[side]
	if levels[e.Price] += delta; levels[e.Price] == 0 {
		delete(levels, e.Price)
	}
}

// conserve applies e to the open quantities of orders.
func (l *laws) conserve(e *event.Event) error {
	id := e.OrderID
	if l.ended[id] || (e.Kind == event.Traded || e.Kind == event.AuctionTraded) && l.ended[market.OrderID(e.Other)] {
		if reason := event.Reason(e.Code); e.Kind == event.Cancelled && (reason == event.ReasonMassCancel || reason == event.ReasonKilled || reason == event.ReasonExpired) {
			delete(l.ended, id)
		} else if e.Kind != event.CancelRejected && e.Kind != event.AmendRejected {
			return fmt.Errorf("order %d is ending and has event %d", id, e.Kind)
		}
	}
	switch e.Kind {
	case event.Accepted:
		if _, live := l.left[id]; live {
			return fmt.Errorf("order %d accepted twice", id)
		}
		l.left[id] = e.Qty
	case event.Traded, event.AuctionTraded:
		for _, id := range []market.OrderID{id, market.OrderID(e.Other)} {
			if l.left[id] -= e.Qty; l.left[id] < 0 {
				return fmt.Errorf("order %d traded more than it had", id)
			}
			if l.left[id] == 0 {
				delete(l.left, id)
			}
		}
	case event.Rested, event.Unrested, event.Replenished, event.Triggered, event.Cancelled:
		if l.left[id] != e.Qty {
			return fmt.Errorf("order %d: event %d says %d open, should be %d", id, e.Kind, e.Qty, l.left[id])
		}
		if e.Kind == event.Cancelled {
			delete(l.left, id)
		}
	case event.Reduced, event.Amended:
		if event.Reason(e.Code) == event.ReasonAuctionTrade && e.Kind == event.Reduced {
			if l.left[id] != e.Qty {
				return fmt.Errorf("order %d: %d open after an auction's trade, should be %d", id, e.Qty, l.left[id])
			}
			return nil
		}
		l.left[id] = e.Qty
	}
	return nil
}

// compareDepth compares the displayed book of the events with levels.
func (l *laws) compareDepth(s market.Side, levels []market.Level) error {
	var want []market.Level
	for p, q := range l.depth[s] {
		want = append(want, market.Level{Price: p, Qty: q})
	}
	slices.SortFunc(want, func(x, y market.Level) int {
		if s == market.Buy {
			return cmp.Compare(y.Price, x.Price)
		}
		return cmp.Compare(x.Price, y.Price)
	})
	if !slices.Equal(want, levels) {
		return fmt.Errorf("the events' depth of %v is %v, the book's %v", s, want, levels)
	}
	return nil
}

// compareExport compares the open quantities of the events with the live orders.
func (l *laws) compareExport(live []book.LiveOrder) error {
	if len(live) != len(l.left) {
		return fmt.Errorf("the events leave %d orders live, the book has %d", len(l.left), len(live))
	}
	for i := range live {
		if r := &live[i]; l.left[r.ID] != r.Open {
			return fmt.Errorf("order %d: %d open by the events, %d in the book", r.ID, l.left[r.ID], r.Open)
		}
		if err := book.CheckLiveOrder(&live[i]); err != nil {
			return err
		}
	}
	return nil
}
