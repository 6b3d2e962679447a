package market

import (
	"errors"
	"math"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseDecimal(t *testing.T) {
	for _, c := range []struct {
		text     string
		decimals int
		want     uint64
		err      error
	}{
		{"0", 0, 0, nil},
		{"1", 0, 1, nil},
		{"1", 6, 1_000_000, nil},
		{"0.50", 2, 50, nil},
		{"0.5", 2, 50, nil},
		{"007.1", 2, 710, nil},
		{"0.000001", 6, 1, nil},
		{"1.5000000000", 1, 15, nil},
		{"3.000", 0, 3, nil},
		{"18446744073709551615", 0, math.MaxUint64, nil},
		{"18.446744073709551615", 18, math.MaxUint64, nil},
		{"00000000000000000000000000000000000000000000000000000000000001.5", 1, 15, nil},

		{"18446744073709551616", 0, 0, ErrOverflow},
		{"18.446744073709551616", 18, 0, ErrOverflow},
		{"1844674407370955162", 1, 0, ErrOverflow},
		{"340282366920938463463374607431768211456", 0, 0, ErrOverflow},

		{"0.001", 2, 0, ErrDecimalPrecision},
		{"1.0000001", 6, 0, ErrDecimalPrecision},
		{"1.5", 0, 0, ErrDecimalPrecision},

		{"", 2, 0, ErrDecimalSyntax},
		{".", 2, 0, ErrDecimalSyntax},
		{".5", 2, 0, ErrDecimalSyntax},
		{"5.", 2, 0, ErrDecimalSyntax},
		{"5.", 0, 0, ErrDecimalSyntax},
		{"1.2.3", 2, 0, ErrDecimalSyntax},
		{"1..2", 2, 0, ErrDecimalSyntax},
		{"+1", 2, 0, ErrDecimalSyntax},
		{"-1", 2, 0, ErrDecimalSyntax},
		{"1e3", 2, 0, ErrDecimalSyntax},
		{"1,000", 2, 0, ErrDecimalSyntax},
		{"1_000", 2, 0, ErrDecimalSyntax},
		{" 1", 2, 0, ErrDecimalSyntax},
		{"1 ", 2, 0, ErrDecimalSyntax},
		{"0x10", 2, 0, ErrDecimalSyntax},
		{"NaN", 2, 0, ErrDecimalSyntax},
		{"Inf", 2, 0, ErrDecimalSyntax},
		{"1\x00", 2, 0, ErrDecimalSyntax},
		{"١", 2, 0, ErrDecimalSyntax}, // a digit, but not an ASCII one

		{"1", -1, 0, ErrDecimalScale},
		{"1", MaxDecimals + 1, 0, ErrDecimalScale},
		{"0.000000000000000001", MaxDecimals, 1, nil},
		{strings.Repeat("0", MaxDecimalText), 0, 0, nil},
		{strings.Repeat("0", MaxDecimalText+1), 0, 0, ErrDecimalTooLong},

		{"0.0011x", 2, 0, ErrDecimalPrecision}, // the first defect counts
		{"0.00x11", 2, 0, ErrDecimalSyntax},
	} {
		got, err := ParseDecimal([]byte(c.text), c.decimals)
		if got != c.want || !errors.Is(err, c.err) {
			t.Errorf("ParseDecimal(%q, %d) = %d, %v; want %d, %v", c.text, c.decimals, got, err, c.want, c.err)
		}
	}
}

func TestParseUint128Limits(t *testing.T) {
	for _, c := range []struct {
		text     string
		decimals int
		want     Uint128
		err      error
	}{
		{"340282366920938463463374607431768211455", 0, maxUint128, nil},
		{"340282366920938463463374607431768211456", 0, Uint128{}, ErrOverflow},
		{"340282366920938463463374607431768211460", 0, Uint128{}, ErrOverflow},
		{"999999999999999999999999999999999999999", 0, Uint128{}, ErrOverflow},
		{"340.282366920938463463374607431768211455", MaxWideDecimals, maxUint128, nil},
		{"341", MaxWideDecimals, Uint128{}, ErrOverflow},
		{"1", MaxWideDecimals + 1, Uint128{}, ErrDecimalScale},
		{"1", -1, Uint128{}, ErrDecimalScale},
		{"18446744073709551616", 0, Uint128{Hi: 1}, nil},
	} {
		got, err := ParseUint128([]byte(c.text), c.decimals)
		if got != c.want || !errors.Is(err, c.err) {
			t.Errorf("ParseUint128(%q, %d) = %v, %v; want %v, %v", c.text, c.decimals, got, err, c.want, c.err)
		}
	}
}

func TestAppendDecimal(t *testing.T) {
	for _, c := range []struct {
		value    uint64
		decimals int
		want     string
	}{
		{0, 0, "0"},
		{0, 2, "0.00"},
		{5, 2, "0.05"},
		{50, 2, "0.50"},
		{123, 2, "1.23"},
		{100, 0, "100"},
		{1, MaxDecimals, "0.000000000000000001"},
		{math.MaxUint64, 0, "18446744073709551615"},
		{math.MaxUint64, MaxDecimals, "18.446744073709551615"},
	} {
		if got := string(AppendDecimal([]byte("x"), c.value, c.decimals)); got != "x"+c.want {
			t.Errorf("AppendDecimal(%d, %d) = %q, want %q", c.value, c.decimals, got[1:], c.want)
		}
	}
}

func TestAppendWideDecimal(t *testing.T) {
	for _, c := range []struct {
		value    Uint128
		decimals int
		want     string
	}{
		{Uint128{}, MaxWideDecimals, "0." + strings.Repeat("0", 36)},
		{Uint128{Lo: 1}, MaxWideDecimals, "0." + strings.Repeat("0", 35) + "1"},
		{Uint128{Lo: 7}, 19, "0.0000000000000000007"},
		{Uint128{Hi: 1}, 0, "18446744073709551616"},
		{Uint128{Hi: 1}, 20, "0.18446744073709551616"},
		{Uint128{Hi: 1}, 19, "1.8446744073709551616"},
		{maxUint128, 0, "340282366920938463463374607431768211455"},
		{maxUint128, MaxWideDecimals, "340.282366920938463463374607431768211455"},
	} {
		if got := string(c.value.AppendDecimal([]byte("x"), c.decimals)); got != "x"+c.want {
			t.Errorf("%v.AppendDecimal(%d) = %q, want %q", c.value, c.decimals, got[1:], c.want)
		}
	}
}

// TestDecimalParseOfAppend: parsing appended text returns the value, at every scale.
func TestDecimalParseOfAppend(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value, decimals := rapid.Uint64().Draw(t, "value"), rapid.IntRange(0, MaxDecimals).Draw(t, "decimals")
		text := AppendDecimal(nil, value, decimals)
		if got, err := ParseDecimal(text, decimals); got != value || err != nil {
			t.Fatalf("%d at %d decimals is %q, parsed as %d, %v", value, decimals, text, got, err)
		}
		wide, decimals := drawUint128(t, "wide"), rapid.IntRange(0, MaxWideDecimals).Draw(t, "wide decimals")
		text = wide.AppendDecimal(nil, decimals)
		if got, err := ParseUint128(text, decimals); got != wide || err != nil {
			t.Fatalf("%v at %d decimals is %q and parses as %v, %v", wide, decimals, text, got, err)
		}
	})
}

