package wire

import (
	"bufio"
	"io"
	"net"
	"runtime"
	"time"
)

// ZeroCopyMin is the body size, in bytes, from which a body is not copied into the
// write buffer.
const ZeroCopyMin = 8 << 10

// ClientConn wraps a client's connection so that fasthttp costs less:
//
//  1. fasthttp sets three deadlines per request, and each changes the runtime's
//     timers. ClientConn sets a deadline just before a Read or Write, and only if it
//     has moved by more than slack. A deadline may therefore pass early by slack.
//  2. fasthttp copies the beginning of a large body behind the header and writes the
//     rest separately. ClientConn sends both in one writev without copying.
//  3. On a single core it yields before a Read that follows a Write. The next request
//     often arrives meanwhile, which saves a sleep and a wake-up. With several cores a
//     yield would only wake an idle core.
//
// One goroutine uses it at a time; Close may be called from any goroutine. After a
// hijack all calls go straight to the inner connection.
type ClientConn struct {
	net.Conn
	slack                           time.Duration
	readDeadline, readDeadlineSet   time.Time // requested by fasthttp, set on the socket
	writeDeadline, writeDeadlineSet time.Time
	hijacked                        bool
	singleCore                      bool
	wrote                           bool // since the last Read

	bodyStream bodyStream
	tail       []byte // sent directly after the next Write
	pieces     [2][]byte
	vector     net.Buffers
}

// NewClientConn wraps inner. Deadlines may pass early by slack.
func NewClientConn(inner net.Conn, slack time.Duration) *ClientConn {
	c := &ClientConn{Conn: inner, slack: slack, singleCore: runtime.GOMAXPROCS(0) == 1}
	c.bodyStream.conn = c
	return c
}

// UnsafeConn returns the inner connection, under the name that fasthttp uses.
func (c *ClientConn) UnsafeConn() net.Conn { return c.Conn }

// SetReadDeadline stores the deadline for the next Read.
func (c *ClientConn) SetReadDeadline(t time.Time) error {
	if c.hijacked {
		return c.Conn.SetReadDeadline(t)
	}
	c.readDeadline = t
	return nil
}

// SetWriteDeadline stores the deadline for the next Write.
func (c *ClientConn) SetWriteDeadline(t time.Time) error {
	if c.hijacked {
		return c.Conn.SetWriteDeadline(t)
	}
	c.writeDeadline = t
	return nil
}

// SetDeadline marks the connection as hijacked: fasthttp calls it only before it hands
// over a hijacked connection.
func (c *ClientConn) SetDeadline(t time.Time) error {
	c.hijacked = true
	return c.Conn.SetDeadline(t)
}

// Read applies the stored read deadline and reads.
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

// Write applies the stored write deadline and writes p, then the body of stream if
// there is one.
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

// needsReset reports whether the deadline to must replace from on the socket: it is
// earlier, or later by more than slack.
func needsReset(from, to time.Time, slack time.Duration) bool {
	by := to.Sub(from)
	return by > slack || by < 0
}

// stream returns b as a response body that is sent without copying.
func (c *ClientConn) stream(b []byte) io.Reader {
	c.bodyStream.rest = b
	return &c.bodyStream
}

// bodyStream is a response body that is not copied into a buffer.
type bodyStream struct {
	conn *ClientConn
	rest []byte
}

// Read serves readers that do not use WriteTo.
func (b *bodyStream) Read(p []byte) (int, error) {
	if len(b.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

// WriteTo sends the header that waits in w and the body in one write. fasthttp calls it.
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
