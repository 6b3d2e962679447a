// Package auction computes the price of a call auction: what an exchange calls the
// equilibrium or indicative price.
//
// Rules:
//  1. The price is one at which the most quantity is executable: the smaller of the bids at it
//     or above and the asks at it or below.
//  2. Of several, one with the least imbalance: the difference of the two.
//  3. Of several, the nearest to the reference price.
//  4. Without a reference price: the highest if bids are left over, the lowest if asks are,
//     and halfway between lowest and highest, rounded down, if nothing is (our choice).
//
// Any tick may be the price, not only the limit of an order.
//
// Everything is exact: the caller's quantities, summed over one side, must be below 2^61.
//
// Cost: a Search reads each level that trades and at most two more a side, about 100 ns each
// of CPU time in a ladder. It reads them in slices, between which orders may change: then the
// result is of each level as it was when it was read, and its price still one at which orders
// of both sides were (our choice).
package auction

import "blockdesk/market"

// Levels are the orders of an auction, summed by price.
type Levels interface {
	// NextLevel returns the best price of the side behind after (0 = the best of all) and the
	// quantity there; 0, 0 = none.
	NextLevel(side market.Side, after market.Price) (market.Price, market.Qty)
}

// Result is what an auction would trade. The zero value means nothing.
type Result struct {
	Price     market.Price
	Volume    market.Qty
	Imbalance market.Qty // of bids over asks at Price; negative for a surplus of asks
}

// maxVolume bounds the volume of a search: an order that moves may be read twice.
const maxVolume market.Qty = 1 << 62

// Search finds the result of an auction in slices. The zero value has read nothing.
type Search struct {
	Bid, Ask market.Level // being read; Qty is what is left of them. A Price of 0: none, or not begun
	Volume   market.Qty
	// Low and High bound the prices of rule 1: the dearest ask and the cheapest bid that trade.
	Low, High market.Price
	Begun     bool
}

// Valid reports whether a search is one that Step can make.
func (s *Search) Valid() bool {
	if !s.Begun {
		return *s == Search{}
	}
	for _, p := range [...]market.Price{s.Bid.Price, s.Ask.Price, s.Low, s.High} {
		if p < 0 || p > market.MaxPrice {
			return false
		}
	}
	return s.Bid.Qty >= 0 && s.Ask.Qty >= 0 && s.Volume >= 0 && s.Volume <= maxVolume && s.Low <= s.High
}

// Step reads up to n levels. It returns how many it has not needed; if any, the search has ended.
func (s *Search) Step(levels Levels, n int) (left int) {
	if !s.Begun {
		s.Begun = true
		s.Bid = next(levels, market.Buy, 0)
		s.Ask = next(levels, market.Sell, 0)
	}
	for left = n; left > 0; left-- {
		if s.Bid.Price == 0 || s.Ask.Price == 0 || s.Bid.Price < s.Ask.Price {
			return left
		}
		s.Low, s.High = s.Ask.Price, s.Bid.Price
		q := min(s.Bid.Qty, s.Ask.Qty)
		s.Volume = min(s.Volume+q, maxVolume)
		s.Bid.Qty -= q
		s.Ask.Qty -= q
		if s.Bid.Qty == 0 {
			s.Bid = next(levels, market.Buy, s.Bid.Price)
		}
		if s.Ask.Qty == 0 {
			s.Ask = next(levels, market.Sell, s.Ask.Price)
		}
	}
	return 0
}

func next(levels Levels, side market.Side, after market.Price) market.Level {
	p, q := levels.NextLevel(side, after)
	return market.Level{Price: p, Qty: q}
}

// Result returns the result of a search that has ended. reference 0 = none.
func (s *Search) Result(levels Levels, reference market.Price) (r Result) {
	if s.Volume == 0 {
		return r
	}
	r.Volume = s.Volume
	var low, high market.Price
	low, high, r.Imbalance = s.leastImbalance(levels)
	r.Price = nearest(low, high, r.Imbalance, reference)
	if r.Imbalance < 0 && s.Bid.Price >= r.Price {
		r.Imbalance = s.Bid.Qty // an equal surplus, of the other side
	}
	return r
}

// Find returns the result of an auction. reference 0 = none.
func Find(levels Levels, reference market.Price) Result {
	var s Search
	for s.Step(levels, 1<<10) == 0 {
	}
	return s.Result(levels, reference)
}

// leastImbalance narrows Low to High to the prices of rule 2. Bid and Ask are at what does not
// trade; the bid is below the ask. If the surpluses of the two sides are equal, it returns that
// of the asks.
func (s *Search) leastImbalance(levels Levels) (market.Price, market.Price, market.Qty) {
	low, high, bid, ask := s.Low, s.High, s.Bid, s.Ask
	first, last := max(low, bid.Price+1), high
	if ask.Price != 0 {
		last = min(high, ask.Price-1)
	}
	if first <= last {
		return first, last, 0
	}
	bids, asks := bid.Price >= low, ask.Price != 0 && ask.Price <= high
	deeper, behind := next(levels, market.Buy, bid.Price), ask
	if asks {
		behind = next(levels, market.Sell, ask.Price)
	}
	first, last = max(low, deeper.Price+1), high
	if behind.Price != 0 {
		last = min(high, behind.Price-1)
	}
	switch {
	case bids && (!asks || bid.Qty < ask.Qty):
		return first, bid.Price, bid.Qty
	case asks && (!bids || ask.Qty < bid.Qty):
		return ask.Price, last, -ask.Qty
	}
	return first, last, -ask.Qty
}

// nearest returns the price of rules 3 and 4.
func nearest(low, high market.Price, imbalance market.Qty, reference market.Price) market.Price {
	switch {
	case reference != 0:
		return min(max(reference, low), high)
	case imbalance > 0:
		return high
	case imbalance < 0:
		return low
	}
	return low + (high-low)/2
}
