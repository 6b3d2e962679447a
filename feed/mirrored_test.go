package feed

import (
	"testing"

	"blockdesk/engine/event"
	"blockdesk/engine/marketdata"
	"blockdesk/market"
)

// viewCounter is a sink that records its calls.
type viewCounter struct {
	views  []*marketdata.View
	trades []marketdata.Trade
}

func (r *viewCounter) MarketUpdate(_, next *marketdata.View, trades []marketdata.Trade) {
	r.views = append(r.views, next)
	r.trades = append(r.trades, trades...)
}

// TestFarBehindInARefresh: if a slice is too long to publish batch by batch and ends
// within a refresh, no view shows a part of it. A refresh that only changes the slot has
// no sequence number.
func TestFarBehindInARefresh(t *testing.T) {
	seen := &viewCounter{}
	f, err := New(Options{Shards: 1}, instruments(), marketdata.New(), 1)
	if err != nil {
		t.Fatal(err)
	}
	f.Attach(seen)
	level := func(seq uint64, side market.Side, p market.Price, delta int64) event.Event {
		return event.Event{Seq: seq, At: int64(seq), Kind: event.MirrorLevel, Instrument: 1, Side: side, Price: p, Aux: delta}
	}
	mirrored := func(seq, slot uint64) event.Event {
		return event.Event{Seq: seq, At: int64(seq), Kind: event.Mirrored, Instrument: 1, Other: slot}
	}
	long := []event.Event{
		{Seq: 1, At: 1, Kind: event.EpochStarted, Other: 1},
		level(2, market.Buy, 100, 5), level(2, market.Sell, 102, 5), mirrored(2, 70),
		{Seq: 3, At: 3, Kind: event.MirrorTraded, Instrument: 1, OrderID: 2, Other: 9, Price: 101, Qty: 4, Aux: 6, Side: market.Sell},
	}
	for len(long) < catchUpEvents {
		long = append(long, event.Event{Seq: 4, At: 4, Kind: event.Rejected})
	}
	f.apply(append(long, level(5, market.Buy, 100, -5), level(5, market.Buy, 101, 5)))
	if v := f.View(1); v.Slot == 70 && len(v.Bids) == 1 && v.Bids[0].Price == 101 {
		t.Errorf("half a refresh: %+v", v)
	}
	f.apply([]event.Event{level(5, market.Sell, 102, 1), mirrored(5, 80)})
	f.flush()
	whole := f.View(1)
	if whole.Slot != 80 || whole.EngineSeq != 5 || whole.Bids[0] != (market.Level{Price: 101, Qty: 5}) || whole.Asks[0].Qty != 6 {
		t.Errorf("view %+v", whole)
	}
	f.apply([]event.Event{mirrored(6, 90)})
	f.flush()
	v := f.View(1)
	if v.Slot != 90 || v.At != 6 || v.DepthSeq != whole.DepthSeq || v.TradesSeq != whole.TradesSeq || v.TickerSeq != whole.TickerSeq {
		t.Errorf("view %+v after %+v", v, whole)
	}
	for _, v := range seen.views {
		if v.Instrument == 1 && v.Slot == 70 && v.Bids[0].Price != 100 {
			t.Errorf("half a refresh: %+v", v)
		}
	}
	want := marketdata.Trade{ID: 6, Seq: 3, At: 2, Price: 101, Qty: 4, Side: market.Sell, Ordinal: 9}
	if len(v.Trades) != 1 || v.Trades[0] != want {
		t.Errorf("trades %+v, want %+v", v.Trades, want)
	}
}