// TestDecimalAppendOfParse: appending a parsed value returns its canonical text: no leading
// zeros, and exactly the field's fractional digits.
func TestDecimalAppendOfParse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		decimals := rapid.IntRange(0, MaxDecimals).Draw(t, "decimals")
		text := rapid.StringMatching(`0{0,3}[0-9]{1,20}(\.[0-9]{1,18}0{0,3})?`).Draw(t, "text")
		value, err := ParseDecimal([]byte(text), decimals)
		if err != nil {
			return // FuzzParseDecimal checks each error against math/big
		}
		whole, fraction, _ := strings.Cut(text, ".")
		want := strings.TrimLeft(whole, "0")
		if want == "" {
			want = "0"
		}
		if decimals > 0 {
			want += "." + (fraction + strings.Repeat("0", decimals))[:decimals]
		}
		if got := string(AppendDecimal(nil, value, decimals)); got != want {
			t.Fatalf("%q at %d decimals came back as %q, want %q", text, decimals, got, want)
		}
	})
}

// FuzzParseDecimal compares both parsers with an oracle that shares no code with them: a
// rule for the text, and math/big for the value.
func FuzzParseDecimal(f *testing.F) {
	for _, text := range []string{"0", "1.5", "007.10", "18446744073709551615", "340282366920938463463374607431768211456", "1e9", "-1", ".5", "5.", "1.0000000000000000000000000000000000001"} {
		f.Add([]byte(text), 6)
	}
	f.Fuzz(func(t *testing.T, text []byte, decimals int) {
		narrow, err := ParseDecimal(text, decimals)
		checkParse(t, text, decimals, MaxDecimals, 64, new(big.Int).SetUint64(narrow), err)
		wide, err := ParseUint128(text, decimals)
		checkParse(t, text, decimals, MaxWideDecimals, 128, bigOf(wide), err)
	})
}

