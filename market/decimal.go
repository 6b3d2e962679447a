package market

import (
	"errors"
	"math/bits"
)

// MaxDecimals is the most fractional digits of a price, quantity or amount: 10^18 is
// the largest power of ten that fits an int64.
const MaxDecimals = 18

// MaxWideDecimals is the most fractional digits of a Uint128: a notional has those of
// its price plus those of its quantity.
const MaxWideDecimals = 2 * MaxDecimals

// MaxDecimalText bounds the text of a decimal, in bytes: the 39 digits of a Uint128, a
// point, and room for extra zeros.
const MaxDecimalText = 64

// Errors of ParseDecimal and ParseUint128. They do not quote the text, because it is
// client input.
var (
	ErrDecimalSyntax    = errors.New("not a plain decimal number")
	ErrDecimalTooLong   = errors.New("the decimal number is longer than 64 bytes")
	ErrDecimalPrecision = errors.New("more fractional digits than the field has")
	ErrDecimalScale     = errors.New("number of fractional digits is out of range")
)

var pow10 = [MaxDecimals + 2]uint64{
	1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9,
	1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19,
}

// Pow10 returns 10^n for n in 0..19, and panics outside.
func Pow10(n int) uint64 { return pow10[n] }

// ParseDecimal parses an unsigned decimal such as "1", "0.50" or "007.1" exactly, into a
// count of 10^-decimals units; decimals is 0..MaxDecimals. It accepts no sign, exponent,
// space or digit separator. Digits beyond decimals must be 0, else ErrDecimalPrecision.
// Other errors: ErrDecimalSyntax, ErrDecimalTooLong, ErrDecimalScale, ErrOverflow; the
// leftmost defect decides. ParseDecimal does not keep text.
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

// ParseUint128 is ParseDecimal for 128 bits; decimals is 0..MaxWideDecimals.
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

// shift returns 10u + digit, or false if that needs more than 128 bits.
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

// digitPairs is 00 to 99.
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

// AppendDecimal appends value × 10^-decimals with exactly decimals (0..MaxDecimals)
// fractional digits and returns the extended slice. It allocates only if dst is full.
func AppendDecimal(dst []byte, value uint64, decimals int) []byte {
	var buf [24]byte
	i := len(buf)
	n := decimals
	for ; n >= 2; n -= 2 { // two digits per division, because divisions dominate
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

// AppendDecimal is the function AppendDecimal for 128 bits; decimals must be
// 0..MaxWideDecimals.
func (u Uint128) AppendDecimal(dst []byte, decimals int) []byte {
	if u.Hi == 0 && decimals <= MaxDecimals {
		return AppendDecimal(dst, u.Lo, decimals)
	}
	return wide{u.Lo, u.Hi}.appendDecimal(dst, decimals)
}
