package market

import (
	"errors"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestTickLots(t *testing.T) {
	in := slusd()
	n := Mul(9990, 24_001) // 0.999000 × 12000.500
	if got, want := string(in.AppendTickLots(nil, n)), "11988.499500000"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := string(in.AppendTickLots(nil, Uint128{})), "0.000000000"; got != want {
		t.Errorf("nothing: %s, want %s", got, want)
	}
	in.PriceDecimals, in.QtyDecimals = MaxDecimals, MaxDecimals
	if got, want := string(in.AppendTickLots(nil, Uint128{Lo: 1})), "0."+strings.Repeat("0", 31)+"50000"; got != want {
		t.Errorf("least: %s, want %s", got, want)
	}
}

func TestParseTickLotsFloor(t *testing.T) {
	in := slusd() // one tick × lot is 0.000050000
	for _, c := range []struct {
		text string
		want Uint128
		err  error
	}{
		{"0.000050000", Uint128{Lo: 1}, nil},
		{"0.000099999", Uint128{Lo: 1}, nil},
		{"0.0001", Uint128{Lo: 2}, nil},
		{"10000000", Uint128{Lo: 200_000_000_000}, nil},
		{"0.000049999", Uint128{}, ErrZero},
		{"0", Uint128{}, ErrZero},
		{"0.0000500001", Uint128{}, ErrDecimalPrecision},
		{"-1", Uint128{}, ErrDecimalSyntax},
		{"340282366920938463463374607432", Uint128{}, ErrOverflow},
	} {
		if got, err := in.ParseTickLotsFloor([]byte(c.text)); got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%q = %v, %v; want %v, %v", c.text, got, err, c.want, c.err)
		}
	}
}

// TestTickLotsAgainstBig: the text of every notional is the exact product, and parses back
// if its smallest units fit a Uint128.
func TestTickLotsAgainstBig(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInstrument(t)
		n := drawUint128(t, "ticks × lots")
		units := new(big.Int).SetUint64(in.Tick)
		units.Mul(units, new(big.Int).SetUint64(in.Lot)).Mul(units, bigOf(n))
		scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(in.NotionalDecimals())), nil)
		text := in.AppendTickLots(nil, n)
		if want := new(big.Rat).SetFrac(units, scale).FloatString(in.NotionalDecimals()); string(text) != want {
			t.Fatalf("%v ticks × lots = %s, want %s", n, text, want)
		}
		back, err := in.ParseTickLotsFloor(text)
		switch {
		case n == (Uint128{}):
			if !errors.Is(err, ErrZero) {
				t.Fatalf("nothing parses as %v, %v", back, err)
			}
		case len(text) > MaxDecimalText:
			if !errors.Is(err, ErrDecimalTooLong) {
				t.Fatalf("%s parses as %v, %v", text, back, err)
			}
		case units.BitLen() > 128:
			if !errors.Is(err, ErrOverflow) {
				t.Fatalf("%s parses as %v, %v", text, back, err)
			}
		case err != nil || back != n:
			t.Fatalf("%s parses as %v, %v; want %v", text, back, err, n)
		}
	})
}

// TestTickLotsLimit: an order exceeds the parsed limit exactly if it exceeds the amount.
func TestTickLotsLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInstrument(t)
		amount := Uint128{rapid.Uint64().Draw(t, "hi") >> 1, rapid.Uint64().Draw(t, "lo")}
		text := amount.AppendDecimal(nil, in.NotionalDecimals())
		limit, err := in.ParseTickLotsFloor(text)
		if err != nil && !errors.Is(err, ErrZero) {
			t.Fatal(err)
		}
		p := rapid.Int64Range(1, int64(in.MaxPrice)).Draw(t, "price")
		q := rapid.Int64Range(1, int64(in.MaxQty)).Draw(t, "qty")
		product := Mul(uint64(p), uint64(q))
		units := new(big.Int).SetUint64(in.Tick)
		units.Mul(units, new(big.Int).SetUint64(in.Lot)).Mul(units, bigOf(product))
		if got, want := product.Cmp(limit) > 0, units.Cmp(bigOf(amount)) > 0; got != want {
			t.Fatalf("%d × %d above %s: by ticks × lots %v, by amount %v", p, q, text, got, want)
		}
	})
}

// TestMidPriceAgainstBig: the mid price is (bid + ask) ÷ 2 rounded up to 10^-9, or false
// beyond 64 bits.
func TestMidPriceAgainstBig(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInstrument(t)
		price := rapid.Int64Range(1, int64(MaxPrice))
		bid, ask := Price(price.Draw(t, "bid")), Price(price.Draw(t, "ask"))
		sum := new(big.Int).Add(big.NewInt(int64(bid)), big.NewInt(int64(ask)))
		sum.Mul(sum, new(big.Int).SetUint64(in.Tick)).Mul(sum, big.NewInt(1_000_000_000))
		double := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(in.PriceDecimals)), nil)
		double.Lsh(double, 1)
		want, rest := new(big.Int).QuoRem(sum, double, new(big.Int))
		if rest.Sign() != 0 {
			want.Add(want, big.NewInt(1))
		}
		got, ok := in.MidPrice(bid, ask)
		if ok != want.IsUint64() || ok && uint64(got) != want.Uint64() {
			t.Fatalf("mid price %d, %v; want %v", got, ok, want)
		}
	})
}
