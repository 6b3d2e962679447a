package wire

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

// IdempotencyHeader names the header that makes a POST repeatable.
const IdempotencyHeader = "Idempotency-Key"

// Post is a request with a JSON body, as far as all routes agree on it. It
// aliases fasthttp's buffers: a handler keeps nothing of it.
type Post struct {
	Body   []byte
	Key    []byte           // Idempotency-Key; nil = none
	Client ratelimit.Client // as the limits count him
	Taker  market.Address   // that the Bearer token belongs to, on routes that ask for one
}

// Answer is what a POST gets when it is not refused.
type Answer struct {
	Status   int
	Body     []byte
	Replayed bool // an Idempotency-Key has brought back what was said before
	RetryS   int  // Retry-After, 0 = none
}

// ReadPost checks what must hold before a body is looked at.
func ReadPost(ctx *fasthttp.RequestCtx) (*Post, *Problem) {
	if bad := CheckMedia(&ctx.Request.Header); bad != nil {
		return nil, bad
	}
	key, bad := idempotencyKey(&ctx.Request.Header)
	if bad != nil {
		return nil, bad
	}
	return &Post{Body: ctx.Request.Body(), Key: key}, nil
}

// CheckMedia refuses a body that is not plain JSON in UTF-8 by its headers.
func CheckMedia(h *fasthttp.RequestHeader) *Problem {
	if coding := h.ContentEncoding(); len(coding) > 0 && !bytes.EqualFold(coding, []byte("identity")) {
		return UnsupportedMedia("content_encoding")
	}
	if !IsJSON(h.ContentType()) {
		return UnsupportedMedia("content_type")
	}
	return nil
}

// IsJSON reports whether a Content-Type is application/json, in UTF-8 where it
// says so at all.
func IsJSON(contentType []byte) bool {
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
func idempotencyKey(h *fasthttp.RequestHeader) ([]byte, *Problem) {
	lines := h.PeekAll(IdempotencyHeader)
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
