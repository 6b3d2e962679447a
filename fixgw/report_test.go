package fixgw

import (
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"blockdesk/engine/event"
	"blockdesk/market"
)

// TestAvgPxIsExact: the average is what exact fractions say, rounded down at
// the last digit shown.
func TestAvgPxIsExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := &market.Instrument{
			PriceDecimals: uint8(rapid.IntRange(0, 12).Draw(t, "decimals")),
			Tick:          uint64(rapid.IntRange(1, 1e6).Draw(t, "tick")),
		}
		o := clientOrder{leaves: 1 << 46}
		sum := new(big.Int)
		for range rapid.IntRange(1, 6).Draw(t, "fills") {
			p := market.Price(rapid.Int64Range(1, int64(market.MaxPrice)).Draw(t, "price"))
			q := market.Qty(rapid.Int64Range(1, 1<<40).Draw(t, "qty"))
			if err := o.trade(p, q); err != nil {
				t.Fatal(err)
			}
			sum.Add(sum, new(big.Int).Mul(big.NewInt(int64(p)), big.NewInt(int64(q))))
		}
		text := string(appendAvgPx(nil, in, o.notional, o.cum))
		_, fraction, _ := strings.Cut(text, ".")
		scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(len(fraction)-int(in.PriceDecimals))), nil)
		want := sum.Mul(sum, new(big.Int).SetUint64(in.Tick))
		want.Mul(want, scale).Quo(want, big.NewInt(int64(o.cum)))
		got, ok := new(big.Int).SetString(strings.Replace(text, ".", "", 1), 10)
		if !ok || got.Cmp(want) != 0 {
			t.Fatalf("%s, want %s at %d digits", text, want, len(fraction))
		}
	})
}

func TestAvgPxTexts(t *testing.T) {
	t.Parallel()
	in := testInstruments(t).Get(0)
	whole := testInstruments(t).Get(1)
	for _, c := range []struct {
		in       *market.Instrument
		notional uint64
		cum      market.Qty
		want     string
	}{
		{in, 0, 0, "0"},
		{in, 15000 * 4, 4, "1.5000"},
		{in, 10000 + 2*10001, 3, "1.0000666666"},
		{whole, 10 * 3, 3, "50"},
		{whole, 10 + 11, 2, "52.500000"},
	} {
		if got := string(appendAvgPx(nil, c.in, market.Uint128{Lo: c.notional}, c.cum)); got != c.want {
			t.Errorf("%d / %d: %s, want %s", c.notional, c.cum, got, c.want)
		}
	}
}

// TestReasonTexts: every reason of the engine has a text that begins with its
// word, and an OrdRejReason that the stock dictionary knows.
func TestReasonTexts(t *testing.T) {
	t.Parallel()
	in := testInstruments(t).Get(0)
	known := stockChecker().dd.FieldTypeByTag[103].Enums
	for r := event.ReasonUnknownInstrument; r <= event.ReasonInvalidCommand; r++ {
		e := event.Event{Code: uint16(r), Price: 15000, Qty: 1000, Aux: 500}
		text := string(appendReason(nil, in, &e))
		if !strings.HasPrefix(text, r.String()) {
			t.Errorf("reason %d: %q", r, text)
		}
		if _, ok := known[string(appendOrderID(nil, market.OrderID(ordRejOf(r))))]; !ok && ordRejOf(r) != 0 {
			t.Errorf("reason %s: OrdRejReason %d is unknown", r, ordRejOf(r))
		}
	}
	for reason, want := range map[event.Reason]string{
		event.ReasonMaxQty:        "max_qty: OrderQty (38) 10.00, the limit is 5.00",
		event.ReasonMaxPrice:      "max_price: Price (44) 1.5000, the limit is 0.0500",
		event.ReasonPriceBand:     "price_band: Price (44) 1.5000, the band ends at 0.0500",
		event.ReasonMaxNotional:   "max_notional: Price (44) 1.5000, OrderQty (38) 10.00, the limit of their product is 0.000500",
		event.ReasonMaxOpenOrders: "max_open_orders: the limit is 500",
		event.ReasonPostOnly:      "post_only_would_take: Price (44) 1.5000",
		event.ReasonHalted:        "halted",
	} {
		e := event.Event{Code: uint16(reason), Price: 15000, Qty: 1000, Aux: 500}
		if got := string(appendReason(nil, in, &e)); got != want {
			t.Errorf("%s: %q, want %q", reason, got, want)
		}
	}
}

func TestOrderRecord(t *testing.T) {
	t.Parallel()
	s := &session{number: 7}
	find := func(n uint16) *session {
		if n == 7 {
			return s
		}
		return nil
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint64()
		want := order{session: s, clientOrder: clientOrder{
			id: market.OrderID(n.Draw(t, "id")), clOrdID: rapid.StringN(1, 20, 40).Draw(t, "clOrdID"),
			instrument: market.InstrumentID(rapid.Uint16().Draw(t, "in")), side: market.Side(rapid.Byte().Draw(t, "side")),
			status: rapid.Byte().Draw(t, "status"), price: market.Price(n.Draw(t, "price")), total: market.Qty(n.Draw(t, "total")),
			leaves: market.Qty(n.Draw(t, "leaves")), cum: market.Qty(n.Draw(t, "cum")),
			notional: market.Uint128{Hi: n.Draw(t, "hi"), Lo: n.Draw(t, "lo")},
		}}
		got, err := parseOrderRecord(want.id, want.appendRecord(nil), find)
		if err != nil || *got != want {
			t.Fatalf("%+v, %v; want %+v", got, err, want)
		}
	})
	for _, bad := range [][]byte{nil, {1}, make([]byte, orderRecordSize+5)} {
		if _, err := parseOrderRecord(1, bad, find); err == nil {
			t.Errorf("%x passed", bad)
		}
	}
	other := order{session: &session{number: 8}, clientOrder: clientOrder{clOrdID: "x"}}
	if o, err := parseOrderRecord(1, other.appendRecord(nil), find); o != nil || err != nil {
		t.Errorf("order of a session that is no more: %v, %v", o, err)
	}
	if _, err := parseAnswer([]byte{1, 2}); err == nil {
		t.Error("short answer passed")
	}
}
