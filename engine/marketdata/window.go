package marketdata

import (
	"math"

	"blockdesk/market"
)

const (
	// nanosPerMinute is the width of a bucket.
	nanosPerMinute int64 = 60_000_000_000
	// windowMinutes is the length of the ticker's window: the minute of the latest event
	// and the 1,439 before it, so 23 h 59 min to 24 h.
	windowMinutes = 24 * 60
)

// bucket summarizes the trades of one minute.
type bucket struct {
	minute int64 // since 1970
	open   market.Price
	high   market.Price
	low    market.Price
	volume market.Qty
	quote  market.Uint128
	trades uint64
}

// window holds the buckets of the last 24 h that have trades, oldest first.
type window []bucket

// add adds a trade to the bucket of its minute and to the ticker.
func (w *window) add(t *Trade, sum *Ticker) {
	minute := t.At / nanosPerMinute
	if n := len(*w); n == 0 || (*w)[n-1].minute < minute {
		*w = append(*w, bucket{minute: minute, open: t.Price, high: t.Price, low: t.Price})
	}
	b := &(*w)[len(*w)-1]
	quote := market.Mul(uint64(t.Price), uint64(t.Qty))
	b.high, b.low = max(b.high, t.Price), min(b.low, t.Price)
	b.volume = addQty(b.volume, t.Qty)
	b.quote = addQuote(b.quote, quote)
	b.trades++

	if sum.Trades24h == 0 {
		sum.Open24h, sum.High24h, sum.Low24h = t.Price, t.Price, t.Price
	}
	sum.High24h, sum.Low24h = max(sum.High24h, t.Price), min(sum.Low24h, t.Price)
	sum.Volume24h = addQty(sum.Volume24h, t.Qty)
	sum.QuoteVolume24h = addQuote(sum.QuoteVolume24h, quote)
	sum.Trades24h++
}

// expire drops the buckets that are too old at minute newest, and reports whether the ticker
// changed.
func (w *window) expire(newest int64, sum *Ticker) bool {
	old := 0
	for old < len(*w) && (*w)[old].minute <= newest-windowMinutes {
		old++
	}
	if old == 0 {
		return false
	}
	*w = append((*w)[:0], (*w)[old:]...)
	w.sum(sum)
	return true
}

// sum computes the ticker's 24 h figures from all buckets.
func (w *window) sum(sum *Ticker) {
	*sum = Ticker{Last: sum.Last, LastQty: sum.LastQty, LastAt: sum.LastAt}
	for i := range *w {
		b := &(*w)[i]
		if i == 0 {
			sum.Open24h, sum.High24h, sum.Low24h = b.open, b.high, b.low
		}
		sum.High24h, sum.Low24h = max(sum.High24h, b.high), min(sum.Low24h, b.low)
		sum.Volume24h = addQty(sum.Volume24h, b.volume)
		sum.QuoteVolume24h = addQuote(sum.QuoteVolume24h, b.quote)
		sum.Trades24h += b.trades
	}
}

// addQty and addQuote saturate instead of overflowing.
func addQty(a, b market.Qty) market.Qty {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

func addQuote(a, b market.Uint128) market.Uint128 {
	sum, err := a.Add(b)
	if err != nil {
		return market.Uint128{Hi: math.MaxUint64, Lo: math.MaxUint64}
	}
	return sum
}
