package httpgw

import (
	"time"

	"github.com/valyala/fasthttp"

	"blockdesk/internal/ratelimit"
	"blockdesk/market"
)

// door serves one address.
type door struct {
	g      *Gateway
	on     surface
	router *router
}

// serve answers one request. It is fasthttp's handler.
func (d *door) serve(ctx *fasthttp.RequestCtx) {
	id := d.g.ids.next()
	stats := d.router.unknown
	defer func() { stats.observe(ctx.Response.StatusCode(), time.Since(ctx.Time())) }()
	defer d.g.catch(ctx, &id)

	h := readHeader(&ctx.Request.Header)
	if h.twiceFramed {
		ctx.SetConnectionClose()
		d.g.fail(ctx, &id, malformedFraming())
		return
	}
	path, query := target(ctx)
	n, segment := d.router.find(path)
	if n == nil {
		if d.g.groups != nil && d.servePart(ctx, &id, path) {
			return
		}
		d.g.fail(ctx, &id, unknownRoute(path))
		return
	}
	if ctx.IsOptions() {
		writePreflight(ctx, &id, n.allow)
		return
	}
	m := methodOf(ctx.Method())
	e := n.methods[m]
	if e == nil {
		d.g.fail(ctx, &id, methodNotAllowed(n.allow))
		return
	}
	stats = e.stats
	if bad := d.elsewhere(e.route, path, query); bad != nil {
		d.g.fail(ctx, &id, bad)
		return
	}
	if d.g.groups != nil {
		if d.routed(ctx, &id, e.route, query, segment) {
			return
		}
	} else if bad := d.g.limits[e.limit].admit(ctx, d.g.proxies); bad != nil {
		d.g.fail(ctx, &id, bad)
		return
	}
	d.answer(ctx, &id, e.route, query, segment, &h)
}

// answer runs the route's handler and writes what it returns.
func (d *door) answer(ctx *fasthttp.RequestCtx, id *requestID, r *route, query, segment []byte, h *requestHeader) {
	g := d.g
	if r.post != nil {
		d.write(ctx, id, r)
		return
	}
	if r.raw != nil {
		if !isUpgrade(ctx) {
			g.fail(ctx, id, &problem{
				status: 426, code: codeUpgradeRequired,
				text: "This route speaks WebSocket. Send an upgrade request.",
			})
			return
		}
		writeID(ctx, id)
		r.raw(ctx)
		return
	}
	if r.stream != nil {
		writeID(ctx, id)
		r.stream(ctx)
		return
	}
	p, bad := r.page(query, segment)
	if bad != nil && bad.atLeader && g.opts.ReadOnly != nil {
		bad = elsewhere(g.opts.ReadOnly(), d.on, rawTarget(ctx))
	}
	if bad = d.deposed(bad); bad != nil {
		g.fail(ctx, id, bad)
		return
	}
	writePage(ctx, id, r.cache, p, h, &g.gzip)
}

// write runs a route's handler for a POST and writes what it returns.
func (d *door) write(ctx *fasthttp.RequestCtx, id *requestID, r *route) {
	g := d.g
	var taker market.Address
	var bad *problem
	if r.bearer {
		if taker, bad = g.takerOf(ctx); bad != nil {
			g.fail(ctx, id, bad)
			return
		}
	}
	p, bad := readPost(ctx)
	if bad != nil {
		g.fail(ctx, id, bad)
		return
	}
	p.taker, p.client = taker, ratelimit.ClientOf(g.clientOf(ctx))
	a, bad := r.post(p)
	if bad = d.deposed(bad); bad != nil {
		g.fail(ctx, id, bad)
		return
	}
	writeAnswer(ctx, id, a)
}

// expect answers a client that asks, by Expect: 100-continue, whether it should
// send its body. Where the headers already say no, it is told so at once, and
// the connection is closed, since it may send the body all the same. It is
// fasthttp's ExpectHandler; the handler then does not run.
func (d *door) expect(ctx *fasthttp.RequestCtx) int {
	started := time.Now()
	bad, stats := d.forebode(ctx)
	if bad == nil {
		return fasthttp.StatusContinue
	}
	id := d.g.ids.next()
	d.g.fail(ctx, &id, bad)
	stats.observe(bad.status, time.Since(started))
	return bad.status
}

// forebode returns what a request will be refused for whatever its body is. It
// takes no token: a request that is refused here has cost nothing.
func (d *door) forebode(ctx *fasthttp.RequestCtx) (*problem, *routeStats) {
	stats := d.router.unknown
	if readHeader(&ctx.Request.Header).twiceFramed {
		return malformedFraming(), stats
	}
	path, query := target(ctx)
	n, _ := d.router.find(path)
	if n == nil {
		return unknownRoute(path), stats
	}
	if ctx.IsOptions() {
		return nil, stats
	}
	e := n.methods[methodOf(ctx.Method())]
	if e == nil {
		return methodNotAllowed(n.allow), stats
	}
	if bad := d.elsewhere(e.route, path, query); bad != nil {
		return bad, e.stats
	}
	if ctx.Request.Header.ContentLength() > d.g.opts.MaxBodyBytes {
		return bodyTooLarge(d.g.opts.MaxBodyBytes), e.stats
	}
	if e.post == nil || e.bearer { // who has no token is told that first, and in serve: a guess has its price
		return nil, e.stats
	}
	return checkMedia(&ctx.Request.Header), e.stats
}
