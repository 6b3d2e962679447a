package market

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"blockdesk/engine/marketdata"
	"blockdesk/feed/archive"
	"blockdesk/httpgw/gatewaytest"
	"blockdesk/market"
)

// barHistory has candles of instrument 0 at these seconds, in every interval.
type barHistory struct {
	seconds []int64 // ascending
	fail    error
}

func (h *barHistory) Version() uint64 { return 1 }
func (h *barHistory) Cursor() uint64  { return 1 }

func (h *barHistory) Trades(market.InstrumentID, market.TradeID, int) ([]marketdata.Trade, error) {
	return nil, h.fail
}

func (h *barHistory) Candles(in market.InstrumentID, _ archive.Interval, before int64, limit int) (out []archive.Candle, err error) {
	for i := len(h.seconds) - 1; i >= 0 && in == 0 && len(out) < limit; i-- {
		if at := h.seconds[i] * nanosPerSecond; before == 0 || at < before {
			out = append(out, archive.Candle{OpenAt: at, Open: 10_000, High: 10_002, Low: 9_999, Close: 10_001, Volume: market.Qty(i + 1)})
		}
	}
	slices.Reverse(out)
	return out, h.fail
}

type udfAnswer struct {
	S    string  `json:"s"`
	Text string  `json:"errmsg"`
	Next *int64  `json:"nextTime"`
	T    []int64 `json:"t"`
}

func newUDF(t *testing.T, h History) *udfPages {
	t.Helper()
	b := gatewaytest.NewBooks(t)
	o := &Options{Instruments: b.Set, Views: b, History: h, Service: "blockdesk", Now: func() int64 { return historyEnd }}
	return &udfPages{market: newPages(o), history: o.History, service: o.Service, now: o.Now}
}

func (u *udfPages) bars(t *testing.T, query string) (a udfAnswer) {
	t.Helper()
	p, bad := u.serveHistory([]byte(query))
	if bad != nil {
		t.Fatalf("%s: %+v", query, bad)
	}
	if err := json.Unmarshal(p.Body, &a); err != nil {
		t.Fatalf("%s: %v: %s", query, err, p.Body)
	}
	return a
}

// TestUDFHistory holds the bars to the published protocol (docs/specification.md C.6): from is
// inclusive, to is not, countback counts back from to whatever from says, and where there are
// no bars nextTime is that of the newest bar before.
func TestUDFHistory(t *testing.T) {
	u := newUDF(t, &barHistory{seconds: []int64{1000, 1060, 1180, 1240}})
	next := func(at int64) *int64 { return &at }
	for query, want := range map[string]udfAnswer{
		"from=1060&to=1240":                 {S: "ok", T: []int64{1060, 1180}},
		"from=1060&to=1241":                 {S: "ok", T: []int64{1060, 1180, 1240}},
		"from=1239&to=1240":                 {S: "no_data", Next: next(1180)},
		"from=0&to=1000":                    {S: "no_data"},
		"from=5000&to=6000":                 {S: "no_data", Next: next(1240)},
		"from=1200&to=1240&countback=2":     {S: "ok", T: []int64{1060, 1180}},
		"from=1&to=2000&countback=1":        {S: "ok", T: []int64{1240}},
		"from=1&to=2000&countback=3000":     {S: "ok", T: []int64{1000, 1060, 1180, 1240}},
		"from=0&to=9223372036854775807":     {S: "ok", T: []int64{1000, 1060, 1180, 1240}},
		"from=0&to=0":                       {S: "no_data"},
		"from=1%30%30%30&to=1001":           {S: "ok", T: []int64{1000}},
		"from=-5&to=2000":                   {S: "error", Text: "from must be"},
		"from=1.5&to=2000":                  {S: "error", Text: "from must be"},
		"from=1&to=x":                       {S: "error", Text: "to must be"},
		"from=1&to=2000&countback=3001":     {S: "error", Text: "countback must be"},
		"from=0&to=2000&currencyCode=USD":   {S: "ok", T: []int64{1000, 1060, 1180, 1240}},
		"from=1&to=99999999999999999999999": {S: "error", Text: "to must be"},
	} {
		for _, resolution := range []string{"1", "5", "15", "60", "240", "1D", "D"} {
			got := u.bars(t, "symbol=SLUSD%2FUSDC&resolution="+resolution+"&"+query)
			if got.S != want.S || !strings.HasPrefix(got.Text, want.Text) || !slices.Equal(got.T, want.T) || !reflect.DeepEqual(got.Next, want.Next) {
				t.Errorf("%s %s: %+v; want %+v", resolution, query, got, want)
			}
		}
	}
	for _, query := range []string{"resolution=1&symbol=X/Y", "resolution=1", "symbol=SLUSD/USDC", "symbol=SLUSD/USDC&resolution=30", "symbol=%zz&resolution=1"} {
		if got := u.bars(t, query); got.S != "error" || got.Text == "" {
			t.Errorf("%s: %+v", query, got)
		}
	}
	p, _ := u.serveHistory([]byte("symbol=blockdesk:SLUSD/USDC&resolution=1&from=1060&to=1200"))
	// A tick is 0.0001, a lot 0.5.
	const want = `{"s":"ok","t":[1060,1180],"o":[1.000000,1.000000],"h":[1.000200,1.000200],"l":[0.999900,0.999900],"c":[1.000100,1.000100],"v":[1.000000,1.500000]}`
	if string(p.Body) != want {
		t.Errorf("got\n%s\nwant\n%s", p.Body, want)
	}
}

