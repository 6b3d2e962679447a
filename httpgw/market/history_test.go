package market

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"blockdesk/engine/marketdata"
	"blockdesk/feed/archive"
	"blockdesk/httpgw/gatewaytest"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// shortHistory is a History with this many trades of instrument 0, one per minute
// until historyEnd.
type shortHistory struct {
	trades  int
	version uint64
	cursor  uint64
	asked   int
	fail    error
}

var historyEnd = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC).UnixNano()

func (h *shortHistory) Version() uint64 { return h.version }
func (h *shortHistory) Cursor() uint64  { return h.cursor }

func (h *shortHistory) Trades(in market.InstrumentID, before market.TradeID, limit int) (out []marketdata.Trade, err error) {
	h.asked++
	if before == 0 || before > market.TradeID(h.trades)+1 {
		before = market.TradeID(h.trades) + 1
	}
	for id := before - 1; in == 0 && id > 0 && len(out) < limit; id-- {
		out = append(out, marketdata.Trade{ID: id, Seq: uint64(id), At: historyEnd, Price: 1_000_000, Qty: 2_000_000, Side: market.Sell})
	}
	return out, h.fail
}

func (h *shortHistory) Candles(in market.InstrumentID, i archive.Interval, before int64, limit int) (out []archive.Candle, err error) {
	h.asked++
	if before == 0 {
		before = historyEnd + 1
	}
	length := int64(i.Length())
	newest := (before - 1) / length * length
	n := min(limit, h.trades)
	for k := n - 1; in == 0 && k >= 0; k-- {
		out = append(out, archive.Candle{
			OpenAt: newest - int64(k)*length, Open: 1_000_000, High: 3_000_000, Low: 500_000, Close: 2_000_000,
			Volume: 7_000_000, Quote: market.Mul(7_000_000, 1_500_000), Trades: 3,
		})
	}
	return out, h.fail
}

type candlesAnswer struct {
	OK         bool    `json:"ok"`
	Symbol     string  `json:"symbol"`
	Interval   string  `json:"interval"`
	NextBefore *int64  `json:"next_before"`
	Klines     [][]any `json:"klines"`
	Candles    [][]any `json:"candles"`
}

func candlesOfPage(t *testing.T, p *wire.Page, bad *wire.Problem) (a candlesAnswer) {
	t.Helper()
	if bad != nil {
		t.Fatalf("%+v", bad)
	}
	if err := json.Unmarshal(p.Body, &a); err != nil {
		t.Fatal(err)
	}
	return a
}

// TestCandlePages: the form of a candle, the defaults, and paging.
func TestCandlePages(t *testing.T) {
	b := gatewaytest.NewBooks(t)
	h := &shortHistory{trades: 2000}
	m := newPages(&Options{Instruments: b.Set, Views: b, History: h})
	d := gatewaytest.OpenAPI(t)

	p, bad := m.serveKlines([]byte("symbol=SLUSD/USDC&interval=1h&limit=2"))
	a := candlesOfPage(t, p, bad)
	const first = `[1795172400000,"100.000000","300.000000","50.000000","200.000000","3500000.000000","525000000.000000000000",3]`
	if !strings.Contains(string(p.Body), `"klines":[`+first) || len(a.Klines) != 2 || !a.OK || a.Interval != "1h" || *a.NextBefore != 1795172400000 {
		t.Errorf("got %s", p.Body)
	}
	if err := d.ValidateAs("Klines", p.Body); err != nil {
		t.Error(err)
	}
	p, bad = m.serveKlines(fmt.Appendf(nil, "symbol=SLUSD/USDC&interval=1h&limit=2&before=%d", *a.NextBefore))
	if a := candlesOfPage(t, p, bad); a.Klines[1][0] != float64(1795172400000-3600000) {
		t.Errorf("before the first page: %s", p.Body)
	}
	p, bad = m.serveKlines([]byte("symbol=SLUSD/USDC"))
	if a := candlesOfPage(t, p, bad); len(a.Klines) != defaultKlines || a.Interval != "1m" {
		t.Errorf("%d candles of %s by default", len(a.Klines), a.Interval)
	}
	p, bad = m.serveCandles([]byte("timeframe=1d"))
	if a := candlesOfPage(t, p, bad); len(a.Candles) != defaultCandles || a.Symbol != "SLUSD/USDC" || a.Interval != "1d" {
		t.Errorf("%d candles of %s, %s by default", len(a.Candles), a.Symbol, a.Interval)
	}
	if err := d.ValidateAs("Candles", p.Body); err != nil {
		t.Error(err)
	}
	p, bad = m.serveKlines([]byte("symbol=92C/SLUSD"))
	if a := candlesOfPage(t, p, bad); a.Klines == nil || len(a.Klines) != 0 || a.NextBefore != nil {
		t.Errorf("an instrument without trades: %s", p.Body)
	}
}

