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
// Everything is exact: the caller's quantities, summed over one side, must fit an int64.
//
// Cost: Find reads each level that trades and at most two more a side, about 100 ns each of CPU
// time in a ladder: 2 ms on a book of 10,000 crossing levels a side (BenchmarkIndicative of
// package engine), 2 µs on one of ten. It cannot be cut into slices, because a later order
// could change what the first slice has read. It runs four times a second in a call at most,
// and where an uncrossing begins.
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

// side walks one side of Levels.
type side struct {
	levels Levels
	of     market.Side
	price  market.Price // 0 = none left
	qty    market.Qty   // left at price
}

func (s *side) next() { s.price, s.qty = s.levels.NextLevel(s.of, s.price) }

// Find returns the result of an auction. reference 0 = none.
func Find(levels Levels, reference market.Price) Result {
	bid, ask := side{levels: levels, of: market.Buy}, side{levels: levels, of: market.Sell}
	bid.next()
	ask.next()
	var r Result
	// low and high bound the prices of rule 1: the dearest ask and the cheapest bid that trade.
	var low, high market.Price
	for bid.price != 0 && ask.price != 0 && bid.price >= ask.price {
		low, high = ask.price, bid.price
		q := min(bid.qty, ask.qty)
		r.Volume += q
		bid.qty -= q
		ask.qty -= q
		if bid.qty == 0 {
			bid.next()
		}
		if ask.qty == 0 {
			ask.next()
		}
	}
	if r.Volume == 0 {
		return Result{}
	}
	low, high, r.Imbalance = leastImbalance(low, high, bid, ask)
	r.Price = nearest(low, high, r.Imbalance, reference)
	if r.Imbalance < 0 && bid.price >= r.Price {
		r.Imbalance = bid.qty // an equal surplus, of the other side
	}
	return r
}

// leastImbalance narrows low to high to the prices of rule 2. bid and ask are at what does not
// trade; the bid is below the ask. If the surpluses of the two sides are equal, it returns that
// of the asks.
func leastImbalance(low, high market.Price, bid, ask side) (market.Price, market.Price, market.Qty) {
	first, last := max(low, bid.price+1), high
	if ask.price != 0 {
		last = min(high, ask.price-1)
	}
	if first <= last {
		return first, last, 0
	}
	bids, asks := bid.price >= low, ask.price != 0 && ask.price <= high
	deeper, behind := bid, ask
	deeper.next()
	if asks {
		behind.next()
	}
	first, last = max(low, deeper.price+1), high
	if behind.price != 0 {
		last = min(high, behind.price-1)
	}
	switch {
	case bids && (!asks || bid.qty < ask.qty):
		return first, bid.price, bid.qty
	case asks && (!bids || ask.qty < bid.qty):
		return ask.price, last, -ask.qty
	}
	return first, last, -ask.qty
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
