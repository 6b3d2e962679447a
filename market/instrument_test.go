package market

import (
	"bytes"
	"errors"
	"math"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// slusd has prices of six digits with a tick of 0.000100, and lots of half a unit.
func slusd() Instrument {
	return Instrument{
		ID: 0, Symbol: "SLUSD/USDC", Base: "SLUSD", Quote: "USDC",
		PriceDecimals: 6, QtyDecimals: 3, Tick: 100, Lot: 500,
		MinQty: 1, MaxQty: 1 << 40, MaxPrice: 1 << 40, Source: Matched,
	}
}

func TestInstrumentValidate(t *testing.T) {
	valid := slusd()
	if err := valid.Validate(); err != nil {
		t.Fatal(err)
	}
	named := func(base, quote string) func(*Instrument) {
		return func(in *Instrument) { in.Base, in.Quote, in.Symbol = base, quote, base+"/"+quote }
	}
	for _, c := range []struct {
		name  string
		mend  func(*Instrument)
		wants string // part of the error; "" = valid
	}{
		{"longest symbol", named(strings.Repeat("B", MaxSymbol-2), "Q"), ""},
		{"symbol too long", named(strings.Repeat("B", MaxSymbol-1), "Q"), "1 to 32 bytes"},
		{"no symbol", func(in *Instrument) { in.Symbol = "" }, "1 to 32 bytes"},
		{"every kind of character", named("aZ0.9_x", "-Q"), ""},
		{"empty base", named("", "USDC"), `base ""`},
		{"empty quote", named("SLUSD", ""), `quote ""`},
		{"slash in base", named("A/B", "C"), `base "A/B"`},
		{"quotation mark", named(`A"B`, "C"), `base "A\"B"`},
		{"FIX separator", named("A", "B\x01C"), `quote "B\x01C"`},
		{"blank", named("A", "B C"), `quote "B C"`},
		{"not ASCII", named("É", "C"), `base "É"`},
		{"base is quote", named("USDC", "USDC"), "must differ"},
		{"symbol of another pair", func(in *Instrument) { in.Symbol = "92C/SLUSD" }, "must be BASE/QUOTE"},
		{"price decimals at the limit", func(in *Instrument) { in.PriceDecimals = MaxDecimals }, ""},
		{"price decimals", func(in *Instrument) { in.PriceDecimals = MaxDecimals + 1 }, "price_decimals 19"},
		{"qty decimals at the limit", func(in *Instrument) { in.QtyDecimals = MaxDecimals }, ""},
		{"qty decimals", func(in *Instrument) { in.QtyDecimals = MaxDecimals + 1 }, "qty_decimals 19"},
		{"tick", func(in *Instrument) { in.Tick = 0 }, "tick"},
		{"lot", func(in *Instrument) { in.Lot = 0 }, "lot"},
		{"min qty", func(in *Instrument) { in.MinQty = 0 }, "min_qty 0"},
		{"negative min qty", func(in *Instrument) { in.MinQty = -1 }, "min_qty -1"},
		{"min qty at max", func(in *Instrument) { in.MinQty = in.MaxQty }, ""},
		{"min qty above max", func(in *Instrument) { in.MinQty = in.MaxQty + 1 }, "min_qty"},
		{"max qty at the limit", func(in *Instrument) { in.MaxQty = MaxQty }, ""},
		{"max qty", func(in *Instrument) { in.MaxQty = MaxQty + 1 }, "max_qty"},
		{"max price at the limit", func(in *Instrument) { in.MaxPrice = MaxPrice }, ""},
		{"max price", func(in *Instrument) { in.MaxPrice = MaxPrice + 1 }, "max_price"},
		{"no max price", func(in *Instrument) { in.MaxPrice = 0 }, "max_price 0"},
		{"largest tick", func(in *Instrument) { in.Tick = 1<<24 - 1 }, ""},
		{"tick overflows", func(in *Instrument) { in.Tick = 1 << 24 }, "max_price × tick"},
		{"largest lot", func(in *Instrument) { in.Lot = 1<<24 - 1 }, ""},
		{"lot overflows", func(in *Instrument) { in.Lot = 1 << 24 }, "max_qty × lot"},
		{"mirrored", func(in *Instrument) { in.Source = Mirrored }, ""},
		{"no source", func(in *Instrument) { in.Source = 0 }, "book_source"},
		{"unknown source", func(in *Instrument) { in.Source = 3 }, "book_source"},
	} {
		in := slusd()
		c.mend(&in)
		err := in.Validate()
		switch {
		case c.wants == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.wants != "" && (err == nil || !strings.Contains(err.Error(), c.wants)):
			t.Errorf("%s: %v; want it to say %q", c.name, err, c.wants)
		}
	}
}

func TestInstrumentParse(t *testing.T) {
	in := slusd()
	for _, c := range []struct {
		text string
		want Price
		err  error
	}{
		{"0.000100", 1, nil},
		{"0.9990", 9990, nil},
		{"1", 10_000, nil},
		{"14073748835.5328", MaxPrice, nil},
		{"14073748835.5329", 0, ErrOverflow},
		{"0", 0, ErrZero},
		{"0.000000", 0, ErrZero},
		{"0.000150", 0, ErrNotOnTick},
		{"0.0000001", 0, ErrDecimalPrecision},
		{"-1", 0, ErrDecimalSyntax},
		{"99999999999999999999", 0, ErrOverflow},
	} {
		if got, err := in.ParsePrice([]byte(c.text)); got != c.want || !errors.Is(err, c.err) {
			t.Errorf("ParsePrice(%q) = %d, %v; want %d, %v", c.text, got, err, c.want, c.err)
		}
	}
	for _, c := range []struct {
		text string
		want Qty
		err  error
	}{
		{"0.5", 1, nil},
		{"12000.500", 24_001, nil},
		{"70368744177664", MaxQty, nil},
		{"70368744177664.5", 0, ErrOverflow},
		{"0.0", 0, ErrZero},
		{"0.250", 0, ErrNotOnLot},
		{"0.0005", 0, ErrDecimalPrecision},
		{"1e3", 0, ErrDecimalSyntax},
	} {
		if got, err := in.ParseQty([]byte(c.text)); got != c.want || !errors.Is(err, c.err) {
			t.Errorf("ParseQty(%q) = %d, %v; want %d, %v", c.text, got, err, c.want, c.err)
		}
	}
}

func TestInstrumentAppend(t *testing.T) {
	in := slusd()
	// A level's sum may reach 2^60 lots, and a refused price may be anything:
	// both pass 64 bits in wire units.
	for _, c := range []struct {
		got  []byte
		want string
	}{
		{in.AppendPrice(nil, 0), "0.000000"},
		{in.AppendPrice(nil, 9990), "0.999000"},
		{in.AppendPrice(nil, math.MaxInt64), "922337203685477.580700"},
		{in.AppendPrice(nil, -9990), "-0.999000"},
		{in.AppendPrice(nil, math.MinInt64), "-922337203685477.580800"},
		{in.AppendQty(nil, 0), "0.000"},
		{in.AppendQty(nil, 24_001), "12000.500"},
		{in.AppendQty(nil, 1<<60), "576460752303423488.000"},
		{in.AppendQty(nil, 1<<60+1), "576460752303423488.500"},
		{in.AppendQty(nil, -1), "-0.500"},
	} {
		if string(c.got) != c.want {
			t.Errorf("got %s, want %s", c.got, c.want)
		}
	}
}

// drawInstrument draws a valid instrument, the widest ones included.
func drawInstrument(t *rapid.T) Instrument {
	in := slusd()
	in.PriceDecimals = uint8(rapid.IntRange(0, MaxDecimals).Draw(t, "price decimals"))
	in.QtyDecimals = uint8(rapid.IntRange(0, MaxDecimals).Draw(t, "qty decimals"))
	in.MaxPrice = Price(rapid.Int64Range(1, int64(MaxPrice)).Draw(t, "max price"))
	in.MaxQty = Qty(rapid.Int64Range(1, int64(MaxQty)).Draw(t, "max qty"))
	in.Tick = rapid.Uint64Range(1, math.MaxUint64/uint64(in.MaxPrice)).Draw(t, "tick")
	in.Lot = rapid.Uint64Range(1, math.MaxUint64/uint64(in.MaxQty)).Draw(t, "lot")
	if err := in.Validate(); err != nil {
		t.Fatal(err)
	}
	return in
}

func TestInstrumentParseOfAppend(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInstrument(t)
		p := Price(rapid.Int64Range(1, int64(in.MaxPrice)).Draw(t, "price"))
		text := in.AppendPrice(nil, p)
		if got, err := in.ParsePrice(text); got != p || err != nil {
			t.Fatalf("price %d is %s and parses as %d, %v", p, text, got, err)
		}
		q := Qty(rapid.Int64Range(1, int64(in.MaxQty)).Draw(t, "qty"))
		text = in.AppendQty(nil, q)
		if got, err := in.ParseQty(text); got != q || err != nil {
			t.Fatalf("qty %d is %s and parses as %d, %v", q, text, got, err)
		}
	})
}

