package wire

import (
	"bytes"

	"github.com/valyala/fasthttp"
)

// Header has the request headers that answers depend on. Its values alias fasthttp's
// buffer.
type Header struct {
	// AmbiguousFraming is true for a request with both a Content-Length and a
	// Transfer-Encoding, or with a Transfer-Encoding before HTTP/1.1 (RFC 9112,
	// section 6.1). A proxy and this server may then disagree about where the request
	// ends, so the next bytes may be smuggled. fasthttp reads such a request as
	// chunked, and its parsed headers do not show the conflict.
	AmbiguousFraming bool
	// Browser is true if the Accept header names text/html: a person reads the answer.
	Browser        bool
	acceptEncoding []byte // the first one
	ifNoneMatch    []byte // the first one
}

// ReadHeader reads the header lines in one pass, without allocating.
func ReadHeader(h *fasthttp.RequestHeader) (r Header) {
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
			if r.acceptEncoding == nil && is(fasthttp.HeaderAcceptEncoding) {
				r.acceptEncoding = bytes.TrimSpace(line[colon+1:])
			}
		case len(fasthttp.HeaderAccept):
			r.Browser = r.Browser || is(fasthttp.HeaderAccept) && bytes.Contains(line[colon+1:], []byte("text/html"))
		case len(fasthttp.HeaderIfNoneMatch):
			if r.ifNoneMatch == nil && is(fasthttp.HeaderIfNoneMatch) {
				r.ifNoneMatch = bytes.TrimSpace(line[colon+1:])
			}
		}
	}
	r.AmbiguousFraming = chunked && measured
	return r
}

// SplitTarget returns the path and the query of a request as they were sent. fasthttp's
// own path is decoded and cleaned of "..", so different texts could name one route.
func SplitTarget(ctx *fasthttp.RequestCtx) (path, query []byte) {
	uri := ctx.Request.Header.RequestURI()
	if len(uri) > 0 && uri[0] == '/' {
		path, query, _ = bytes.Cut(uri, []byte{'?'})
		return path, query
	}
	// RFC 9112 requires servers to accept the absolute form.
	return ctx.URI().PathOriginal(), ctx.URI().QueryString()
}

// IsUpgrade reports whether a request asks for a WebSocket.
func IsUpgrade(ctx *fasthttp.RequestCtx) bool {
	h := &ctx.Request.Header
	return ctx.IsGet() && h.ConnectionUpgrade() &&
		bytes.EqualFold(h.PeekBytes(hUpgrade), []byte("websocket"))
}

// RawTarget returns a request's path and query as the client sent them.
func RawTarget(ctx *fasthttp.RequestCtx) []byte {
	raw := ctx.Request.Header.RequestURI()
	if len(raw) > 0 && raw[0] == '/' {
		return raw
	}
	return JoinTarget(SplitTarget(ctx))
}

// JoinTarget joins the results of SplitTarget.
func JoinTarget(path, query []byte) []byte {
	if len(query) == 0 {
		return path
	}
	return append(append(append(make([]byte, 0, len(path)+1+len(query)), path...), '?'), query...)
}

// IsSafeTarget reports whether a raw request target can be appended to a host in a
// Location header: it begins with a slash and has only visible ASCII characters, and
// neither "#" nor "\", which clients interpret.
func IsSafeTarget(raw []byte) bool {
	if len(raw) == 0 || raw[0] != '/' {
		return false
	}
	for _, c := range raw {
		if c <= ' ' || c > '~' || c == '#' || c == '\\' {
			return false
		}
	}
	return true
}
