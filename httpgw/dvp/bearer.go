package dvp

import (
	"bytes"

	"github.com/valyala/fasthttp"

	"blockdesk/httpgw/terms"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// MaxToken is the longest accepted Bearer token, in bytes.
const MaxToken = 256

// Taker returns the key that a request's token was issued to.
func (e *Endpoints) Taker(h *fasthttp.RequestHeader) (market.Address, *wire.Problem) {
	secret, reason := bearerToken(h)
	if reason != "" {
		return market.Address{}, terms.TokenProblem(reason)
	}
	if e.handshake != nil {
		if key, ok := e.handshake.Admit(secret); ok {
			return key, nil
		}
	}
	return market.Address{}, terms.TokenProblem(terms.TokenUnknown)
}

// SendsToken reports whether a request has an Authorization header that is not empty.
func SendsToken(h *fasthttp.RequestHeader) bool {
	for _, line := range h.PeekAll(fasthttp.HeaderAuthorization) {
		if len(line) > 0 {
			return true
		}
	}
	return false
}

// bearerToken returns the token of the Authorization header (RFC 6750, section 2.1), or
// the reason why there is none. It aliases h.
func bearerToken(h *fasthttp.RequestHeader) (token []byte, reason string) {
	lines := h.PeekAll(fasthttp.HeaderAuthorization)
	switch {
	case len(lines) == 0 || len(lines) == 1 && len(lines[0]) == 0:
		return nil, terms.TokenMissing
	case len(lines) > 1:
		return nil, terms.TokenMalformed
	}
	scheme, token, _ := bytes.Cut(lines[0], []byte{' '})
	token = bytes.TrimLeft(token, " ")
	if !bytes.EqualFold(scheme, []byte("Bearer")) || !isToken(token) {
		return nil, terms.TokenMalformed
	}
	return token, ""
}

// isToken reports whether text is 1..MaxToken bytes of a b64token: letters,
// digits and "- . _ ~ + /", then any number of "=".
func isToken(text []byte) bool {
	if len(text) > MaxToken {
		return false
	}
	text = bytes.TrimRight(text, "=")
	for _, c := range text {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (c < '0' || c > '9') && bytes.IndexByte([]byte("-._~+/"), c) < 0 {
			return false
		}
	}
	return len(text) > 0
}
