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

func New(o Options) *Endpoints { return &Endpoints{newPages(&o), o} }

// View returns the newest view of an instrument; before the first one, an empty one.
func (e *Endpoints) View(id market.InstrumentID) *engine.View { return e.pages.view(id) }

// Routes returns the rows of the surface.
func (e *Endpoints) Routes() []wire.Route {
	m := e.pages
	table := []wire.Route{
		{
			Path: "/api/v1/market/symbols", Method: wire.MethodGet, On: wire.OnBase | wire.OnAPI,
			Cache: wire.ConfigData, Limit: wire.MarketLimit, Group: wire.GroupMarket, Merged: wire.MergedDesks, Read: m.serveSymbols,
		},
		{
			Path: "/api/v1/market/ticker", Method: wire.MethodGet, On: wire.OnBase | wire.OnAPI,
			Cache: wire.LiveData, Limit: wire.MarketLimit, Group: wire.GroupMarket, Read: m.serveTicker,
		},
		{
			Path: "/api/v1/market/depth", Method: wire.MethodGet, On: wire.OnBase | wire.OnAPI,
			Cache: wire.LiveData, Limit: wire.MarketLimit, Group: wire.GroupMarket, Read: m.serveDepth,
		},
		{
			Path: "/api/v1/market/trades", Method: wire.MethodGet, On: wire.OnBase | wire.OnAPI,
			Cache: wire.LiveData, Limit: wire.MarketLimit, Group: wire.GroupMarket, Read: m.serveTrades,
		},
		{
			Path: "/api/v1/market/klines", Method: wire.MethodGet, On: wire.OnBase | wire.OnAPI,
			Cache: wire.LiveData, Limit: wire.MarketLimit, Group: wire.GroupMarket, Read: m.serveKlines,
		},
		{
			Path: "/api/v1/market/candles", Method: wire.MethodGet, On: wire.OnBase | wire.OnAPI,
			Cache: wire.LiveData, Limit: wire.MarketLimit, Group: wire.GroupMarket, Read: m.serveCandles,
		},
		{
			Path: "/trades.json", Method: wire.MethodGet, On: wire.OnBase | wire.OnAPI,
			Cache: wire.LiveData, Limit: wire.MarketLimit, Read: m.serveTradesFile,
		},
		{
			Path: "/candles.json", Method: wire.MethodGet, On: wire.OnBase | wire.OnAPI,
			Cache: wire.LiveData, Limit: wire.MarketLimit, Read: m.serveCandles,
		},
		oracleRoute(m, &e.o),
	}
	table = append(table, catalogRoutes(e.o.Facts)...)
	table = append(table, partnerRoutes(m, e.o.Facts, e.o.History)...)
	if e.o.Stream != nil {
		// A connection costs one token, however long it lasts.
		table = append(table, wire.Route{
			Path: "/api/v1/market/stream", Method: wire.MethodGet, On: wire.OnBase | wire.OnAPI,
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
