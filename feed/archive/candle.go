package archive

import (
	"math"
	"time"

	"blockdesk/engine/marketdata"
	"blockdesk/market"
)

// Interval is the length of a candle. Candles open at multiples of it since 1970, in UTC.
type Interval uint8

// The intervals (docs/specification.md C.6). The numbers are stored on disk and must not
// change.
const (
	Minute1 Interval = iota + 1
	Minute5
	Minute15
	Hour1
	Hour4
	Day1

	numIntervals = int(Day1)
)

var lengths = [numIntervals]time.Duration{
	time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 4 * time.Hour, 24 * time.Hour,
}

var names = [numIntervals]string{"1m", "5m", "15m", "1h", "4h", "1d"}

// String returns the interval in JSON: "1m".
func (i Interval) String() string { return names[i-1] }

// Length returns the duration of a candle.
func (i Interval) Length() time.Duration { return lengths[i-1] }

// ParseInterval parses the result of String.
func ParseInterval(text []byte) (Interval, bool) {
	for n, name := range names {
		if name == string(text) {
			return Interval(n + 1), true
		}
	}
	return 0, false
}

// openTime returns the open time of the candle that contains at.
func (i Interval) openTime(at int64) int64 {
	length := int64(i.Length())
	return at - at%length
}

// Candle aggregates the trades of one instrument in one interval.
type Candle struct {
	OpenAt                 int64 // Unix nanoseconds
	Open, High, Low, Close market.Price
	Volume                 market.Qty // saturates at 2^63-1
	// Quote is Σ price × qty in ticks × lots: see market.Instrument.AppendTickLots.
	Quote  market.Uint128
	Trades uint64
}

// add adds the interval's next trade.
func (c *Candle) add(t *marketdata.Trade) {
	if c.Trades == 0 {
		c.Open = t.Price
	}
	c.Close = t.Price
	c.sum(t)
}

// addEarlier adds the trade before those already added.
func (c *Candle) addEarlier(t *marketdata.Trade) {
	if c.Trades == 0 {
		c.Close = t.Price
	}
	c.Open = t.Price
	c.sum(t)
}

// sum updates the fields that do not depend on the order of trades.
func (c *Candle) sum(t *marketdata.Trade) {
	if c.Trades == 0 {
		c.High, c.Low = t.Price, t.Price
	}
	c.High, c.Low = max(c.High, t.Price), min(c.Low, t.Price)
	if c.Volume > math.MaxInt64-t.Qty {
		c.Volume = math.MaxInt64
	} else {
		c.Volume += t.Qty
	}
	quote, err := c.Quote.Add(market.Mul(uint64(t.Price), uint64(t.Qty)))
	if err != nil {
		quote = market.Uint128{Hi: math.MaxUint64, Lo: math.MaxUint64}
	}
	c.Quote = quote
	c.Trades++
}
