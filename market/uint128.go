package market

import (
	"errors"
	"math/bits"
)

// ErrOverflow is returned when an exact result does not fit its type.
var ErrOverflow = errors.New("value does not fit")

// ErrDivideByZero is returned by the divisions of this package.
var ErrDivideByZero = errors.New("division by zero")

// Uint128 is an unsigned 128-bit integer, such as price × quantity.
type Uint128 struct{ Hi, Lo uint64 }

// Mul returns a × b, exact.
func Mul(a, b uint64) Uint128 {
	hi, lo := bits.Mul64(a, b)
	return Uint128{hi, lo}
}

// Add returns u + v, or ErrOverflow if that needs more than 128 bits.
func (u Uint128) Add(v Uint128) (Uint128, error) {
	lo, carry := bits.Add64(u.Lo, v.Lo, 0)
	hi, carry := bits.Add64(u.Hi, v.Hi, carry)
	if carry != 0 {
		return Uint128{}, ErrOverflow
	}
	return Uint128{hi, lo}, nil
}

// Cmp returns -1, 0 or +1.
func (u Uint128) Cmp(v Uint128) int {
	switch {
	case u.Hi < v.Hi || u.Hi == v.Hi && u.Lo < v.Lo:
		return -1
	case u == v:
		return 0
	default:
		return 1
	}
}

// String returns u in decimal digits.
func (u Uint128) String() string { return string(u.AppendDecimal(nil, 0)) }

// quoRem returns the quotient and remainder of u ÷ d. d must not be zero.
func (u Uint128) quoRem(d uint64) (Uint128, uint64) {
	hi, rest := u.Hi/d, u.Hi%d
	lo, rest := bits.Div64(rest, u.Lo, d)
	return Uint128{hi, lo}, rest
}

// DivFloor returns u ÷ d rounded down. Errors: ErrDivideByZero, ErrOverflow if the
// quotient needs more than 64 bits.
func (u Uint128) DivFloor(d uint64) (uint64, error) {
	if d == 0 {
		return 0, ErrDivideByZero
	}
	if u.Hi >= d {
		return 0, ErrOverflow
	}
	q, _ := bits.Div64(u.Hi, u.Lo, d)
	return q, nil
}

// DivCeil returns u ÷ d rounded up. Errors: those of DivFloor.
func (u Uint128) DivCeil(d uint64) (uint64, error) {
	if d == 0 {
		return 0, ErrDivideByZero
	}
	if u.Hi >= d {
		return 0, ErrOverflow
	}
	q, r := bits.Div64(u.Hi, u.Lo, d)
	if r != 0 {
		if q == ^uint64(0) {
			return 0, ErrOverflow
		}
		q++
	}
	return q, nil
}

// MulDivFloor returns a × b ÷ d rounded down, with a 128-bit product. Errors: those of
// Uint128.DivFloor.
func MulDivFloor(a, b, d uint64) (uint64, error) { return Mul(a, b).DivFloor(d) }

// MulDivCeil returns a × b ÷ d rounded up, with a 128-bit product. Errors: those of
// Uint128.DivFloor.
func MulDivCeil(a, b, d uint64) (uint64, error) { return Mul(a, b).DivCeil(d) }

// wide is an unsigned 256-bit integer, least significant word first.
type wide [4]uint64

// times returns w × by, or false if that needs more than 256 bits.
func (w wide) times(by uint64) (wide, bool) {
	var carry uint64
	for i, word := range w {
		hi, lo := bits.Mul64(word, by)
		var c uint64
		w[i], c = bits.Add64(lo, carry, 0)
		carry = hi + c
	}
	return w, carry == 0
}

// quoRem returns the quotient and remainder of w ÷ d. d must not be zero.
func (w wide) quoRem(d uint64) (wide, uint64) {
	var rest uint64
	for i := len(w) - 1; i >= 0; i-- {
		w[i], rest = bits.Div64(rest, w[i], d)
	}
	return w, rest
}

// appendDecimal is Uint128.AppendDecimal for 256 bits.
func (w wide) appendDecimal(dst []byte, decimals int) []byte {
	const chunk = 19           // digits of the largest power of ten in 64 bits
	var digits [5 * chunk]byte // 2^256 has 78
	first := len(digits)
	for w != (wide{}) || len(digits)-first <= decimals {
		var low uint64
		w, low = w.quoRem(pow10[chunk])
		for range chunk {
			first--
			digits[first] = byte('0' + low%10)
			low /= 10
		}
	}
	point := len(digits) - decimals
	for first < point-1 && digits[first] == '0' {
		first++
	}
	dst = append(dst, digits[first:point]...)
	if decimals > 0 {
		dst = append(dst, '.')
	}
	return append(dst, digits[point:]...)
}
