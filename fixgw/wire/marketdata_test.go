package wire

import (
	"strings"
	"testing"

	"blockdesk/engine/marketdata"
	"blockdesk/market"
)

// TestAuctionEntries: what a subscriber sees of an auction from its call to its end, in
// snapshots and increments, and that one who has not asked for it sees nothing.
func TestAuctionEntries(t *testing.T) {
	t.Parallel()
	in := &market.Instrument{Symbol: "A/USD", Tick: 1, Lot: 1, PriceDecimals: 2, QtyDecimals: 1}
	all := BookFormat{Instrument: in, Depth: 1, Kinds: KindBid | KindOpening | KindImbalance}
	view := func(a marketdata.Auction) *marketdata.View { return &marketdata.View{Auction: a} }
	steps := []struct {
		auction             marketdata.Auction
		snapshot, increment string
	}{
		{
			marketdata.Auction{Price: 102, Volume: 80, Imbalance: 20},
			"268=2|269=4|270=1.02|271=8.0|286=5|269=A|271=2.0|277=P",
			"268=2|279=0|269=4|55=A/USD|270=1.02|271=8.0|286=5|279=0|269=A|55=A/USD|271=2.0|277=P",
		},
		{
			marketdata.Auction{Price: 102, Volume: 100, Imbalance: -5},
			"268=2|269=4|270=1.02|271=10.0|286=5|269=A|271=0.5|277=Q",
			"268=2|279=1|269=4|55=A/USD|270=1.02|271=10.0|286=5|279=1|269=A|55=A/USD|271=0.5|277=Q",
		},
		{
			marketdata.Auction{Price: 103, Volume: 100},
			"268=1|269=4|270=1.03|271=10.0|286=5",
			"268=2|279=1|269=4|55=A/USD|270=1.03|271=10.0|286=5|279=2|269=A|55=A/USD",
		},
		{marketdata.Auction{Price: 103, Volume: 100, Until: 7, Uncrossing: true}, "268=1|269=4|270=1.03|271=10.0|286=5", ""},
		{marketdata.Auction{}, "268=0", "268=1|279=2|269=4|55=A/USD|286=5"},
	}
	prev := view(marketdata.Auction{})
	for i, step := range steps {
		next := view(step.auction)
		if got := bars(all.AppendSnapshot(nil, next)); got != "|55=A/USD|"+step.snapshot {
			t.Errorf("step %d: snapshot %s, want %s", i, got, step.snapshot)
		}
		body, n := all.AppendIncrement(nil, prev, next, nil)
		if got := strings.TrimPrefix(bars(body), "|"); n > 0 && got != step.increment || (n == 0) != (step.increment == "") {
			t.Errorf("step %d: %d entries in %s, want %s", i, n, got, step.increment)
		}
		levels := BookFormat{Instrument: in, Depth: 1, Kinds: KindBid | KindOffer | KindTrade}
		if _, n := levels.AppendIncrement(nil, prev, next, nil); n != 0 || !strings.HasSuffix(bars(levels.AppendSnapshot(nil, next)), "|268=0") {
			t.Errorf("step %d: a subscriber of the levels sees the auction", i)
		}
		prev = next
	}
}

func bars(b []byte) string { return strings.ReplaceAll(string(b), "\x01", "|") }
