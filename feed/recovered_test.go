package feed

import (
	"testing"

	"blockdesk/engine/event"
	"blockdesk/engine/marketdata"
	"blockdesk/market"
)

// The recovered view is number 0 of the new epoch, not another number 1 of the old one:
// one number must never have two contents.
func TestRecoveredViewsAreOfTheNewEpoch(t *testing.T) {
	data := marketdata.New()
	order := restingOrder(2)
	data.Apply(&event.Event{Seq: 1, At: 1000, Kind: event.EpochStarted, Other: 7})
	data.Apply(&order)
	f, err := New(Options{Shards: 1}, instruments(), data, 8)
	if err != nil {
		t.Fatal(err)
	}
	for in := range market.InstrumentID(len(instruments())) {
		v := f.View(in)
		if v.Epoch != 8 || v.DepthSeq != 0 || v.TradesSeq != 0 || v.TickerSeq != 0 {
			t.Errorf("instrument %d: epoch %d, numbers %d, %d, %d", in, v.Epoch, v.DepthSeq, v.TradesSeq, v.TickerSeq)
		}
	}
	if v := f.View(0); len(v.Bids) != 1 {
		t.Errorf("the recovered book is %v", v.Bids)
	}
	f.apply([]event.Event{{Seq: 3, At: 3000, Kind: event.EpochStarted, Other: 8}})
	f.flush()
	if v := f.View(0); v.Epoch != 8 || v.DepthSeq != 1 || v.TradesSeq != 1 || v.TickerSeq != 1 || len(v.Bids) != 1 {
		t.Errorf("the epoch begins with %+v", v)
	}
}
