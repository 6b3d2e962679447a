package feed

import (
	"bytes"
	"strconv"

	"github.com/valyala/fasthttp"
)

const (
	extensionsHeader = "Sec-WebSocket-Extensions"
	// deflateAnswer is what every accepted offer is answered with (RFC 7692): no
	// state outlives a message on either side.
	deflateAnswer = "permessage-deflate; server_no_context_takeover; client_no_context_takeover"
	// minWindowBits and maxWindowBits bound the window sizes that an offer may
	// name, as powers of two of bytes.
	minWindowBits = 8
	maxWindowBits = 15
)

// negotiate chooses the dialect of a connection whose upgrade has been granted:
// deflated if the request offers permessage-deflate with parameters that RFC
// 7692 knows, whereupon the response says so, and plain otherwise. An offer
// with a parameter that is unknown, named twice or out of range is passed over
// for the next. It must be called after the upgrader has written the response's
// headers, since the upgrader refuses a response that names extensions.
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

// answerOffer returns the answer to one offer of an extension, or "" where it is
// declined. No value that is accepted has a comma or a semicolon in it, so an
// offer may be cut at them without regard to quotes.
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
			// Our own window is smaller than the smallest that can be asked for.
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

// readParameter reads one parameter of an offer and its window bits, where it
// has them.
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
		// Without a value it only says that the client could keep to a limit. Its
		// messages are below every window, so none is asked of it.
		bits, ok = windowBits(value)
		return clientWindow, bits, ok || !valued
	default:
		return 0, 0, false
	}
}

// windowBits reads a window size: a decimal number without leading zeros, bare
// or in quotes.
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
