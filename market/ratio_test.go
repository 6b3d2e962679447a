package market

import (
	"errors"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

func TestNewRatio(t *testing.T) {
	for name, c := range map[string]struct {
		up, down []uint64
		exp10    int
		want     error
	}{
		"one":              {nil, nil, 0, nil},
		"all":              {[]uint64{1, 2}, []uint64{3, 4}, MaxRatioExponent, nil},
		"small":            {nil, nil, -MaxRatioExponent, nil},
		"too large":        {nil, nil, MaxRatioExponent + 1, ErrOverflow},
		"too small":        {nil, nil, -MaxRatioExponent - 1, ErrOverflow},
		"three above":      {[]uint64{1, 2, 3}, nil, 0, ErrOverflow},
		"three below":      {nil, []uint64{1, 2, 3}, 0, ErrOverflow},
		"nothing below":    {nil, []uint64{0}, 0, ErrDivideByZero},
		"nothing below, 2": {nil, []uint64{7, 0}, 0, ErrDivideByZero},
	} {
		if _, err := NewRatio(c.up, c.down, c.exp10); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	var none Ratio
	if _, err := none.Floor(Uint128{Lo: 1}); !errors.Is(err, ErrDivideByZero) {
		t.Errorf("the zero ratio: %v", err)
	}
}

// TestRatioEdges: the largest results, and one beyond.
func TestRatioEdges(t *testing.T) {
	const most = ^uint64(0)
	ratio := func(up, down []uint64, exp10 int) *Ratio {
		r, err := NewRatio(up, down, exp10)
		if err != nil {
			t.Fatal(err)
		}
		return &r
	}
	half := ratio(nil, []uint64{2}, 0)
	if q, err := half.Ceil(Uint128{1, most}); err == nil {
		t.Errorf("2^64 as %d", q)
	}
	if q, err := half.Floor(Uint128{1, most}); q != most || err != nil {
		t.Errorf("2^64 - 1/2 rounded down: %d, %v", q, err)
	}
	if q, err := half.Ceil(Uint128{1, most - 1}); q != most || err != nil {
		t.Errorf("2^64 - 1: %d, %v", q, err)
	}
	if _, err := ratio([]uint64{most, most}, nil, MaxRatioExponent).Floor(Uint128{most, most}); !errors.Is(err, ErrOverflow) {
		t.Errorf("past 256 bits: %v", err)
	}
	if q, err := ratio([]uint64{0}, []uint64{7}, 0).Ceil(Uint128{most, most}); q != 0 || err != nil {
		t.Errorf("nothing: %d, %v", q, err)
	}
}

// TestRatioAgainstBig compares both roundings with unbounded arithmetic.
func TestRatioAgainstBig(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		up := rapid.SliceOfN(rapid.Uint64(), 0, 2).Draw(t, "up")
		down := rapid.SliceOfN(rapid.Uint64Min(1), 0, 2).Draw(t, "down")
		exp10 := rapid.IntRange(-MaxRatioExponent, MaxRatioExponent).Draw(t, "exp10")
		u := drawUint128(t, "u")
		r, err := NewRatio(up, down, exp10)
		if err != nil {
			t.Fatal(err)
		}
		above, below := bigOf(u), big.NewInt(1)
		for _, w := range up {
			above.Mul(above, new(big.Int).SetUint64(w))
		}
		for _, w := range down {
			below.Mul(below, new(big.Int).SetUint64(w))
		}
		power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(exp10, -exp10))), nil)
		if exp10 < 0 {
			below.Mul(below, power)
		} else {
			above.Mul(above, power)
		}
		tooWide := above.BitLen() > 256
		floor, rest := new(big.Int).QuoRem(above, below, new(big.Int))
		ceil := new(big.Int).Set(floor)
		if rest.Sign() > 0 {
			ceil.Add(ceil, big.NewInt(1))
		}
		check := func(name string, got uint64, err error, want *big.Int) {
			switch {
			case err == nil && (!want.IsUint64() || want.Uint64() != got):
				t.Fatalf("%s: %d, want %s", name, got, want)
			case err != nil && !tooWide && want.IsUint64():
				t.Fatalf("%s: %v, want %s", name, err, want)
			}
		}
		q, err := r.Floor(u)
		check("floor", q, err, floor)
		q, err = r.Ceil(u)
		check("ceil", q, err, ceil)
	})
}
