package fanout

import (
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// address is the address of the rig's server.
func (r *rig) address() string { return net.JoinHostPort(r.so.Host, strconv.Itoa(r.so.Port)) }

// proxy is a connection that the test can slow down, cut or kill.
type proxy struct {
	listener net.Listener
	to       string
	delay    atomic.Int64 // of each read, ns
	dead     atomic.Bool  // what is dialled is closed at once

	mu    sync.Mutex
	conns map[net.Conn]bool
}

func newProxy(t testing.TB, to string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, to: to, conns: map[net.Conn]bool{}}
	run := start(p.run)
	t.Cleanup(func() {
		l.Close()
		p.cut()
		if err := run.stop(t); err != nil {
			t.Error(err)
		}
	})
	return p
}

func (p *proxy) url() string { return "nats://" + p.listener.Addr().String() }

func (p *proxy) run(context.Context) error {
	var g sync.WaitGroup
	defer g.Wait()
	for {
		in, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		} else if err != nil {
			return err
		}
		out, err := net.Dial("tcp", p.to)
		if err != nil || p.dead.Load() {
			in.Close()
			if out != nil {
				out.Close()
			}
			continue
		}
		p.mu.Lock()
		p.conns[in], p.conns[out] = true, true
		p.mu.Unlock()
		g.Go(func() { p.copy(in, out) })
		g.Go(func() { p.copy(out, in) })
	}
}

func (p *proxy) copy(to, from net.Conn) {
	buf := make([]byte, 16<<10)
	for {
		n, err := from.Read(buf)
		if d := p.delay.Load(); d > 0 {
			time.Sleep(time.Duration(d)) // sleep: the planted slow wire
		}
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				break
			}
		}
		if err != nil && !errors.Is(err, io.ErrShortWrite) {
			break
		}
	}
	to.Close()
	from.Close()
	p.mu.Lock()
	delete(p.conns, to)
	delete(p.conns, from)
	p.mu.Unlock()
}

// cut closes all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
	}
}
