package market

import (
	"github.com/valyala/fasthttp"

	"blockdesk/catalog"
	"blockdesk/engine"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// Options are what the market data endpoints are made of.
type Options struct {
	Instruments *market.Instruments
	Views       catalog.Views
	// History has the klines, the candles and the trades older than a view's. Nil:
	// there is none.
	History History
	// Signatures has the transactions that trades of mirrored instruments were made
	// by. Nil: none is known.
	Signatures Signatures
	// Facts returns what the documents of package catalog are made of: the same value
	// until the next cycle, which nobody changes. It must not block for long. Nil: no
	// document is served.
	Facts func() *catalog.Facts
	// Stream answers /api/v1/market/stream, GET or HEAD, but for X-Request-Id and the
	// headers of the limit. It must not panic. Nil: there is no such route.
	Stream  fasthttp.RequestHandler
	Service string       // name of the service
	Now     func() int64 // Unix nanoseconds
	// All are the instruments of all groups. Nil: Instruments are all.
	All *AllInstruments
}

// AllInstruments are the instruments of all groups, this one's first.
type AllInstruments struct {
	Set *market.Instruments
	// Status returns the status of an instrument of another group, or StatusUnknown.
	Status func(id market.InstrumentID) uint8
}

// StatusUnknown is the status of an instrument whose group has not been seen lately.
const StatusUnknown = 255

// Endpoints are the public market data: books, trades, candles, the catalog's
// documents and partners' formats. Any goroutine may use it.
type Endpoints struct {
	pages *pages
	o     Options
}

// New returns the endpoints.
func New(o Options) *Endpoints { return &Endpoints{newPages(&o), o} }

// View returns the newest view of an instrument; before the first one, an empty one.
func (e *Endpoints) View(id market.InstrumentID) *engine.View { return e.pages.view(id) }

// Routes returns the rows of the surface.
func (e *Endpoints) Routes() []wire.Route {
	m := e.pages
	row := func(path string, cache wire.Cache, in wire.Group, read wire.Reader) wire.Route {
		return wire.Get(path, wire.OnREST, cache, wire.MarketLimit, in, read)
	}
	symbols := row("/api/v1/market/symbols", wire.ConfigData, wire.GroupMarket, m.serveSymbols)
	symbols.Merged = wire.MergedDesks
	oracle := &oraclePages{market: m, service: e.o.Service, now: e.o.Now, facts: e.o.Facts}
	table := []wire.Route{
		symbols,
		row("/api/v1/market/ticker", wire.LiveData, wire.GroupMarket, m.serveTicker),
		row("/api/v1/market/depth", wire.LiveData, wire.GroupMarket, m.serveDepth),
		row("/api/v1/market/trades", wire.LiveData, wire.GroupMarket, m.serveTrades),
		row("/api/v1/market/klines", wire.LiveData, wire.GroupMarket, m.serveKlines),
		row("/api/v1/market/candles", wire.LiveData, wire.GroupMarket, m.serveCandles),
		row("/trades.json", wire.LiveData, "", m.serveTradesFile),
		row("/candles.json", wire.LiveData, "", m.serveCandles),
		row("/api/v1/market/oracle/heartbeat", wire.LiveData, wire.GroupMarket, oracle.serve),
	}
	table = append(table, catalogRoutes(e.o.Facts)...)
	table = append(table, partnerRoutes(m, e.o.Facts, e.o.History)...)
	if e.o.Stream != nil {
		// A connection costs one token, however long it lasts.
		table = append(table, wire.Route{
			Path: "/api/v1/market/stream", Method: wire.MethodGet, On: wire.OnREST,
			Cache: wire.NeverCached, Limit: wire.MarketLimit, Group: wire.GroupMarket, Stream: e.o.Stream,
		})
	}
	return table
}

// Signatures is where trades were made on chain. Any goroutine may call it.
type Signatures interface {
	// Signatures returns the signatures of the transactions of an instrument's trades
	// from one ordinal to another, both included, in their order; zeros for one that
	// is not known. At most MaxTrades are asked for at once.
	Signatures(in market.InstrumentID, from, to uint64) ([][64]byte, error)
}
