package feed

import (
	"bytes"
	"strconv"

	"github.com/valyala/fasthttp"
)

const (
	extensionsHeader = "Sec-WebSocket-Extensions"
	// deflateAnswer answers every accepted offer (RFC 7692): neither side keeps state
	// between messages.
	deflateAnswer = "permessage-deflate; server_no_context_takeover; client_no_context_takeover"
)

// negotiate returns the encoding of a connection whose upgrade was granted: deflated if
// the request offers permessage-deflate with parameters that RFC 7692 defines, which it
// then confirms in the response, and plain otherwise. It skips an offer with an unknown,
// repeated or invalid parameter. Call it after the upgrader has written the response's
// headers, because the upgrader refuses a response with extensions.
func negotiate(ctx *fasthttp.RequestCtx) encoding {
	for _, line := range ctx.Request.Header.PeekAll(extensionsHeader) {
		for offer := range bytes.SplitSeq(line, []byte{','}) {
			if answer := answerOffer(offer); answer != "" {
				ctx.Response.Header.Set(extensionsHeader, answer)
				return deflated
			}
		}
	}
	return plain
}

// answerOffer returns the answer to one offer of an extension, or "" to decline it. No
// accepted value contains a comma or semicolon, so an offer may be split at them without
// regard to quotes.
func answerOffer(offer []byte) string {
	name, rest, more := bytes.Cut(offer, []byte{';'})
	if !bytes.EqualFold(bytes.TrimSpace(name), []byte("permessage-deflate")) {
		return ""
	}
	var seen [windowParameters]bool
	answer := deflateAnswer
	for more {
		var parameter []byte
		parameter, rest, more = bytes.Cut(rest, []byte{';'})
		p, bits, ok := readParameter(parameter)
		if !ok || seen[p] {
			return ""
		}
		seen[p] = true
		if p == serverWindow {
			// Our window is not larger than the smallest that a client can ask for.
			answer += "; server_max_window_bits=" + strconv.Itoa(bits)
		}
	}
	return answer
}

// windowParameter is one of the four parameters of permessage-deflate.
type windowParameter uint8

const (
	serverTakeover windowParameter = iota
	clientTakeover
	serverWindow
	clientWindow
	windowParameters // their number
)

// readParameter parses one parameter of an offer, with its window bits if it has them.
func readParameter(text []byte) (p windowParameter, bits int, ok bool) {
	name, value, valued := bytes.Cut(text, []byte{'='})
	value = bytes.TrimSpace(value)
	switch string(bytes.ToLower(bytes.TrimSpace(name))) {
	case "server_no_context_takeover":
		return serverTakeover, 0, !valued
	case "client_no_context_takeover":
		return clientTakeover, 0, !valued
	case "server_max_window_bits":
		bits, ok = windowBits(value)
		return serverWindow, bits, ok
	case "client_max_window_bits":
		// Without a value it offers to keep to a limit. None is needed, because the client's
		// messages fit every window.
		bits, ok = windowBits(value)
		return clientWindow, bits, ok || !valued
	default:
		return 0, 0, false
	}
}

// windowBits parses a window size: a decimal number without leading zeros, with or
// without quotes.
func windowBits(value []byte) (bits int, ok bool) {
	if n := len(value); n >= 2 && value[0] == '"' && value[n-1] == '"' {
		value = value[1 : n-1]
	}
	if len(value) == 0 || value[0] < '1' || value[0] > '9' {
		return 0, false
	}
	bits, err := strconv.Atoi(string(value))
	return bits, err == nil && bits >= minWindowBits && bits <= maxWindowBits
}
