package httpgw

import (
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
	limitClassCount
)

// group is where the service description lists a route; "" = not listed.
type group string

const (
	groupMarket    group = "market_data_rest"
	groupWebSocket group = "websocket"
)

// route is one endpoint: a row of the table.
type route struct {
	path     string
	method   method
	surfaces surface
	cache    cacheClass
	limit    limitClass
	group    group

	// Exactly one of the two. read is a pure read: raw query string in, page
	// out. raw does all of the answer itself.
	read func(query []byte) (*page, *problem)
	raw  fasthttp.RequestHandler
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
			cache: configData, limit: marketLimit, group: groupMarket, read: m.serveSymbols,
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
	}
	if doors.WebSocket != nil {
		table = append(table, route{
			path: "/ws/rfq", method: methodGet, surfaces: onBase | onWS,
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

// router finds the endpoints of one surface by the raw path.
type router struct {
	nodes map[string]*node
	// Requests that reach no endpoint.
	unknown *routeStats
}

func newRouter(table []route, on surface, m *metrics) *router {
	name := surfaceNames[on]
	r := &router{nodes: make(map[string]*node), unknown: m.route(name, "unknown")}
	for i := range table {
		row := &table[i]
		if row.surfaces&on == 0 {
			continue
		}
		n := r.nodes[row.path]
		if n == nil {
			n = &node{}
			r.nodes[row.path] = n
		}
		n.methods[row.method] = &endpoint{route: row, stats: m.route(name, row.path)}
	}
	for _, n := range r.nodes {
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
	return r
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