// TestCandlePagesAreKept: the archive is read again only after a change.
func TestCandlePagesAreKept(t *testing.T) {
	b := gatewaytest.NewBooks(t)
	h := &shortHistory{trades: 10}
	m := newPages(&Options{Instruments: b.Set, Views: b, History: h})
	get := func(query string) *wire.Page {
		p, bad := m.serveKlines([]byte(query))
		if bad != nil {
			t.Fatal(bad)
		}
		return p
	}
	first := get("symbol=SLUSD/USDC&limit=5")
	if get("symbol=SLUSD/USDC&limit=5") != first || h.asked != 1 {
		t.Errorf("asked %d times", h.asked)
	}
	if get("symbol=SLUSD/USDC&limit=5&interval=5m") == first {
		t.Error("another interval got the same page")
	}
	h.version++
	if get("symbol=SLUSD/USDC&limit=5"); h.asked != 3 {
		t.Errorf("after a change asked %d times", h.asked)
	}
	if p, bad := m.serveCandles([]byte("timeframe=1m&limit=5")); bad != nil || !strings.Contains(string(p.Body), `"candles":[`) {
		t.Errorf("klines were returned as candles: %+v %s", bad, p.Body)
	}
}

// TestTradesBefore: trades older than those of a view are paged by their cursor.
func TestTradesBefore(t *testing.T) {
	b := gatewaytest.NewBooks(t)
	m := newPages(&Options{Instruments: b.Set, Views: b, History: &shortHistory{trades: 2000}})
	p, bad := m.serveTrades([]byte("symbol=SLUSD/USDC&limit=100&before=1500"))
	if bad != nil {
		t.Fatal(bad)
	}
	var a struct {
		Trades []struct {
			ID uint64 `json:"trade_id"`
		} `json:"trades"`
	}
	if err := json.Unmarshal(p.Body, &a); err != nil || len(a.Trades) != 100 || a.Trades[0].ID != 1499 || a.Trades[99].ID != 1400 {
		t.Errorf("%v: %s", err, p.Body)
	}
	if err := gatewaytest.OpenAPI(t).ValidateAs("Trades", p.Body); err != nil {
		t.Error(err)
	}
}

