package engine

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"blockdesk/market"
)

func drawInstrument(t *rapid.T) market.Instrument {
	code := rapid.StringMatching(`[A-Za-z0-9._-]{1,15}`)
	in := market.Instrument{
		ID: market.InstrumentID(rapid.Uint16().Draw(t, "id")), Base: code.Draw(t, "base"), Quote: code.Draw(t, "quote"),
		PriceDecimals: rapid.Uint8Range(0, market.MaxDecimals).Draw(t, "price decimals"),
		QtyDecimals:   rapid.Uint8Range(0, market.MaxDecimals).Draw(t, "qty decimals"),
		Tick:          rapid.Uint64Range(1, 1<<62).Draw(t, "tick"), Lot: rapid.Uint64Range(1, 1<<62).Draw(t, "lot"),
		MaxQty:   market.Qty(rapid.Int64Range(1, int64(market.MaxQty)).Draw(t, "max qty")),
		MaxPrice: market.Price(rapid.Int64Range(1, int64(market.MaxPrice)).Draw(t, "max price")),
		Source:   market.BookSource(rapid.Uint8Range(1, 2).Draw(t, "source")),
	}
	in.Symbol = in.Base + "/" + in.Quote
	in.MinQty = market.Qty(rapid.Int64Range(1, int64(in.MaxQty)).Draw(t, "min qty"))
	return in
}

func TestDefinitionsSurvivePacking(t *testing.T) {
	packed := 0
	rapid.Check(t, func(t *rapid.T) {
		in := drawInstrument(t)
		c, err := DefineInstrumentCommand(&in)
		if valid := in.Validate(); (err == nil) != (valid == nil) {
			t.Fatalf("packing: %v, validation: %v", err, valid)
		}
		if err != nil {
			return
		}
		packed++
		if again, err := definition(&c); err != nil || again != in {
			t.Fatalf("%+v\nbecame %+v, %v", in, again, err)
		}
	})
	if packed == 0 {
		t.Error("nothing valid was drawn")
	}
}

func TestLimitsSurvivePacking(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := Limits{
			MaxQty:        market.Qty(rapid.Int64Range(0, int64(market.MaxQty)).Draw(t, "qty")),
			MaxNotional:   market.Uint128{Hi: rapid.Uint64().Draw(t, "hi"), Lo: rapid.Uint64().Draw(t, "lo")},
			MaxOpenOrders: rapid.Int32Range(0, 1<<31-1).Draw(t, "open"),
			BandBps:       rapid.Uint16Range(0, MaxBandBps).Draw(t, "band"),
		}
		c, err := SetRiskCommand(7, 3, l)
		if err != nil {
			t.Fatal(err)
		}
		again, err := limitsOf(&c)
		if err != nil || again != l {
			t.Fatalf("%+v\nbecame %+v, %v", l, again, err)
		}
	})
}

func TestSetRiskCommandRefuses(t *testing.T) {
	for word, l := range map[string]Limits{
		"max_qty": {MaxQty: market.MaxQty + 1}, "max_open_orders": {MaxOpenOrders: -1}, "band_bps": {BandBps: MaxBandBps + 1},
	} {
		if _, err := SetRiskCommand(1, 0, l); err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%+v: %v", l, err)
		}
	}
	if _, err := SetRiskCommand(0, 0, Limits{}); err == nil {
		t.Error("limits for the service: accepted")
	}
}

func TestCheckRedefinition(t *testing.T) {
	now := testInstrument(4)
	next := now
	next.MinQty, next.MaxQty, next.MaxPrice = 2, 3, 4
	if err := CheckRedefinition(&now, &next); err != nil {
		t.Errorf("new limits: %v", err)
	}
	for field, change := range map[string]func(*market.Instrument){
		"id":             func(in *market.Instrument) { in.ID++ },
		"symbol":         func(in *market.Instrument) { in.Symbol = "X/Y" },
		"price_decimals": func(in *market.Instrument) { in.PriceDecimals++ },
		"qty_decimals":   func(in *market.Instrument) { in.QtyDecimals++ },
		"tick":           func(in *market.Instrument) { in.Tick++ },
		"lot":            func(in *market.Instrument) { in.Lot++ },
		"book_source":    func(in *market.Instrument) { in.Source = market.Mirrored },
	} {
		next := now
		change(&next)
		if err := CheckRedefinition(&now, &next); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}
