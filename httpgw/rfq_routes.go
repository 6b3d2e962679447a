package httpgw

import (
	"blockdesk/catalog"
	"blockdesk/desk"
	"blockdesk/market"
)

// rfqOptions are what the RFQ endpoints are made of.
type rfqOptions struct {
	Deal deal
	// Books are of the pairs whose reference price is this service's own book.
	Books catalog.Views
	// Health is what /api/v1/dvp/status says of the chain, called at most once for a
	// rendering of it. It must not block. Nil: nothing is known.
	Health func() desk.ChainHealth
	About  *Description
	URLs   catalog.URLs
	Now    func() int64 // Unix nanoseconds
	// All is what the documents that list everything show; nil: this desk.
	All *deskSource
}

// deskSource is a desk that documents show, with its instruments and their books.
type deskSource struct {
	Desk        deskReader
	Instruments *market.Instruments
	Books       catalog.Views
}

// rfqEndpoints are the RFQ surface (spec, 4.1 and 4.3): the book's documents,
// quotes, claims and proofs of payment. Any goroutine may use it.
type rfqEndpoints struct {
	deal deal
	urls catalog.URLs
	own  *rfqPages
	all  *rfqPages // own, or those of all groups
}

func newRFQEndpoints(o rfqOptions) *rfqEndpoints {
	e := &rfqEndpoints{deal: o.Deal, urls: o.URLs}
	e.own = newRFQPages(deskSource{o.Deal.Desk, o.Deal.Instruments, o.Books}, &o)
	e.all = e.own
	if o.All != nil {
		e.all = newRFQPages(*o.All, &o)
	}
	return e
}

// Routes returns the rows of the surface. The public mirror, the registry backend
// and the native backend read one book, so they serve the same bytes; the native
// backend is served by the base address.
func (e *rfqEndpoints) Routes() []route { return append(e.reads(), e.writes()...) }

func (e *rfqEndpoints) reads() []route {
	row := func(path string, on surface, cache cacheClass, in group, d document) route {
		r := route{
			path: path, method: methodGet, surfaces: on, cache: cache, limit: marketLimit, group: in,
			leader: d == docStatus || d == docDesk, // which say how the settlement is
			read:   e.own.serve(d),
		}
		switch d {
		case docSellable, docTickets, docCompact, docPairs, docTokens, docBoard:
			r.read, r.wide = e.all.serve(d), ofDesks
		}
		return r
	}
	const both = onBase | onAPI
	return []route{
		row(pathStatus, both, liveData, groupRFQ, docStatus),
		row(pathSellable, both, liveData, groupRFQ, docSellable),
		row(pathTickets, both, liveData, groupRFQ, docTickets),
		row(pathCompact, both, liveData, groupRFQ, docCompact),
		row(pathLevels, both, liveData, groupRFQ, docLevels),
		row(pathPairs, both, liveData, groupRFQ, docPairs),
		row(pathTokens, both, liveData, groupRFQ, docTokens),
		row(pathRails, both, liveData, groupRFQ, docRails),
		row(pathManifest, both, liveData, groupRFQ, docManifest),
		row(pathNativeTickets, onBase, liveData, groupRFQ, docTickets),
		row(pathNativeSellable, onBase, liveData, groupRFQ, docSellable),
		row(pathDiscovery, both, configData, groupDiscovery, docDiscovery),
		row(pathBoard, onBase, liveData, groupBoard, docBoard),
		row(pathDeskStatus, onBase, liveData, groupDesk, docDesk),
	}
}

func (e *rfqEndpoints) writes() []route {
	row := func(path string, on surface, do func(*post) (*answer, *problem)) route {
		return route{
			path: path, method: methodPost, surfaces: on, cache: neverCached, limit: rfqWriteLimit,
			group: groupRFQ, leader: true, post: do,
		}
	}
	const both = onBase | onAPI
	return []route{
		row(pathRFQ+"quote", both, e.postQuote),
		row(pathNativeModular, onBase, e.postModularClaim),
		row(pathModular, both, e.postModularClaim),
		row(pathNativeAtomic, onBase, e.postAtomicClaim),
		row(pathAtomic, both, e.postAtomicClaim),
		row(pathNativeVerify, onBase, e.postPayment),
		row(pathAliasVerify, onBase, e.postPayment),
		row(pathFallbackVerify, onAPI, e.postPayment),
		{
			path: pathRFQ + "claims/{claim_id}", method: methodGet, surfaces: both, cache: liveData,
			limit: marketLimit, group: groupRFQ, leader: true, readOne: e.serveClaim,
		},
	}
}
