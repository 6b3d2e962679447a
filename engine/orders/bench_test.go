package orders_test

import (
	"testing"

	"blockdesk/engine/event"
	"blockdesk/engine/orders"
	"blockdesk/market"
)

// BenchmarkBook: an order comes and another one goes, beside 10,000 others.
func BenchmarkBook(b *testing.B) {
	var book orders.Book
	const live = 10_000
	price := func(id market.OrderID) market.Price { return 1000 + market.Price(id*7919%100) }
	for id := market.OrderID(1); id <= live; id++ {
		book.Add(market.Buy, orders.Order{ID: id, Price: price(id), Qty: 5})
	}
	b.ReportAllocs()
	id := market.OrderID(live)
	for b.Loop() {
		id++
		book.Apply(&event.Event{Kind: event.Accepted, OrderID: id, Side: market.Buy, Price: price(id), Aux: 5})
		book.Apply(&event.Event{Kind: event.Cancelled, OrderID: id - live, Side: market.Buy, Price: price(id - live), Aux: 5})
	}
}
