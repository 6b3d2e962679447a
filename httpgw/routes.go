package httpgw

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/valyala/fasthttp"
)

// pathWebSocket is where a WebSocket begins, on every address that has one.
const pathWebSocket = "/ws/rfq"

// routes joins the rows of the surfaces.
func (g *Gateway) routes(d Doors) []route {
	table := append([]route{{
		path: descriptionPath, method: methodGet, surfaces: onBase | onAPI,
		cache: configData, limit: unlimited, read: func([]byte) (*page, *problem) { return g.about, nil },
	}}, g.market.Routes()...)
	if g.rfq != nil {
		table = append(table, g.rfq.Routes()...)
		table = append(table, g.dvp.Routes()...)
	}
	table = append(table, g.site.Routes()...)
	if d.WebSocket != nil {
		table = append(table, route{
			path: pathWebSocket, method: methodGet, surfaces: onBase | onWS,
			cache: neverCached, limit: unlimited, group: groupWebSocket, raw: d.WebSocket,
		})
	}
	if d.WebSocketHealth != nil {
		table = append(table, route{
			path: "/ws/rfq/health", method: methodGet, surfaces: onAPI,
			cache: neverCached, limit: unlimited, group: groupWebSocket, read: healthPage(d.WebSocketHealth),
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

// healthPage returns the handler of a value for encoding/json.
func healthPage(health func() any) func([]byte) (*page, *problem) {
	return func([]byte) (*page, *problem) {
		body, err := json.Marshal(health())
		if err != nil {
			return nil, &problem{
				status: fasthttp.StatusInternalServerError, code: codeInternal,
				text: "The health of the WebSocket could not be told.",
			}
		}
		return &page{body: body}, nil
	}
}
