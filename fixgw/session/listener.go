package session

import (
	"container/list"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"
)

// listener accepts connections, limits how many have not logged on, and makes a conn of
// each.
type listener struct {
	net.Listener
	host      *host
	passwords *passwords
	done      chan struct{} // closed when no connection is accepted any more

	mu      sync.Mutex
	conns   map[*conn]bool
	pending list.List          // *conn that have not logged on, oldest first
	unknown int                // of pending, whose address is not known
	from    map[netip.Addr]int // pending, by address
	refused uint64
	closed  bool
}

func newListener(h *host, p *passwords, inner net.Listener) *listener {
	return &listener{
		Listener: inner, host: h, passwords: p,
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
	known := d.passwords.isKnown(address)
	if d.closed || !d.makeRoom(address, known) {
		d.refused++
		return nil
	}
	if tcp, ok := inner.(interface{ SetWriteBuffer(int) error }); ok {
		if err := tcp.SetWriteBuffer(sendBuffer); err != nil {
			d.refused++
			return nil
		}
	}
	c := newConn(d.host, d.secure(inner), d.forget)
	c.descriptor, c.address, c.known = rawOf(inner), address, known
	d.conns[c] = true
	c.waits = d.pending.PushBack(c)
	d.from[address]++
	if !known {
		d.unknown++
	}
	return c
}

// secure puts TLS around an accepted connection, where it is configured.
func (d *listener) secure(inner net.Conn) net.Conn {
	if d.host.options.TLS == nil {
		return inner
	}
	return tls.Server(inner, d.host.options.TLS)
}

// errEvicted is the reason why a connection that has sent nothing is closed for a newer one.
var errEvicted = errors.New("too many connections wait to log on")

// knownShare is the part of MaxPending that is kept for known addresses: one of so many.
const knownShare = 4

// makeRoom reports whether another connection of address may wait, and closes the oldest
// silent one where a limit is reached: first of the same address, then of the unknown
// ones, then of all. It needs mu.
func (d *listener) makeRoom(address netip.Addr, known bool) bool {
	o := &d.host.options
	if d.from[address] >= o.MaxPendingPerIP {
		return d.evict(func(c *conn) bool { return c.address == address })
	}
	unknownLimit := o.MaxPending - o.MaxPending/knownShare
	switch {
	case !known && d.unknown >= unknownLimit:
		return d.evict(func(c *conn) bool { return !c.known })
	case d.pending.Len() >= o.MaxPending:
		return d.evict(func(c *conn) bool { return !c.known }) || known && d.evict(func(*conn) bool { return true })
	}
	return true
}

// evict closes the oldest silent connection that matches, and reports whether there was
// one. It needs mu.
func (d *listener) evict(matches func(*conn) bool) bool {
	for e := d.pending.Front(); e != nil; e = e.Next() {
		c := e.Value.(*conn)
		if c.silent.Load() && matches(c) {
			d.refused++
			d.notPending(c)
			c.cutOff(errEvicted)
			return true
		}
	}
	return false
}

// loggedOn gives c the session s and counts c as logged on.
func (d *listener) loggedOn(c *conn, s *Session) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c.delivered = s.Messages.startedByQuickfix.Load()
	c.setSession(s)
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
		d.notPending(c)
	}
}

// notPending counts c as logged on or ended, once. It needs mu.
func (d *listener) notPending(c *conn) {
	if c.waits == nil {
		return
	}
	d.pending.Remove(c.waits)
	c.waits = nil
	if !c.known {
		d.unknown--
	}
	address := c.address
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
	return len(d.conns), d.pending.Len(), d.refused
}
