package demo

import (
	"math/rand/v2"
	"time"

	"blockdesk/engine/book"
	"blockdesk/market"
)

// SimulatedStep is the simulated time between two steps of a SimulatedDay: a minute has two trades of
// each instrument, so that no candle is absent.
const SimulatedStep = 30 * time.Second

// simulatedLevels is how many levels a side the maker quotes in simulated time. A taker's order
// seldom reaches the second.
const simulatedLevels = 5

// SimulatedDay makes the orders of the demo's bots in simulated time, by the same rules as theirs
// over FIX. Its random numbers are the same every time. One goroutine at a time.
type SimulatedDay struct {
	trader       *trader
	maker, taker market.ParticipantID
	ids          func() market.OrderID
}

// NewSimulatedDay returns the bots of these participants, on the instruments that they trade. ids
// returns the ids of orders.
func NewSimulatedDay(instruments []market.Instrument, maker, taker market.ParticipantID, ids func() market.OrderID) *SimulatedDay {
	t := newTrader(Maker, instruments)
	t.rng, t.prefix = rand.New(rand.NewPCG(24, 7)), "past-"
	return &SimulatedDay{t, maker, taker, ids}
}

// SimulatedOrder is an order of a step, with its client's id.
type SimulatedOrder struct {
	Instrument market.InstrumentID
	Ref        string
	book.Order
}

// Instruments returns how many instruments the bots trade.
func (p *SimulatedDay) Instruments() int { return len(p.trader.books) }

// Step moves the price of the n-th instrument and returns it with the maker's new orders and
// the taker's, which comes last. The maker's earlier orders are to be cancelled before.
func (p *SimulatedDay) Step(n int) (market.InstrumentID, []SimulatedOrder) {
	t, b := p.trader, p.trader.books[n]
	t.drift(b)
	var all []SimulatedOrder
	add := func(by market.ParticipantID, side market.Side, price, qty uint64, tif book.TIF) {
		all = append(all, SimulatedOrder{b.in.ID, t.newID(), book.Order{
			ID: p.ids(), Price: market.Price(price), Qty: market.Qty(min(qty, uint64(b.in.MaxQty))), Participant: by,
			Side: side, Type: book.Limit, TIF: tif, STP: book.STPCancelNewest,
		}})
	}
	for level := range simulatedLevels {
		for _, side := range [...]market.Side{market.Buy, market.Sell} {
			price, qty := t.offer(b, side, level)
			add(p.maker, side, price, qty, book.GTC)
		}
	}
	side, price, qty := t.cross(b)
	add(p.taker, side, price, qty, book.IOC)
	return b.in.ID, all
}
