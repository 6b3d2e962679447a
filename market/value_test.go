package market

import "testing"

func TestSide(t *testing.T) {
	if Buy.Opposite() != Sell || Sell.Opposite() != Buy {
		t.Error("Opposite")
	}
	for side, word := range map[Side]string{Buy: "buy", Sell: "sell", 0: "unknown", 3: "unknown"} {
		if side.String() != word {
			t.Errorf("Side(%d) = %q, want %q", uint8(side), side, word)
		}
		if side.Valid() != (word != "unknown") {
			t.Errorf("Side(%d).Valid() = %v", uint8(side), side.Valid())
		}
	}
}

func TestBookSource(t *testing.T) {
	for source, word := range map[BookSource]string{Matched: "matched", Mirrored: "mirrored", 0: "unknown"} {
		if source.String() != word {
			t.Errorf("BookSource(%d) = %q, want %q", uint8(source), source, word)
		}
	}
}

// TestNoAllocation: the order path uses these functions; none may allocate if the buffer
// has room.
func TestNoAllocation(t *testing.T) {
	in := slusd()
	set, err := NewInstruments(listOf(MaxInstruments))
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 0, 2*MaxDecimalText)
	price, qty, bad := []byte("0.999000"), []byte("12000.500"), []byte("1e9")
	symbol, longSymbol := []byte("T999/USDC"), make([]byte, 4096)
	for name, run := range map[string]func(){
		"ParseDecimal":    func() { _, _ = ParseDecimal(price, 6) },
		"ParsePrice":      func() { _, _ = in.ParsePrice(price) },
		"ParseQty":        func() { _, _ = in.ParseQty(qty) },
		"ParseQty, bad":   func() { _, _ = in.ParseQty(bad) },
		"ParseTickLots":   func() { _, _ = in.ParseTickLotsFloor(qty) },
		"AppendTickLots":  func() { buf = in.AppendTickLots(buf[:0], maxUint128) },
		"AppendDecimal":   func() { buf = AppendDecimal(buf[:0], 1<<63, 18) },
		"AppendPrice":     func() { buf = in.AppendPrice(buf[:0], 9990) },
		"AppendQty":       func() { buf = in.AppendQty(buf[:0], 24_001) },
		"AppendQty, wide": func() { buf = in.AppendQty(buf[:0], 1<<60) },
		"MulDivFloor":     func() { _, _ = MulDivFloor(1<<60, 1<<60, 1<<61) },
		"MulDivCeil":      func() { _, _ = MulDivCeil(1<<60, 1<<60, 1<<61) },
		"Get":             func() { _ = set.Get(999) },
		"Lookup":          func() { _ = set.Lookup(symbol) },
		"Lookup, unknown": func() { _ = set.Lookup(longSymbol) },
	} {
		if n := testing.AllocsPerRun(100, run); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
