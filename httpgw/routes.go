package httpgw

import (
	"bytes"
	"strings"

	"github.com/valyala/fasthttp"
)

// surface is an address that a route is served on, or a set of them.
type surface uint8

const (
	onBase surface = 1 << iota
	onAPI
	onWS
)

var surfaceNames = map[surface]string{onBase: "base", onAPI: "api", onWS: "ws"}

// method is a request method that a route may have. HEAD and OPTIONS follow
// from the others: a HEAD works wherever a GET does.
type method uint8

const (
	methodGet method = iota + 1
	methodPost
	methodCount
)

var methodNames = [methodCount]string{methodGet: fasthttp.MethodGet, methodPost: fasthttp.MethodPost}

// cacheClass says what a cache may do with an answer.
type cacheClass uint8

const (
	// neverCached: errors, health, anything for one client.
	neverCached cacheClass = iota + 1
	// liveData may be kept, and must be asked about by its ETag each time.
	liveData
	// configData changes with a restart or a halt.
	configData
	cacheClassCount
)

var cacheControl = [cacheClassCount][]byte{
	neverCached: []byte("no-store"), liveData: []byte("no-cache"), configData: []byte("public, max-age=60"),
}

// limitClass says which bucket a request takes its token from. All routes of a
// class share one bucket a client, over all addresses.
type limitClass uint8

const (
	// unlimited routes cost less than a refusal.
	unlimited limitClass = iota + 1
	// marketLimit is the description's limit of market data; RFQ reads share it
	// (contract, section C).
	marketLimit
	// partnerLimit is that of aggregators, who poll faster (contract, section F).
	partnerLimit
	// rfqWriteLimit is that of quotes, claims and proofs of payment.
	rfqWriteLimit
	// handshakeLimit is that of nonces and tokens (contract, section C).
	handshakeLimit
	// dvpLimit is the description's limit of builds and submissions.
	dvpLimit
	limitClassCount
)

// group is where the service description lists a route; "" = not listed.
type group string

const (
	groupMarket    group = "market_data_rest"
	groupWebSocket group = "websocket"
)

// pathWebSocket is where a WebSocket begins, on every address that has one.
const pathWebSocket = "/ws/rfq"

// route is one endpoint: a row of the table.
type route struct {
	// path is compared byte for byte, but that a last segment in braces, as in
	// "/claims/{claim_id}", stands for any that isSegment takes. A path without
	// braces goes before one with them. The metrics are labelled with path.
	path     string
	method   method
	surfaces surface
	cache    cacheClass
	limit    limitClass
	group    group
	// bearer: only who has a DvP token is answered (spec, 5.1). For a post.
	bearer bool
	// wide: the document is of all groups, where there are some.
	wide wideParts
	// leader: only the node that leads can answer; see Options.ReadOnly. Every post
	// is so.
	leader bool
	// facts: made of a history, a settlement and a chain that a follower has not whole,
	// so that it would tell other figures than the leader.
	facts bool

	// Exactly one of the five. read is a pure read: raw query string in, page
	// out. readOne is one of what the last segment names. post takes a JSON body.
	// raw takes an upgrade and does all of the answer itself; so does stream, which
	// answers without an end.
	read    func(query []byte) (*page, *problem)
	readOne func(segment []byte) (*page, *problem)
	post    func(*post) (*answer, *problem)
	raw     fasthttp.RequestHandler
	stream  fasthttp.RequestHandler
}

// routes is the table.
func (g *Gateway) routes(doors Doors) []route {
	m := g.market
	table := []route{
		{
			path: descriptionPath, method: methodGet, surfaces: onBase | onAPI,
			cache: configData, limit: unlimited, read: g.serveDescription,
		},
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
		g.oracleRoute(doors.Facts),
	}
	table = append(table, g.catalogRoutes(doors)...)
	table = append(table, g.partnerRoutes(doors)...)
	table = append(table, g.streamRoutes(doors)...)
	table = append(table, g.rfqRoutes()...)
	table = append(table, g.writeRoutes()...)
	table = append(table, g.dvpRoutes()...)
	table = append(table, g.specificationRoutes()...)
	table = append(table, g.downloadRoutes()...)
	table = append(table, g.human.routes()...)
	if doors.WebSocket != nil {
		table = append(table, route{
			path: pathWebSocket, method: methodGet, surfaces: onBase | onWS,
			cache: neverCached, limit: unlimited, group: groupWebSocket, raw: doors.WebSocket,
		})
	}
	if doors.WebSocketHealth != nil {
		table = append(table, route{
			path: "/ws/rfq/health", method: methodGet, surfaces: onAPI,
			cache: neverCached, limit: unlimited, group: groupWebSocket, read: healthPage(doors.WebSocketHealth),
		})
	}
	return table
}

// endpoint is a route with what is prepared for one surface.
type endpoint struct {
	*route
	stats *routeStats
}

// node is a path of one surface.
type node struct {
	methods [methodCount]*endpoint
	allow   string // the value of Allow
}

// MaxSegment is the longest last segment of a path that names something, in
// bytes.
const MaxSegment = 64

// router finds the endpoints of one surface by the raw path.
type router struct {
	nodes map[string]*node
	// families are the paths that end in a segment in braces, by what comes
	// before it.
	families map[string]*node
	// Requests that reach no endpoint.
	unknown *routeStats
}

func newRouter(table []route, on surface, m *metrics) *router {
	name := surfaceNames[on]
	r := &router{
		nodes: make(map[string]*node), families: make(map[string]*node), unknown: m.routes.route(name, "unknown"),
	}
	for i := range table {
		row := &table[i]
		if row.surfaces&on == 0 {
			continue
		}
		nodes, key := r.nodes, row.path
		if family, _, ok := strings.Cut(row.path, "{"); ok {
			nodes, key = r.families, family
		}
		n := nodes[key]
		if n == nil {
			n = &node{}
			nodes[key] = n
		}
		n.methods[row.method] = &endpoint{route: row, stats: m.routes.route(name, row.path)}
	}
	for _, nodes := range []map[string]*node{r.nodes, r.families} {
		for _, n := range nodes {
			n.tellMethods()
		}
	}
	return r
}

// tellMethods fills in allow.
func (n *node) tellMethods() {
	for i := methodGet; i < methodCount; i++ {
		if n.methods[i] == nil {
			continue
		}
		n.allow += methodNames[i] + ", "
		if i == methodGet {
			n.allow += "HEAD, "
		}
	}
	n.allow += "OPTIONS"
}

// find returns the node of a raw path, nil where there is none, and the segment
// that stands for the one in braces, if any. segment aliases path.
func (r *router) find(path []byte) (n *node, segment []byte) {
	if n = r.nodes[string(path)]; n != nil {
		return n, nil
	}
	cut := bytes.LastIndexByte(path, '/') + 1
	if segment = path[cut:]; isSegment(segment) {
		return r.families[string(path[:cut])], segment
	}
	return nil, nil
}

// isSegment reports whether text may be the last segment of a path that names
// something: 1..MaxSegment letters, digits and "_ . -", dots alone left out,
// since others on the way may take them for a direction.
func isSegment(text []byte) bool {
	if len(text) == 0 || len(text) > MaxSegment || string(text) == "." || string(text) == ".." {
		return false
	}
	for _, c := range text {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

// methodOf returns the method that answers a request, 0 for one that no route
// takes.
func methodOf(name []byte) method {
	switch string(name) {
	case fasthttp.MethodGet, fasthttp.MethodHead:
		return methodGet
	case fasthttp.MethodPost:
		return methodPost
	default:
		return 0
	}
}
