package httpgw

import (
	"strconv"

	"blockdesk/catalog"
	"blockdesk/engine"
	"blockdesk/feed/archive"
	"blockdesk/market"
)

const (
	pathGecko    = pathMarket + "adapters/coingecko/"
	pathCap      = pathMarket + "adapters/coinmarketcap/"
	pathScreener = pathMarket + "adapters/dexscreener/"
	pairSegment  = "{market_pair}"

	// maxPartnerDepth counts both sides, as CoinGecko does.
	maxPartnerDepth = 2 * MaxDepth
	// maxPartnerTrades is the largest limit of historical_trades, and the largest
	// number of events.
	maxPartnerTrades     = 1000
	defaultPartnerTrades = 100
	// maxPartnerScan is how many trades of an instrument are looked at for one
	// answer: what lies further back is refused, not left out.
	maxPartnerScan = 10_000
	// firstScan is how much more each page of them has, since most searches end
	// soon.
	firstScan = 8
)

// partnerPages answers what aggregators ask in their own public formats and with
// a query; the documents without one are package catalog's. A refusal is ours, as
// everywhere: no aggregator reads those.
type partnerPages struct {
	market  *marketPages
	facts   func() *catalog.Facts
	history History // nil: views tell the trades
	books   []shelf // by InstrumentID
	tickers map[string]*market.Instrument
}

// partnerRoutes are the rows of adapters with a query. There are none without
// facts, and DEX Screener's events need a history.
func partnerRoutes(pages *marketPages, facts func() *catalog.Facts, history History) []route {
	if facts == nil {
		return nil
	}
	p := &partnerPages{
		market: pages, facts: facts, history: history,
		books: make([]shelf, pages.set.Len()), tickers: map[string]*market.Instrument{},
	}
	for i := range pages.set.Len() {
		in := pages.set.Get(market.InstrumentID(i))
		p.tickers[catalog.Ticker(in.Symbol)] = in
	}
	row := func(path string, read func([]byte) (*page, *problem)) route {
		return route{
			path: path, method: methodGet, surfaces: onBase | onAPI, cache: liveData, limit: partnerLimit, group: groupMarket, read: read,
		}
	}
	one := func(path string, read func([]byte) (*page, *problem)) route {
		r := row(path+pairSegment, nil)
		r.readOne = read
		return r
	}
	return []route{
		row(pathGecko+"orderbook", p.geckoBook),
		row(pathGecko+"historical_trades", p.geckoTrades),
		one(pathCap+"orderbook/", p.capBook),
		one(pathCap+"trades/", p.capTrades),
		row(pathScreener+"latest-block", p.latestBlock),
		row(pathScreener+"asset", p.screenerAsset),
		row(pathScreener+"pair", p.screenerPair),
		row(pathScreener+"events", p.events),
	}
}

// ticker reads the parameter called name, a Ticker.
func (p *partnerPages) ticker(query []byte, name string) (*market.Instrument, *problem) {
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
func textParam(query []byte, name string) (string, *problem) {
	raw, count := param(query, name)
	switch {
	case count == 0 || len(raw) == 0:
		return "", missingField(name)
	case count > 1:
		return "", repeatedField(codeInvalidField, name)
	}
	var buf [maxQueryValue]byte
	text, ok := appendUnescaped(buf[:0], raw)
	if !ok {
		return "", unknownNamed(name)
	}
	return string(text), nil
}

func unknownNamed(field string) *problem {
	bad := unknownSymbol()
	bad.field = field
	return bad
}

// numberParam reads a whole number up to most; absent means byDefault.
func numberParam(query []byte, name string, byDefault, most uint64) (uint64, *problem) {
	text, count := param(query, name)
	switch {
	case count == 0:
		return byDefault, nil
	case count > 1:
		return 0, repeatedField(codeInvalidField, name)
	}
	n, err := strconv.ParseUint(string(text), 10, 64)
	if err != nil || n > most || text[0] == '+' {
		return 0, &problem{
			status: 400, code: codeInvalidField, field: name, reason: "not_whole",
			text: name + " must be a whole number, at most " + strconv.FormatUint(most, 10) + ".",
		}
	}
	return n, nil
}

// scan calls each with the trades of an instrument, newest first, until it
// returns false or there are none left. It refuses to go on where too many would
// be looked at, and names field then.
func (p *partnerPages) scan(in *market.Instrument, field string, each func(*engine.Trade) bool) *problem {
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
	for looked := 0; looked < maxPartnerScan; looked += size {
		size = min(size*firstScan, archive.MaxTrades, maxPartnerScan-looked)
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
	return &problem{
		status: 400, code: codeInvalidField, field: field, reason: "too_far_back",
		text: field + " lies further back than one answer looks. /api/v1/market/trades goes on from there.",
	}
}

// historyEnded is a scan's end where there is nothing further back.
func historyEnded(err error) *problem {
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
func dotted(dst []byte, first bool) []byte {
	if first {
		return dst
	}
	return append(dst, ',')
}
