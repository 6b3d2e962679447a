package wire

import (
	"bufio"
	"io"
	"net"
	"runtime"
	"time"
)

// ZeroCopyMin is the size from which a body is not copied behind its header.
const ZeroCopyMin = 8 << 10

// ClientConn is a client's connection as fasthttp sees it, and costs less:
//
//  1. fasthttp sets three deadlines a request, each a change of the runtime's
//     timers. A deadline here is set when a Read or Write is about to wait for
//     it, and only if it has moved by more than slack; so it may pass that much
//     early.
//  2. fasthttp copies the beginning of a large body behind the header, and
//     writes the rest by itself. Here both go out in one writev, uncopied.
//  3. On one core, the other requests run before the next one is read: by then
//     it may have come, and a read that finds it saves a sleep and a wake-up.
//     With more cores a yield wakes an idle one for nothing, and is left out.
//
// One goroutine uses it at a time; Close may be called from any. Once it is
// hijacked, everything goes straight through.
type ClientConn struct {
	net.Conn
	slack                           time.Duration
	readDeadline, readDeadlineSet   time.Time // as fasthttp said, as it is set
	writeDeadline, writeDeadlineSet time.Time
	hijacked                        bool
	singleCore                      bool // one core
	wrote                           bool // since the last Read

	bodyStream bodyStream
	tail       []byte // goes out right behind the next Write
	pieces     [2][]byte
	vector     net.Buffers
}

// NewClientConn returns a connection whose deadlines may pass early by slack.
func NewClientConn(inner net.Conn, slack time.Duration) *ClientConn {
	c := &ClientConn{Conn: inner, slack: slack, singleCore: runtime.GOMAXPROCS(0) == 1}
	c.bodyStream.conn = c
	return c
}

// UnsafeConn returns the connection inside, by fasthttp's name for it.
func (c *ClientConn) UnsafeConn() net.Conn { return c.Conn }

// SetReadDeadline keeps the deadline for the next Read.
func (c *ClientConn) SetReadDeadline(t time.Time) error {
	if c.hijacked {
		return c.Conn.SetReadDeadline(t)
	}
	c.readDeadline = t
	return nil
}

// SetWriteDeadline keeps the deadline for the next Write.
func (c *ClientConn) SetWriteDeadline(t time.Time) error {
	if c.hijacked {
		return c.Conn.SetWriteDeadline(t)
	}
	c.writeDeadline = t
	return nil
}

// SetDeadline is what fasthttp calls, and only then, before it hands a hijacked
// connection over.
func (c *ClientConn) SetDeadline(t time.Time) error {
	c.hijacked = true
	return c.Conn.SetDeadline(t)
}

// Read reads by the deadline that was set last.
func (c *ClientConn) Read(p []byte) (int, error) {
	if c.hijacked {
		return c.Conn.Read(p)
	}
	if needsReset(c.readDeadlineSet, c.readDeadline, c.slack) {
		if err := c.Conn.SetReadDeadline(c.readDeadline); err != nil {
			return 0, err
		}
		c.readDeadlineSet = c.readDeadline
	}
	if c.singleCore && c.wrote {
		runtime.Gosched()
	}
	c.wrote = false
	return c.Conn.Read(p)
}

// Write writes by the deadline that was set last.
func (c *ClientConn) Write(p []byte) (int, error) {
	if c.hijacked {
		return c.Conn.Write(p)
	}
	if needsReset(c.writeDeadlineSet, c.writeDeadline, c.slack) {
		if err := c.Conn.SetWriteDeadline(c.writeDeadline); err != nil {
			return 0, err
		}
		c.writeDeadlineSet = c.writeDeadline
	}
	c.wrote = true
	if c.tail == nil {
		return c.Conn.Write(p)
	}
	c.pieces = [2][]byte{p, c.tail}
	c.tail, c.vector = nil, c.pieces[:]
	n, err := c.vector.WriteTo(c.Conn)
	c.pieces = [2][]byte{}
	return int(min(n, int64(len(p)))), err
}

// moved reports whether a deadline must be set again: it is earlier than the one
// that is set, or later by more than slack.
func needsReset(from, to time.Time, slack time.Duration) bool {
	by := to.Sub(from)
	return by > slack || by < 0
}

// uncopied returns b as a stream for the response on this connection.
func (c *ClientConn) stream(b []byte) io.Reader {
	c.bodyStream.rest = b
	return &c.bodyStream
}

// body is a response's body that is not copied into a buffer.
type bodyStream struct {
	conn *ClientConn
	rest []byte
}

// Read is for a reader that takes the body otherwise than fasthttp.
func (b *bodyStream) Read(p []byte) (int, error) {
	if len(b.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

// WriteTo is how fasthttp writes the body. The header waits in w.
func (b *bodyStream) WriteTo(w io.Writer) (int64, error) {
	rest := b.rest
	b.rest = nil
	header, ok := w.(*bufio.Writer)
	if !ok || header.Buffered() == 0 {
		n, err := w.Write(rest)
		return int64(n), err
	}
	b.conn.tail = rest
	if err := header.Flush(); err != nil {
		return 0, err
	}
	return int64(len(rest)), nil
}
