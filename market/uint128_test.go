package market

import (
	"errors"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

var maxUint128 = Uint128{math.MaxUint64, math.MaxUint64}

func bigOf(u Uint128) *big.Int {
	n := new(big.Int).Lsh(new(big.Int).SetUint64(u.Hi), 64)
	return n.Or(n, new(big.Int).SetUint64(u.Lo))
}

// drawUint128 draws the extremes of both words as often as other values.
func drawUint128(t *rapid.T, name string) Uint128 {
	return Uint128{drawUint64(t, name+" hi"), drawUint64(t, name+" lo")}
}

func drawUint64(t *rapid.T, name string) uint64 {
	return rapid.OneOf(
		rapid.SampledFrom([]uint64{0, 1, 2, 9, 10, 1<<60 - 1, 1 << 60, 1e19, 1 << 63, math.MaxUint64 - 1, math.MaxUint64}),
		rapid.Uint64(),
	).Draw(t, name)
}

func TestUint128AgainstBig(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawUint64(t, "a"), drawUint64(t, "b")
		product := new(big.Int).Mul(new(big.Int).SetUint64(a), new(big.Int).SetUint64(b))
		if got := Mul(a, b); bigOf(got).Cmp(product) != 0 {
			t.Fatalf("%d × %d = %v, want %v", a, b, got, product)
		}
		u, v := drawUint128(t, "u"), drawUint128(t, "v")
		if got, want := u.Cmp(v), bigOf(u).Cmp(bigOf(v)); got != want {
			t.Fatalf("%v cmp %v = %d, want %d", u, v, got, want)
		}
		if got, want := u.String(), bigOf(u).String(); got != want {
			t.Fatalf("%v is printed as %q", want, got)
		}
		sum, err := u.Add(v)
		checkFits(t, "add", bigOf(sum), err, new(big.Int).Add(bigOf(u), bigOf(v)), 128)
	})
}

// checkFits requires want if it fits in that many bits, else zero and ErrOverflow.
func checkFits(t *rapid.T, what string, got *big.Int, err error, want *big.Int, bits int) {
	t.Helper()
	if want.BitLen() > bits {
		if !errors.Is(err, ErrOverflow) || got.Sign() != 0 {
			t.Fatalf("%s: %v, %v; %v does not fit", what, got, err, want)
		}
		return
	}
	if err != nil || got.Cmp(want) != 0 {
		t.Fatalf("%s: %v, %v; want %v", what, got, err, want)
	}
}

func TestDivisionsAgainstBig(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawUint64(t, "d")
		if d == 0 {
			d = 1
		}
		divisor := new(big.Int).SetUint64(d)
		check := func(what string, dividend *big.Int, floor, ceil func() (uint64, error)) {
			quotient, rest := new(big.Int).QuoRem(dividend, divisor, new(big.Int))
			got, err := floor()
			checkFits(t, what+" floor", new(big.Int).SetUint64(got), err, quotient, 64)
			if rest.Sign() != 0 {
				quotient = new(big.Int).Add(quotient, big.NewInt(1))
			}
			got, err = ceil()
			checkFits(t, what+" ceil", new(big.Int).SetUint64(got), err, quotient, 64)
		}
		// Half of the dividends are near a multiple of d whose quotient is at
		// the edge of 64 bits, where Ceil overflows and Floor does not.
		u := drawUint128(t, "u")
		if rapid.Bool().Draw(t, "near the edge") {
			u = Mul(d, math.MaxUint64)
			u, _ = u.Add(Uint128{Lo: rapid.Uint64Range(0, d).Draw(t, "rest")})
		}
		check("div", bigOf(u),
			func() (uint64, error) { return u.DivFloor(d) },
			func() (uint64, error) { return u.DivCeil(d) })
		a, b := drawUint64(t, "a"), drawUint64(t, "b")
		check("muldiv", bigOf(Mul(a, b)),
			func() (uint64, error) { return MulDivFloor(a, b, d) },
			func() (uint64, error) { return MulDivCeil(a, b, d) })
	})
}

func TestDivideByZero(t *testing.T) {
	u := Uint128{1, 1}
	for name, divide := range map[string]func() (uint64, error){
		"DivFloor":    func() (uint64, error) { return u.DivFloor(0) },
		"DivCeil":     func() (uint64, error) { return u.DivCeil(0) },
		"MulDivFloor": func() (uint64, error) { return MulDivFloor(1, 1, 0) },
		"MulDivCeil":  func() (uint64, error) { return MulDivCeil(0, 0, 0) },
	} {
		if got, err := divide(); got != 0 || !errors.Is(err, ErrDivideByZero) {
			t.Errorf("%s by zero = %d, %v", name, got, err)
		}
	}
}

func TestDivisionEdges(t *testing.T) {
	if got, err := Mul(math.MaxUint64, 7).DivCeil(7); got != math.MaxUint64 || err != nil {
		t.Errorf("exact largest quotient: %d, %v", got, err)
	}
	above, _ := Mul(math.MaxUint64, 7).Add(Uint128{Lo: 1})
	if got, err := above.DivFloor(7); got != math.MaxUint64 || err != nil {
		t.Errorf("floor just above the largest quotient: %d, %v", got, err)
	}
	if got, err := above.DivCeil(7); got != 0 || !errors.Is(err, ErrOverflow) {
		t.Errorf("ceil just above the largest quotient: %d, %v", got, err)
	}
	if got, err := maxUint128.Add(Uint128{Lo: 1}); got != (Uint128{}) || !errors.Is(err, ErrOverflow) {
		t.Errorf("largest + 1 = %v, %v", got, err)
	}
}
