package feed

import (
	"bytes"
	"strconv"

	"blockdesk/feed/jsonscan"
	"blockdesk/market"
)

// action is the action of a client's request.
type action uint8

const (
	subscribe action = iota + 1
	unsubscribe
	resync
	list
	ping
)

// String returns the action in JSON.
func (a action) String() string {
	switch a {
	case subscribe:
		return "SUBSCRIBE_MARKET"
	case unsubscribe:
		return "UNSUBSCRIBE_MARKET"
	case resync:
		return "RESYNC"
	case list:
		return "LIST_SUBSCRIPTIONS"
	case ping:
		return "PING"
	default:
		return "action?"
	}
}

func parseAction(word []byte) action {
	for a := subscribe; a <= ping; a++ {
		if string(word) == a.String() {
			return a
		}
	}
	return 0
}

// fault is an error of a request. Its texts need no escapes in JSON.
type fault struct {
	code, message string
	retryable     bool
}

var (
	faultJSON       = fault{code: "BAD_REQUEST", message: "the message is not one JSON object in valid UTF-8 of at most 8 levels"}
	faultBinary     = fault{code: "BAD_REQUEST", message: "only text messages are understood"}
	faultNoAction   = fault{code: "BAD_REQUEST", message: "action is missing or not a string"}
	faultAction     = fault{code: "UNKNOWN_ACTION", message: "action must be SUBSCRIBE_MARKET, UNSUBSCRIBE_MARKET, RESYNC, LIST_SUBSCRIPTIONS or PING"}
	faultID         = fault{code: "BAD_REQUEST", message: "id must be a string or an integer of at most 64 bytes"}
	faultChannels   = fault{code: "BAD_REQUEST", message: "channels must be a list of 1 to 8 strings of at most 64 bytes"}
	faultSymbols    = fault{code: "BAD_REQUEST", message: "symbols must be a list of 1 to 100 strings of at most 64 bytes"}
	faultDepth      = fault{code: "INVALID_DEPTH", message: "depth must be 10, 25, 50 or 100"}
	faultHeartbeat  = fault{code: "BAD_REQUEST", message: "heartbeat must be true or false"}
	faultResume     = fault{code: "BAD_REQUEST", message: "resume must be an object of epoch and at most 500 sequence numbers by channel:symbol"}
	faultNoChannels = fault{code: "BAD_REQUEST", message: "channels and symbols are needed"}
	faultSlow       = fault{code: "SLOW_CONSUMER", message: "nothing was read for too long; connect again and resume", retryable: true}
)

// rejection is an entry of an ack's rejected list; channel and symbol are as in the
// request's JSON.
type rejection struct {
	channel, symbol []byte
	code            string
	wsURL           string // of the shard that serves the symbol; "" = none
}

// topicRef names one topic: an instrument and a kind.
type topicRef struct {
	in   *market.Instrument
	kind kind
}

// request is a client's request, parsed and resolved. Its slices alias the message.
type request struct {
	action    action
	id        []byte // as in JSON; nil = none
	depth     int    // 0 = none
	heartbeat *bool  // nil = not given
	topics    []topicRef
	rejected  []rejection
	// resumeEpoch and resume are the client's positions, by channel and symbol; nil = no
	// resume.
	resumeEpoch []byte
	resume      map[string]uint64
	resumeAfter enginePos // last event id of a stream's client; zero = none

	channels, symbols [][]byte // as in JSON
	errorMessage      *fault   // the first error
}

// parseRequest parses a message and resolves its channels and symbols. The first error is
// the request's fault; the id is set even then, if it can be read. Unknown members are
// ignored, the last of a repeated member counts, and null means absent. others are the
// channels that exist beside l2, trades and ticker.
func parseRequest(data []byte, set *market.Instruments, others otherChannels) *request {
	r := &request{}
	s := jsonscan.New(data)
	ok := s.Object(func(name []byte) bool { return r.member(s, name) })
	if !ok || !s.End() {
		r.errorMessage = &faultJSON
		return r
	}
	if r.errorMessage == nil {
		r.resolve(set, others)
	}
	return r
}

func (r *request) setFault(f *fault) {
	if r.errorMessage == nil {
		r.errorMessage = f
	}
}

// member parses the value of a member. It skips a value of the wrong type and sets the
// fault.
func (r *request) member(s *jsonscan.Scanner, quoted []byte) bool {
	var buf [maxText]byte
	name := unquoteShort(buf[:0], quoted)
	if s.Peek() == 'n' {
		return s.Word("null")
	}
	start := s.Pos
	f, known := r.read(s, string(name))
	switch {
	case f != nil:
		r.setFault(f)
		s.Pos = start
	case known:
		return true
	}
	return s.Skip(maxDepthJSON - 1)
}

// read parses the value of a known member.
func (r *request) read(s *jsonscan.Scanner, name string) (f *fault, known bool) {
	var ok bool
	switch name {
	case "action":
		return r.readAction(s), true
	case "id":
		f, ok = &faultID, r.readID(s)
	case "channels":
		f = &faultChannels
		r.channels, ok = readTexts(s, maxChannels)
	case "symbols":
		f = &faultSymbols
		r.symbols, ok = readTexts(s, maxSymbols)
	case "depth":
		f, ok = &faultDepth, r.readDepth(s)
	case "heartbeat":
		f, ok = &faultHeartbeat, r.readHeartbeat(s)
	case "resume":
		f, ok = &faultResume, r.readResume(s)
	default:
		return nil, false
	}
	if ok {
		f = nil
	}
	return f, true
}

