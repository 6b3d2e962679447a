package auction

import (
	"testing"

	"blockdesk/market"
)

// TestPublishedPrices has the figures of published examples. Where the publisher has other
// rules after the least surplus, the difference is named.
func TestPublishedPrices(t *testing.T) {
	type levels = []market.Level
	const (
		asx = "https://cgi.cse.unsw.edu.au/~fethir/TradingEngineCourse/session3/Additional%20readings/appendix%20of%20additional%20reading.htm"
		grd = "https://docs-240.pages.dev/marketgrid/concepts/trading/matching-algorithms/auction"
		bnb = "https://github.com/bnb-chain/bnb-chain.github.io/blob/master/docs/beaconchain/match-examples.md"
		veg = "https://github.com/vegaprotocol/vega/blob/develop/integration/features/2952-opening-auction-uncrossing.feature"
		eur = "https://github.com/mattdavey/EuronextClone/blob/master/src/test/resources/com/euronextclone/indicative-market-price.feature"
	)
	stockX := levels{{Price: 640, Qty: 500}, {Price: 639, Qty: 1000}, {Price: 634, Qty: 1000}, {Price: 633, Qty: 500}}
	stockXAsks := levels{{Price: 610, Qty: 1000}, {Price: 640, Qty: 500}, {Price: 641, Qty: 520}, {Price: 642, Qty: 550}, {Price: 643, Qty: 519}}
	for _, c := range []struct {
		name, source string
		bids, asks   levels
		reference    market.Price
		want         Result
	}{
		{"stock X: buyers are left over, so the highest price", asx, stockX, stockXAsks, 0, Result{639, 1000, 500}},
		{"stock X with a reference, which ASX asks only after the pressure", asx, stockX, stockXAsks, 600, Result{635, 1000, 500}},
		{
			"the table", grd,
			levels{
				{Price: 13000, Qty: 45},
				{Price: 12900, Qty: 95},
				{Price: 12800, Qty: 25},
				{Price: 12700, Qty: 35},
				{Price: 12600, Qty: 25},
				{Price: 12500, Qty: 55},
				{Price: 12400, Qty: 200},
				{Price: 12300, Qty: 80},
				{Price: 12200, Qty: 60},
			},
			levels{
				{Price: 13100, Qty: 35},
				{Price: 13000, Qty: 50},
				{Price: 12900, Qty: 10},
				{Price: 12800, Qty: 15},
				{Price: 12700, Qty: 10},
				{Price: 12600, Qty: 20},
				{Price: 12500, Qty: 90},
				{Price: 12400, Qty: 155},
				{Price: 12300, Qty: 125},
				{Price: 12200, Qty: 10},
			},
			0,
			Result{12400, 290, 190},
		},
		{"1", bnb, levels{{Price: 100, Qty: 150}, {Price: 98, Qty: 150}}, levels{{Price: 98, Qty: 250}, {Price: 97, Qty: 50}}, 0, Result{98, 300, 0}},
		{
			"2", bnb,
			levels{{Price: 100, Qty: 150}, {Price: 99, Qty: 50}, {Price: 97, Qty: 300}},
			levels{{Price: 97, Qty: 200}, {Price: 96, Qty: 100}},
			0,
			Result{97, 300, 200},
		},
		{
			"3", bnb,
			levels{{Price: 102, Qty: 300}, {Price: 100, Qty: 100}, {Price: 99, Qty: 200}, {Price: 98, Qty: 300}},
			levels{{Price: 100, Qty: 100}, {Price: 99, Qty: 200}, {Price: 98, Qty: 250}, {Price: 97, Qty: 250}, {Price: 96, Qty: 1000}},
			0,
			Result{96, 900, -100},
		},
		{
			"4", bnb,
			levels{{Price: 102, Qty: 30}, {Price: 101, Qty: 10}, {Price: 99, Qty: 50}, {Price: 96, Qty: 15}},
			levels{{Price: 98, Qty: 10}, {Price: 97, Qty: 50}, {Price: 95, Qty: 50}},
			0,
			Result{97, 90, -10},
		},
		{"5.1", bnb, levels{{Price: 102, Qty: 10}, {Price: 97, Qty: 10}}, levels{{Price: 95, Qty: 50}}, 80, Result{95, 20, -30}},
		{"5.2", bnb, levels{{Price: 99, Qty: 10}, {Price: 94, Qty: 10}}, levels{{Price: 92, Qty: 50}}, 100, Result{94, 20, -30}},
		{"5.3: 95 there, 5 % from the reference because of the pressure", bnb, levels{{Price: 99, Qty: 100}}, levels{{Price: 92, Qty: 50}}, 90, Result{92, 50, 50}},
		{
			"5.4: 95 there, 5 % from the reference because of the pressure", bnb,
			levels{{Price: 101, Qty: 10}, {Price: 96, Qty: 10}},
			levels{{Price: 94, Qty: 50}},
			100,
			Result{96, 20, -30},
		},
		{"6.1", bnb, levels{{Price: 100, Qty: 25}, {Price: 97, Qty: 25}}, levels{{Price: 98, Qty: 25}, {Price: 95, Qty: 25}}, 99, Result{99, 25, -25}},
		{"6.2", bnb, levels{{Price: 100, Qty: 25}, {Price: 97, Qty: 25}}, levels{{Price: 98, Qty: 25}, {Price: 95, Qty: 25}}, 97, Result{97, 25, 25}},
		{"remaining volume", veg, levels{{Price: 10_000_000, Qty: 1}, {Price: 9_500_000, Qty: 1}}, levels{{Price: 10_000_000, Qty: 2}}, 100, Result{10_000_000, 1, -1}},
		{
			"a market order to buy, as the highest limit", eur,
			levels{{Price: 99_999, Qty: 80}},
			levels{{Price: 1002, Qty: 40}, {Price: 1004, Qty: 40}},
			1000,
			Result{1004, 80, 0},
		},
		{
			"a market order to sell, as the lowest limit", eur,
			levels{{Price: 998, Qty: 40}, {Price: 996, Qty: 40}},
			levels{{Price: 1, Qty: 80}},
			1000,
			Result{996, 80, 0},
		},
	} {
		var o orders
		o[market.Buy], o[market.Sell] = c.bids, c.asks
		if got := Find(o, c.reference); got != c.want {
			t.Errorf("%s of %s: %+v, want %+v", c.name, c.source, got, c.want)
		}
	}
}
