package market

import (
	"blockdesk/catalog"
	"blockdesk/httpgw/wire"
)

const (
	PathMarket    = "/api/v1/market/"
	PathPools     = PathMarket + "pools/"
	PoolSegment   = "{pool_address}"
	PathSchemas   = PathMarket + "schemas"
	PathWellKnown = "/.well-known/"
)

// catalogPages renders each document of package catalog once per value of the facts,
// which change once per cycle (docs/specification.md 1.4).
type catalogPages struct {
	facts  func() *catalog.Facts
	caches []wire.PageCache[*catalog.Facts] // by row
}

// get returns a document's page of the present facts. If its bytes are unchanged, it
// returns the same page with its compressed form.
func (c *catalogPages) get(row int, render func(*catalog.Facts) any) *wire.Page {
	f := c.facts()
	if p := c.caches[row].Get(f); p != nil {
		return p
	}
	return c.caches[row].Put(f, wire.NewPage(catalog.Encode(render(f))))
}

// serve returns the reader of one document.
func (c *catalogPages) serve(row int, render func(*catalog.Facts) any) func([]byte) (*wire.Page, *wire.Problem) {
	return func([]byte) (*wire.Page, *wire.Problem) { return c.get(row, render), nil }
}

// servePool serves one pool by its address.
func (c *catalogPages) servePool(segment []byte) (*wire.Page, *wire.Problem) {
	facts := c.facts()
	pool, ok := catalog.PoolByAddress(facts, catalog.PoolSchema, string(segment))
	switch {
	case ok:
	case facts.HasPool(string(segment)):
		return nil, &wire.Problem{
			Status: 503, Code: wire.CodeChainUnavailable, Reason: "pool_not_read", RetryS: wire.RetryChainS,
			Text: "The pool has not been read from the chain yet. /api/v1/market/pool-registry has its address.",
		}
	default:
		return nil, &wire.Problem{Status: 404, Code: wire.CodeUnknownPool, Text: "Unknown pool. /api/v1/market/pools lists all pools."}
	}
	return wire.NewPage(catalog.Encode(pool)), nil
}

// catalogRoutes returns the routes of every document under all its paths. Without facts
// only the schemas are served.
func catalogRoutes(facts func() *catalog.Facts) []wire.Route {
	row := func(path string, on wire.Surface, cache wire.Cache, in wire.Group, read wire.Reader) wire.Route {
		return wire.Get(path, on, cache, wire.MarketLimit, in, read)
	}
	const both = wire.OnREST
	serveSchemas := wire.NewPage(catalog.Encode(catalog.Schemas())).Serve
	table := []wire.Route{
		row(PathSchemas, both, wire.ConfigData, wire.GroupMarket, serveSchemas),
		row("/schemas.json", both, wire.ConfigData, "", serveSchemas),
	}
	if facts == nil {
		return table
	}
	documents, wellKnowns := catalog.Documents(), catalog.WellKnowns()
	c := &catalogPages{facts: facts, caches: make([]wire.PageCache[*catalog.Facts], len(documents)+len(wellKnowns))}
	for i := range documents {
		d := &documents[i]
		cache := wire.LiveData
		if d.Fixed {
			cache = wire.ConfigData
		}
		read := c.serve(i, func(f *catalog.Facts) any { return d.Render(f, d.Schema) })
		of := func(path string, on wire.Surface, in wire.Group) wire.Route {
			r := row(path, on, cache, in, read)
			r.Merged, r.NotOnFollower = wire.MergedFacts, true
			return r
		}
		main := of(PathMarket+d.Name, both, wire.GroupMarket)
		if d.Partner {
			main.Limit = wire.PartnerLimit
		}
		table = append(table, main)
		for _, file := range d.Files {
			table = append(table, of(file, both, ""))
		}
		if d.Legacy != "" {
			table = append(table, of(d.Legacy, wire.OnAPI, ""))
		}
	}
	for i := range wellKnowns {
		w := &wellKnowns[i]
		read := c.serve(len(documents)+i, func(f *catalog.Facts) any { return w.Render(f) })
		table = append(table, row(PathWellKnown+w.File, both, wire.ConfigData, wire.GroupDiscovery, read))
	}
	return append(table, wire.Route{
		Path: PathPools + PoolSegment, Method: wire.MethodGet, On: both, Cache: wire.LiveData, Limit: wire.MarketLimit,
		Group: wire.GroupMarket, NotOnFollower: true, ReadOne: c.servePool,
	})
}
