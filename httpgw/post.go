package httpgw

import (
	"bytes"
	"mime"
	"strings"

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
