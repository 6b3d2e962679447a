package wire

import (
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"
)

// Content-Types of JSON bodies and of HTML pages.
const (
	JSONType = "application/json; charset=utf-8"
	HTMLType = "text/html; charset=utf-8"
)

// Header names as bytes, which fasthttp takes without allocating.
var (
	hContentEnc     = []byte("Content-Encoding")
	hETag           = []byte("ETag")
	hVary           = []byte("Vary")
	RequestIDHeader = []byte("X-Request-Id")
	hUpgrade        = []byte("Upgrade")
	ReplayedHeader  = []byte("Idempotency-Replayed")
	hAuthenticate   = []byte("WWW-Authenticate")
)

// Headers that always occur together are a single header to fasthttp. fasthttp writes
// a name unchanged, so all lines except the last value are put into the name. Two such
// headers instead of ten save a fifth of the time outside the kernel.

// commonLines are the headers of every answer; the value is the request id.
var commonLines = [cacheClassCount][]byte{
	NeverCached: commonTo(CacheControl[NeverCached]),
	LiveData:    commonTo(CacheControl[LiveData]),
	ConfigData:  commonTo(CacheControl[ConfigData]),
}

func commonTo(cache []byte) []byte {
	return joinLines("Cache-Control: "+string(cache), "X-Content-Type-Options: nosniff", "Access-Control-Allow-Origin: *",
		"Access-Control-Expose-Headers: *", "X-Request-Id")
}

// pageLines are the headers of an HTML page; the value is its Content-Security-Policy.
var pageLines = joinLines("Referrer-Policy: no-referrer", "X-Frame-Options: DENY", "Content-Security-Policy")

// joinLines joins complete header lines and the name of the last header.
func joinLines(all ...string) []byte { return []byte(strings.Join(all, "\r\n")) }

// WriteID writes only X-Request-Id, for handlers that write the rest themselves.
func WriteID(ctx *fasthttp.RequestCtx, id *RequestID) {
	ctx.Response.Header.SetCanonical(RequestIDHeader, id[:])
}

// WriteCommon writes the headers of every answer.
func WriteCommon(ctx *fasthttp.RequestCtx, id *RequestID, cache Cache) {
	ctx.Response.Header.SetCanonical(commonLines[cache], id[:])
}

// WritePage writes a page in the encoding that the client accepts, or 304 if the client
// already has it. h is the request's header.
func WritePage(ctx *fasthttp.RequestCtx, id *RequestID, cache Cache, p *Page, h *Header, pool *GzipPool) {
	WriteCommon(ctx, id, cache)
	out := &ctx.Response.Header
	if h.Browser {
		p = p.Indented()
	}
	body, etag, gzipped := p.Body, p.ETag, false
	switch {
	case h.Browser:
		out.SetCanonical(hVary, []byte("Accept, Accept-Encoding"))
	case len(body) >= GzipMin:
		out.SetCanonical(hVary, []byte("Accept-Encoding"))
	}
	if len(body) >= GzipMin {
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
	if p.Policy != nil {
		out.SetCanonical(pageLines, p.Policy)
	}
	media := JSONType
	if p.Media != "" {
		media = p.Media
	}
	out.SetContentType(media)
	if gzipped {
		out.SetCanonical(hContentEnc, []byte("gzip"))
	}
	if conn, ok := ctx.Conn().(*ClientConn); ok && len(body) >= ZeroCopyMin && !ctx.IsHead() {
		ctx.Response.SetBodyStream(conn.stream(body), len(body))
		return
	}
	ctx.Response.SetBodyRaw(body)
}

// WriteAnswer writes the answer to a POST that was not refused.
func WriteAnswer(ctx *fasthttp.RequestCtx, id *RequestID, a *Answer) {
	WriteCommon(ctx, id, NeverCached)
	h := &ctx.Response.Header
	if a.Replayed {
		h.SetCanonical(ReplayedHeader, []byte("true"))
	}
	setRetryAfter(h, a.RetryS)
	ctx.SetStatusCode(a.Status)
	h.SetContentType(JSONType)
	ctx.Response.SetBodyRaw(a.Body)
}

// WriteProblem writes an error.
func WriteProblem(ctx *fasthttp.RequestCtx, id *RequestID, p *Problem) {
	h := &ctx.Response.Header
	if p.Replayed {
		h.SetCanonical(ReplayedHeader, []byte("true"))
	}
	WriteCommon(ctx, id, NeverCached)
	if p.Allow != "" {
		h.Set("Allow", p.Allow)
	}
	setRetryAfter(h, p.RetryS)
	if p.Location != "" {
		h.Set("Location", p.Location)
	}
	if p.Challenge != "" {
		h.SetCanonical(hAuthenticate, []byte(p.Challenge))
	}
	if p.Status == fasthttp.StatusUpgradeRequired {
		h.SetCanonical(hUpgrade, []byte("websocket"))
	}
	ctx.SetStatusCode(p.Status)
	h.SetContentType(JSONType)
	ctx.Response.SetBodyRaw(p.Append(nil, id))
}

// IndentAnswer indents the JSON body that WriteAnswer or WriteProblem has written, if it
// is not longer than MaxIndent.
func IndentAnswer(ctx *fasthttp.RequestCtx) {
	body := ctx.Response.Body()
	if len(body) == 0 || len(body) > MaxIndent || string(ctx.Response.Header.ContentType()) != JSONType {
		return
	}
	ctx.Response.SetBodyRaw(indent(body))
}

// WritePreflight answers OPTIONS. Browsers send it before requests from pages of other
// origins (CORS); allow lists the methods of the route.
func WritePreflight(ctx *fasthttp.RequestCtx, id *RequestID, allow string) {
	WriteCommon(ctx, id, ConfigData)
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
