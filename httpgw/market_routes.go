package httpgw

import (
	"github.com/valyala/fasthttp"

	"blockdesk/catalog"
	"blockdesk/engine"
	"blockdesk/market"
)

// marketOptions are what the market data endpoints are made of.
type marketOptions struct {
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
	All *allInstruments
}

// allInstruments are the instruments of all groups, this one's first.
type allInstruments struct {
	Set *market.Instruments
	// Status returns the status of an instrument of another group, or statusUnknown.
	Status func(id market.InstrumentID) uint8
}

// statusUnknown is the status of an instrument whose group has not been seen lately.
const statusUnknown = 255

// marketEndpoints are the public market data: books, trades, candles, the catalog's
// documents and partners' formats. Any goroutine may use it.
type marketEndpoints struct {
	pages *marketPages
	o     marketOptions
}

func newMarketEndpoints(o marketOptions) *marketEndpoints { return &marketEndpoints{newMarketPages(&o), o} }

// View returns the newest view of an instrument; before the first one, an empty one.
func (e *marketEndpoints) View(id market.InstrumentID) *engine.View { return e.pages.view(id) }

// Routes returns the rows of the surface.
func (e *marketEndpoints) Routes() []route {
	m := e.pages
	table := []route{
		{
			path: "/api/v1/market/symbols", method: methodGet, surfaces: onBase | onAPI,
			cache: configData, limit: marketLimit, group: groupMarket, wide: ofDesks, read: m.serveSymbols,
		},
		{
			path: "/api/v1/market/ticker", method: methodGet, surfaces: onBase | onAPI,
			cache: liveData, limit: marketLimit, group: groupMarket, read: m.serveTicker,
		},
		{
			path: "/api/v1/market/depth", method: methodGet, surfaces: onBase | onAPI,
			cache: liveData, limit: marketLimit, group: groupMarket, read: m.serveDepth,
		},
		{
			path: "/api/v1/market/trades", method: methodGet, surfaces: onBase | onAPI,
			cache: liveData, limit: marketLimit, group: groupMarket, read: m.serveTrades,
		},
		{
			path: "/api/v1/market/klines", method: methodGet, surfaces: onBase | onAPI,
			cache: liveData, limit: marketLimit, group: groupMarket, read: m.serveKlines,
		},
		{
			path: "/api/v1/market/candles", method: methodGet, surfaces: onBase | onAPI,
			cache: liveData, limit: marketLimit, group: groupMarket, read: m.serveCandles,
		},
		{
			path: "/trades.json", method: methodGet, surfaces: onBase | onAPI,
			cache: liveData, limit: marketLimit, read: m.serveTradesFile,
		},
		{
			path: "/candles.json", method: methodGet, surfaces: onBase | onAPI,
			cache: liveData, limit: marketLimit, read: m.serveCandles,
		},
		oracleRoute(m, &e.o),
	}
	table = append(table, catalogRoutes(e.o.Facts)...)
	table = append(table, partnerRoutes(m, e.o.Facts, e.o.History)...)
	if e.o.Stream != nil {
		// A connection costs one token, however long it lasts.
		table = append(table, route{
			path: "/api/v1/market/stream", method: methodGet, surfaces: onBase | onAPI,
			cache: neverCached, limit: marketLimit, group: groupMarket, stream: e.o.Stream,
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
