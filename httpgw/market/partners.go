package market

import (
	"strconv"

	"blockdesk/catalog"
	"blockdesk/engine"
	"blockdesk/feed/archive"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

const (
	PathCoinGecko     = PathMarket + "adapters/coingecko/"
	PathCoinMarketCap = PathMarket + "adapters/coinmarketcap/"
	PathDEXScreener   = PathMarket + "adapters/dexscreener/"
	PairSegment       = "{market_pair}"

	// maxPartnerDepth counts both sides, as CoinGecko does.
	maxPartnerDepth = 2 * MaxDepth
	// MaxPartnerTrades is the largest limit of historical_trades, and the largest
	// number of events.
	MaxPartnerTrades     = 1000
	defaultPartnerTrades = 100
	// MaxPartnerScan is how many trades of an instrument are looked at for one
	// answer: what lies further back is refused, not left out.
	MaxPartnerScan = 10_000
	// firstScan is how much more each page of them has, since most searches end
	// soon.
	firstScan = 8
)

// partnerPages answers what aggregators ask in their own public formats and with
// a query; the documents without one are package catalog's. A refusal is ours, as
// everywhere: no aggregator reads those.
type partnerPages struct {
	market  *pages
	facts   func() *catalog.Facts
	history History     // nil: the trades come from views
	books   []pageSlots // by InstrumentID
	tickers map[string]*market.Instrument
}

// partnerRoutes are the rows of adapters with a query. There are none without
// facts, and DEX Screener's events need a history.
func partnerRoutes(pages *pages, facts func() *catalog.Facts, history History) []wire.Route {
	if facts == nil {
		return nil
	}
	p := &partnerPages{
		market: pages, facts: facts, history: history,
		books: make([]pageSlots, pages.set.Len()), tickers: map[string]*market.Instrument{},
	}
	for i := range pages.set.Len() {
		in := pages.set.Get(market.InstrumentID(i))
		p.tickers[catalog.Ticker(in.Symbol)] = in
	}
	row := func(path string, read wire.Reader) wire.Route {
		return wire.Get(path, wire.OnREST, wire.LiveData, wire.PartnerLimit, wire.GroupMarket, read)
	}
	one := func(path string, read wire.Reader) wire.Route {
		r := row(path+PairSegment, nil)
		r.ReadOne = read
		return r
	}
	return []wire.Route{
		row(PathCoinGecko+"orderbook", p.geckoBook),
		row(PathCoinGecko+"historical_trades", p.geckoTrades),
		one(PathCoinMarketCap+"orderbook/", p.coinMarketCapBook),
		one(PathCoinMarketCap+"trades/", p.coinMarketCapTrades),
		row(PathDEXScreener+"latest-block", p.latestBlock),
		row(PathDEXScreener+"asset", p.screenerAsset),
		row(PathDEXScreener+"pair", p.screenerPair),
		row(PathDEXScreener+"events", p.events),
	}
}

// ticker reads the parameter called name, a Ticker.
func (p *partnerPages) ticker(query []byte, name string) (*market.Instrument, *wire.Problem) {
	text, bad := textParam(query, name)
	if bad != nil {
		return nil, bad
	}
	if in := p.tickers[text]; in != nil {
		return in, nil
	}
	return nil, unknownNamed(name)
}

// textParam reads a parameter that must be there once.
func textParam(query []byte, name string) (string, *wire.Problem) {
	raw, count := wire.Param(query, name)
	switch {
	case count == 0 || len(raw) == 0:
		return "", wire.MissingField(name)
	case count > 1:
		return "", wire.RepeatedField(wire.CodeInvalidField, name)
	}
	var buf [wire.MaxQueryValue]byte
	text, ok := wire.AppendUnescaped(buf[:0], raw)
	if !ok {
		return "", unknownNamed(name)
	}
	return string(text), nil
}

func unknownNamed(field string) *wire.Problem {
	bad := wire.UnknownSymbol()
	bad.Field = field
	return bad
}

// numberParam reads a whole number up to most; absent means byDefault.
func numberParam(query []byte, name string, byDefault, most uint64) (uint64, *wire.Problem) {
	text, count := wire.Param(query, name)
	switch {
	case count == 0:
		return byDefault, nil
	case count > 1:
		return 0, wire.RepeatedField(wire.CodeInvalidField, name)
	}
	n, err := strconv.ParseUint(string(text), 10, 64)
	if err != nil || n > most || text[0] == '+' {
		return 0, &wire.Problem{
			Status: 400, Code: wire.CodeInvalidField, Field: name, Reason: "not_whole",
			Text: name + " must be a whole number, at most " + strconv.FormatUint(most, 10) + ".",
		}
	}
	return n, nil
}

// scan calls each with the trades of an instrument, newest first, until it
// returns false or there are none left. It refuses to go on where too many would
// be looked at, and names field then.
func (p *partnerPages) scan(in *market.Instrument, field string, each func(*engine.Trade) bool) *wire.Problem {
	if p.history == nil {
		v := p.market.view(in.ID)
		for i := range v.Trades {
			if !each(&v.Trades[i]) {
				break
			}
		}
		return nil
	}
	before, size := market.TradeID(0), firstScan
	for looked := 0; looked < MaxPartnerScan; looked += size {
		size = min(size*firstScan, archive.MaxTrades, MaxPartnerScan-looked)
		trades, err := p.history.Trades(in.ID, before, size)
		if err != nil {
			return historyFailed(err)
		}
		for i := range trades {
			if !each(&trades[i]) {
				return nil
			}
		}
		if len(trades) < size {
			return nil
		}
		before = trades[len(trades)-1].ID
	}
	if more, err := p.history.Trades(in.ID, before, 1); err != nil || len(more) == 0 {
		return historyEnded(err)
	}
	return &wire.Problem{
		Status: 400, Code: wire.CodeInvalidField, Field: field, Reason: "too_far_back",
		Text: field + " lies further back than one answer looks. /api/v1/market/trades goes on from there.",
	}
}

// historyEnded is a scan's end where there is nothing further back.
func historyEnded(err error) *wire.Problem {
	if err != nil {
		return historyFailed(err)
	}
	return nil
}

// appendQuoteAmount appends price × qty, exact.
func appendQuoteAmount(dst []byte, in *market.Instrument, t *engine.Trade) []byte {
	return in.AppendTickLots(dst, market.Mul(uint64(t.Price), uint64(t.Qty)))
}

// appendMillisOf appends a time as Unix milliseconds.
func appendMillisOf(dst []byte, at int64) []byte { return strconv.AppendInt(dst, at/nanosPerMilli, 10) }

// dotted separates rows of a list.
func appendComma(dst []byte, first bool) []byte {
	if first {
		return dst
	}
	return append(dst, ',')
}
