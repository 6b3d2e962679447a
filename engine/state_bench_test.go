package engine

import (
	"testing"

	"blockdesk/engine/event"
	"blockdesk/market"
)

// BenchmarkChecks measures what the engine adds to the book for a new order: admission,
// form and risk with every limit on.
func BenchmarkChecks(b *testing.B) {
	s := NewState(StateOptions{})
	in := testInstrument(0)
	c, err := DefineInstrumentCommand(&in)
	mustApply(b, s, c, err)
	const participants, orders = 50, 1024
	for participant := market.ParticipantID(1); participant <= participants; participant++ {
		c, err := SetRiskCommand(participant, AllInstruments, Limits{
			MaxQty: 100, MaxNotional: market.Uint128{Lo: 1_000_000}, MaxOpenOrders: 1000, BandBps: 9_000,
		})
		mustApply(b, s, c, err)
	}
	s.instruments[0].book.stored().SetLastTrade(100)
	list := make([]Command, orders)
	for i := range list {
		list[i] = testOrder(market.OrderID(i+1), market.ParticipantID(1+i*7%participants))
		list[i].Order.Price, list[i].Order.Qty = market.Price(50+i%100), market.Qty(1+i*13%100)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		c := &list[i%orders]
		in, participant, why, _ := s.admit(c)
		if why == event.ReasonNone {
			why, _ = checkShape(&c.Order, in, s.at)
		}
		if why == event.ReasonNone {
			why, _ = checkRisk(&c.Order, in, participant.limitsOn(c.Instrument))
		}
		if why != event.ReasonNone {
			b.Fatal(why)
		}
	}
}

// BenchmarkRefresh measures the largest refresh, in which every level of both sides changes.
func BenchmarkRefresh(b *testing.B) {
	s := mirroredState(b)
	var books [2][]Command
	for i := range books {
		book := largestBook()
		book.Instrument = 0
		for k := range book.Bids {
			book.Bids[k].Price -= market.Price(i)
			book.Asks[k].Price += market.Price(i)
		}
		books[i] = refreshCommands(b, book)
	}
	out := event.NewGrowingSink(1024)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		s.instruments[0].mirror.slot = 0
		out.Reset()
		for k := range books[i%2] {
			c := &books[i%2][k]
			c.Seq = s.seq + 1
			s.Apply(c, out)
		}
		if n := len(out.Events()); i > 0 && n != 4*MaxMirrorLevels+1 {
			b.Fatal(n, "events")
		}
	}
}
