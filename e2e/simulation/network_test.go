//go:build feed_goroutines

package simulation

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// network connects the machines of a simulation in memory: what is written arrives at once,
// in order, unless the connection is cut. Any goroutine.
type network struct {
	mu        sync.Mutex
	listeners map[string]*listener
	nextPort  int
}

func newNetwork() *network { return &network{listeners: map[string]*listener{}, nextPort: 40_000} }

// address is an address of the network.
type address string

func (address) Network() string  { return "tcp" }
func (a address) String() string { return string(a) }

// listen binds an address.
func (n *network) listen(at string) (net.Listener, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners[at] != nil {
		return nil, &net.OpError{Op: "listen", Net: "tcp", Addr: address(at), Err: syscall.EADDRINUSE}
	}
	l := &listener{network: n, at: at, queue: make(chan net.Conn, backlog), closed: make(chan struct{})}
	n.listeners[at] = l
	return l, nil
}

// backlog bounds the connections that wait for Accept.
const backlog = 128

// dial connects to an address.
func (n *network) dial(to string) (net.Conn, error) {
	n.mu.Lock()
	l := n.listeners[to]
	n.nextPort++
	from := net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: n.nextPort}
	n.mu.Unlock()
	refused := &net.OpError{Op: "dial", Net: "tcp", Addr: address(to), Err: syscall.ECONNREFUSED}
	if l == nil {
		return nil, refused
	}
	there, err := net.ResolveTCPAddr("tcp", to)
	if err != nil {
		return nil, err
	}
	client, server := connect(&from, there)
	if !l.offer(server) {
		return nil, refused
	}
	return client, nil
}

// cut ends every listener and every connection of the addresses at once, as the end of a
// process does. Unread bytes are lost.
func (n *network) cut(addresses ...string) {
	for _, at := range addresses {
		n.mu.Lock()
		l := n.listeners[at]
		n.mu.Unlock()
		if l != nil {
			l.cut()
			_ = l.Close()
		}
	}
}

type listener struct {
	network *network
	at      string
	queue   chan net.Conn
	once    sync.Once
	closed  chan struct{}

	mu   sync.Mutex
	open []*conn // accepted
	over bool    // takes no more
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case <-l.closed:
		return nil, &net.OpError{Op: "accept", Net: "tcp", Addr: l.Addr(), Err: net.ErrClosed}
	case c := <-l.queue:
		return c, nil
	}
}

func (l *listener) Addr() net.Addr {
	at, err := net.ResolveTCPAddr("tcp", l.at)
	if err != nil {
		return address(l.at)
	}
	return at
}

func (l *listener) Close() error {
	l.once.Do(func() {
		l.network.mu.Lock()
		if l.network.listeners[l.at] == l {
			delete(l.network.listeners, l.at)
		}
		l.network.mu.Unlock()
		close(l.closed)
	})
	return nil
}

// offer gives a new connection to Accept, and reports whether there is room.
func (l *listener) offer(c *conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.closed:
		return false
	default:
	}
	if l.over || len(l.queue) == cap(l.queue) {
		return false
	}
	l.queue <- c
	l.open = append(l.open, c)
	return true
}

func (l *listener) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	for _, c := range l.open {
		c.Cut()
	}
	l.open = nil
}

// stream is one direction of a connection.
type stream struct {
	mu      sync.Mutex
	changed *sync.Cond
	bytes   []byte
	ended   bool // no more is written
	broken  bool // nothing more is read, either

	readBy, writeBy deadline
}

// window bounds what is written and not read.
const window = 64 << 10

type deadline struct {
	at    time.Time
	timer *time.Timer
}

func (d *deadline) passed() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }

func (d *deadline) set(s *stream, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
	}
	d.at = at
	if !at.IsZero() {
		d.timer = time.AfterFunc(time.Until(at), func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.changed.Broadcast()
		})
	}
	s.changed.Broadcast()
}

func newStream() *stream {
	s := &stream{}
	s.changed = sync.NewCond(&s.mu)
	return s
}

func (s *stream) read(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.broken:
			return 0, syscall.ECONNRESET
		case s.readBy.passed():
			return 0, os.ErrDeadlineExceeded
		case len(s.bytes) > 0:
			n := copy(b, s.bytes)
			s.bytes = s.bytes[:copy(s.bytes, s.bytes[n:])]
			s.changed.Broadcast()
			return n, nil
		case s.ended:
			return 0, io.EOF
		case len(b) == 0:
			return 0, nil
		}
		s.changed.Wait()
	}
}

func (s *stream) write(b []byte) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(b) > 0 {
		switch {
		case s.broken || s.ended:
			return n, syscall.EPIPE
		case s.writeBy.passed():
			return n, os.ErrDeadlineExceeded
		case len(s.bytes) < window:
			k := min(len(b), window-len(s.bytes))
			s.bytes, b, n = append(s.bytes, b[:k]...), b[k:], n+k
			s.changed.Broadcast()
		default:
			s.changed.Wait()
		}
	}
	return n, nil
}

func (s *stream) end(broken bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended, s.broken = true, s.broken || broken
	s.changed.Broadcast()
}

// conn is one end of a connection.
type conn struct {
	in, out   *stream
	here, far net.Addr
	closed    bool
	mu        sync.Mutex
}

func connect(client, server net.Addr) (a, b *conn) {
	up, down := newStream(), newStream()
	return &conn{in: down, out: up, here: client, far: server}, &conn{in: up, out: down, here: server, far: client}
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.in.read(b)
	return n, c.named("read", err)
}

func (c *conn) Write(b []byte) (int, error) {
	n, err := c.out.write(b)
	return n, c.named("write", err)
}

// named is an error as package net has it.
func (c *conn) named(op string, err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == nil, errors.Is(err, io.EOF):
		return err
	case c.closed:
		err = net.ErrClosed
	}
	return &net.OpError{Op: op, Net: "tcp", Source: c.here, Addr: c.far, Err: err}
}

// Close ends both directions. The other end reads the bytes that were written before.
func (c *conn) Close() error {
	c.mu.Lock()
	closed := c.closed
	c.closed = true
	c.mu.Unlock()
	if closed {
		return &net.OpError{Op: "close", Net: "tcp", Source: c.here, Addr: c.far, Err: net.ErrClosed}
	}
	c.out.end(false)
	c.in.end(true)
	return nil
}

// Cut breaks the connection: what was written and not read is lost.
func (c *conn) Cut() {
	c.out.end(true)
	c.in.end(true)
}

func (c *conn) LocalAddr() net.Addr  { return c.here }
func (c *conn) RemoteAddr() net.Addr { return c.far }

func (c *conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

func (c *conn) SetReadDeadline(t time.Time) error {
	c.in.readBy.set(c.in, t)
	return nil
}

func (c *conn) SetWriteDeadline(t time.Time) error {
	c.out.writeBy.set(c.out, t)
	return nil
}
