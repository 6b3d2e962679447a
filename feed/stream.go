package feed

import (
	"bytes"
	"net"
	"time"

	"github.com/valyala/fasthttp"
)

const (
	// reconnectAfter is how long the client of a stream that broke is told to wait
	// before it comes back.
	reconnectAfter = time.Second
	// restartAfter is the same where the service ends, and restartSpread what each
	// slot of the wheel waits longer, so that not all come back at once.
	restartAfter  = 2 * time.Second
	restartSpread = 200 * time.Millisecond
)

// stream is what a connection with server-sent events has beside the others.
type stream struct {
	head     []byte    // of the response; nil = queued
	request  *request  // what the query asks for; nil = served
	lastMark enginePos // the last mark that was queued and not dropped
}

// Stream answers GET /api/v1/market/stream with server-sent events: the messages
// of the WebSocket, for as long as the client reads. It refuses a query that it
// does not understand with 400, and what Handler refuses likewise. The server that
// calls it must have KeepHijackedConns set.
//
// The connection is a shard's, as a WebSocket is, with the same limits. It is
// subscribed by its query, has the heartbeat always, and cannot ask for anything
// else later.
func (f *Feed) Stream(ctx *fasthttp.RequestCtx) {
	ask, bad := parseStream(ctx.QueryArgs(), f.set, f.o.MaxSubscriptions, f.o.Tickets != nil)
	if bad != nil {
		refuse(ctx, fasthttp.StatusBadRequest, bad.code, bad.text, bad.reason, bad.field)
		return
	}
	ask.resumeAfter = lastEventID(ctx)
	ip, ok := f.admit(ctx)
	if !ok {
		return
	}
	streamHead(ctx)
	if ctx.IsHead() {
		return
	}
	head := ctx.Response.Header.AppendBytes(nil)
	ctx.HijackSetNoResponse(true)
	ctx.Hijack(func(n net.Conn) { f.accept(n, ip, eventStream, &stream{head: head, request: ask}) })
}

// lastEventID returns where a client that comes back left off: the header that
// browsers send, or the parameter last_event_id for those who cannot set it. The
// zero mark says that nothing is known; a client cannot change a wrong id, so one
// is no error.
func lastEventID(ctx *fasthttp.RequestCtx) enginePos {
	id := ctx.Request.Header.Peek("Last-Event-ID")
	if len(id) == 0 {
		id = ctx.QueryArgs().Peek("last_event_id")
	}
	return parseEventID(id)
}

// streamHead sets what the response says of itself. Its body ends with the
// connection, and no proxy may gather or keep it.
func streamHead(ctx *fasthttp.RequestCtx) {
	h := &ctx.Response.Header
	requestID(ctx)
	h.SetContentType("text/event-stream; charset=utf-8")
	publicHeaders(h)
	h.Set("X-Accel-Buffering", "no")
	h.SetContentLength(-2) // until the end of the connection
	h.SetConnectionClose()
}

// begin opens a stream: its head, the welcome, and what it asked for.
func (s *shard) startStream(c *conn) {
	head, ask := c.stream.head, c.stream.request
	c.stream.head, c.stream.request = nil, nil
	c.push(appendRetry(head, reconnectAfter), nil)
	s.answer(c, s.enc.welcome(&s.feed.o, c.session, s.feed.epoch.Load()))
	s.serve(c, ask)
}

// tell queues a mark if c has one to hear and is not behind it: all that came
// before the mark is queued, and no snapshot is owed.
func (s *shard) queueMark(c *conn) {
	if c.stream == nil || c.staleSubs > 0 || c.blocked || c.phase != phaseOpen || c.stream.lastMark == s.pos {
		return
	}
	if s.markEvent == nil || s.markPos != s.pos {
		s.markEvent, s.markPos = appendMark(nil, s.pos), s.pos
	}
	c.stream.lastMark = s.pos
	c.push(s.markEvent, nil)
}

// seqAt returns the seq at which a stream stood at a mark, as far as that is
// known. A ticker also changes as its trades grow old, and the tickets come on a
// way of their own, so that no mark tells of either.
func (s *shard) seqAt(ref topicRef, m enginePos) (uint64, bool) {
	at := s.position(s.topic(ref))
	switch {
	case ref.kind >= ticker, m.epoch != at.epoch, m.engineSeq > s.pos.engineSeq:
		return 0, false
	case at.engineSeq <= m.engineSeq:
		return at.seq, true
	}
	h := s.feed.topic(ref).history.Load()
	if h == nil {
		return 0, false
	}
	return h.seqAt(m)
}

// farewell returns the last message of a connection: a WebSocket's close frame. A
// stream has none; it is told why where it should come back later than usual.
func (s *shard) lastMessage(c *conn, code uint16, text string) []byte {
	switch {
	case c.stream == nil:
		return bytes.Clone(s.enc.closing(code, text))
	case code != CloseRestart:
		return nil
	}
	wait := restartAfter + time.Duration(c.slot)*restartSpread
	return appendEvent(appendRetry(nil, wait), s.enc.restart(s.feed.epoch.Load()))
}
