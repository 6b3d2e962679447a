package market

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"blockdesk/catalog"
	"blockdesk/engine"
	"blockdesk/engine/marketdata"
	"blockdesk/httpgw/gatewaytest"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// heartbeat is the oracle heartbeat as a client reads it.
type heartbeat struct {
	TS        string `json:"ts"`
	EngineSeq uint64 `json:"engine_seq"`
	Pairs     []struct {
		Symbol      string  `json:"symbol"`
		Price       *string `json:"price"`
		From        string  `json:"price_source"`
		LastTrade   *string `json:"last_trade_ts"`
		Freshness   *int64  `json:"data_freshness_seconds"`
		Degradation struct {
			Degraded bool     `json:"degraded"`
			Reasons  []string `json:"reasons"`
		} `json:"degradation_state"`
	} `json:"pairs"`
}

func readHeartbeat(t *testing.T, o *oraclePages) (*wire.Page, *heartbeat) {
	t.Helper()
	p, bad := o.serve(nil)
	if bad != nil {
		t.Fatal(bad)
	}
	if err := gatewaytest.OpenAPI(t).ValidateAs("OracleHeartbeat", p.Body); err != nil {
		t.Errorf("%v in %s", err, p.Body)
	}
	h := &heartbeat{}
	if err := json.Unmarshal(p.Body, h); err != nil {
		t.Fatal(err)
	}
	return p, h
}

// TestOracleHeartbeat: each pair's price comes from its stated source, and a missing
// price is null.
func TestOracleHeartbeat(t *testing.T) {
	b := gatewaytest.NewBooks(t)
	quoted, halted := *gatewaytest.FullView(2, 7), *gatewaytest.FullView(0, 9)
	quoted.Trades, quoted.Ticker = nil, marketdata.Ticker{}
	halted.Status = engine.StatusHalted
	b.Views[1].Store(nil)
	b.Views[2].Store(&quoted)
	clock := &gatewaytest.DeskClock{}
	clock.Ns.Store(quoted.At + 2_900_000_000)
	o := &oraclePages{market: newPages(&Options{Instruments: b.Set, Views: b}), service: `a "desk"`, now: clock.Now}

	first, h := readHeartbeat(t, o)
	type row struct {
		price, from string
		fresh       int64 // -1 = null
		reasons     []string
	}
	check := func(h *heartbeat, want ...row) {
		t.Helper()
		for i, w := range want {
			p := &h.Pairs[i]
			price, fresh := "", int64(-1)
			if p.Price != nil {
				price = *p.Price
			}
			if p.Freshness != nil {
				fresh = *p.Freshness
			}
			if price != w.price || p.From != w.from || fresh != w.fresh || !slices.Equal(p.Degradation.Reasons, w.reasons) ||
				p.Degradation.Degraded != (len(w.reasons) > 0) || (p.LastTrade != nil) != (w.from == "last_trade") {
				t.Errorf("%s: %s from %s, %d s, %+v; want %+v", p.Symbol, price, p.From, fresh, p.Degradation, w)
			}
		}
	}
	none := row{from: "none", fresh: -1, reasons: []string{"no_price"}}
	mid := row{"9995.5", "book_mid", 2, []string{"no_trade_yet"}}
	check(h, row{"0.999500", "last_trade", 2, nil}, none, mid)
	if h.EngineSeq != 91_042 || len(h.Pairs) != 3 {
		t.Errorf("heartbeat %+v", h)
	}
	// Within the second it is the same page, and with a new view another.
	if again, _ := readHeartbeat(t, o); again != first {
		t.Error("rendered twice in a second")
	}
	b.Views[0].Store(&halted)
	_, h = readHeartbeat(t, o)
	check(h, row{"0.999500", "last_trade", 2, []string{"trading_halted"}}, none, mid)
	clock.Move(time.Minute)
	later, h := readHeartbeat(t, o)
	mid.fresh = 62
	check(h, row{"0.999500", "last_trade", 62, []string{"trading_halted"}}, none, mid)
	if slices.Equal(later.ETag, first.ETag) {
		t.Error("another minute has the same ETag")
	}
}

// TestOracleOfTheChain: a mirrored book counts while the facts say that it is live,
// and its age is that of the last read: a restart does not renew it.
func TestOracleOfTheChain(t *testing.T) {
	b := gatewaytest.NewBooks(t)
	quoted := *gatewaytest.FullView(1, 7)
	quoted.Trades, quoted.Ticker = nil, marketdata.Ticker{}
	b.Views[1].Store(&quoted)
	bid := catalog.Decimal{Units: market.Uint128{Lo: 1}}
	for name, c := range map[string]struct {
		pair  catalog.Pair
		from  string
		fresh int64 // -1 = null
	}{
		"of now":     {catalog.Pair{Bid: &bid, ReadAt: catalog.Time(quoted.At)}, "book_mid", 30},
		"of old":     {catalog.Pair{ReadAt: catalog.Time(quoted.At - 3600*nanosPerSecond)}, "none", 3630},
		"never read": {catalog.Pair{}, "none", -1},
	} {
		t.Run(name, func(t *testing.T) {
			c.pair.Symbol, c.pair.Source, c.pair.PriceSource = "92C/SLUSD", market.Mirrored, catalog.NoPrice
			facts := &catalog.Facts{Pairs: []catalog.Pair{c.pair}}
			o := &oraclePages{
				market: newPages(&Options{Instruments: b.Set, Views: b}), now: func() int64 { return quoted.At + 30*nanosPerSecond },
				facts: func() *catalog.Facts { return facts },
			}
			_, h := readHeartbeat(t, o)
			p, fresh := &h.Pairs[1], int64(-1)
			if p.Freshness != nil {
				fresh = *p.Freshness
			}
			if p.From != c.from || (p.Price != nil) != (c.from == "book_mid") || fresh != c.fresh {
				t.Errorf("%+v", p)
			}
		})
	}
}

// A view from a clock ahead of ours is not older than now.
func TestOracleOfTheFuture(t *testing.T) {
	b := gatewaytest.NewBooks(t)
	o := &oraclePages{market: newPages(&Options{Instruments: b.Set, Views: b}), now: func() int64 { return b.View(0).At - 5e9 }}
	if _, h := readHeartbeat(t, o); *h.Pairs[0].Freshness != 0 {
		t.Errorf("freshness %d", *h.Pairs[0].Freshness)
	}
}
