package wire

import (
	"math/big"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"blockdesk/engine/event"
	"blockdesk/fixgw/wire/wiretest"
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
		o := ClientOrder{Leaves: 1 << 46}
		sum := new(big.Int)
		for range rapid.IntRange(1, 6).Draw(t, "fills") {
			p := market.Price(rapid.Int64Range(1, int64(market.MaxPrice)).Draw(t, "price"))
			q := market.Qty(rapid.Int64Range(1, 1<<40).Draw(t, "qty"))
			if err := o.Trade(p, q); err != nil {
				t.Fatal(err)
			}
			sum.Add(sum, new(big.Int).Mul(big.NewInt(int64(p)), big.NewInt(int64(q))))
		}
		text := string(appendAvgPx(nil, in, o.Notional, o.Cum))
		_, fraction, _ := strings.Cut(text, ".")
		scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(len(fraction)-int(in.PriceDecimals))), nil)
		want := sum.Mul(sum, new(big.Int).SetUint64(in.Tick))
		want.Mul(want, scale).Quo(want, big.NewInt(int64(o.Cum)))
		got, ok := new(big.Int).SetString(strings.Replace(text, ".", "", 1), 10)
		if !ok || got.Cmp(want) != 0 {
			t.Fatalf("%s, want %s at %d digits", text, want, len(fraction))
		}
	})
}

func TestAvgPxTexts(t *testing.T) {
	t.Parallel()
	in := wiretest.Instruments(t).Get(0)
	whole := wiretest.Instruments(t).Get(1)
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
	in := wiretest.Instruments(t).Get(0)
	known := wiretest.StockChecker().Dictionary.FieldTypeByTag[103].Enums
	for r := event.ReasonUnknownInstrument; r < event.ReasonUnknownTicket; r++ {
		if r.String() == "unknown" {
			continue // no such number yet
		}
		e := event.Event{Code: uint16(r), Price: 15000, Qty: 1000, Aux: 500}
		text := string(AppendReason(nil, in, &e))
		if !strings.HasPrefix(text, r.String()) {
			t.Errorf("reason %d: %q", r, text)
		}
		if _, ok := known[strconv.Itoa(OrdRejOf(r))]; !ok && OrdRejOf(r) != 0 {
			t.Errorf("reason %s: OrdRejReason %d is unknown", r, OrdRejOf(r))
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
		if got := string(AppendReason(nil, in, &e)); got != want {
			t.Errorf("%s: %q, want %q", reason, got, want)
		}
	}
}
