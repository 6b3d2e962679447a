package session

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

// door is where connections come in. It holds their number down and gives each
// its rules.
type listener struct {
	net.Listener
	server *Server
	done   chan struct{} // closed when Run takes no more

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

// addressOf returns the peer's address, of IPv6 its /64: one subscriber commands
// all of that. The zero one stands for all that have none.
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

// sendBuffer is what the kernel may hold for a client that does not read: a
// larger one would hide it from us.
const sendBuffer = 64 << 10

// accept waits for a connection that there is room for. net.ErrClosed: the door
// is shut.
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
		// Nothing was said on it.
		_ = inner.Close()
	}
}

// acceptPause is how long to wait when the process has no file left.
const acceptPause = 50 * time.Millisecond

func isTemporary(err error) bool {
	t, ok := err.(interface{ Temporary() bool })
	return ok && t.Temporary()
}

// admit counts a connection in, or returns nil when there is no room.
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

// loggedOn gives c the session s and counts it with those of sessions.
func (d *listener) loggedOn(c *conn, s *Session) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c.delivered = s.Messages.begun.Load()
	c.session.Store(s)
	if d.conns[c] {
		d.notPending(c)
	}
}

// gone forgets c, whose goroutine has ended.
func (d *listener) gone(c *conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.conns[c] {
		delete(d.conns, c)
		if c.session.Load() == nil {
			d.notPending(c)
		}
	}
}

// settled takes c out of the pending ones. The caller holds mu.
func (d *listener) notPending(c *conn) {
	d.pending--
	address := addressOf(c)
	if d.from[address]--; d.from[address] <= 0 {
		delete(d.from, address)
	}
}

// shut refuses everything from now on, and ends the connections without a session:
// the others are owed a Logout.
func (d *listener) shut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed {
		d.closed = true
		close(d.done)
		// accept ends; Close tells what is wrong with it.
		_ = d.Listener.Close()
	}
	for c := range d.conns {
		if c.session.Load() == nil {
			c.cutOff(errClosed)
		}
	}
}

// figures returns the connections, those among them not logged on, and the
// refused ones so far.
func (d *listener) figures() (conns, pending int, refused uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.conns), d.pending, d.refused
}
