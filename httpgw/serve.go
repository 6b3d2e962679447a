package httpgw

import (
	"bytes"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"blockdesk/internal/ratelimit"

	"github.com/valyala/fasthttp"
)

const jsonType = "application/json; charset=utf-8"

// Header names and constant values in the form that fasthttp takes without
// allocating.
var (
	hContentEnc = []byte("Content-Encoding")
	hETag       = []byte("ETag")
	hVary       = []byte("Vary")
	hRequestID  = []byte("X-Request-Id")
	hUpgrade    = []byte("Upgrade")
	hReplayed   = []byte("Idempotency-Replayed")

	hAuthenticate = []byte("WWW-Authenticate")
)

// Lines that always go together are one header to fasthttp: it writes a name as
// it stands, so all lines but the last are part of the last one's name. Two such
// headers instead of ten save a fifth of the time outside the kernel.

// commonLines are on every answer; the value is the request's id.
var commonLines = [cacheClassCount][]byte{
	neverCached: commonTo(cacheControl[neverCached]),
	liveData:    commonTo(cacheControl[liveData]),
	configData:  commonTo(cacheControl[configData]),
}

func commonTo(cache []byte) []byte {
	return lines("Cache-Control: "+string(cache), "X-Content-Type-Options: nosniff", "Access-Control-Allow-Origin: *",
		"Access-Control-Expose-Headers: *", "X-Request-Id")
}

// pageLines are on a page for people; the value is its policy.
var pageLines = lines("Referrer-Policy: no-referrer", "X-Frame-Options: DENY", "Content-Security-Policy")

// lines joins whole lines and the name of the last one.
func lines(all ...string) []byte { return []byte(strings.Join(all, "\r\n")) }

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

	asked := readAsked(&ctx.Request.Header)
	if asked.twiceFramed {
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
		d.g.preflight(ctx, &id, n.allow)
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
	} else if bad := d.g.admit(ctx, e.limit); bad != nil {
		d.g.fail(ctx, &id, bad)
		return
	}
	d.answer(ctx, &id, e.route, query, segment, &asked)
}

// catch, deferred, answers a request whose handler has panicked.
func (g *Gateway) catch(ctx *fasthttp.RequestCtx, id *requestID) {
	broken := recover()
	if broken == nil {
		return
	}
	g.metrics.panics.Inc()
	g.log.Error("http handler panicked", "request_id", string(id[:]), "panic", broken, "stack", string(debug.Stack()))
	ctx.Response.Reset()
	g.fail(ctx, id, &problem{
		status: 500, code: codeInternal, text: "The service could not answer. The request_id names the log's entry.",
	})
}

// asked is what the lines of a request's header say that answers depend on, all
// in one pass. The values alias fasthttp's buffer.
type asked struct {
	// twiceFramed is a request whose end the two of us and a proxy may see in
	// different places (RFC 9112, section 6.1): what follows it on the connection
	// is then perhaps not a request at all. fasthttp takes such a request as
	// chunked, and once the body is read, its parsed headers tell no more how it
	// was framed.
	twiceFramed bool
	accepts     []byte // the first Accept-Encoding
	known       []byte // the first If-None-Match
}

func readAsked(h *fasthttp.RequestHeader) (a asked) {
	chunked, measured := false, !h.IsHTTP11()
	for raw := h.RawHeaders(); len(raw) > 0; {
		line := raw
		if end := bytes.IndexByte(raw, '\n'); end >= 0 {
			line, raw = raw[:end], raw[end+1:]
		} else {
			raw = nil
		}
		colon := max(bytes.IndexByte(line, ':'), 0)
		is := func(name string) bool { return bytes.EqualFold(line[:colon], []byte(name)) }
		switch colon {
		case len(fasthttp.HeaderTransferEncoding):
			chunked = chunked || is(fasthttp.HeaderTransferEncoding)
		case len(fasthttp.HeaderContentLength):
			measured = measured || is(fasthttp.HeaderContentLength)
		case len(fasthttp.HeaderAcceptEncoding):
			if a.accepts == nil && is(fasthttp.HeaderAcceptEncoding) {
				a.accepts = bytes.TrimSpace(line[colon+1:])
			}
		case len(fasthttp.HeaderIfNoneMatch):
			if a.known == nil && is(fasthttp.HeaderIfNoneMatch) {
				a.known = bytes.TrimSpace(line[colon+1:])
			}
		}
	}
	a.twiceFramed = chunked && measured
	return a
}

// target splits the request target as it was sent. fasthttp's own path has been
// decoded and cleaned of "..", which would let two texts name one route.
func target(ctx *fasthttp.RequestCtx) (path, query []byte) {
	uri := ctx.Request.Header.RequestURI()
	if len(uri) > 0 && uri[0] == '/' {
		path, query, _ = bytes.Cut(uri, []byte{'?'})
		return path, query
	}
	// The absolute form, which RFC 9112 tells servers to take.
	return ctx.URI().PathOriginal(), ctx.URI().QueryString()
}

