package sessiontest

import (
	"net"
	"sync"
)

// Pipes is a listener of connections in memory, so that a testing/synctest bubble knows
// which goroutines wait.
type Pipes struct {
	accepted chan net.Conn
	done     chan struct{}
	close    func() // of done, once
}

// NewPipes returns an open listener.
func NewPipes() *Pipes {
	p := &Pipes{accepted: make(chan net.Conn), done: make(chan struct{})}
	p.close = sync.OnceFunc(func() { close(p.done) })
	return p
}

// Accept waits for the next Dial, or returns net.ErrClosed.
func (p *Pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.accepted:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

// Close ends Accept.
func (p *Pipes) Close() error { p.close(); return nil }

// Addr returns an address that nothing can dial.
func (p *Pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// Dial returns the client's end of a new connection.
func (p *Pipes) Dial() (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.accepted <- pipe{server}:
		return client, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

// pipe is a connection in memory whose ends have addresses of TCP, as quickfix
// wants them.
type pipe struct{ net.Conn }

func (pipe) LocalAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

func (pipe) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 2} }
