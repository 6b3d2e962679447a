package prices

import "blockdesk/market"

// MaxSamples bounds what an Average remembers.
const MaxSamples = 1024

// Average is a price weighted by the time for which it stood, over a window that ends
// now. A price stands from its sample until the next one.
type Average struct {
	window  int64 // nanoseconds
	samples []sample
}

type sample struct {
	at    int64
	price market.USDPrice
}

// NewAverage returns an average over a window of nanoseconds, which must be positive.
func NewAverage(window int64) *Average { return &Average{window: window} }

// Add notes a price as of at. A sample that is not newer than the last one is ignored.
// Where MaxSamples are remembered, the oldest goes.
func (a *Average) Add(at int64, price market.USDPrice) {
	if n := len(a.samples); price == 0 || price > market.MaxUSDPrice || n > 0 && at <= a.samples[n-1].at {
		return
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

// Reset forgets all samples.
func (a *Average) Reset() { a.samples = a.samples[:0] }

// Price returns the average as of now, rounded down, and the time of the newest sample.
// False until the samples reach back over nine tenths of the window, so that a price of
// a moment is never taken for an average.
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
