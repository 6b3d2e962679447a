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

// IdempotencyHeader is the header that makes a POST safe to repeat.
const IdempotencyHeader = "Idempotency-Key"

// Post is a POST request with a JSON body, before the body is decoded. It aliases
// fasthttp's buffers: a handler must not retain any of it.
type Post struct {
	Body    []byte
	Segment []byte           // what matches the braces of the path; nil = none
	Key     []byte           // Idempotency-Key; nil = none
	Client  ratelimit.Client // the client whose limits the request counts for
	Taker   market.Address   // owner of the Bearer token; zero = none was sent, on a route that does not require one
}

// Answer is the answer to a POST that was not refused.
type Answer struct {
	Status   int
	Body     []byte
	Replayed bool // the stored answer of an Idempotency-Key
	RetryS   int  // Retry-After in seconds; 0 = none
}

// ReadPost checks the headers of a POST and returns it.
func ReadPost(ctx *fasthttp.RequestCtx) (*Post, *Problem) {
	if problem := CheckMedia(&ctx.Request.Header); problem != nil {
		return nil, problem
	}
	key, problem := idempotencyKey(&ctx.Request.Header)
	if problem != nil {
		return nil, problem
	}
	return &Post{Body: ctx.Request.Body(), Key: key}, nil
}

// CheckMedia refuses a request whose headers do not announce uncompressed JSON in UTF-8.
func CheckMedia(h *fasthttp.RequestHeader) *Problem {
	if coding := h.ContentEncoding(); len(coding) > 0 && !bytes.EqualFold(coding, []byte("identity")) {
		return UnsupportedMedia("content_encoding")
	}
	if !IsJSON(h.ContentType()) {
		return UnsupportedMedia("content_type")
	}
	return nil
}

// IsJSON reports whether a Content-Type is application/json, with no charset or UTF-8.
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

// idempotencyKey returns the header's value, or nil if there is none.
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
