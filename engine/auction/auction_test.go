package auction

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"blockdesk/market"
)

// orders are limit orders of both sides.
type orders [3][]market.Level

func (o orders) NextLevel(side market.Side, after market.Price) (market.Price, market.Qty) {
	var p market.Price
	var q market.Qty
	for _, l := range o[side] {
		switch {
		case after != 0 && (side == market.Buy && l.Price >= after || side == market.Sell && l.Price <= after):
		case p == 0 || side == market.Buy && l.Price > p || side == market.Sell && l.Price < p:
			p, q = l.Price, l.Qty
		case l.Price == p:
			q += l.Qty
		}
	}
	return p, q
}

// at returns what is executable at p, and the imbalance.
func (o orders) at(p market.Price) (volume, imbalance market.Qty) {
	var bids, asks market.Qty
	for _, l := range o[market.Buy] {
		if l.Price >= p {
			bids += l.Qty
		}
	}
	for _, l := range o[market.Sell] {
		if l.Price <= p {
			asks += l.Qty
		}
	}
	return min(bids, asks), bids - asks
}

func abs[T market.Price | market.Qty](x T) T { return max(x, -x) }

// obvious tries every price up to highest.
func obvious(o orders, highest, reference market.Price) Result {
	var all []Result
	for p := market.Price(1); p <= highest; p++ {
		if v, i := o.at(p); v > 0 {
			all = append(all, Result{p, v, i})
		}
	}
	if len(all) == 0 {
		return Result{}
	}
	slices.SortStableFunc(all, func(x, y Result) int {
		return cmp.Or(cmp.Compare(y.Volume, x.Volume), cmp.Compare(abs(x.Imbalance), abs(y.Imbalance)))
	})
	n := 0
	for n < len(all) && all[n].Volume == all[0].Volume && abs(all[n].Imbalance) == abs(all[0].Imbalance) {
		n++
	}
	all = all[:n] // by price
	if reference != 0 {
		return slices.MinFunc(all, func(x, y Result) int { return cmp.Compare(abs(x.Price-reference), abs(y.Price-reference)) })
	}
	low, high := all[0], all[n-1]
	switch {
	case low.Imbalance == 0:
		return all[(n-1)/2]
	case high.Imbalance > 0:
		return high
	}
	return low
}

// TestFindIsTheObviousPrice compares Find with a trial of every price.
func TestFindIsTheObviousPrice(t *testing.T) {
	const highest = 30
	rapid.Check(t, func(t *rapid.T) {
		level := rapid.Custom(func(t *rapid.T) market.Level {
			return market.Level{Price: market.Price(rapid.IntRange(1, highest).Draw(t, "price")), Qty: market.Qty(rapid.IntRange(1, 5).Draw(t, "qty"))}
		})
		var o orders
		o[market.Buy] = rapid.SliceOfN(level, 0, 12).Draw(t, "bids")
		o[market.Sell] = rapid.SliceOfN(level, 0, 12).Draw(t, "asks")
		reference := market.Price(rapid.IntRange(0, highest+5).Draw(t, "reference"))
		want := obvious(o, highest, reference)
		if got := Find(o, reference); got != want {
			t.Fatalf("Find(%v, %d) = %+v, want %+v", o, reference, got, want)
		}
	})
}

// TestSearchInSlices: slices of any size find what Find does while nothing changes; and if
// levels change between them, the price is still between a bid and an ask that were read,
// and a snapshot accepts each state on the way.
func TestSearchInSlices(t *testing.T) {
	const highest = 30
	rapid.Check(t, func(t *rapid.T) {
		level := rapid.Custom(func(t *rapid.T) market.Level {
			return market.Level{Price: market.Price(rapid.IntRange(1, highest).Draw(t, "price")), Qty: market.Qty(rapid.IntRange(1, 5).Draw(t, "qty"))}
		})
		draw := func() (o orders) {
			o[market.Buy] = rapid.SliceOfN(level, 0, 12).Draw(t, "bids")
			o[market.Sell] = rapid.SliceOfN(level, 0, 12).Draw(t, "asks")
			return o
		}
		o, reference, n := draw(), market.Price(rapid.IntRange(0, highest+5).Draw(t, "reference")), rapid.IntRange(1, 5).Draw(t, "slice")
		var s Search
		for s.Step(o, n) == 0 {
		}
		if got, want := s.Result(o, reference), Find(o, reference); got != want {
			t.Fatalf("slices of %d find %+v, want %+v", n, got, want)
		}
		s = Search{}
		for s.Step(o, n) == 0 {
			if !s.Valid() {
				t.Fatalf("a snapshot would refuse %+v", s)
			}
			o = draw()
		}
		r := s.Result(o, reference)
		if r.Volume == 0 && r != (Result{}) || r.Volume > 0 && (r.Price < s.Low || r.Price > s.High) {
			t.Fatalf("a changing book gives %+v, which is not from %d to %d", r, s.Low, s.High)
		}
	})
}
