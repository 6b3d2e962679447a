package market

import "fmt"

// MaxRatioExponent bounds the power of ten in a Ratio, which is stored in two words.
const MaxRatioExponent = 2 * (MaxDecimals + 1)

// Ratio is an exact conversion factor between two units, such as from an on-chain price
// to ticks: a fraction of products of 64-bit words. The zero value is invalid; make one
// with [NewRatio] and reuse it.
type Ratio struct{ up, down [4]uint64 }

// NewRatio returns up × 10^exp10 ÷ down, where up and down are products of 0 to 2
// words. Errors: ErrDivideByZero; ErrOverflow for more words or |exp10| above
// MaxRatioExponent.
func NewRatio(up, down []uint64, exp10 int) (Ratio, error) {
	r := Ratio{[4]uint64{1, 1, 1, 1}, [4]uint64{1, 1, 1, 1}}
	if copy(r.up[:2], up) < len(up) || copy(r.down[:2], down) < len(down) {
		return Ratio{}, fmt.Errorf("a ratio with %d factors in the numerator and %d in the denominator: %w", len(up), len(down), ErrOverflow)
	}
	if exp10 > MaxRatioExponent || exp10 < -MaxRatioExponent {
		return Ratio{}, fmt.Errorf("a ratio times 10^%d: %w", exp10, ErrOverflow)
	}
	for _, d := range down {
		if d == 0 {
			return Ratio{}, ErrDivideByZero
		}
	}
	powers, n := r.up[2:], exp10
	if exp10 < 0 {
		powers, n = r.down[2:], -exp10
	}
	const chunk = MaxDecimals + 1 // exponent of the largest power of ten in one word
	powers[0], powers[1] = pow10[min(n, chunk)], pow10[max(n-chunk, 0)]
	return r, nil
}

// Floor returns u × r rounded down. Errors: ErrOverflow if the result needs more than 64
// bits or the product before the divisions more than 256; ErrDivideByZero for the zero
// Ratio.
func (r *Ratio) Floor(u Uint128) (uint64, error) {
	q, _, err := r.apply(u)
	return q, err
}

// Ceil returns u × r rounded up. Errors: those of Floor.
func (r *Ratio) Ceil(u Uint128) (uint64, error) {
	q, exact, err := r.apply(u)
	switch {
	case err != nil || exact:
		return q, err
	case q == ^uint64(0):
		return 0, ErrOverflow
	}
	return q + 1, nil
}

// apply returns u × r rounded down, and whether that is exact. Dividing by one word
// after the other, rounding down each time, equals dividing by their product and
// rounding down once.
func (r *Ratio) apply(u Uint128) (q uint64, exact bool, err error) {
	if r.down[0] == 0 {
		return 0, false, ErrDivideByZero
	}
	w := wide{u.Lo, u.Hi}
	for _, by := range r.up {
		if by == 1 {
			continue
		}
		product, fits := w.times(by)
		if !fits {
			return 0, false, ErrOverflow
		}
		w = product
	}
	exact = true
	for _, by := range r.down {
		if by == 1 {
			continue
		}
		var rest uint64
		w, rest = w.quoRem(by)
		exact = exact && rest == 0
	}
	if w[1]|w[2]|w[3] != 0 {
		return 0, false, ErrOverflow
	}
	return w[0], exact, nil
}
