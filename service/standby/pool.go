package standby

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"

	"blockdesk/service/config"
	"blockdesk/service/task"
)

// Pool is a listener pool: it keeps addresses bound for the life of the process and
// gives them to one gateway after the other. A client that connects in between waits
// in the listen queue instead of being refused. The zero value is empty. Safe for
// concurrent use.
type Pool struct {
	mu    sync.Mutex
	bound map[string]*pooled
}

// pooled is one address.
type pooled struct {
	*net.TCPListener
	inUse bool
}

// Bind binds an address (port 0: any free port) and returns the bound address, which Listen
// takes.
func (l *Pool) Bind(addr string) (string, error) {
	bound, err := net.Listen("tcp", addr)
	if err != nil {
		return "", err
	}
	tcp, ok := bound.(*net.TCPListener)
	if !ok {
		return "", fmt.Errorf("%q: must be a TCP address", addr)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bound == nil {
		l.bound = make(map[string]*pooled)
	}
	l.bound[tcp.Addr().String()] = &pooled{TCPListener: tcp}
	return tcp.Addr().String(), nil
}

// BindAll binds the addresses of a process, and sets the configuration to the bound
// addresses.
func (l *Pool) BindAll(c *config.Listen) error {
	for key, addr := range map[string]*string{"base": &c.Base, "api": &c.API, "ws": &c.WS, "fix": &c.FIX, "admin": &c.Admin} {
		bound, err := l.Bind(*addr)
		if err != nil {
			return fmt.Errorf("listen.%s: %w", key, err)
		}
		*addr = bound
	}
	return nil
}

// Listen is a net.Listen for bound addresses. An address is in use until its listener is
// closed.
func (l *Pool) Listen(_, addr string) (net.Listener, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.bound[addr]
	switch {
	case p == nil:
		return nil, fmt.Errorf("%s: %w", addr, syscall.EADDRNOTAVAIL)
	case p.inUse:
		return nil, fmt.Errorf("%s: %w", addr, syscall.EADDRINUSE)
	}
	if err := p.SetDeadline(time.Time{}); err != nil {
		return nil, err
	}
	p.inUse = true
	return &listener{p: p, pool: l, back: make(chan struct{})}, nil
}

// Close unbinds all addresses. Listeners in use end.
func (l *Pool) Close() (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.bound {
		err = errors.Join(err, task.IgnoreClosed(p.Close()))
	}
	return err
}

// listener is a pooled listener in use. Its Close gives the address back.
type listener struct {
	p    *pooled
	pool *Pool

	mu        sync.Mutex
	closed    bool
	accepting sync.WaitGroup
	back      chan struct{} // closed once the address is free again
}

// Addr returns the address.
func (l *listener) Addr() net.Addr { return l.p.Addr() }

// Accept waits for a connection. Any error after Close is net.ErrClosed.
func (l *listener) Accept() (net.Conn, error) {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil, l.over()
	}
	l.accepting.Add(1)
	l.mu.Unlock()
	conn, err := l.p.AcceptTCP()
	l.accepting.Done()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		if err != nil {
			return nil, err
		}
		return conn, nil
	}
	if err == nil {
		_ = conn.Close() // no gateway serves it any more
	}
	return nil, l.over()
}

func (l *listener) over() error {
	return &net.OpError{Op: "accept", Net: "tcp", Addr: l.Addr(), Err: net.ErrClosed}
}

// Close gives the address back once no Accept is under way. A second call waits for
// the first: after either the address is free.
func (l *listener) Close() error {
	l.mu.Lock()
	again := l.closed
	l.closed = true
	l.mu.Unlock()
	if again {
		<-l.back
		return net.ErrClosed
	}
	defer close(l.back)
	err := l.p.SetDeadline(time.Unix(1, 0)) // which wakes every Accept
	l.accepting.Wait()
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	l.p.inUse = false
	return err
}
