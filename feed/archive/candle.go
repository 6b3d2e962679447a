package archive

import (
	"math"
	"time"

	"blockdesk/engine"
	"blockdesk/market"
)

// Interval is the length of a candle. Candles begin at whole multiples of it
// since 1970, in UTC.
type Interval uint8

// The intervals (contract, section F). The numbers are on disk: frozen.
const (
	Minute1 Interval = iota + 1
	Minute5
	Minute15
	Hour1
	Hour4
	Day1

	intervals = int(Day1)
)

var lengths = [intervals]time.Duration{
	time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 4 * time.Hour, 24 * time.Hour,
}

var names = [intervals]string{"1m", "5m", "15m", "1h", "4h", "1d"}

// String returns the wire's word.
func (i Interval) String() string { return names[i-1] }

// Length returns how long a candle is.
func (i Interval) Length() time.Duration { return lengths[i-1] }

// ParseInterval reads a wire's word.
func ParseInterval(text []byte) (Interval, bool) {
	for n, name := range names {
		if name == string(text) {
			return Interval(n + 1), true
		}
	}
	return 0, false
}

// opens returns when the candle that at lies in begins.
func (i Interval) openTime(at int64) int64 {
	length := int64(i.Length())
	return at - at%length
}

// Candle sums up the trades of one instrument in one interval.
type Candle struct {
	OpenAt                 int64 // Unix nanoseconds
	Open, High, Low, Close market.Price
	Volume                 market.Qty // at most 2^63-1, then it stays there
	// Quote is Σ price × qty in ticks × lots: see market.Instrument.AppendTickLots.
	Quote  market.Uint128
	Trades uint64
}

// add takes the next trade of the interval.
func (c *Candle) add(t *engine.Trade) {
	if c.Trades == 0 {
		c.Open = t.Price
	}
	c.Close = t.Price
	c.sum(t)
}

// addEarlier takes the trade before those that it has.
func (c *Candle) addEarlier(t *engine.Trade) {
	if c.Trades == 0 {
		c.Close = t.Price
	}
	c.Open = t.Price
	c.sum(t)
}

// sum adds what does not depend on the trades' order.
func (c *Candle) sum(t *engine.Trade) {
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
