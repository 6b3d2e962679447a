package rfq

import (
	"blockdesk/catalog"
	"blockdesk/desk"
	"blockdesk/httpgw/terms"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// Options are what the RFQ endpoints are made of.
type Options struct {
	Backend terms.Backend
	// Books are of the pairs whose reference price is this service's own book.
	Books catalog.Views
	// Health is what /api/v1/dvp/status says of the chain, called at most once for a
	// rendering of it. It must not block. Nil: nothing is known.
	Health func() desk.ChainHealth
	About  *wire.Description
	URLs   catalog.URLs
	Now    func() int64 // Unix nanoseconds
	// All is what the documents that list everything show; nil: this desk.
	All *DeskSource
}

// DeskSource is a desk that documents show, with its instruments and their books.
type DeskSource struct {
	Desk        DeskReader
	Instruments *market.Instruments
	Books       catalog.Views
}

// Endpoints are the RFQ surface (spec, 4.1 and 4.3): the book's documents,
// quotes, claims and proofs of payment. Any goroutine may use it.
type Endpoints struct {
	backend terms.Backend
	urls    catalog.URLs
	own     *pages
	all     *pages // own, or those of all groups
}

// New returns the endpoints.
func New(o Options) *Endpoints {
	e := &Endpoints{backend: o.Backend, urls: o.URLs}
	e.own = newPages(DeskSource{o.Backend.Desk, o.Backend.Instruments, o.Books}, &o)
	e.all = e.own
	if o.All != nil {
		e.all = newPages(*o.All, &o)
	}
	return e
}

// Routes returns the rows of the surface. The public mirror, the registry backend
// and the native backend read one book, so they serve the same bytes; the native
// backend is served by the base address.
func (e *Endpoints) Routes() []wire.Route { return append(e.reads(), e.writes()...) }

func (e *Endpoints) reads() []wire.Route {
	row := func(path string, on wire.Surface, cache wire.Cache, in wire.Group, d document) wire.Route {
		r := wire.Get(path, on, cache, wire.MarketLimit, in, e.own.serve(d))
		r.LeaderOnly = d == docStatus || d == docDesk // which say how the settlement is
		switch d {
		case docSellable, docTickets, docCompact, docPairs, docTokens, docBoard:
			r.Read, r.Merged = e.all.serve(d), wire.MergedDesks
		}
		return r
	}
	const both = wire.OnREST
	return []wire.Route{
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
	const both = wire.OnREST
	return []wire.Route{
		row(PathRFQ+"quote", both, e.postQuote),
		row(PathNativeModular, wire.OnBase, e.postModularClaim),
		row(PathModular, both, e.postModularClaim),
		row(PathNativeAtomic, wire.OnBase, e.postAtomicClaim),
		row(PathAtomic, both, e.postAtomicClaim),
		row(PathNativeVerify, wire.OnBase, e.postPayment),
		row(PathAliasVerify, wire.OnBase, e.postPayment),
		row(PathFallbackVerify, wire.OnAPI, e.postPayment),
		{
			Path: PathRFQ + "claims/{claim_id}", Method: wire.MethodGet, On: both, Cache: wire.LiveData,
			Limit: wire.MarketLimit, Group: wire.GroupRFQ, LeaderOnly: true, ReadOne: e.serveClaim,
		},
	}
}

// Tickets calls each for every ticket of market-tickets, by ID, with its record as
// that document has it: a JSON object whose bytes never change. It returns the Seq
// of the last command that changed something the desk shows, which is the seq of
// that document, and its time in Unix ns. Prices are those of
// the present cycle. Any goroutine may call it; what one has seen, it sees no
// older state than.
func (e *Endpoints) Tickets(each func(in market.InstrumentID, id market.TicketID, record []byte)) (seq uint64, at int64) {
	now := e.own.current()
	texts := e.own.tickets.get(now)
	for i := range texts.list {
		t := &texts.list[i]
		each(t.ticket.Instrument, t.ticket.ID, t.full)
	}
	return now.view.Seq, now.view.At
}
