package prices

import "blockdesk/market"

// MaxSamples is the largest number of samples of an Average.
const MaxSamples = 1024

// MaxStepBps is the largest move of an Average's sample from the one before, in basis
// points of it (our choice). Without it, a pool that an attacker pushes to a hundred
// times its price for one reading would dominate the average of the whole window. A true
// move of a half is followed within seven readings.
const MaxStepBps = 1000

// Average is a price weighted by the time for which it stood, over a window that ends
// now. A price stands from its sample until the next one.
type Average struct {
	window, maxGap int64 // nanoseconds
	samples        []sample
}

type sample struct {
	at    int64
	price market.USDPrice
}

// NewAverage returns an average over a window in nanoseconds. After a gap of more than
// maxGap nanoseconds between two samples it begins anew, because nobody knows which
// prices stood meanwhile. Both must be positive.
func NewAverage(window, maxGap int64) *Average { return &Average{window: window, maxGap: maxGap} }

// Add adds the price at the time at. A sample that is not newer than the last one is
// ignored. A price further than MaxStepBps from the last sample counts as that bound.
// With MaxSamples in the window, the oldest is dropped.
func (a *Average) Add(at int64, price market.USDPrice) {
	if n := len(a.samples); price == 0 || price > market.MaxUSDPrice || n > 0 && at <= a.samples[n-1].at {
		return
	}
	if n := len(a.samples); n > 0 && at-a.samples[n-1].at > a.maxGap {
		a.samples = a.samples[:0]
	} else if n > 0 {
		price = bounded(price, a.samples[n-1].price)
	}
	old := 0 // of two samples before the window, the newer one stands when it begins
	for old+1 < len(a.samples) && a.samples[old+1].at <= at-a.window {
		old++
	}
	if old == 0 && len(a.samples) == MaxSamples {
		old = 1
	}
	a.samples = append(a.samples[:copy(a.samples, a.samples[old:])], sample{at, price})
}

// Price returns the average at the time now, rounded down, and the time of the newest
// sample. It returns false until the samples cover nine tenths of the window, so that a
// momentary price never counts as an average.
func (a *Average) Price(now int64) (price market.USDPrice, at int64, ok bool) {
	n := len(a.samples)
	if n == 0 {
		return 0, 0, false
	}
	at = a.samples[n-1].at
	from := max(a.samples[0].at, now-a.window)
	covered := now - from
	if covered <= 0 || covered < a.window/10*9 {
		return 0, at, false
	}
	var sum market.Uint128
	for i, s := range a.samples {
		until := now
		if i+1 < n {
			until = a.samples[i+1].at
		}
		if stood := until - max(s.at, from); stood > 0 {
			sum, _ = sum.Add(market.Mul(uint64(s.price), uint64(stood))) // at most 2^60 × 2^63
		}
	}
	mean, err := sum.DivFloor(uint64(covered))
	return market.USDPrice(mean), at, err == nil && mean != 0
}

// bounded returns price, at most MaxStepBps from last: rounded to the inside, but one unit
// at least, so that a tiny price can move.
func bounded(price, last market.USDPrice) market.USDPrice {
	step, err := market.MulDivFloor(uint64(last), MaxStepBps, market.MaxBps)
	if err != nil {
		return last
	}
	step = max(step, 1)
	return min(max(price, last-min(last, market.USDPrice(step))), last+market.USDPrice(step))
}