// unquoteShort is jsonscan.Unquote for texts of at most maxText bytes; it returns dst for longer
// ones, which match no known word.
func unquoteShort(dst, quoted []byte) []byte {
	if len(quoted) > maxText {
		return dst
	}
	return jsonscan.Unquote(dst, quoted)
}

func (r *request) readAction(s *jsonscan.Scanner) *fault {
	text, ok := s.Text()
	if !ok {
		return &faultNoAction
	}
	var buf [maxText]byte
	if r.action = parseAction(unquoteShort(buf[:0], text)); r.action == 0 {
		return &faultAction
	}
	return nil
}

func (r *request) readID(s *jsonscan.Scanner) bool {
	var id []byte
	var ok bool
	if s.Peek() == '"' {
		id, ok = s.Text()
	} else if id, ok = s.Number(); ok {
		ok = !bytes.ContainsAny(id, ".eE")
	}
	if !ok || len(id) > maxText {
		return false
	}
	r.id = id
	return true
}

// readTexts parses a list of 1 to limit strings.
func readTexts(s *jsonscan.Scanner, limit int) (list [][]byte, ok bool) {
	ok = s.Array(func() bool {
		text, ok := s.Text()
		if !ok || len(text) > maxText || len(list) == limit {
			return false
		}
		list = append(list, text)
		return true
	})
	return list, ok && len(list) > 0
}

func (r *request) readDepth(s *jsonscan.Scanner) bool {
	text, ok := s.Number()
	if !ok {
		return false
	}
	n, err := strconv.Atoi(string(text))
	if _, known := depthKind(n); err != nil || !known {
		return false
	}
	r.depth = n
	return true
}

func (r *request) readHeartbeat(s *jsonscan.Scanner) bool {
	on := s.Word("true")
	if !on && !s.Word("false") {
		return false
	}
	r.heartbeat = &on
	return true
}

// maxResumePoints bounds the sequence numbers of a resume: l2, l3, trades, tickets and
// rfq_trades of each symbol.
const maxResumePoints = 5 * maxSymbols

func (r *request) readResume(s *jsonscan.Scanner) bool {
	points := make(map[string]uint64)
	var epoch []byte
	ok := s.Object(func(name []byte) bool {
		key := string(unquoteShort(nil, name))
		if key == "epoch" {
			text, ok := s.Text()
			if ok {
				epoch = unquoteShort(nil, text)
			}
			return ok
		}
		text, ok := s.Number()
		if !ok {
			return false
		}
		seq, err := strconv.ParseUint(string(text), 10, 64)
		if err != nil || key == "" || len(points) == maxResumePoints {
			return false
		}
		points[key] = seq
		return true
	})
	if ok {
		r.resumeEpoch, r.resume = epoch, points
	}
	return ok
}

// resolve turns channels and symbols into topics and rejections. A repeated channel or
// symbol counts once.
func (r *request) resolve(set *market.Instruments, others otherChannels) {
	switch {
	case r.action == 0:
		r.errorMessage = &faultNoAction
		return
	case r.action == list || r.action == ping:
		return
	case len(r.channels) == 0 || len(r.symbols) == 0:
		r.errorMessage = &faultNoChannels
		return
	}
	book := defaultDepth
	if r.depth != 0 {
		book, _ = depthKind(r.depth)
	}
	var buf [maxText]byte
	var named [numKinds]bool
	var found []kind
	for _, text := range r.channels {
		k, known := parseChannel(jsonscan.Unquote(buf[:0], text), book)
		if !known || !others.has(k) {
			r.rejected = append(r.rejected, rejection{channel: text, code: codeUnknownChannel})
			continue
		}
		if !named[k] {
			named[k] = true
			found = append(found, k)
		}
	}
	seen := make(map[*market.Instrument]bool, len(r.symbols))
	for _, text := range r.symbols {
		in := set.Lookup(jsonscan.Unquote(buf[:0], text))
		if in != nil && seen[in] {
			continue
		}
		for _, k := range found {
			switch {
			case in == nil:
				r.rejected = append(r.rejected, rejectSymbol(k, text, set.OtherShard(jsonscan.Unquote(buf[:0], text))))
				continue
			case k == l3 && in.Source != market.Matched:
				r.rejected = append(r.rejected, rejection{channel: quotedChannel(k), symbol: text, code: codeUnknownChannel})
				continue
			}
			r.topics = append(r.topics, topicRef{in: in, kind: k})
		}
		if in != nil {
			seen[in] = true
		}
	}
}

// rejectSymbol returns the rejection of a symbol that this shard does not serve; at is
// the shard that does, or nil. text is the symbol in JSON.
func rejectSymbol(k kind, text []byte, at *market.Shard) rejection {
	r := rejection{channel: quotedChannel(k), symbol: text, code: "UNKNOWN_SYMBOL"}
	if at != nil {
		r.code, r.wsURL = codeOtherShard, at.WS
	}
	return r
}

// codeUnknownChannel means that there is no such channel, or, of l3, that the book is a mirror
// and has no orders.
const codeUnknownChannel = "UNKNOWN_CHANNEL"

// codeOtherShard means that another shard serves the symbol.
const codeOtherShard = "OTHER_GROUP"

// parseChannel returns the kind of a channel; book is the kind of l2.
func parseChannel(word []byte, book kind) (k kind, known bool) {
	switch string(word) {
	case "l2":
		return book, true
	case "trades":
		return trades, true
	case "ticker":
		return ticker, true
	case "l3":
		return l3, true
	case "tickets":
		return tickets, true
	case "rfq_trades":
		return sales, true
	default:
		return 0, false
	}
}

func quotedChannel(k kind) []byte { return []byte(`"` + k.channel() + `"`) }
