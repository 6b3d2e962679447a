package httpgw

import (
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"
)

// Content-Types of every JSON body and of the pages for people.
const (
	jsonType = "application/json; charset=utf-8"
	htmlType = "text/html; charset=utf-8"
)

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
	return joinLines("Cache-Control: "+string(cache), "X-Content-Type-Options: nosniff", "Access-Control-Allow-Origin: *",
		"Access-Control-Expose-Headers: *", "X-Request-Id")
}

// pageLines are on a page for people; the value is its policy.
var pageLines = joinLines("Referrer-Policy: no-referrer", "X-Frame-Options: DENY", "Content-Security-Policy")

// joinLines joins whole lines and the name of the last one.
func joinLines(all ...string) []byte { return []byte(strings.Join(all, "\r\n")) }

// writeID writes X-Request-Id alone, for handlers that write the rest themselves.
func writeID(ctx *fasthttp.RequestCtx, id *requestID) {
	ctx.Response.Header.SetCanonical(hRequestID, id[:])
}

// writeCommon writes the headers that every answer has.
func writeCommon(ctx *fasthttp.RequestCtx, id *requestID, cache cacheClass) {
	ctx.Response.Header.SetCanonical(commonLines[cache], id[:])
}

// writePage writes a page in the form that the client accepts, or 304 where the
// client has that form already. h is the request's header.
func writePage(ctx *fasthttp.RequestCtx, id *requestID, cache cacheClass, p *page, h *requestHeader, pool *gzipPool) {
	writeCommon(ctx, id, cache)
	out := &ctx.Response.Header
	body, etag, gzipped := p.body, p.etag, false
	if len(body) >= gzipFrom {
		out.SetCanonical(hVary, []byte("Accept-Encoding"))
		if acceptsGzip(h.acceptEncoding) {
			z := p.gzipped(pool)
			body, etag, gzipped = z.body, z.etag, true
		}
	}
	if len(etag) > 0 {
		out.SetCanonical(hETag, etag)
		if etagMatches(h.ifNoneMatch, etag) {
			ctx.SetStatusCode(fasthttp.StatusNotModified)
			return
		}
	}
	if p.policy != nil {
		out.SetCanonical(pageLines, p.policy)
	}
	media := jsonType
	if p.media != "" {
		media = p.media
	}
	out.SetContentType(media)
	if gzipped {
		out.SetCanonical(hContentEnc, []byte("gzip"))
	}
	if conn, ok := ctx.Conn().(*clientConn); ok && len(body) >= uncopiedFrom && !ctx.IsHead() {
		ctx.Response.SetBodyStream(conn.uncopied(body), len(body))
		return
	}
	ctx.Response.SetBodyRaw(body)
}

// writeAnswer writes what a POST gets when it is not refused.
func writeAnswer(ctx *fasthttp.RequestCtx, id *requestID, a *answer) {
	writeCommon(ctx, id, neverCached)
	h := &ctx.Response.Header
	if a.replayed {
		h.SetCanonical(hReplayed, []byte("true"))
	}
	setRetryAfter(h, a.retryS)
	ctx.SetStatusCode(a.status)
	h.SetContentType(jsonType)
	ctx.Response.SetBodyRaw(a.body)
}

// writeProblem writes an error.
func writeProblem(ctx *fasthttp.RequestCtx, id *requestID, p *problem) {
	h := &ctx.Response.Header
	if p.replayed {
		h.SetCanonical(hReplayed, []byte("true"))
	}
	writeCommon(ctx, id, neverCached)
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

// writePreflight answers OPTIONS: a browser asks before it sends a request from a
// page of another origin, other clients ask for the methods of a route.
func writePreflight(ctx *fasthttp.RequestCtx, id *requestID, allow string) {
	writeCommon(ctx, id, configData)
	h := &ctx.Response.Header
	h.Set("Allow", allow)
	h.Set("Access-Control-Allow-Methods", allow)
	h.Set("Access-Control-Allow-Headers", "Content-Type, If-None-Match, Authorization, Idempotency-Key, Last-Event-ID")
	h.Set("Access-Control-Max-Age", "86400")
	ctx.SetStatusCode(fasthttp.StatusNoContent)
}

func setRetryAfter(h *fasthttp.ResponseHeader, seconds int) {
	if seconds > 0 {
		h.Set("Retry-After", strconv.Itoa(seconds))
	}
}
