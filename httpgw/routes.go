package httpgw

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/valyala/fasthttp"

	"blockdesk/httpgw/wire"
)

// pathWebSocket is the path of the WebSocket.
const pathWebSocket = "/ws/rfq"

// routes joins the routes of the surfaces and adds GET /, which describes them.
func (g *Gateway) routes(d Dependencies) []wire.Route {
	table := g.market.Routes()
	if g.rfq != nil {
		table = append(table, g.rfq.Routes()...)
		table = append(table, g.dvp.Routes()...)
	}
	table = append(table, g.site.Routes()...)
	if d.WebSocket != nil {
		table = append(table, wire.Route{
			Path: pathWebSocket, Method: wire.MethodGet, On: wire.OnBase | wire.OnWS,
			Cache: wire.NeverCached, Limit: wire.Unlimited, Group: wire.GroupWebSocket, Raw: d.WebSocket,
		})
	}
	if d.WebSocketHealth != nil {
		table = append(table, wire.Get("/ws/rfq/health", wire.OnAPI, wire.NeverCached, wire.Unlimited, wire.GroupWebSocket, healthPage(d.WebSocketHealth)))
	}
	return append(table, wire.Get(wire.DescriptionPath, wire.OnREST, wire.ConfigData, wire.Unlimited, "", g.site.Describe(table).Serve))
}

// endpoint is a route on one address, with its counters.
type endpoint struct {
	*wire.Route
	stats *routeStats
}

// node is a path on one address.
type node struct {
	methods [wire.MethodCount]*endpoint
	allow   string // the value of Allow
}

// router finds the endpoints of one address by the raw path.
type router struct {
	nodes    map[string]*node
	families map[string]*node // paths with a segment in braces, by what is before and after it
	unknown  *routeStats      // counts requests without an endpoint
}

func newRouter(table []wire.Route, on wire.Surface, m *metrics) *router {
	name := wire.SurfaceNames[on]
	r := &router{
		nodes: make(map[string]*node), families: make(map[string]*node), unknown: m.routes.route(name, "unknown"),
	}
	for i := range table {
		row := &table[i]
		if row.On&on == 0 {
			continue
		}
		nodes, key := r.nodes, row.Path
		if before, after, ok := strings.Cut(row.Path, "{"); ok {
			_, after, _ = strings.Cut(after, "}")
			nodes, key = r.families, before+after
		}
		n := nodes[key]
		if n == nil {
			n = &node{}
			nodes[key] = n
		}
		n.methods[row.Method] = &endpoint{Route: row, stats: m.routes.route(name, row.Path)}
	}
	for _, nodes := range []map[string]*node{r.nodes, r.families} {
		for _, n := range nodes {
			n.setAllow()
		}
	}
	return r
}

// setAllow sets allow to the methods of the node.
func (n *node) setAllow() {
	for i := wire.MethodGet; i < wire.MethodCount; i++ {
		if n.methods[i] == nil {
			continue
		}
		n.allow += wire.MethodNames[i] + ", "
		if i == wire.MethodGet {
			n.allow += "HEAD, "
		}
	}
	n.allow += "OPTIONS"
}

// find returns the node of a raw path, or nil, and the segment that matches the braces,
// if any. segment aliases path.
func (r *router) find(path []byte) (n *node, segment []byte) {
	if n = r.nodes[string(path)]; n != nil {
		return n, nil
	}
	last := bytes.LastIndexByte(path, '/') + 1
	if segment = path[last:]; wire.IsSegment(segment) {
		if n = r.families[string(path[:last])]; n != nil {
			return n, segment
		}
	}
	// The segment before the last one, as in claims/{claim_id}/transaction.
	if last < 2 || len(path) > maxFamilyPath {
		return nil, nil
	}
	first := bytes.LastIndexByte(path[:last-1], '/') + 1
	if segment = path[first : last-1]; !wire.IsSegment(segment) {
		return nil, nil
	}
	var buf [maxFamilyPath]byte
	key := append(append(buf[:0], path[:first]...), path[last-1:]...)
	if n = r.families[string(key)]; n == nil {
		return nil, nil
	}
	return n, segment
}

// maxFamilyPath bounds the paths of requests that have a segment in braces before the last
// one.
const maxFamilyPath = 256

// healthPage returns a reader that encodes the result of health.
func healthPage(health func() any) func([]byte) (*wire.Page, *wire.Problem) {
	return func([]byte) (*wire.Page, *wire.Problem) {
		body, err := json.Marshal(health())
		if err != nil {
			return nil, &wire.Problem{
				Status: fasthttp.StatusInternalServerError, Code: wire.CodeInternal,
				Text: "The WebSocket's health could not be encoded.",
			}
		}
		return &wire.Page{Body: body}, nil
	}
}

// match is a request with its endpoint. Byte slices alias fasthttp's buffer.
type match struct {
	header               wire.Header
	path, query, segment []byte
	node                 *node     // nil = unknown path
	endpoint             *endpoint // nil = unknown path or method, or OPTIONS
	stats                *routeStats
}