// admit takes a token of the client's bucket and writes the headers about it.
func (g *Gateway) admit(ctx *fasthttp.RequestCtx, class limitClass) *problem {
	l := g.limits[class]
	if l == nil {
		return nil
	}
	a := l.Take(ratelimit.ClientOf(g.proxies.client(ctx)))
	// The lines that l.head begins, the last one's value apart.
	var buf [256]byte
	b := append(buf[:0], l.head...)
	b = strconv.AppendInt(b, a.Remaining, 10)
	b = append(b, ";t="...)
	b = strconv.AppendInt(b, a.ResetS, 10)
	b = append(b, "\r\nX-RateLimit-Remaining: "...)
	b = strconv.AppendInt(b, a.Remaining, 10)
	b = append(b, "\r\nX-RateLimit-Reset"...)
	name := len(b)
	b = strconv.AppendInt(b, a.ResetS, 10)
	ctx.Response.Header.SetCanonical(b[:name], b[name:])
	if !a.OK {
		return rateLimited(int(a.RetryS))
	}
	return nil
}

// answer runs the route's handler and writes what it returns.
func (d *door) answer(ctx *fasthttp.RequestCtx, id *requestID, r *route, query, segment []byte, asked *asked) {
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
		ctx.Response.Header.SetCanonical(hRequestID, id[:])
		r.raw(ctx)
		return
	}
	if r.stream != nil {
		ctx.Response.Header.SetCanonical(hRequestID, id[:])
		r.stream(ctx)
		return
	}
	p, bad := r.page(query, segment)
	if bad != nil && bad.atLeader && g.opts.ReadOnly != nil {
		path, query := target(ctx)
		bad = elsewhere(g.opts.ReadOnly(), d.on, targetOf(path, query))
	}
	if bad = d.deposed(bad); bad != nil {
		g.fail(ctx, id, bad)
		return
	}
	g.common(ctx, id, r.cache)
	g.send(ctx, p, asked)
}

// page runs the handler of a read.
func (r *route) page(query, segment []byte) (*page, *problem) {
	if r.readOne != nil {
		return r.readOne(segment)
	}
	return r.read(query)
}

// send writes a page in the form that the client accepts, or 304 where it has
// that form already.
func (g *Gateway) send(ctx *fasthttp.RequestCtx, p *page, asked *asked) {
	h := &ctx.Response.Header
	body, etag, gzipped := p.body, p.etag, false
	if len(body) >= gzipFrom {
		h.SetCanonical(hVary, []byte("Accept-Encoding"))
		if acceptsGzip(asked.accepts) {
			z := p.gzipped(&g.gzip)
			body, etag, gzipped = z.body, z.etag, true
		}
	}
	if len(etag) > 0 {
		h.SetCanonical(hETag, etag)
		if etagMatches(asked.known, etag) {
			ctx.SetStatusCode(fasthttp.StatusNotModified)
			return
		}
	}
	if p.policy != nil {
		h.SetCanonical(pageLines, p.policy())
	}
	media := jsonType
	if p.media != "" {
		media = p.media
	}
	h.SetContentType(media)
	if gzipped {
		h.SetCanonical(hContentEnc, []byte("gzip"))
	}
	if conn, ok := ctx.Conn().(*clientConn); ok && len(body) >= uncopiedFrom && !ctx.IsHead() {
		ctx.Response.SetBodyStream(conn.uncopied(body), len(body))
		return
	}
	ctx.Response.SetBodyRaw(body)
}

// common writes the headers that every answer has.
func (g *Gateway) common(ctx *fasthttp.RequestCtx, id *requestID, cache cacheClass) {
	ctx.Response.Header.SetCanonical(commonLines[cache], id[:])
}

// fail writes an error.
func (g *Gateway) fail(ctx *fasthttp.RequestCtx, id *requestID, p *problem) {
	if p.cause != nil {
		g.log.Error("http request failed", "request_id", string(id[:]), "code", p.code, "error", p.cause)
	}
	g.common(ctx, id, neverCached)
	h := &ctx.Response.Header
	if p.allow != "" {
		h.Set("Allow", p.allow)
	}
	setRetryAfter(h, p.retryS)
	if p.location != "" {
		h.Set("Location", p.location)
	}
	if p.challenge != "" {
		h.SetCanonical(hAuthenticate, []byte(p.challenge))
	}
	if p.status == fasthttp.StatusUpgradeRequired {
		h.SetCanonical(hUpgrade, []byte("websocket"))
	}
	ctx.SetStatusCode(p.status)
	h.SetContentType(jsonType)
	ctx.Response.SetBodyRaw(p.append(nil, id))
}

func setRetryAfter(h *fasthttp.ResponseHeader, seconds int) {
	if seconds > 0 {
		h.Set("Retry-After", strconv.Itoa(seconds))
	}
}

// preflight answers OPTIONS, a browser's question before a request of another
// origin and everybody else's for the methods of a route.
func (g *Gateway) preflight(ctx *fasthttp.RequestCtx, id *requestID, allow string) {
	g.common(ctx, id, configData)
	h := &ctx.Response.Header
	h.Set("Allow", allow)
	h.Set("Access-Control-Allow-Methods", allow)
	h.Set("Access-Control-Allow-Headers", "Content-Type, If-None-Match, Authorization, Idempotency-Key, Last-Event-ID")
	h.Set("Access-Control-Max-Age", "86400")
	ctx.SetStatusCode(fasthttp.StatusNoContent)
}

func isUpgrade(ctx *fasthttp.RequestCtx) bool {
	h := &ctx.Request.Header
	return ctx.IsGet() && h.ConnectionUpgrade() &&
		bytes.EqualFold(h.PeekBytes(hUpgrade), []byte("websocket"))
}