// TestUDFLongHistory: bars of several pages are in order, and more than MaxBars are refused,
// not cut off.
func TestUDFLongHistory(t *testing.T) {
	h := &barHistory{}
	for i := range MaxBars + 1 {
		h.seconds = append(h.seconds, int64(60*(i+1)))
	}
	u := newUDF(t, h)
	last := int64(60 * (MaxBars + 1))
	const head = "symbol=SLUSD/USDC&resolution=1&"
	if a := u.bars(t, head+fmt.Sprintf("from=0&to=%d", last)); !slices.Equal(a.T, h.seconds[:MaxBars]) {
		t.Errorf("%d bars, %s %s", len(a.T), a.S, a.Text)
	}
	if a := u.bars(t, head+fmt.Sprintf("from=0&to=%d", last+1)); a.S != "error" {
		t.Errorf("too many bars: %s with %d", a.S, len(a.T))
	}
	if a := u.bars(t, head+fmt.Sprintf("from=0&to=%d&countback=%d", last+1, MaxBars)); !slices.Equal(a.T, h.seconds[1:]) {
		t.Errorf("countback: %d bars, %s", len(a.T), a.S)
	}
	h.fail = errors.New("the store is on fire")
	if _, bad := u.serveHistory([]byte(head + "from=0&to=100")); bad == nil || bad.Status != 500 {
		t.Errorf("a history that cannot be read: %+v", bad)
	}
	if a := newUDF(t, nil).bars(t, head+"from=0&to=100"); a.S != "no_data" {
		t.Errorf("without a history: %+v", a)
	}
}

// TestUDFSymbols holds config, symbols, search and time to the published protocol.
func TestUDFSymbols(t *testing.T) {
	u := newUDF(t, nil)
	c := u.config()
	if !c.Search || c.Group || c.Marks || c.TimeMarks || !c.Time || c.Exchanges[0].Value != "" || c.SymbolTypes[0].Value != "" ||
		!slices.Equal(c.Resolutions, []string{"1", "5", "15", "60", "240", "1D"}) {
		t.Errorf("config %+v", c)
	}
	p, bad := u.serveSymbol([]byte("symbol=BLOCKDESK%3ASLUSD%2FUSDC"))
	if bad != nil {
		t.Fatal(bad)
	}
	var s udfSymbol
	if err := json.Unmarshal(p.Body, &s); err != nil {
		t.Fatal(err)
	}
	want := udfSymbol{
		Name: "SLUSD/USDC", Ticker: "SLUSD/USDC", Description: "SLUSD / USDC", Type: "crypto", Session: "24x7", Exchange: "blockdesk",
		ListedExchange: "blockdesk", Timezone: "Etc/UTC", Format: "price", MinMove: 100, PriceScale: 1_000_000, Intraday: true, Daily: true,
		Multipliers: []string{"1", "5", "15", "60", "240"}, Resolutions: c.Resolutions, VolumePrecision: 6, Status: "streaming", Currency: "USDC",
	}
	if !reflect.DeepEqual(s, want) {
		t.Errorf("symbol %+v\nwant %+v", s, want)
	}
	for _, query := range []string{"", "symbol=", "symbol=X/Y", "symbol=SLUSD/USDC&symbol=SLUSD/USDC"} {
		if p, bad := u.serveSymbol([]byte(query)); bad != nil || string(p.Body) != `{"s":"error","errmsg":"unknown_symbol"}` {
			t.Errorf("%q: %v, %+v", query, p, bad)
		}
	}
	for query, want := range map[string]int{
		"": 3, "query=slusd": 2, "query=USDC&limit=1": 1, "query=slusd&type=crypto&exchange=blockdesk&limit=30": 2, "query=slusd&exchange=NYSE": 0,
		"query=slusd&type=stock": 0, "query=%zz": 0, "query=nothing": 0, "limit=0": 0, "limit=1000000": 3,
	} {
		p, bad := u.serveSearch([]byte(query))
		var found []udfFound
		if bad != nil || json.Unmarshal(p.Body, &found) != nil || len(found) != want {
			t.Errorf("%q: %s, %+v; want %d", query, p.Body, bad, want)
		}
	}
	if p, _ := u.serveTime(nil); string(p.Body) != fmt.Sprint(historyEnd/nanosPerSecond) {
		t.Errorf("time %s", p.Body)
	}
}