func checkParse(t *testing.T, text []byte, decimals, maxDecimals, bits int, got *big.Int, err error) {
	t.Helper()
	whole, fraction, point := strings.Cut(string(text), ".")
	plain := strings.Trim(whole+fraction, "0123456789") == "" && whole != "" && (!point || fraction != "")
	if err == nil {
		if decimals < 0 || decimals > maxDecimals || !plain || len(text) > MaxDecimalText {
			t.Fatalf("%q at %d decimals was accepted", text, decimals)
		}
		want, ok := new(big.Rat).SetString(string(text))
		if !ok {
			t.Fatalf("math/big cannot read %q", text)
		}
		scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(decimals)), nil)
		want.Mul(want, new(big.Rat).SetInt(scale))
		if !want.IsInt() || want.Num().Cmp(got) != 0 {
			t.Fatalf("%q at %d decimals = %v, want %v", text, decimals, got, want)
		}
		return
	}
	if got.Sign() != 0 {
		t.Fatalf("%q at %d decimals: %v beside the error %v", text, decimals, got, err)
	}
	switch {
	case decimals < 0 || decimals > maxDecimals:
		wantError(t, text, err, ErrDecimalScale)
	case len(text) > MaxDecimalText:
		wantError(t, text, err, ErrDecimalTooLong)
	case !plain:
		if !errors.Is(err, ErrDecimalSyntax) && !errors.Is(err, ErrDecimalPrecision) && !errors.Is(err, ErrOverflow) {
			t.Fatalf("%q: %v", text, err)
		}
	default:
		value, _ := new(big.Rat).SetString(string(text))
		scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(decimals)), nil)
		value.Mul(value, new(big.Rat).SetInt(scale))
		tooFine := !value.IsInt()
		tooBig := new(big.Int).Quo(value.Num(), value.Denom()).BitLen() > bits
		switch {
		case tooFine && tooBig:
			if !errors.Is(err, ErrDecimalPrecision) && !errors.Is(err, ErrOverflow) {
				t.Fatalf("%q: %v", text, err)
			}
		case tooFine:
			wantError(t, text, err, ErrDecimalPrecision)
		case tooBig:
			wantError(t, text, err, ErrOverflow)
		default:
			t.Fatalf("%q at %d decimals is exact and fits, yet: %v", text, decimals, err)
		}
	}
}

func wantError(t *testing.T, text []byte, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Fatalf("%q: %v, want %v", text, got, want)
	}
}

func TestPow10(t *testing.T) {
	want := uint64(1)
	for n := range MaxDecimals + 2 {
		if Pow10(n) != want {
			t.Fatalf("Pow10(%d) = %d, want %d", n, Pow10(n), want)
		}
		want *= 10
	}
}

func BenchmarkParseDecimal(b *testing.B) {
	text := []byte("12000.500000")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseDecimal(text, 6); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendDecimal(b *testing.B) {
	buf := make([]byte, 0, MaxDecimalText)
	b.Run("64 bits", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			buf = AppendDecimal(buf[:0], 12_000_500_000, 6)
		}
	})
	b.Run("128 bits", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			buf = Uint128{Hi: 1 << 30, Lo: 7}.AppendDecimal(buf[:0], 12)
		}
	})
}
