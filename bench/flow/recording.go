package flow

import (
	"math/rand/v2"
	"slices"
	"time"

	"blockdesk/engine/book"
	"blockdesk/engine/book/naive"
	"blockdesk/engine/event"
	"blockdesk/market"
)

// recorder makes a recorded flow of our own: random orders on a hidden full
// book, of which the rows show the best levels only, as a venue's file does.
type recorder struct {
	rng    *rand.Rand
	book   *naive.Book
	out    *event.Sink
	levels []market.Level
	orders map[int64]recordedOrder
	ids    []int64 // of orders, some already gone
	next   int64
}

type recordedOrder struct {
	side  market.Side
	price int64
	open  int64
}

// A recording of our own begins with the trading day and has a row at regular
// times: 36,000 of them are an hour.
const (
	opening = 9*time.Hour + 30*time.Minute
	between = 100 * time.Millisecond
)

// NewLobster makes rows of a flow in LOBSTER's terms, the same for the same
// seed: for tests where no recorded file is at hand.
func NewLobster(seed uint64, rows, levels int) []LobsterRow {
	r := &recorder{
		rng: rand.New(rand.NewPCG(seed, 0)), book: naive.New(book.Options{MaxOrders: 1 << 16}), out: event.NewGrowingSink(64),
		levels: make([]market.Level, 0, levels), orders: map[int64]recordedOrder{},
	}
	result := make([]LobsterRow, 0, rows)
	bids, asks := r.top(market.Buy), r.top(market.Sell)
	for len(result) < rows {
		m := r.act()
		r.out.Reset()
		newBids, newAsks := r.top(market.Buy), r.top(market.Sell)
		// A venue's file has only the messages that change its window.
		if !slices.Equal(bids, newBids) || !slices.Equal(asks, newAsks) {
			m.At = opening + time.Duration(len(result))*between
			result = append(result, LobsterRow{Message: m, Bids: newBids, Asks: newAsks})
		}
		bids, asks = newBids, newAsks
	}
	return result
}

func (r *recorder) top(side market.Side) []LobsterLevel {
	var out []LobsterLevel
	for _, l := range r.book.Depth(side, r.levels[:0]) {
		out = append(out, LobsterLevel{int64(l.Price), int64(l.Qty)})
	}
	return out
}

// act does one thing to the book and returns its message.
func (r *recorder) act() LobsterMessage {
	r.next++
	pick := r.rng.IntN(10)
	switch {
	case pick < 6 || len(r.ids) < 60:
		return r.submit()
	case pick < 9:
		return r.remove()
	default:
		return r.execute()
	}
}

func (r *recorder) send(o book.Order) {
	o.ID, o.Type, o.STP = market.OrderID(r.next), book.Limit, book.STPCancelNewest
	r.book.Submit(&o, 0, uint64(r.next), r.out)
}

func (r *recorder) submit() LobsterMessage {
	const middle, width = 10_000, 30
	m := LobsterMessage{
		Type: LobsterSubmit, ID: r.next, Side: market.Side(1 + r.rng.IntN(2)), Size: int64(1 + r.rng.IntN(300)),
		Price: (middle - int64(1+r.rng.IntN(width))) * 100,
	}
	if m.Side == market.Sell {
		m.Price = 2*middle*100 - m.Price
	}
	r.send(book.Order{Side: m.Side, TIF: book.GTC, Price: market.Price(m.Price), Qty: market.Qty(m.Size)})
	r.orders[m.ID] = recordedOrder{m.Side, m.Price, m.Size}
	r.ids = append(r.ids, m.ID)
	return m
}

func (r *recorder) remove() LobsterMessage {
	k := r.rng.IntN(len(r.ids))
	id := r.ids[k]
	r.ids[k] = r.ids[len(r.ids)-1]
	r.ids = r.ids[:len(r.ids)-1]
	o, ok := r.orders[id]
	if !ok {
		return LobsterMessage{} // executed before; changes nothing, so it is not recorded
	}
	delete(r.orders, id)
	r.book.Cancel(market.OrderID(id), 0, 0, uint64(r.next), r.out)
	return LobsterMessage{Type: LobsterDelete, ID: id, Side: o.side, Size: o.open, Price: o.price}
}

// execute takes from the first order of a side, no more than it has: a venue
// records one row a maker.
func (r *recorder) execute() LobsterMessage {
	side, head := market.Side(1+r.rng.IntN(2)), int64(0)
	r.book.Export(func(o book.LiveOrder) {
		if head == 0 && o.Side == side {
			head = int64(o.ID)
		}
	})
	o, ok := r.orders[head]
	if !ok {
		return LobsterMessage{}
	}
	m := LobsterMessage{Type: LobsterExecute, ID: head, Side: side, Size: min(int64(1+r.rng.IntN(300)), o.open), Price: o.price}
	r.send(book.Order{Side: side.Opposite(), TIF: book.IOC, Price: market.Price(m.Price), Qty: market.Qty(m.Size)})
	if o.open -= m.Size; o.open == 0 {
		delete(r.orders, head)
	} else {
		r.orders[head] = o
	}
	return m
}