// TestAppendQtyAgainstBig: the text of a quantity is exact for every int64.
func TestAppendQtyAgainstBig(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInstrument(t)
		q := Qty(rapid.Int64().Draw(t, "qty"))
		want := new(big.Rat).SetFrac(
			new(big.Int).Mul(big.NewInt(int64(q)), new(big.Int).SetUint64(in.Lot)),
			new(big.Int).SetUint64(Pow10(int(in.QtyDecimals))),
		).FloatString(int(in.QtyDecimals))
		if got := string(in.AppendQty(nil, q)); got != want {
			t.Fatalf("%d lots = %s, want %s", q, got, want)
		}
	})
}

// FuzzInstrumentParse: for any text the result is in range, on the tick or lot and exactly
// the text's value; with an error it is zero.
func FuzzInstrumentParse(f *testing.F) {
	f.Add([]byte("0.9990"), uint64(100), uint8(6))
	f.Add([]byte("12000.5"), uint64(500), uint8(3))
	f.Add([]byte("140737488355328"), uint64(1), uint8(0))
	f.Add([]byte("18446744073709551616"), uint64(math.MaxUint64), uint8(18))
	f.Fuzz(func(t *testing.T, text []byte, unit uint64, decimals uint8) {
		in := slusd()
		in.Tick, in.Lot = max(unit, 1), max(unit, 1)
		in.PriceDecimals, in.QtyDecimals = decimals%(MaxDecimals+1), decimals%(MaxDecimals+1)
		keep := bytes.Clone(text)
		p, err := in.ParsePrice(text)
		checkUnits(t, text, int64(p), int64(MaxPrice), err, func() []byte { return in.AppendPrice(nil, p) })
		q, err := in.ParseQty(text)
		checkUnits(t, text, int64(q), int64(MaxQty), err, func() []byte { return in.AppendQty(nil, q) })
		if !bytes.Equal(text, keep) {
			t.Fatalf("the parser changed its input %q to %q", keep, text)
		}
	})
}

func checkUnits(t *testing.T, text []byte, n, most int64, err error, format func() []byte) {
	t.Helper()
	if err != nil {
		if n != 0 {
			t.Fatalf("%q: %d beside the error %v", text, n, err)
		}
		return
	}
	if n < 1 || n > most {
		t.Fatalf("%q = %d units, outside 1..%d", text, n, most)
	}
	want, ok := new(big.Rat).SetString(string(text))
	got, _ := new(big.Rat).SetString(string(format()))
	if !ok || want.Cmp(got) != 0 {
		t.Fatalf("%q = %d units = %s", text, n, format())
	}
}
