package market

import (
	"bytes"
	"math"
	"strconv"
	"strings"

	"blockdesk/feed/archive"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

const (
	// PathUDF is the address that a chart's UDF adapter is configured with (TradingView's
	// Universal Data Feed).
	PathUDF = "/udf"
	// MaxBars is the largest number of bars of an answer: a month of quarter hours.
	MaxBars = 3000
	// maxSearch is the largest number of symbols that a search returns.
	maxSearch     = 100
	defaultSearch = 30
	udfTimezone   = "Etc/UTC"
)

// resolutions are the UDF names of the archive's intervals; a day has two.
var resolutions = [...]struct {
	name     string
	interval archive.Interval
}{
	{"1", archive.Minute1},
	{"5", archive.Minute5},
	{"15", archive.Minute15},
	{"60", archive.Hour1},
	{"240", archive.Hour4},
	{"1D", archive.Day1},
	{"D", archive.Day1},
}

// udfPages serves UDF. Unknown parameters are ignored, because adapters send more than the
// protocol has, and an error is an answer with status 200, because adapters do not look at
// the status.
type udfPages struct {
	market  *pages
	history History // nil = none
	service string  // name of the exchange
	now     func() int64
}

func udfRoutes(m *pages, o *Options) []wire.Route {
	u := &udfPages{market: m, history: o.History, service: o.Service, now: o.Now}
	row := func(name, query string, cache wire.Cache, read wire.Reader) wire.Route {
		r := wire.Get(PathUDF+"/"+name, wire.OnREST, cache, wire.PartnerLimit, wire.GroupMarket, read)
		r.Query = query
		return r
	}
	return []wire.Route{
		row("config", "", wire.ConfigData, wire.NewPage(wire.Encode(u.config())).Serve),
		row("symbols", "symbol={symbol}", wire.ConfigData, u.serveSymbol),
		row("search", "", wire.ConfigData, u.serveSearch),
		row("history", "symbol={symbol}&resolution=60&to={to}&countback={countback}", wire.LiveData, u.serveHistory),
		row("time", "", wire.NeverCached, u.serveTime),
	}
}

type udfConfig struct {
	Search        bool          `json:"supports_search"`
	Group         bool          `json:"supports_group_request"`
	Marks         bool          `json:"supports_marks"`
	TimeMarks     bool          `json:"supports_timescale_marks"`
	Time          bool          `json:"supports_time"`
	Exchanges     []udfExchange `json:"exchanges"`
	SymbolTypes   []udfType     `json:"symbols_types"`
	Resolutions   []string      `json:"supported_resolutions"`
	CurrencyCodes []string      `json:"currency_codes"`
}

type udfExchange struct {
	Value string `json:"value"`
	Name  string `json:"name"`
	Desc  string `json:"desc"`
}

type udfType struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

func (u *udfPages) config() *udfConfig {
	c := &udfConfig{
		Search: true, Time: true, Resolutions: udfResolutions(), CurrencyCodes: []string{},
		Exchanges:   []udfExchange{{"", "All exchanges", ""}, {u.service, u.service, u.service}},
		SymbolTypes: []udfType{{"All types", ""}, {"Crypto", udfCrypto}},
	}
	seen := map[string]bool{}
	for i := range u.market.set.Len() {
		if quote := u.market.set.Get(market.InstrumentID(i)).Quote; !seen[quote] {
			seen[quote] = true
			c.CurrencyCodes = append(c.CurrencyCodes, quote)
		}
	}
	return c
}

// udfCrypto is the type of all symbols.
const udfCrypto = "crypto"

func udfResolutions() []string {
	all := make([]string, 0, len(resolutions))
	for _, r := range resolutions[:len(resolutions)-1] {
		all = append(all, r.name)
	}
	return all
}

type udfSymbol struct {
	Name            string   `json:"name"`
	Ticker          string   `json:"ticker"`
	Description     string   `json:"description"`
	Type            string   `json:"type"`
	Session         string   `json:"session"`
	Exchange        string   `json:"exchange"`
	ListedExchange  string   `json:"listed_exchange"`
	Timezone        string   `json:"timezone"`
	Format          string   `json:"format"`
	MinMove         int64    `json:"minmov"`
	MinMove2        int64    `json:"minmov2"`
	PriceScale      uint64   `json:"pricescale"`
	Intraday        bool     `json:"has_intraday"`
	Daily           bool     `json:"has_daily"`
	Weekly          bool     `json:"has_weekly_and_monthly"`
	Multipliers     []string `json:"intraday_multipliers"`
	Resolutions     []string `json:"supported_resolutions"`
	VolumePrecision uint8    `json:"volume_precision"`
	Status          string   `json:"data_status"`
	Currency        string   `json:"currency_code"`
}

// instrument returns the instrument of the parameter symbol, with or without the exchange
// before a colon; nil if there is none.
func (u *udfPages) instrument(query []byte) *market.Instrument {
	raw, count := wire.Param(query, "symbol")
	if count != 1 {
		return nil
	}
	var buf [wire.MaxQueryValue]byte
	symbol, ok := wire.AppendUnescaped(buf[:0], raw)
	if !ok {
		return nil
	}
	if _, after, found := bytes.Cut(symbol, []byte{':'}); found {
		symbol = after
	}
	return u.market.set.Lookup(symbol)
}

func (u *udfPages) serveSymbol(query []byte) (*wire.Page, *wire.Problem) {
	in := u.instrument(query)
	if in == nil {
		return udfError("unknown_symbol")
	}
	all := udfResolutions()
	return wire.NewPage(wire.Encode(&udfSymbol{
		Name: in.Symbol, Ticker: in.Symbol, Description: in.Base + " / " + in.Quote, Type: udfCrypto, Session: "24x7",
		Exchange: u.service, ListedExchange: u.service, Timezone: udfTimezone, Format: "price",
		MinMove: int64(in.Tick), PriceScale: uint64(math.Pow10(int(in.PriceDecimals))),
		Intraday: true, Daily: true, Multipliers: all[:len(all)-1], Resolutions: all,
		VolumePrecision: in.QtyDecimals, Status: "streaming", Currency: in.Quote,
	})), nil
}

type udfFound struct {
	Symbol      string `json:"symbol"`
	FullName    string `json:"full_name"`
	Description string `json:"description"`
	Exchange    string `json:"exchange"`
	Ticker      string `json:"ticker"`
	Type        string `json:"type"`
}

// serveSearch returns the symbols that contain the text of the parameter query, in any case.
func (u *udfPages) serveSearch(query []byte) (*wire.Page, *wire.Problem) {
	value := func(name string) string {
		raw, _ := wire.Param(query, name)
		var buf [wire.MaxQueryValue]byte
		text, ok := wire.AppendUnescaped(buf[:0], raw)
		if !ok {
			return "\x00" // in no symbol
		}
		return string(text)
	}
	limit, bad := numberParam(query, "limit", defaultSearch, math.MaxInt32)
	if bad != nil {
		return udfError(bad.Text)
	}
	found := []udfFound{}
	wanted, exchange, kind := strings.ToUpper(value("query")), value("exchange"), value("type")
	if exchange != "" && exchange != u.service || kind != "" && kind != udfCrypto {
		return wire.NewPage(wire.Encode(found)), nil
	}
	for i := range u.market.set.Len() {
		in := u.market.set.Get(market.InstrumentID(i))
		if uint64(len(found)) == min(limit, maxSearch) {
			break
		}
		if strings.Contains(strings.ToUpper(in.Symbol), wanted) {
			found = append(found, udfFound{
				Symbol: in.Symbol, FullName: u.service + ":" + in.Symbol, Description: in.Base + " / " + in.Quote,
				Exchange: u.service, Ticker: in.Symbol, Type: udfCrypto,
			})
		}
	}
	return wire.NewPage(wire.Encode(found)), nil
}

// barRequest is what a chart asks of the history: the bars that open from a time to before
// another, Unix nanoseconds; count, if it is not 0, the newest so many before to instead.
type barRequest struct {
	in       *market.Instrument
	interval archive.Interval
	from, to int64
	count    int
}

func (u *udfPages) barRequest(query []byte) (r barRequest, wrong string) {
	if r.in = u.instrument(query); r.in == nil {
		return r, "unknown_symbol"
	}
	raw, _ := wire.Param(query, "resolution")
	for _, known := range resolutions {
		if string(raw) == known.name {
			r.interval = known.interval
		}
	}
	if r.interval == 0 {
		return r, "resolution must be one of " + strings.Join(udfResolutions(), ", ") + "."
	}
	const most = math.MaxInt64/nanosPerSecond - 1
	seconds := func(name string, byDefault uint64) int64 {
		n, bad := numberParam(query, name, byDefault, math.MaxInt64)
		if bad != nil && wrong == "" {
			wrong = bad.Text
		}
		return int64(min(n, most)) * nanosPerSecond
	}
	r.from, r.to = seconds("from", 0), seconds("to", most)
	count, bad := numberParam(query, "countback", 0, MaxBars)
	if bad != nil && wrong == "" {
		wrong = bad.Text
	}
	r.count = int(count)
	return r, wrong
}

// serveHistory returns bars, oldest first, in arrays by column.
func (u *udfPages) serveHistory(query []byte) (*wire.Page, *wire.Problem) {
	r, wrong := u.barRequest(query)
	if wrong != "" {
		return udfError(wrong)
	}
	if u.history == nil || r.to <= 0 {
		return wire.NewPage([]byte(udfNoData + "}")), nil
	}
	bars, older, tooMany, err := r.read(u.history)
	switch {
	case err != nil:
		return nil, historyFailed(err)
	case tooMany:
		return udfError("There are more than " + strconv.Itoa(MaxBars) + " bars from from to to. Ask for fewer.")
	case len(bars) > 0:
		return wire.NewPage(appendBars(r.in, bars)), nil
	}
	body := []byte(udfNoData)
	if older != 0 {
		body = strconv.AppendInt(append(body, `,"nextTime":`...), older/nanosPerSecond, 10)
	}
	return wire.NewPage(append(body, '}')), nil
}

const udfNoData = `{"s":"no_data"`

// read returns the bars that r asks for, oldest first. older is the time of the newest bar
// before them, if there are none; 0 = none either.
func (r *barRequest) read(h History) (bars []archive.Candle, older int64, tooMany bool, err error) {
	want := r.count
	if want == 0 {
		want = MaxBars + 1
	}
	var pages [][]archive.Candle // newest first
	have, before := 0, r.to
	for have < want && before > 0 {
		page, err := h.Candles(r.in.ID, r.interval, before, min(want-have, MaxCandles))
		if err != nil {
			return nil, 0, false, err
		}
		full := len(page) == min(want-have, MaxCandles)
		if r.count == 0 {
			for len(page) > 0 && page[0].OpenAt < r.from {
				older, page, full = page[0].OpenAt, page[1:], false
			}
		}
		if len(page) > 0 {
			pages, have, before = append(pages, page), have+len(page), page[0].OpenAt
		}
		if !full {
			break
		}
	}
	for i := len(pages) - 1; i >= 0; i-- {
		bars = append(bars, pages[i]...)
	}
	return bars, older, r.count == 0 && have > MaxBars, nil
}

// appendBars renders bars. Prices and volumes are numbers, as UDF has them, with all their
// digits.
func appendBars(in *market.Instrument, bars []archive.Candle) []byte {
	dst := append(make([]byte, 0, 64+80*len(bars)), `{"s":"ok"`...)
	column := func(name string, value func([]byte, *archive.Candle) []byte) {
		dst = append(append(append(dst, `,"`...), name...), `":[`...)
		for i := range bars {
			dst = value(appendComma(dst, i == 0), &bars[i])
		}
		dst = append(dst, ']')
	}
	column("t", func(dst []byte, c *archive.Candle) []byte { return strconv.AppendInt(dst, c.OpenAt/nanosPerSecond, 10) })
	column("o", func(dst []byte, c *archive.Candle) []byte { return in.AppendPrice(dst, c.Open) })
	column("h", func(dst []byte, c *archive.Candle) []byte { return in.AppendPrice(dst, c.High) })
	column("l", func(dst []byte, c *archive.Candle) []byte { return in.AppendPrice(dst, c.Low) })
	column("c", func(dst []byte, c *archive.Candle) []byte { return in.AppendPrice(dst, c.Close) })
	column("v", func(dst []byte, c *archive.Candle) []byte { return in.AppendQty(dst, c.Volume) })
	return append(dst, '}')
}

// serveTime returns the Unix time in seconds, which is both JSON and the text of the protocol.
func (u *udfPages) serveTime([]byte) (*wire.Page, *wire.Problem) {
	return &wire.Page{Body: strconv.AppendInt(nil, u.now()/nanosPerSecond, 10)}, nil
}

// udfError returns the answer to a request that cannot be served.
func udfError(text string) (*wire.Page, *wire.Problem) {
	return wire.NewPage(wire.Encode(struct {
		S    string `json:"s"`
		Text string `json:"errmsg"`
	}{"error", text})), nil
}
