package catalog

import (
	"math"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"blockdesk/market"
)

// Decimal is an exact, non-negative decimal. In JSON it is a string with all its decimals.
// The zero value is "0".
type Decimal struct {
	Units    market.Uint128
	Decimals int // 0..market.MaxWideDecimals
}

// dollars returns an amount with six decimals.
func dollars(n market.USD) Decimal {
	return Decimal{Units: market.Uint128{Lo: uint64(n)}, Decimals: market.USDDecimals}
}

// dollarPrice returns a price with nine decimals; nil for 0, which means no price.
func dollarPrice(n market.USDPrice) *Decimal {
	if n == 0 {
		return nil
	}
	return &Decimal{Units: market.Uint128{Lo: uint64(n)}, Decimals: market.USDPriceDecimals}
}

// lessFee returns a price less a fee, rounded down.
func lessFee(n market.USDPrice, bps uint16) market.USDPrice {
	if bps > market.MaxBps {
		return 0
	}
	left, err := market.MulDivFloor(uint64(n), uint64(market.MaxBps-bps), market.MaxBps)
	if err != nil {
		return 0 // unreachable: the result is at most n
	}
	return market.USDPrice(left)
}

// feeOf returns a fee on an amount, rounded down.
func feeOf(n market.USD, bps uint16) market.USD {
	fee, err := market.MulDivFloor(uint64(n), uint64(bps), market.MaxBps)
	if err != nil {
		return n // a fee above 100 % of an amount near 2^64
	}
	return market.USD(fee)
}

// wholeUnits returns an amount of atoms in units of the token.
func wholeUnits(n market.Amount, decimals uint8) Decimal {
	return Decimal{Units: market.Uint128{Lo: uint64(n)}, Decimals: int(decimals)}
}

// MarshalJSON writes the decimal in quotes.
func (d Decimal) MarshalJSON() ([]byte, error) {
	return append(d.Units.AppendDecimal([]byte{'"'}, d.Decimals), '"'), nil
}

// String returns all decimals: "1234567.500000".
func (d Decimal) String() string { return string(d.Units.AppendDecimal(nil, d.Decimals)) }

// Formatted returns the decimal with thousands separators and without trailing zeros:
// "1,234,567.5".
func (d Decimal) Formatted() string {
	whole, fraction, _ := strings.Cut(d.String(), ".")
	out := make([]byte, 0, len(whole)+len(whole)/3)
	for i := range whole {
		if i > 0 && (len(whole)-i)%3 == 0 {
			out = append(out, ',')
		}
		out = append(out, whole[i])
	}
	return string(out) + trimZeros("."+fraction)
}

// trimZeros removes trailing zeros from a fraction, and its point if nothing is left.
func trimZeros(fraction string) string {
	return strings.TrimSuffix(strings.TrimRight(fraction, "0"), ".")
}

// Compact returns two decimals and a letter for the thousands, rounded down: "1.23M".
func (d Decimal) Compact() string {
	n := d.whole()
	letters := [...]string{"", "K", "M", "B", "T", "P", "E"}
	for i := len(letters) - 1; i > 0; i-- {
		unit := market.Pow10(3 * i)
		if n >= unit {
			hundredths := n / (unit / 100)
			return strconv.FormatUint(hundredths/100, 10) + trimZeros("."+twoDigits(hundredths%100)) + letters[i]
		}
	}
	whole, fraction, _ := strings.Cut(d.String(), ".")
	return whole + trimZeros("."+fraction[:min(2, len(fraction))])
}

func twoDigits(n uint64) string { return strconv.FormatUint(100+n, 10)[1:] }

// whole returns the integer part, or the largest uint64 if it does not fit.
func (d Decimal) whole() uint64 {
	hi, lo := d.Units.Hi, d.Units.Lo
	for left := d.Decimals; left > 0; {
		step := min(left, 19)
		unit := market.Pow10(step)
		rest := hi % unit
		hi /= unit
		lo, _ = bits.Div64(rest, lo, unit)
		left -= step
	}
	if hi > 0 {
		return ^uint64(0)
	}
	return lo
}

// Percent is a signed number of basis points. In JSON it is a number of percent.
type Percent int64

