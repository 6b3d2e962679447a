package feed

import (
	"errors"
	"io"
	"strings"
	"time"

	"github.com/fasthttp/websocket"
)

// read reads c until its end, hands each message to the shard, and tells it of
// the end. It runs on a goroutine of its own, since the library's read blocks.
func (c *conn) read() {
	defer c.shard.inbox.send(letter{note: noteGone, conn: c})
	rate := limiter{interval: time.Second / time.Duration(c.feed.o.MessagesPerSecond)}
	c.ws.SetReadLimit(MaxFrame)
	c.ws.SetCloseHandler(func(int, string) error { return nil })
	c.ws.SetPingHandler(func(data string) error {
		return c.hand(&rate, letter{note: notePing, conn: c, text: data})
	})
	c.ws.SetPongHandler(func(string) error {
		if !rate.allow(time.Now()) {
			return errTooMany
		}
		return nil
	})
	for {
		form, r, err := c.ws.NextReader()
		if err != nil {
			c.leave(err)
			return
		}
		// A message of empty fragments without end is below every other limit.
		_ = c.tcp.SetReadDeadline(time.Now().Add(messageWithin))
		data, err := io.ReadAll(r)
		if err != nil {
			c.leave(err)
			return
		}
		_ = c.tcp.SetReadDeadline(time.Time{})
		ask := &request{fault: &faultBinary}
		if form == websocket.TextMessage {
			ask = parseRequest(data, c.feed.set, c.feed.o.Tickets != nil)
		}
		if err := c.hand(&rate, letter{note: noteAsk, conn: c, ask: ask}); err != nil {
			c.leave(err)
			return
		}
	}
}

// messageWithin is how long the rest of a message may take once it has begun.
const messageWithin = 5 * time.Second

var errTooMany = errors.New("too many messages")

// hand gives m to the shard, if the connection's rate allows. ErrTooMany also
// says that the shard has not kept up with what was sent.
func (c *conn) hand(rate *limiter, m letter) error {
	if !rate.allow(time.Now()) || c.inflight.Add(1) > maxInflight {
		return errTooMany
	}
	c.shard.inbox.send(m)
	return nil
}

// leave asks the shard to close the connection for the reason that err gives,
// and throws away what the peer still sends, for at most CloseWithin.
func (c *conn) leave(err error) {
	m := letter{note: noteLeave, conn: c, code: CloseProtocol, text: "protocol error"}
	var closed *websocket.CloseError
	switch {
	case errors.Is(err, errTooMany):
		m.code, m.text = CloseTooManyMessage, "too many messages"
	case errors.Is(err, websocket.ErrReadLimit):
		m.code, m.text = CloseFrameTooBig, "frame too big"
	case errors.As(err, &closed) && closed.Code != websocket.CloseAbnormalClosure:
		m.code, m.text = uint16(closed.Code), ""
		if closed.Code == websocket.CloseNoStatusReceived {
			m.code = CloseNormal
		}
	case strings.HasPrefix(err.Error(), "websocket: "):
		m.text = err.Error()[len("websocket: "):]
		m.text = m.text[:min(len(m.text), maxCloseText)]
	default:
		return // the peer is gone
	}
	c.shard.inbox.send(m)
	_ = c.tcp.SetReadDeadline(time.Now().Add(c.feed.o.CloseWithin))
	_, _ = io.CopyN(io.Discard, c.tcp, maxDrain)
}

// maxCloseText is the longest reason in a close frame, in bytes (RFC 6455).
const maxCloseText = 123

// limiter lets through one second's worth of events at once and then one an
// interval (a token bucket by time alone).
type limiter struct {
	interval time.Duration
	full     time.Time // when the bucket will be full again
}

func (l *limiter) allow(now time.Time) bool {
	if l.full.Before(now) {
		l.full = now
	}
	next := l.full.Add(l.interval)
	if next.Sub(now) > time.Second {
		return false
	}
	l.full = next
	return true
}
