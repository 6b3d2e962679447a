package feed

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"blockdesk/market"
)

// refusal is the error of an invalid query. Its texts need no escapes in JSON.
type refusal struct{ code, text, reason, field string }

// parseStream parses the query of a stream: symbols (or symbol) and channels, lists with
// commas, and depth. The defaults are all symbols, the three market channels, and the
// WebSocket's depth. Repeated names count once, and unknown parameters are ignored. limit
// bounds the (channel, symbol) pairs. others are the channels
// that exist beside l2, trades and ticker.
func parseStream(args *fasthttp.Args, set *market.Instruments, limit int, others otherChannels) (*request, *refusal) {
	book, bad := streamDepth(args)
	if bad != nil {
		return nil, bad
	}
	channels, bad := streamChannels(args, book, others)
	if bad != nil {
		return nil, bad
	}
	symbols, bad := streamSymbols(args, set)
	if bad != nil {
		return nil, bad
	}
	if len(symbols)*len(channels) > limit {
		return nil, &refusal{
			code: "INVALID_FIELD", field: "symbols", reason: "too_many",
			text: "A stream carries at most " + strconv.Itoa(limit) + " pairs of a channel and a symbol.",
		}
	}
	heartbeat := true
	r := &request{action: subscribe, heartbeat: &heartbeat}
	for _, in := range symbols {
		for _, k := range channels {
			if k == l3 && in.Source != market.Matched {
				return nil, &refusal{
					code: "INVALID_FIELD", field: "channels", reason: "unknown_channel", text: "The book of " + in.Symbol + " is a mirror: it has no channel l3.",
				}
			}
			r.topics = append(r.topics, topicRef{in: in, kind: k})
		}
	}
	return r, nil
}

func streamDepth(args *fasthttp.Args) (kind, *refusal) {
	if !args.Has("depth") {
		return defaultDepth, nil
	}
	if len(args.PeekMulti("depth")) > 1 {
		return 0, repeated("depth")
	}
	n, err := strconv.Atoi(string(args.Peek("depth")))
	book, known := depthKind(n)
	if err != nil || !known {
		return 0, &refusal{
			code: "INVALID_FIELD", field: "depth", reason: "unknown_depth", text: "depth must be 10, 25, 50 or 100.",
		}
	}
	return book, nil
}

func streamChannels(args *fasthttp.Args, book kind, others otherChannels) ([]kind, *refusal) {
	if !args.Has("channels") {
		return []kind{ticker, book, trades}, nil
	}
	words, bad := listParam(args, "channels", maxChannels)
	if bad != nil {
		return nil, bad
	}
	var found []kind
	var unknown [][]byte
	for _, word := range words {
		k, known := parseChannel(word, book)
		switch {
		case !known || !others.has(k):
			unknown = append(unknown, word)
		case !slices.Contains(found, k):
			found = append(found, k)
		}
	}
	if len(unknown) > 0 {
		return nil, &refusal{
			code: "INVALID_FIELD", field: "channels", reason: "unknown_channel", text: "No such channel: " + named(unknown) + ".",
		}
	}
	return found, nil
}

func streamSymbols(args *fasthttp.Args, set *market.Instruments) ([]*market.Instrument, *refusal) {
	field := "symbols"
	switch one, several := args.Has("symbol"), args.Has("symbols"); {
	case one && several:
		return nil, repeated("symbols")
	case one:
		field = "symbol"
	case !several:
		all := make([]*market.Instrument, set.Len())
		for i := range all {
			all[i] = set.Get(market.InstrumentID(i))
		}
		return all, nil
	}
	words, bad := listParam(args, field, maxSymbols)
	if bad != nil {
		return nil, bad
	}
	var found []*market.Instrument
	var unknown [][]byte
	for _, word := range words {
		in := set.Lookup(word)
		switch at := set.OtherShard(word); {
		case at != nil:
			return nil, &refusal{
				code: codeOtherShard, field: field, reason: "other_group",
				text: named([][]byte{word}) + " is served at " + at.Base + ". A stream carries symbols of one group.",
			}
		case in == nil:
			unknown = append(unknown, word)
		case !slices.Contains(found, in):
			found = append(found, in)
		}
	}
	if len(unknown) > 0 {
		return nil, &refusal{
			code: "UNKNOWN_SYMBOL", field: field, reason: "unknown_symbol",
			text: "Unknown symbol: " + named(unknown) + ". /api/v1/market/symbols lists all symbols.",
		}
	}
	return found, nil
}

// listParam parses a list of 1 to limit words separated by commas.
func listParam(args *fasthttp.Args, name string, limit int) ([][]byte, *refusal) {
	if len(args.PeekMulti(name)) > 1 {
		return nil, repeated(name)
	}
	text := args.Peek(name)
	if len(text) == 0 {
		return nil, &refusal{
			code: "MISSING_FIELD", field: name, reason: "empty", text: "The query parameter " + name + " is empty; leave it out for the default.",
		}
	}
	if bytes.Count(text, []byte{','}) >= limit {
		return nil, &refusal{
			code: "INVALID_FIELD", field: name, reason: "too_many", text: fmt.Sprintf("%s may name at most %d.", name, limit),
		}
	}
	return bytes.Split(text, []byte{','}), nil
}

func repeated(name string) *refusal {
	return &refusal{
		code: "INVALID_FIELD", field: name, reason: "repeated", text: "The query parameter " + name + " is given more than once.",
	}
}

// named lists words of a query in an error message. It replaces those that are not names.
func named(words [][]byte) string {
	list := make([]string, len(words))
	for i, word := range words {
		list[i] = string(word)
		if len(word) == 0 || len(word) > maxText || !isName(word) {
			list[i] = "(not a name)"
		}
	}
	return strings.Join(list, ", ")
}

// isName reports whether word has only the characters of symbols and channels.
func isName(word []byte) bool {
	for _, c := range word {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (c < '0' || c > '9') && c != '/' && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return true
}
