package httpgw

import (
	"time"

	"github.com/valyala/fasthttp"

	"blockdesk/httpgw/wire"
	"blockdesk/internal/ratelimit"
	"blockdesk/market"
)

// handler serves one address.
type handler struct {
	g      *Gateway
	on     wire.Surface
	router *router
}

// serve answers one request. It is fasthttp's handler.
func (d *handler) serve(ctx *fasthttp.RequestCtx) {
	id := d.g.ids.Next()
	stats := d.router.unknown
	defer func() { stats.observe(ctx.Response.StatusCode(), time.Since(ctx.Time())) }()
	defer d.g.recoverPanic(ctx, &id)

	h := wire.ReadHeader(&ctx.Request.Header)
	if h.AmbiguousFraming {
		ctx.SetConnectionClose()
		d.g.fail(ctx, &id, wire.MalformedFraming())
		return
	}
	path, query := wire.SplitTarget(ctx)
	n, segment := d.router.find(path)
	if n == nil {
		if d.g.shards != nil && d.servePartial(ctx, &id, path) {
			return
		}
		d.g.fail(ctx, &id, wire.UnknownRoute(path))
		return
	}
	if ctx.IsOptions() {
		wire.WritePreflight(ctx, &id, n.allow)
		return
	}
	m := wire.MethodOf(ctx.Method())
	e := n.methods[m]
	if e == nil {
		d.g.fail(ctx, &id, wire.MethodNotAllowed(n.allow))
		return
	}
	stats = e.stats
	if bad := d.leaderRedirect(e.Route, path, query); bad != nil {
		d.g.fail(ctx, &id, bad)
		return
	}
	if d.g.shards != nil {
		if d.routed(ctx, &id, e.Route, query, segment) {
			return
		}
	} else if bad := d.g.limits[e.Limit].Admit(ctx, d.g.proxies); bad != nil {
		d.g.fail(ctx, &id, bad)
		return
	}
	d.answer(ctx, &id, e.Route, query, segment, &h)
}

// answer runs the route's handler and writes what it returns.
func (d *handler) answer(ctx *fasthttp.RequestCtx, id *wire.RequestID, r *wire.Route, query, segment []byte, h *wire.Header) {
	g := d.g
	if r.Post != nil {
		d.write(ctx, id, r)
		return
	}
	if r.Raw != nil {
		if !wire.IsUpgrade(ctx) {
			g.fail(ctx, id, &wire.Problem{
				Status: 426, Code: wire.CodeUpgradeRequired,
				Text: "This route speaks WebSocket. Send an upgrade request.",
			})
			return
		}
		wire.WriteID(ctx, id)
		r.Raw(ctx)
		return
	}
	if r.Stream != nil {
		wire.WriteID(ctx, id)
		r.Stream(ctx)
		return
	}
	p, bad := r.Page(query, segment)
	if bad != nil && bad.RedirectToLeader && g.opts.Leadership.Follower() {
		bad = redirectToLeader(g.opts.Leadership.Leader(), d.on, wire.RawTarget(ctx))
	}
	if bad = d.replaceIfDeposed(bad); bad != nil {
		g.fail(ctx, id, bad)
		return
	}
	wire.WritePage(ctx, id, r.Cache, p, h, &g.gzip)
}

// write runs a route's handler for a POST and writes what it returns.
func (d *handler) write(ctx *fasthttp.RequestCtx, id *wire.RequestID, r *wire.Route) {
	g := d.g
	var taker market.Address
	var bad *wire.Problem
	if r.Bearer {
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
	p.Taker, p.Client = taker, ratelimit.ClientOf(g.clientOf(ctx))
	a, bad := r.Post(p)
	if bad = d.replaceIfDeposed(bad); bad != nil {
		g.fail(ctx, id, bad)
		return
	}
	wire.WriteAnswer(ctx, id, a)
}

// expect answers a client that asks, by Expect: 100-continue, whether it should
// send its body. Where the headers already say no, it is refused at once, and
// the connection is closed, since it may send the body all the same. It is
// fasthttp's ExpectHandler; the handler then does not run.
func (d *handler) expect(ctx *fasthttp.RequestCtx) int {
	started := time.Now()
	bad, stats := d.precheck(ctx)
	if bad == nil {
		return fasthttp.StatusContinue
	}
	id := d.g.ids.Next()
	d.g.fail(ctx, &id, bad)
	stats.observe(bad.Status, time.Since(started))
	return bad.Status
}

// forebode returns what a request will be refused for whatever its body is. It
// takes no token: a request that is refused here has cost nothing.
func (d *handler) precheck(ctx *fasthttp.RequestCtx) (*wire.Problem, *routeStats) {
	stats := d.router.unknown
	if wire.ReadHeader(&ctx.Request.Header).AmbiguousFraming {
		return wire.MalformedFraming(), stats
	}
	path, query := wire.SplitTarget(ctx)
	n, _ := d.router.find(path)
	if n == nil {
		return wire.UnknownRoute(path), stats
	}
	if ctx.IsOptions() {
		return nil, stats
	}
	e := n.methods[wire.MethodOf(ctx.Method())]
	if e == nil {
		return wire.MethodNotAllowed(n.allow), stats
	}
	if bad := d.leaderRedirect(e.Route, path, query); bad != nil {
		return bad, e.stats
	}
	if ctx.Request.Header.ContentLength() > d.g.opts.MaxBodyBytes {
		return wire.BodyTooLarge(d.g.opts.MaxBodyBytes), e.stats
	}
	if e.Post == nil || e.Bearer { // a missing token is refused first, and in serve: a guess has its price
		return nil, e.stats
	}
	return wire.CheckMedia(&ctx.Request.Header), e.stats
}
