package flow

import (
	"cmp"
	"slices"

	"blockdesk/market"
)

// Act is the kind of an Action.
type Act uint8

const (
	Rest    Act = 1 // a limit order that rests
	TakeIOC Act = 2 // an immediate-or-cancel order
	Shrink  Act = 3 // amend to a smaller open quantity, keeping its place
	Remove  Act = 4 // cancel
)

// Action is one order message to send.
type Action struct {
	Act   Act
	Order int // the planner's own number of the order, from 1
	Side  market.Side
	Price int64 // $ × 10,000
	Qty   int64 // Rest, TakeIOC: total; Shrink: the new open quantity
	// Total, for Shrink, is the new total: open plus what has traded.
	Total int64
}

// Planner turns recorded rows into order messages for a real book, which then
// chooses the makers itself: an execution is sent as an immediate-or-cancel
// order against the book.
//
// The planner supplies what the file does not have: the file shows only the best N
// levels, so a level that comes into that window from beyond it is placed from
// the row that shows it (Supplied counts such levels), and orders whose level
// leaves the window are removed, since what happens to them is no longer in the
// file. A row is unaided when nothing was supplied for it.
type Planner struct {
	sides    [2]map[int64][]*planned // by price: the queue, oldest first
	byID     map[int64]*planned      // recorded id → our order
	next     int
	out      []Action
	Supplied int
}

type planned struct {
	number      int
	id          int64 // recorded id; 0 = supplied
	side        market.Side
	price       int64
	open, total int64
}

// NewPlanner returns a planner with an empty book.
func NewPlanner() *Planner {
	return &Planner{sides: [2]map[int64][]*planned{{}, {}}, byID: map[int64]*planned{}}
}

// Start returns the actions that build the book of the first row.
func (p *Planner) Start(row *LobsterRow) []Action {
	p.out = p.out[:0]
	p.supply(market.Buy, row.Bids)
	p.supply(market.Sell, row.Asks)
	return p.out
}

// Step returns the actions of one row, given the row before it, and whether
// nothing had to be supplied. The slice is reused by the next call.
func (p *Planner) Step(before, row *LobsterRow) (actions []Action, unaided bool) {
	p.out = p.out[:0]
	supplied := p.Supplied
	m := &row.Message
	switch m.Type {
	case LobsterSubmit:
		p.place(m.Side, m.Price, m.Size, m.ID)
	case LobsterReduce, LobsterDelete:
		p.reduce(m)
	case LobsterExecute:
		p.take(m)
	}
	p.window(market.Buy, before.Bids, row.Bids, m)
	p.window(market.Sell, before.Asks, row.Asks, m)
	return p.out, p.Supplied == supplied
}

func (p *Planner) queues(s market.Side) map[int64][]*planned { return p.sides[s-1] }

func (p *Planner) place(side market.Side, price, size, id int64) {
	p.next++
	o := &planned{number: p.next, id: id, side: side, price: price, open: size, total: size}
	if id != 0 {
		p.byID[id] = o
	}
	q := p.queues(side)
	q[price] = append(q[price], o)
	p.out = append(p.out, Action{Act: Rest, Order: o.number, Side: side, Price: price, Qty: size})
}

// reduce takes m.Size from the level: from the order that the message names,
// then, because the book may have chosen other makers than the venue did, from
// the back of the queue.
func (p *Planner) reduce(m *LobsterMessage) {
	left := m.Size
	if o := p.byID[m.ID]; o != nil {
		left -= p.shrink(o, left)
	}
	for left > 0 {
		queue := p.queues(m.Side)[m.Price]
		if len(queue) == 0 {
			return
		}
		left -= p.shrink(queue[len(queue)-1], left)
	}
}

func (p *Planner) shrink(o *planned, by int64) int64 {
	if by >= o.open {
		by = o.open
		p.out = append(p.out, Action{Act: Remove, Order: o.number, Side: o.side, Price: o.price})
		p.forget(o)
		return by
	}
	o.open -= by
	o.total -= by
	p.out = append(p.out, Action{Act: Shrink, Order: o.number, Side: o.side, Price: o.price, Qty: o.open, Total: o.total})
	return by
}

func (p *Planner) forget(o *planned) {
	delete(p.byID, o.id)
	q := p.queues(o.side)
	q[o.price] = slices.DeleteFunc(q[o.price], func(x *planned) bool { return x == o })
	if len(q[o.price]) == 0 {
		delete(q, o.price)
	}
}

// take sends the execution and predicts what the book does: best price first,
// oldest first.
func (p *Planner) take(m *LobsterMessage) {
	p.next++
	p.out = append(p.out, Action{Act: TakeIOC, Order: p.next, Side: m.Side.Opposite(), Price: m.Price, Qty: m.Size})
	levels := p.queues(m.Side)
	for left := m.Size; left > 0; {
		best, found := int64(0), false
		for price := range levels {
			if !found || better(m.Side, price, best) {
				best, found = price, true
			}
		}
		if !found || better(m.Side, m.Price, best) {
			return
		}
		o := levels[best][0]
		traded := min(left, o.open)
		left -= traded
		if o.open -= traded; o.open == 0 {
			p.forget(o)
		}
	}
}

// better reports whether a is a strictly better resting price than b.
func better(side market.Side, a, b int64) bool {
	if side == market.Buy {
		return a > b
	}
	return a < b
}

// window supplies the levels that came into the recorded window and removes
// what left it.
func (p *Planner) window(side market.Side, before, now []LobsterLevel, m *LobsterMessage) {
	var leaving []*planned
	shows := func(price int64) bool {
		return slices.ContainsFunc(now, func(l LobsterLevel) bool { return l.Price == price })
	}
	for price, queue := range p.queues(side) {
		beyondNow := len(now) > 0 && better(side, now[len(now)-1].Price, price)
		beyondBefore := len(before) > 0 && better(side, before[len(before)-1].Price, price)
		if beyondNow || beyondBefore && !shows(price) {
			leaving = append(leaving, queue...)
		}
	}
	// Map order must not decide the order of messages.
	slices.SortFunc(leaving, func(a, b *planned) int { return cmp.Compare(a.number, b.number) })
	for _, o := range leaving {
		p.shrink(o, o.open)
	}
	var entering []LobsterLevel
	for _, l := range now {
		came := len(before) == 0 || better(side, before[len(before)-1].Price, l.Price)
		own := m.Type == LobsterSubmit && m.Side == side && m.Price == l.Price
		if came && !own {
			entering = append(entering, l)
		}
	}
	p.supply(side, entering)
}

func (p *Planner) supply(side market.Side, levels []LobsterLevel) {
	for _, l := range levels {
		open := int64(0)
		for _, o := range p.queues(side)[l.Price] {
			open += o.open
		}
		if open == l.Size {
			continue
		}
		for _, o := range slices.Clone(p.queues(side)[l.Price]) {
			p.shrink(o, o.open)
		}
		p.Supplied++
		p.place(side, l.Price, l.Size, 0)
	}
}