// TestHistoryBehind: an archive that lags behind the view refuses to answer with a
// gap; complete answers are served.
func TestHistoryBehind(t *testing.T) {
	b := gatewaytest.NewBooks(t)
	h := &shortHistory{trades: 450}
	m := newPages(&Options{Instruments: b.Set, Views: b, History: h})
	const shown = 80_000 // the Seq of the view's trades, which are 401 to 500
	for _, c := range []struct {
		cursor, before uint64
		refused        bool
	}{
		{shown, 1500, false},
		{shown - 1, 1500, true},
		{shown - 1, 500, true},
		{shown - 1, 451, true},
		{shown - 1, 450, false},
		{shown - 1, 2, false},
		{shown, 2, false},
	} {
		h.cursor = c.cursor
		p, bad := m.serveTrades(fmt.Appendf(nil, "symbol=SLUSD/USDC&before=%d", c.before))
		switch {
		case c.refused && (bad == nil || bad.Status != 503 || bad.Code != wire.CodeOverloaded || bad.Reason != "history_behind" || bad.RetryS == 0):
			t.Errorf("%+v is answered: %+v", c, bad)
		case !c.refused && (bad != nil || len(p.Body) == 0):
			t.Errorf("%+v is refused: %+v", c, bad)
		}
	}
	// An instrument without trades has no missing trades.
	h.cursor = 0
	if _, bad := m.serveTrades([]byte("symbol=EMPTY/USDC&before=5")); bad != nil {
		t.Errorf("%+v", bad)
	}
}

// TestHistoryRefusals: invalid parameters have their codes, and a broken archive's
// text is not published.
func TestHistoryRefusals(t *testing.T) {
	b := gatewaytest.NewBooks(t)
	h := &shortHistory{trades: 10}
	m := newPages(&Options{Instruments: b.Set, Views: b, History: h})
	for _, c := range []struct{ query, code, field string }{
		{"", wire.CodeMissingField, "symbol"},
		{"symbol=X/Y", wire.CodeUnknownSymbol, "symbol"},
		{"symbol=SLUSD/USDC&limit=0", wire.CodeInvalidLimit, "limit"},
		{"symbol=SLUSD/USDC&limit=1441", wire.CodeInvalidLimit, "limit"},
		{"symbol=SLUSD/USDC&limit=-1", wire.CodeInvalidLimit, "limit"},
		{"symbol=SLUSD/USDC&limit=x", wire.CodeInvalidLimit, "limit"},
		{"symbol=SLUSD/USDC&interval=2m", wire.CodeInvalidField, "interval"},
		{"symbol=SLUSD/USDC&interval=", wire.CodeInvalidField, "interval"},
		{"symbol=SLUSD/USDC&interval=1m&interval=1m", wire.CodeInvalidField, "interval"},
		{"symbol=SLUSD/USDC&timeframe=2m", wire.CodeInvalidField, "timeframe"},
		{"symbol=SLUSD/USDC&timeframe=1m&interval=1m", wire.CodeInvalidField, "timeframe"},
		{"symbol=SLUSD/USDC&before=0", wire.CodeInvalidField, "before"},
		{"symbol=SLUSD/USDC&before=%2B5", wire.CodeInvalidField, "before"},
		{"symbol=SLUSD/USDC&before=+5", wire.CodeInvalidField, "before"},
		{"symbol=SLUSD/USDC&before=9223372036854", wire.CodeInvalidField, "before"},
		{"symbol=SLUSD/USDC&before=5&before=6", wire.CodeInvalidField, "before"},
	} {
		if _, bad := m.serveKlines([]byte(c.query)); bad == nil || bad.Status != 400 || bad.Code != c.code || bad.Field != c.field {
			t.Errorf("%s: %+v, want %s %s", c.query, bad, c.code, c.field)
		}
	}
	if _, bad := m.serveTrades([]byte("symbol=SLUSD/USDC&before=9223372036854775808")); bad == nil || bad.Field != "before" {
		t.Errorf("%+v", bad)
	}
	if _, bad := m.serveCandles([]byte("timeframe=1w")); bad == nil || bad.Field != "timeframe" {
		t.Errorf("%+v", bad)
	}
	h.fail = errors.New("disk /secret is gone")
	for _, query := range []string{"symbol=SLUSD/USDC", "symbol=SLUSD/USDC&before=5"} {
		if _, bad := m.serveKlines([]byte(query)); bad == nil || bad.Status != 500 || strings.Contains(bad.Text, "secret") {
			t.Errorf("%s: %+v", query, bad)
		}
	}
}
