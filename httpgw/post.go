package httpgw

import (
	"bytes"
	"mime"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"blockdesk/internal/ratelimit"
	"blockdesk/market"
)

// MaxIdempotencyKey is the longest Idempotency-Key, in bytes of visible ASCII.
const MaxIdempotencyKey = 128

const idempotencyHeader = "Idempotency-Key"

// post is a request with a JSON body, as far as all routes agree on it. It
// aliases fasthttp's buffers: a handler keeps nothing of it.
type post struct {
	body   []byte
	key    []byte           // Idempotency-Key; nil = none
	client ratelimit.Client // as the limits count him
	taker  market.Address   // that the Bearer token belongs to, on routes that ask for one
}

// answer is what a POST gets when it is not refused.
type answer struct {
	status   int
	body     []byte
	replayed bool // an Idempotency-Key has brought back what was said before
	retryS   int  // Retry-After, 0 = none
}

// readPost checks what must hold before a body is looked at.
func readPost(ctx *fasthttp.RequestCtx) (*post, *problem) {
	if bad := checkMedia(&ctx.Request.Header); bad != nil {
		return nil, bad
	}
	key, bad := idempotencyKey(&ctx.Request.Header)
	if bad != nil {
		return nil, bad
	}
	return &post{body: ctx.Request.Body(), key: key}, nil
}

// checkMedia refuses a body that is not plain JSON in UTF-8 by its headers.
func checkMedia(h *fasthttp.RequestHeader) *problem {
	if coding := h.ContentEncoding(); len(coding) > 0 && !bytes.EqualFold(coding, []byte("identity")) {
		return unsupportedMedia("content_encoding")
	}
	if !isJSON(h.ContentType()) {
		return unsupportedMedia("content_type")
	}
	return nil
}

// isJSON reports whether a Content-Type is application/json, in UTF-8 where it
// says so at all.
func isJSON(contentType []byte) bool {
	const want = "application/json"
	if string(contentType) == want {
		return true
	}
	media, params, err := mime.ParseMediaType(string(contentType))
	if err != nil || media != want {
		return false
	}
	charset, given := params["charset"]
	return !given || strings.EqualFold(charset, "utf-8")
}

// idempotencyKey returns the header's value, nil where there is none.
func idempotencyKey(h *fasthttp.RequestHeader) ([]byte, *problem) {
	lines := h.PeekAll(idempotencyHeader)
	switch {
	case len(lines) == 0:
		return nil, nil
	case len(lines) > 1:
		return nil, invalidKey("repeated")
	case len(lines[0]) == 0:
		return nil, invalidKey("empty")
	case len(lines[0]) > MaxIdempotencyKey:
		return nil, invalidKey("too_long")
	}
	for _, c := range lines[0] {
		if c <= ' ' || c > '~' {
			return nil, invalidKey("not_visible_ascii")
		}
	}
	return lines[0], nil
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
		if bad.replayed {
			ctx.Response.Header.SetCanonical(hReplayed, []byte("true"))
		}
		g.fail(ctx, id, bad)
		return
	}
	g.common(ctx, id, neverCached)
	h := &ctx.Response.Header
	if a.replayed {
		h.SetCanonical(hReplayed, []byte("true"))
	}
	setRetryAfter(h, a.retryS)
	ctx.SetStatusCode(a.status)
	h.SetContentType(jsonType)
	ctx.Response.SetBodyRaw(a.body)
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
	if readAsked(&ctx.Request.Header).twiceFramed {
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