// MarshalJSON writes the number.
func (p Percent) MarshalJSON() ([]byte, error) {
	dst, n := []byte(nil), uint64(p)
	if p < 0 {
		dst, n = append(dst, '-'), -n
	}
	return market.AppendDecimal(dst, n, 2), nil
}

// Epoch counts the starts of the engine. In JSON it is "e" and the number, as on the
// WebSocket.
type Epoch uint64

// MarshalJSON writes the string.
func (e Epoch) MarshalJSON() ([]byte, error) {
	return append(strconv.AppendUint([]byte(`"e`), uint64(e), 10), '"'), nil
}

// rate is a number of basis points. In JSON it is a fraction: 500 is 0.05.
type rate uint16

// MarshalJSON writes the number without trailing zeros.
func (r rate) MarshalJSON() ([]byte, error) {
	text := string(market.AppendDecimal(nil, uint64(r), 4))
	whole, fraction, _ := strings.Cut(text, ".")
	return []byte(whole + trimZeros("."+fraction)), nil
}

// Time is in Unix nanoseconds. In JSON it is rounded down to milliseconds; 0 means none
// and is null.
type Time int64

// MarshalJSON writes String in quotes, or null.
func (t Time) MarshalJSON() ([]byte, error) {
	if t == 0 {
		return []byte("null"), nil
	}
	return strconv.AppendQuote(nil, t.String()), nil
}

// String returns RFC 3339 in UTC; empty for none.
func (t Time) String() string {
	if t == 0 {
		return ""
	}
	return time.Unix(0, int64(t)).UTC().Format("2006-01-02T15:04:05.000Z")
}

// seconds returns the whole seconds from then to now, never negative.
func seconds(then, now Time) int64 { return max(0, int64(now-then)/int64(time.Second)) }

// oneDollar is the price of a dollar.
const oneDollar = market.USDPrice(1_000_000_000)

// usdFloor returns the value of an amount at a price, in dollars rounded down; ok is false
// above maxUSD and without a price.
func usdFloor(units market.Uint128, decimals int, price market.USDPrice) (usd market.USD, ok bool) {
	if price == 0 {
		return 0, false
	}
	ratio, err := market.NewRatio([]uint64{uint64(price)}, nil, market.USDDecimals-market.USDPriceDecimals-decimals)
	if err != nil {
		return 0, false
	}
	n, err := ratio.Floor(units)
	if err != nil || n > uint64(maxUSD) {
		return 0, false
	}
	return market.USD(n), true
}

// maxUSD bounds each figure in dollars (4.6e12), so that sums of a few cannot overflow.
const maxUSD = market.USD(1) << 62

// plus adds amounts of 64 bits, of which there are too few to overflow.
func plus(a, b market.Uint128) market.Uint128 {
	sum, _ := a.Add(b)
	return sum
}

// spotFloor returns held ÷ base at the quote asset's price, rounded down; 0 if it is out
// of range. scale is the base token's decimals less the quote token's.
func spotFloor(base, held market.Amount, scale int, quote market.USDPrice) market.USDPrice {
	if base == 0 {
		return 0
	}
	ratio, err := market.NewRatio([]uint64{uint64(quote)}, []uint64{uint64(base)}, scale)
	if err != nil {
		return 0
	}
	price, err := ratio.Floor(market.Uint128{Lo: uint64(held)})
	if err != nil || price > uint64(market.MaxUSDPrice) {
		return 0
	}
	return market.USDPrice(price)
}

// worth returns the value of an amount at a price, in dollars rounded down; nil above
// 2^64 millionths.
func worth(n market.Amount, decimals uint8, price market.USDPrice) *Decimal {
	const toUSD = market.USDPriceDecimals - market.USDDecimals
	product := market.Mul(uint64(n), uint64(price))
	whole, err := product.DivFloor(market.Pow10(int(decimals)))
	if err != nil {
		return nil
	}
	value := dollars(market.USD(whole / market.Pow10(toUSD)))
	return &value
}

// timeOf converts a time; the zero time becomes 0.
func timeOf(t time.Time) Time {
	if t.IsZero() {
		return 0
	}
	return Time(t.UnixNano())
}

// blockTime converts a block's time, in seconds; an impossible one becomes 0.
func blockTime(seconds int64) Time {
	if seconds <= 0 || seconds > math.MaxInt64/int64(time.Second) {
		return 0
	}
	return Time(seconds * int64(time.Second))
}
