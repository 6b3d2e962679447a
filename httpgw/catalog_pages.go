package httpgw

import "blockdesk/catalog"

const (
	pathMarket    = "/api/v1/market/"
	pathPools     = pathMarket + "pools/"
	poolSegment   = "{pool_address}"
	pathSchemas   = pathMarket + "schemas"
	pathWellKnown = "/.well-known/"
)

// catalogPages renders the documents of package catalog, each once for the facts
// that it is of, and remembers them. Facts change once a cycle (spec, 1.4).
type catalogPages struct {
	facts func() *catalog.Facts
	kept  []keptPage[*catalog.Facts] // by row
}

// get returns a row's page of the present facts. Where nothing in it has changed
// it stays the same page, with its ETag and its compressed form.
func (c *catalogPages) get(row int, render func(*catalog.Facts) any) *page {
	f := c.facts()
	if p := c.kept[row].get(f); p != nil {
		return p
	}
	return c.kept[row].keep(f, hashPage(catalog.Encode(render(f))))
}

// serve returns the handler of one row.
func (c *catalogPages) serve(row int, render func(*catalog.Facts) any) func([]byte) (*page, *problem) {
	return func([]byte) (*page, *problem) { return c.get(row, render), nil }
}

// servePool shows one pool.
func (c *catalogPages) servePool(segment []byte) (*page, *problem) {
	facts := c.facts()
	pool, ok := catalog.PoolAt(facts, catalog.PoolSchema, string(segment))
	switch {
	case ok:
	case facts.HasPool(string(segment)):
		return nil, &problem{
			status: 503, code: codeChainUnavailable, reason: "pool_not_read", retryS: retryChainS,
			text: "The pool has not been read from the chain yet. /api/v1/market/pool-registry says where it is.",
		}
	default:
		return nil, &problem{status: 404, code: codeUnknownPool, text: "No such pool. /api/v1/market/pools lists those there are."}
	}
	return hashPage(catalog.Encode(pool)), nil
}

// catalogRoutes are the rows of every document under all its paths. There are
// none without facts, but for the schemas, which need none.
func catalogRoutes(facts func() *catalog.Facts) []route {
	row := func(path string, on surface, cache cacheClass, in group, read func([]byte) (*page, *problem)) route {
		return route{path: path, method: methodGet, surfaces: on, cache: cache, limit: marketLimit, group: in, read: read}
	}
	const both = onBase | onAPI
	schemas := hashPage(catalog.Encode(catalog.Schemas()))
	serveSchemas := func([]byte) (*page, *problem) { return schemas, nil }
	table := []route{
		row(pathSchemas, both, configData, groupMarket, serveSchemas),
		row("/schemas.json", both, configData, "", serveSchemas),
	}
	if facts == nil {
		return table
	}
	documents, wellKnowns := catalog.Documents(), catalog.WellKnowns()
	c := &catalogPages{facts: facts, kept: make([]keptPage[*catalog.Facts], len(documents)+len(wellKnowns))}
	for i := range documents {
		d := &documents[i]
		cache := liveData
		if d.Fixed {
			cache = configData
		}
		read := c.serve(i, func(f *catalog.Facts) any { return d.Render(f, d.Schema) })
		of := func(path string, on surface, in group) route {
			r := row(path, on, cache, in, read)
			r.wide, r.facts = ofFacts, true
			return r
		}
		main := of(pathMarket+d.Name, both, groupMarket)
		if d.Partner {
			main.limit = partnerLimit
		}
		table = append(table, main)
		for _, file := range d.Files {
			table = append(table, of(file, both, ""))
		}
		if d.Legacy != "" {
			table = append(table, of(d.Legacy, onAPI, ""))
		}
	}
	for i := range wellKnowns {
		w := &wellKnowns[i]
		read := c.serve(len(documents)+i, func(f *catalog.Facts) any { return w.Render(f) })
		table = append(table, row(pathWellKnown+w.File, both, configData, groupDiscovery, read))
	}
	return append(table, route{
		path: pathPools + poolSegment, method: methodGet, surfaces: both, cache: liveData, limit: marketLimit,
		group: groupMarket, facts: true, readOne: c.servePool,
	})
}
