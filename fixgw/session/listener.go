package session

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

// listener accepts connections, limits how many have not logged on, and makes a conn of
// each.
type listener struct {
	net.Listener
	server *Server
	done   chan struct{} // closed when no connection is accepted any more

	mu      sync.Mutex
	conns   map[*conn]bool
	pending int                // of conns, not logged on
	from    map[netip.Addr]int // pending, by address
	refused uint64
	closed  bool
}

func newListener(v *Server, inner net.Listener) *listener {
	return &listener{
		Listener: inner, server: v,
		done: make(chan struct{}), conns: make(map[*conn]bool), from: make(map[netip.Addr]int),
	}
}

// addressOf returns the peer's address, or its /64 for IPv6, because one subscriber has
// all of it. For a peer without an IP address it returns the zero address.
func addressOf(c net.Conn) netip.Addr {
	at, err := netip.ParseAddrPort(c.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	address := at.Addr().Unmap()
	if address.Is6() {
		const subscriber = 64
		return netip.PrefixFrom(address.WithZone(""), subscriber).Masked().Addr()
	}
	return address
}

// sendBuffer bounds what the kernel holds for a client that does not read; a larger
// buffer would hide the client's slowness.
const sendBuffer = 64 << 10

// accept returns the next connection within the limits; net.ErrClosed after stopAccepting.
func (d *listener) accept() (*conn, error) {
	for {
		inner, err := d.Listener.Accept()
		if err != nil {
			if isTemporary(err) {
				time.Sleep(acceptPause)
				continue
			}
			return nil, err
		}
		if c := d.admit(inner); c != nil {
			return c, nil
		}
		// Nothing was sent on it, so its error does not matter.
		_ = inner.Close()
	}
}

// acceptPause is the pause when the process has no file descriptor left.
const acceptPause = 50 * time.Millisecond

func isTemporary(err error) bool {
	t, ok := err.(interface{ Temporary() bool })
	return ok && t.Temporary()
}

// admit counts a connection, or returns nil when a limit is reached.
func (d *listener) admit(inner net.Conn) *conn {
	d.mu.Lock()
	defer d.mu.Unlock()
	address := addressOf(inner)
	if d.closed || d.pending >= d.server.options.MaxPending || d.from[address] >= d.server.options.MaxPendingPerIP {
		d.refused++
		return nil
	}
	if tcp, ok := inner.(interface{ SetWriteBuffer(int) error }); ok {
		if err := tcp.SetWriteBuffer(sendBuffer); err != nil {
			d.refused++
			return nil
		}
	}
	c := newConn(d.server, d.server.secure(inner))
	d.conns[c] = true
	d.pending++
	d.from[address]++
	return c
}

// loggedOn gives c the session s and counts c as logged on.
func (d *listener) loggedOn(c *conn, s *Session) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c.delivered = s.Messages.startedByQuickfix.Load()
	c.session.Store(s)
	if d.conns[c] {
		d.notPending(c)
	}
}

// forget removes c, whose Run has returned.
func (d *listener) forget(c *conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.conns[c] {
		delete(d.conns, c)
		if c.session.Load() == nil {
			d.notPending(c)
		}
	}
}

// notPending counts c as logged on or ended. It needs mu.
func (d *listener) notPending(c *conn) {
	d.pending--
	address := addressOf(c)
	if d.from[address]--; d.from[address] <= 0 {
		delete(d.from, address)
	}
}

// stopAccepting closes the listener and the connections without a session. The others get
// a Logout first.
func (d *listener) stopAccepting() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed {
		d.closed = true
		close(d.done)
		// accept returns; Server.Close returns the error again.
		_ = d.Listener.Close()
	}
	for c := range d.conns {
		if c.session.Load() == nil {
			c.cutOff(errClosed)
		}
	}
}

// counts returns the number of connections, of those not logged on, and of those refused
// since the start.
func (d *listener) counts() (conns, pending int, refused uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.conns), d.pending, d.refused
}
