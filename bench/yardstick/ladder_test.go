package yardstick

import (
	"math/rand/v2"
	"testing"

	"blockdesk/engine/book"
	"blockdesk/engine/book/naive"
	"blockdesk/engine/event"
	"blockdesk/market"
)

// The yardstick must do the same work as the book it is compared with, or the
// ratio means nothing.
func TestLadderTradesAsTheNaiveBook(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const prices = 1 << 14
	bare, ours := NewLadder(prices, 1<<16), naive.New(book.Options{MaxOrders: 1 << 16})
	out := event.NewGrowingSink(64)
	var ids []uint64
	var traded uint64
	for id := uint64(1); id <= 20_000; id++ {
		if len(ids) > 0 && rng.IntN(100) < 45 {
			k := rng.IntN(len(ids))
			bare.Cancel(ids[k])
			ours.Cancel(market.OrderID(ids[k]), 0, 0, id, out)
			ids[k] = ids[len(ids)-1]
			ids = ids[:len(ids)-1]
		} else {
			o := book.Order{
				ID: market.OrderID(id), Side: market.Side(1 + rng.IntN(2)), Type: book.Limit, TIF: book.GTC,
				Price: market.Price(1 + rng.IntN(prices-1)), Qty: market.Qty(1 + rng.IntN(100)), STP: book.STPCancelNewest,
			}
			if rng.IntN(8) > 0 {
				o.Price = market.Price(prices/2 + rng.IntN(40))
			}
			if rng.IntN(10) == 0 {
				o.TIF = book.IOC
			}
			bare.Add(id, o.Side == market.Buy, int32(o.Price), int64(o.Qty), o.TIF == book.IOC)
			ours.Submit(&o, 0, id, out)
			ids = append(ids, id)
		}
		for _, e := range out.Events() {
			if e.Kind == event.Traded {
				traded += uint64(e.Qty)
			}
		}
		out.Reset()
		bid, _ := ours.Best(market.Buy)
		ask, _ := ours.Best(market.Sell)
		if ask == 0 {
			ask = prices
		}
		gotBid, gotAsk := bare.bid, bare.ask // 0 and the number of prices stand for none
		if gotBid != int32(bid) || gotAsk != int32(ask) || bare.Traded != traded {
			t.Fatalf("after %d: best %d/%d, traded %d; naive has %d/%d, %d", id, gotBid, gotAsk, bare.Traded, bid, ask, traded)
		}
	}
	if traded == 0 {
		t.Fatal("nothing traded: the test proves nothing")
	}
}
