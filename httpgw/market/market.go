package market

import (
	"github.com/valyala/fasthttp"

	"blockdesk/catalog"
	"blockdesk/engine/marketdata"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// Options configures the endpoints. For the functions, see httpgw.Dependencies.
type Options struct {
	Instruments *market.Instruments
	Views       catalog.Views
	History     History               // nil = none
	Signatures  Signatures            // nil = none
	Swaps       Swaps                 // nil = none
	Facts       func() *catalog.Facts // nil = no catalog documents
	Stream      fasthttp.RequestHandler
	Service     string          // name of the service
	Now         func() int64    // Unix nanoseconds
	All         *AllInstruments // nil = Instruments are all
}

// AllInstruments are the instruments of all shards, those of this shard first.
type AllInstruments struct {
	Set *market.Instruments
	// Status returns the status of another shard's instrument, or StatusUnknown.
	Status func(id market.InstrumentID) uint8
}

// StatusUnknown is the status of an instrument whose shard is unreachable.
const StatusUnknown = 255

// Endpoints serves the public market data. It is safe for concurrent use.
type Endpoints struct {
	pages *pages
	o     Options
}

// New returns the endpoints.
func New(o Options) *Endpoints { return &Endpoints{newPages(&o), o} }

// View returns the newest view of an instrument, or an empty one before the first.
func (e *Endpoints) View(id market.InstrumentID) *marketdata.View { return e.pages.view(id) }

// Routes returns the routes of the surface.
func (e *Endpoints) Routes() []wire.Route {
	m := e.pages
	row := func(path string, cache wire.Cache, in wire.Group, read wire.Reader) wire.Route {
		return wire.Get(path, wire.OnREST, cache, wire.MarketLimit, in, read)
	}
	of := func(path string, read wire.Reader, params ...string) wire.Route {
		r := row(path, wire.LiveData, wire.GroupMarket, read)
		r.Query, r.Params = "symbol={symbol}", append([]string{"symbol"}, params...)
		return r
	}
	with := func(r wire.Route, params ...string) wire.Route {
		r.Params = params
		return r
	}
	candleParams := []string{"symbol", "limit", "before", "interval", "timeframe"}
	symbols := row("/api/v1/market/symbols", wire.ConfigData, wire.GroupMarket, m.serveSymbols)
	symbols.Merged = wire.MergedDesks
	oracle := &oraclePages{market: m, service: e.o.Service, now: e.o.Now, facts: e.o.Facts}
	table := []wire.Route{
		symbols,
		of("/api/v1/market/ticker", m.serveTicker),
		of("/api/v1/market/depth", m.serveDepth, "limit"),
		of("/api/v1/market/trades", m.serveTrades, "limit", "before"),
		of("/api/v1/market/klines", m.serveKlines, "limit", "before", "interval", "timeframe"),
		with(row("/api/v1/market/candles", wire.LiveData, wire.GroupMarket, m.serveCandles), candleParams...),
		with(row("/trades.json", wire.LiveData, "", m.serveTradesFile), "symbol", "limit", "before"),
		with(row("/candles.json", wire.LiveData, "", m.serveCandles), candleParams...),
		row("/api/v1/market/oracle/heartbeat", wire.LiveData, wire.GroupMarket, oracle.serve),
	}
	table = append(table, catalogRoutes(e.o.Facts)...)
	table = append(table, partnerRoutes(m, &e.o)...)
	table = append(table, udfRoutes(m, &e.o)...)
	if e.o.Stream != nil {
		// A connection costs one token, no matter how long it lasts.
		table = append(table, wire.Route{
			Path: "/api/v1/market/stream", Method: wire.MethodGet, On: wire.OnREST,
			Cache: wire.NeverCached, Limit: wire.MarketLimit, Group: wire.GroupMarket, Stream: e.o.Stream,
		})
	}
	return table
}

// Signatures has the on-chain transactions of trades. It is safe for concurrent use.
type Signatures interface {
	// Signatures returns the transaction signatures of an instrument's trades with the
	// ordinals from..to, in order; zeros if unknown. A call asks for at most MaxTrades.
	Signatures(in market.InstrumentID, from, to uint64) ([][64]byte, error)
}

// MaxChainSwaps bounds the swaps of one call of Swaps.ChainSwaps.
const MaxChainSwaps = 1000

// Swaps has the swaps of mirrored instruments as they are on the chain. It is safe for
// concurrent use.
type Swaps interface {
	// ChainSwaps returns the swaps of an instrument's trades with the ordinals from..to,
	// in order; zeros if unknown. A call asks for at most MaxChainSwaps.
	ChainSwaps(in market.InstrumentID, from, to uint64) ([]ChainSwap, error)
}

// ChainSwap is a swap as its transaction made it. A zero Signature means unknown.
type ChainSwap struct {
	Signature [64]byte
	Payer     string // base58 of the fee payer
	Slot      uint64
	// Base and Quote are the atoms that the vaults gained and lost.
	Base, Quote                 market.Amount
	BaseDecimals, QuoteDecimals int
}

// partnerRoutes returns the routes of adapters with a query. Without facts there are
// none.
func partnerRoutes(pages *pages, o *Options) []wire.Route {
	if o.Facts == nil {
		return nil
	}
	p := &partnerPages{
		market: pages, facts: o.Facts, history: o.History, swaps: o.Swaps, now: o.Now,
		books: make([]pageSlots, pages.set.Len()), tickers: map[string]*market.Instrument{},
	}
	for i := range pages.set.Len() {
		in := pages.set.Get(market.InstrumentID(i))
		p.tickers[catalog.Ticker(in.Symbol)] = in
	}
	row := func(path, query string, read wire.Reader) wire.Route {
		r := wire.Get(path, wire.OnREST, wire.LiveData, wire.PartnerLimit, wire.GroupMarket, read)
		r.Query = query
		return r
	}
	one := func(path string, read func(segment, query []byte) (*wire.Page, *wire.Problem)) wire.Route {
		r := row(path+PairSegment, "", nil)
		r.ReadOneOf = read
		return r
	}
	return []wire.Route{
		row(PathCoinGecko+"orderbook", "ticker_id={ticker_id}", p.geckoBook),
		row(PathCoinGecko+"historical_trades", "ticker_id={ticker_id}", p.geckoTrades),
		one(PathCoinMarketCap+"orderbook/", p.coinMarketCapBook),
		one(PathCoinMarketCap+"trades/", p.coinMarketCapTrades),
		row(PathDEXScreener+"latest-block", "", p.latestBlock),
		row(PathDEXScreener+"asset", "id={asset_id}", p.screenerAsset),
		row(PathDEXScreener+"pair", "id={pair_id}", p.screenerPair),
		row(PathDEXScreener+"events", "fromBlock={from}&toBlock={to}", p.events),
	}
}
