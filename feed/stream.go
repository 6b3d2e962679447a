package feed

import (
	"bytes"
	"net"
	"time"

	"github.com/valyala/fasthttp"
)

const (
	// reconnectAfter is how long the client of a broken stream should wait before it
	// reconnects.
	reconnectAfter = time.Second
	// restartAfter is the same when the service ends. Each slot of the wheel waits
	// restartSpread longer, so that the clients do not all reconnect at once.
	restartAfter  = 2 * time.Second
	restartSpread = 200 * time.Millisecond
)

// Stream answers GET /api/v1/market/stream with server-sent events: the messages of the
// WebSocket, for as long as the client reads. It refuses an invalid query with 400, and
// otherwise what Handler refuses. The HTTP server must have KeepHijackedConns set.
//
// A shard owns the connection like a WebSocket, with the same limits. The query
// subscribes it, it always has heartbeats, and it cannot send requests.
func (f *Feed) Stream(ctx *fasthttp.RequestCtx) {
	request, bad := parseStream(ctx.QueryArgs(), f.set, f.o.MaxSubscriptions, f.channels())
	if bad != nil {
		refuse(ctx, fasthttp.StatusBadRequest, bad.code, bad.text, bad.reason, bad.field)
		return
	}
	request.resumeAfter = lastEventID(ctx)
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
	ctx.Hijack(func(n net.Conn) { f.accept(n, ip, eventStream, &stream{head: head, request: request}) })
}

// lastEventID returns the position of a client that reconnects, from the header that
// browsers send or from the parameter last_event_id for clients that cannot set it. An
// invalid id is the zero position and no error, because a browser cannot change it.
func lastEventID(ctx *fasthttp.RequestCtx) enginePos {
	id := ctx.Request.Header.Peek("Last-Event-ID")
	if len(id) == 0 {
		id = ctx.QueryArgs().Peek("last_event_id")
	}
	return parseEventID(id)
}

// streamHead sets the response's headers. The body ends with the connection, and proxies
// must not buffer or cache it.
func streamHead(ctx *fasthttp.RequestCtx) {
	h := &ctx.Response.Header
	requestID(ctx)
	h.SetContentType("text/event-stream; charset=utf-8")
	publicHeaders(h)
	h.Set("X-Accel-Buffering", "no")
	h.SetContentLength(-2) // the body ends with the connection
	h.SetConnectionClose()
}

// queueMark queues a mark event if the position has advanced and c has everything before
// it: all updates are queued and no snapshot is missing.
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

// seqAt returns a topic's seq at an engine position, if it is known. It is not known for
// the ticker, which also changes by the clock, and for the tickets and sales, which the desk
// stores at its own pace.
func (s *shard) seqAt(ref topicRef, pos enginePos) (uint64, bool) {
	at := s.position(s.topic(ref))
	switch {
	case ref.kind >= ticker, pos.epoch != at.epoch, pos.engineSeq > s.pos.engineSeq:
		return 0, false
	case at.engineSeq <= pos.engineSeq:
		return at.seq, true
	}
	h := s.feed.topic(ref).history.Load()
	if h == nil {
		return 0, false
	}
	return h.seqAt(pos)
}

// lastMessage returns the last message of a connection: a WebSocket's close frame. A
// stream has one only at a restart, with a longer reconnection time.
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
