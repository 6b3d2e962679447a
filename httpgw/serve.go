package httpgw

import (
	"time"

	"github.com/valyala/fasthttp"

	"blockdesk/httpgw/dvp"
	"blockdesk/httpgw/wire"
	"blockdesk/internal/ratelimit"
	"blockdesk/market"
)

// match finds the endpoint of a request. The problem is one that does not depend on the
// body, and it costs the client no token.
func (d *handler) match(ctx *fasthttp.RequestCtx) (m match, bad *wire.Problem) {
	m.stats = d.router.unknown
	m.header = wire.ReadHeader(&ctx.Request.Header)
	if m.header.AmbiguousFraming {
		return m, wire.MalformedFraming()
	}
	m.path, m.query = wire.SplitTarget(ctx)
	query := m.query
	if len(query) > 0 {
		var pretty bool
		m.query, pretty = wire.CutPretty(query)
		m.header.Browser = m.header.Browser || pretty
	}
	m.node, m.segment = d.router.find(m.path)
	switch {
	case m.node == nil:
		return m, wire.UnknownRoute(m.path)
	case ctx.IsOptions():
		return m, nil
	}
	m.endpoint = m.node.methods[wire.MethodOf(ctx.Method())]
	if m.endpoint == nil {
		return m, wire.MethodNotAllowed(m.node.allow)
	}
	m.stats = m.endpoint.stats
	return m, d.leaderRedirect(m.endpoint.Route, m.path, query)
}

// serve answers one request. It is fasthttp's handler.
func (d *handler) serve(ctx *fasthttp.RequestCtx) {
	id := d.g.ids.Next()
	stats := d.router.unknown
	defer func() { stats.observe(ctx.Response.StatusCode(), time.Since(ctx.Time())) }()
	defer d.g.recoverPanic(ctx, &id)

	m, bad := d.match(ctx)
	stats = m.stats
	switch {
	case m.header.AmbiguousFraming:
		ctx.SetConnectionClose()
	case m.node == nil && d.g.shards != nil && d.servePartial(ctx, &id, m.path):
		return
	}
	switch {
	case bad != nil:
	case m.endpoint == nil:
		wire.WritePreflight(ctx, &id, m.node.allow)
		return
	case d.g.shards != nil:
		if d.route(ctx, &id, &m) {
			return
		}
	default:
		bad = d.g.limits[m.endpoint.Limit].Admit(ctx, d.g.proxies)
	}
	if bad != nil {
		d.g.fail(ctx, &id, bad)
	} else {
		d.answer(ctx, &id, &m)
	}
	// A page is indented before it is compressed; all else here.
	if m.header.Browser && (ctx.Response.StatusCode() >= fasthttp.StatusBadRequest || m.endpoint.Post != nil) {
		wire.IndentAnswer(ctx)
	}
}

// answer runs the route's handler and writes its result.
func (d *handler) answer(ctx *fasthttp.RequestCtx, id *wire.RequestID, m *match) {
	g, r := d.g, m.endpoint.Route
	switch {
	case r.Post != nil:
		d.write(ctx, id, r, m.segment)
		return
	case r.Raw != nil && !wire.IsUpgrade(ctx):
		g.fail(ctx, id, &wire.Problem{
			Status: 426, Code: wire.CodeUpgradeRequired,
			Text: "This route is a WebSocket. Send an upgrade request.",
		})
		return
	case r.Raw != nil:
		wire.WriteID(ctx, id)
		r.Raw(ctx)
		return
	case r.Stream != nil:
		wire.WriteID(ctx, id)
		r.Stream(ctx)
		return
	}
	p, bad := r.Page(m.query, m.segment)
	if bad != nil && bad.RedirectToLeader && g.opts.Leadership.Follower() {
		bad = redirectToLeader(g.opts.Leadership.Leader(), d.on, wire.RawTarget(ctx))
	}
	if bad = d.replaceIfDeposed(bad); bad != nil {
		g.fail(ctx, id, bad)
		return
	}
	wire.WritePage(ctx, id, r.Cache, p, &m.header, &g.gzip)
}

// write runs the handler of a POST and writes its result.
func (d *handler) write(ctx *fasthttp.RequestCtx, id *wire.RequestID, r *wire.Route, segment []byte) {
	g := d.g
	var taker market.Address
	var bad *wire.Problem
	if r.Bearer || r.MayBearer && dvp.SendsToken(&ctx.Request.Header) {
		if taker, bad = g.takerOf(ctx); bad != nil {
			g.fail(ctx, id, bad)
			return
		}
	}
	p, bad := wire.ReadPost(ctx)
	if bad != nil {
		g.fail(ctx, id, bad)
		return
	}
	p.Segment, p.Taker, p.Client = segment, taker, ratelimit.ClientOf(g.clientOf(ctx))
	a, bad := r.Post(p)
	if bad = d.replaceIfDeposed(bad); bad != nil {
		g.fail(ctx, id, bad)
		return
	}
	wire.WriteAnswer(ctx, id, a)
}

// expect answers a client that asks by Expect: 100-continue whether to send its body. If
// the headers already rule the request out, it is refused at once and the connection is
// closed, because the client may send the body anyway. It is fasthttp's ExpectHandler;
// after a refusal serve does not run.
func (d *handler) expect(ctx *fasthttp.RequestCtx) int {
	started := time.Now()
	m, bad := d.match(ctx)
	if e := m.endpoint; bad == nil && e != nil {
		switch most := d.g.opts.MaxBodyBytes; {
		case ctx.Request.Header.ContentLength() > most:
			bad = wire.BodyTooLarge(most)
		case e.Post != nil && !e.Bearer: // serve checks a token first, and a wrong one costs a token
			bad = wire.CheckMedia(&ctx.Request.Header)
		}
	}
	if bad == nil {
		return fasthttp.StatusContinue
	}
	id := d.g.ids.Next()
	d.g.fail(ctx, &id, bad)
	m.stats.observe(bad.Status, time.Since(started))
	return bad.Status
}
