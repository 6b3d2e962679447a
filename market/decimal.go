package market

import (
	"errors"
	"math/bits"
)

// MaxDecimals is the largest number of fractional digits of a price, a quantity
// or an amount: 10^18 is the last power of ten that a signed 64-bit word holds.
const MaxDecimals = 18

// MaxWideDecimals is the same for a Uint128: a notional has the fractional
// digits of its price and of its quantity together.
const MaxWideDecimals = 2 * MaxDecimals

// MaxDecimalText bounds the text of a decimal from outside, in bytes: the 39
// digits of a Uint128, a point, and room for superfluous zeros.
const MaxDecimalText = 64

// Errors of ParseDecimal and ParseUint128. Each names what is wrong with the
// text, never the text itself.
var (
	ErrDecimalSyntax    = errors.New("not a plain decimal number")
	ErrDecimalTooLong   = errors.New("decimal is longer than 64 bytes")
	ErrDecimalPrecision = errors.New("more fractional digits than the field has")
	ErrDecimalScale     = errors.New("number of fractional digits is out of range")
)

var pow10 = [MaxDecimals + 2]uint64{
	1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9,
	1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19,
}

// Pow10 returns 10^n for n in 0..19, and panics outside.
func Pow10(n int) uint64 { return pow10[n] }

// ParseDecimal reads an unsigned decimal such as "1", "0.50" or "007.1" as a
// count of 10^-decimals units, exactly; decimals is 0..MaxDecimals. No sign,
// exponent, blank or digit group is accepted; zeros beyond the scale are, any
// other digit there is ErrDecimalPrecision. Other errors: ErrDecimalSyntax,
// ErrDecimalTooLong, ErrDecimalScale, ErrOverflow. Of several defects the first
// from the left is reported. It does not keep text.
func ParseDecimal(text []byte, decimals int) (uint64, error) {
	if decimals > MaxDecimals {
		return 0, ErrDecimalScale
	}
	v, err := ParseUint128(text, decimals)
	if err != nil {
		return 0, err
	}
	if v.Hi != 0 {
		return 0, ErrOverflow
	}
	return v.Lo, nil
}

// ParseUint128 is ParseDecimal for a 128-bit value; decimals is
// 0..MaxWideDecimals.
func ParseUint128(text []byte, decimals int) (Uint128, error) {
	if decimals < 0 || decimals > MaxWideDecimals {
		return Uint128{}, ErrDecimalScale
	}
	if len(text) > MaxDecimalText {
		return Uint128{}, ErrDecimalTooLong
	}
	var value Uint128
	digits, fraction, point := 0, 0, false
	for _, c := range text {
		if c == '.' && !point && digits > 0 {
			point = true
			continue
		}
		if c < '0' || c > '9' {
			return Uint128{}, ErrDecimalSyntax
		}
		digits++
		if point {
			fraction++
			if fraction > decimals {
				if c != '0' {
					return Uint128{}, ErrDecimalPrecision
				}
				continue
			}
		}
		var ok bool
		if value, ok = value.shift(c - '0'); !ok {
			return Uint128{}, ErrOverflow
		}
	}
	if digits == 0 || point && fraction == 0 {
		return Uint128{}, ErrDecimalSyntax
	}
	for ; fraction < decimals; fraction++ {
		var ok bool
		if value, ok = value.shift(0); !ok {
			return Uint128{}, ErrOverflow
		}
	}
	return value, nil
}

// shift returns 10u + digit, and false past 128 bits.
func (u Uint128) shift(digit byte) (Uint128, bool) {
	if u.Hi == 0 && u.Lo < 1<<60 {
		return Uint128{Lo: 10*u.Lo + uint64(digit)}, true
	}
	over, top := bits.Mul64(u.Hi, 10)
	hi, lo := bits.Mul64(u.Lo, 10)
	lo, carry := bits.Add64(lo, uint64(digit), 0)
	hi, carry = bits.Add64(hi, top, carry)
	return Uint128{hi, lo}, over == 0 && carry == 0
}

// digitPairs are 00 to 99.
const digitPairs = "00010203040506070809" +
	"10111213141516171819" +
	"20212223242526272829" +
	"30313233343536373839" +
	"40414243444546474849" +
	"50515253545556575859" +
	"60616263646566676869" +
	"70717273747576777879" +
	"80818283848586878889" +
	"90919293949596979899"

// AppendDecimal appends value × 10^-decimals with exactly that many fractional
// digits, and returns the extended slice. It allocates only when dst is full.
// decimals must be 0..MaxDecimals.
func AppendDecimal(dst []byte, value uint64, decimals int) []byte {
	var buf [24]byte
	i := len(buf)
	n := decimals
	for ; n >= 2; n -= 2 { // two digits a division, which is most of the time
		i -= 2
		pair := value % 100 * 2
		value /= 100
		buf[i], buf[i+1] = digitPairs[pair], digitPairs[pair+1]
	}
	if n > 0 {
		i--
		buf[i] = byte('0' + value%10)
		value /= 10
	}
	if decimals > 0 {
		i--
		buf[i] = '.'
	}
	for {
		i--
		buf[i] = byte('0' + value%10)
		value /= 10
		if value == 0 {
			break
		}
	}
	return append(dst, buf[i:]...)
}

// AppendDecimal appends u × 10^-decimals with exactly that many fractional
// digits, and returns the extended slice. It allocates only when dst is full.
// decimals must be 0..MaxWideDecimals.
func (u Uint128) AppendDecimal(dst []byte, decimals int) []byte {
	if u.Hi == 0 && decimals <= MaxDecimals {
		return AppendDecimal(dst, u.Lo, decimals)
	}
	return wide{u.Lo, u.Hi}.appendDecimal(dst, decimals)
}
