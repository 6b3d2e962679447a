package rfq

import (
	"math"
	"time"

	"blockdesk/catalog"
	"blockdesk/desk"
	"blockdesk/engine/event"
	"blockdesk/httpgw/terms"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// Options configures the endpoints.
type Options struct {
	Backend terms.Backend
	// Books has the books of pairs that are priced by their own book.
	Books catalog.Views
	// Health is httpgw.Dependencies.ChainHealth.
	Health func() desk.ChainHealth
	// Prices is httpgw.Dependencies.Prices.
	Prices func() []desk.AssetPrice
	// Network is httpgw.Dependencies.Network.
	Network func() string
	About   *wire.Description
	URLs    catalog.URLs
	Now     func() int64 // Unix nanoseconds
	// All has the desks of all shards, for documents that list everything. Nil: only
	// this desk.
	All *DeskSource
}

// DeskSource is a desk with its instruments and their books.
type DeskSource struct {
	Desk        DeskReader
	Instruments *market.Instruments
	Books       catalog.Views
}

// Endpoints serves the RFQ surface (docs/specification.md 4.1 and 4.3). It is safe for
// concurrent use.
type Endpoints struct {
	backend terms.Backend
	urls    catalog.URLs
	now     func() int64 // Unix nanoseconds
	own     *pages
	all     *pages // of all shards; own without shards
}

// New returns the endpoints.
func New(o Options) *Endpoints {
	e := &Endpoints{backend: o.Backend, urls: o.URLs, now: o.Now}
	e.own = newPages(DeskSource{o.Backend.Desk, o.Backend.Instruments, o.Books}, &o)
	e.all = e.own
	if o.All != nil {
		e.all = newPages(*o.All, &o)
	}
	return e
}

// Routes returns the routes of the surface. The public mirror, the registry backend and
// the native backend serve the same bytes of the same book. The base address serves the
// native backend.
func (e *Endpoints) Routes() []wire.Route { return append(e.reads(), e.writes()...) }

func (e *Endpoints) reads() []wire.Route {
	row := func(path string, on wire.Surface, cache wire.Cache, in wire.Group, d document) wire.Route {
		r := wire.Get(path, on, cache, wire.MarketLimit, in, e.own.serve(d))
		r.LeaderOnly = d == docStatus || d == docDesk // these contain the settlement's state
		switch d {
		case docSellable, docTickets, docCompact, docPairs, docTokens, docBoard:
			r.Read, r.Merged = e.all.serve(d), wire.MergedDesks
		}
		return r
	}
	const both = wire.OnREST
	trades := wire.Get(PathTrades, both, wire.LiveData, wire.MarketLimit, wire.GroupRFQ, (&sales{&e.backend, e.now}).serveTrades)
	// A follower has the sales since it has joined, and no settlement.
	trades.Query, trades.Params, trades.LeaderOnly = "symbol={symbol}", []string{"symbol", "limit", "before"}, true
	return []wire.Route{
		trades,
		row(PathStatus, both, wire.LiveData, wire.GroupRFQ, docStatus),
		row(PathSellable, both, wire.LiveData, wire.GroupRFQ, docSellable),
		row(PathTickets, both, wire.LiveData, wire.GroupRFQ, docTickets),
		row(PathCompact, both, wire.LiveData, wire.GroupRFQ, docCompact),
		row(pathLevels, both, wire.LiveData, wire.GroupRFQ, docLevels),
		row(PathPairs, both, wire.LiveData, wire.GroupRFQ, docPairs),
		row(PathTokens, both, wire.LiveData, wire.GroupRFQ, docTokens),
		row(pathRails, both, wire.LiveData, wire.GroupRFQ, docRails),
		row(pathManifest, both, wire.LiveData, wire.GroupRFQ, docManifest),
		row(pathNativeTickets, wire.OnBase, wire.LiveData, wire.GroupRFQ, docTickets),
		row(pathNativeSellable, wire.OnBase, wire.LiveData, wire.GroupRFQ, docSellable),
		row(pathDiscovery, both, wire.ConfigData, wire.GroupDiscovery, docDiscovery),
		row(PathBoard, wire.OnBase, wire.LiveData, wire.GroupBoard, docBoard),
		row(PathDeskStatus, wire.OnBase, wire.LiveData, wire.GroupDesk, docDesk),
	}
}

func (e *Endpoints) writes() []wire.Route {
	row := func(path string, on wire.Surface, do func(*wire.Post) (*wire.Answer, *wire.Problem)) wire.Route {
		return wire.Route{
			Path: path, Method: wire.MethodPost, On: on, Cache: wire.NeverCached, Limit: wire.RFQWriteLimit,
			Group: wire.GroupRFQ, LeaderOnly: true, Post: do,
		}
	}
	claim := func(path string, on wire.Surface, do func(*wire.Post) (*wire.Answer, *wire.Problem)) wire.Route {
		r := row(path, on, do)
		r.MayBearer = true
		return r
	}
	const both = wire.OnREST
	return []wire.Route{
		row(PathRFQ+"quote", both, e.postQuote),
		claim(PathNativeModular, wire.OnBase, e.postModularClaim),
		claim(PathModular, both, e.postModularClaim),
		claim(PathNativeAtomic, wire.OnBase, e.postAtomicClaim),
		claim(PathAtomic, both, e.postAtomicClaim),
		row(PathNativeVerify, wire.OnBase, e.postPayment),
		row(PathAliasVerify, wire.OnBase, e.postPayment),
		row(PathFallbackVerify, wire.OnAPI, e.postPayment),
		{
			Path: PathRFQ + "claims/{claim_id}", Method: wire.MethodGet, On: both, Cache: wire.LiveData,
			Limit: wire.MarketLimit, Group: wire.GroupRFQ, LeaderOnly: true, ReadOne: e.serveClaim,
		},
		{
			Path: PathRFQ + "claims/{claim_id}/transaction", Method: wire.MethodGet, On: both, Cache: wire.NeverCached,
			Limit: wire.RFQWriteLimit, Group: wire.GroupRFQ, LeaderOnly: true, ReadOne: e.serveTransaction,
		},
		{
			Path: PathRFQ + "claims/{claim_id}" + pathPay, Method: wire.MethodGet, On: both, Cache: wire.LiveData,
			Limit: wire.MarketLimit, Group: wire.GroupRFQ, LeaderOnly: true, ReadOne: e.servePay,
		},
		row(PathRFQ+"claims/{claim_id}"+pathPay, both, e.postPay),
	}
}

// Accepting reports whether a claim of the smallest fill would be reserved now, or why not,
// as the status document does. It is safe for concurrent use.
func (e *Endpoints) Accepting() (ok bool, whyNot string) {
	ok, why := e.own.current().accepting()
	if why != nil {
		whyNot = *why
	}
	return ok, whyNot
}

// Unpriced returns why a ticket of a pair without a price of its own has none now; empty: it
// has one. It is safe for concurrent use.
func (e *Endpoints) Unpriced(in market.InstrumentID) string {
	now := e.own.current()
	if _, why := now.view.PairReference(in, now.cycle, now.ts); why != event.ReasonNone {
		return why.String()
	}
	return ""
}

// Tickets calls each for every ticket of market-tickets in the order of ids, with its
// record as in that document: a JSON object whose bytes never change. It returns the
// document's seq, which is the Seq of the last command that changed the desk, and the
// time of that command in Unix ns. Prices are those of the present cycle. Later calls
// never return an older state. It is safe for concurrent use.
func (e *Endpoints) Tickets(each func(in market.InstrumentID, id market.TicketID, record []byte)) (seq uint64, at int64) {
	now := e.own.current()
	texts := e.own.tickets.get(now)
	for i := range texts.list {
		t := &texts.list[i]
		each(t.ticket.Instrument, t.ticket.ID, t.full)
	}
	return now.view.Seq, now.view.At
}

// TicketsHold returns for how long the records of Tickets stay as they are while no command
// changes the desk: until a price grows too old, or a ticket is due to expire. The prices of
// order books, which follow the cycle, do not count. It is positive, and safe for concurrent
// use.
func (e *Endpoints) TicketsHold() time.Duration {
	now := e.own.now()
	_, until := lifetime(e.own.current().view, 0, now, math.MaxInt64)
	return time.Duration(until - now)
}

// Sales calls each for the sales of an instrument with numbers above after, newest first, at
// most limit, with their records as in the list of trades, which never change. It is safe for
// concurrent use. Errors: those of the desk and of the settlement.
func (e *Endpoints) Sales(in market.InstrumentID, after uint64, limit int, each func(s *desk.Sale, record []byte)) error {
	return (&sales{&e.backend, e.now}).each(in, after, limit, each)
}
