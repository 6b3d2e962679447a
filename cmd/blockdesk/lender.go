package main

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"
)

// lender keeps addresses bound for the life of the process and lends them to one
// after the other: what serves a group's clients changes with who leads, and a
// client that connects in between waits in the listen queue instead of being
// refused. Safe for concurrent use.
type lender struct {
	mu    sync.Mutex
	bound map[string]*keptListener
}

// keptListener is one address. Who has borrowed it, if anybody, is lent.
type keptListener struct {
	*net.TCPListener
	lent bool
}

// bind binds an address, port 0 taking a free one, and returns what listen is to
// be asked for.
func (l *lender) bind(addr string) (string, error) {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return "", err
	}
	tcp, ok := listener.(*net.TCPListener)
	if !ok {
		return "", fmt.Errorf("%s: no TCP address", addr)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bound == nil {
		l.bound = make(map[string]*keptListener)
	}
	l.bound[tcp.Addr().String()] = &keptListener{TCPListener: tcp}
	return tcp.Addr().String(), nil
}

// listen has the form of net.Listen. It lends what bind has bound, until the
// borrower closes it; meanwhile nobody else gets it.
func (l *lender) listen(_, addr string) (net.Listener, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	kept := l.bound[addr]
	switch {
	case kept == nil:
		return nil, fmt.Errorf("%s: %w", addr, syscall.EADDRNOTAVAIL)
	case kept.lent:
		return nil, fmt.Errorf("%s: %w", addr, syscall.EADDRINUSE)
	}
	if err := kept.SetDeadline(time.Time{}); err != nil {
		return nil, err
	}
	kept.lent = true
	return &loan{kept: kept, lender: l, back: make(chan struct{})}, nil
}

// close unbinds everything. What is lent ends.
func (l *lender) close() (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, kept := range l.bound {
		err = errors.Join(err, ignoreClosed(kept.Close()))
	}
	return err
}

// loan is a listener whose Close gives the address back.
type loan struct {
	kept   *keptListener
	lender *lender

	mu        sync.Mutex
	closed    bool
	accepting sync.WaitGroup
	back      chan struct{} // closed once the address may be lent again
}

// Addr is the address that is lent.
func (l *loan) Addr() net.Addr { return l.kept.Addr() }

// Accept waits for a connection. Any error after Close is net.ErrClosed.
func (l *loan) Accept() (net.Conn, error) {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil, l.over()
	}
	l.accepting.Add(1)
	l.mu.Unlock()
	conn, err := l.kept.AcceptTCP()
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
		_ = conn.Close() // nobody serves it any more
	}
	return nil, l.over()
}

func (l *loan) over() error {
	return &net.OpError{Op: "accept", Net: "tcp", Addr: l.Addr(), Err: net.ErrClosed}
}

// Close gives the address back once no Accept is under way. A second one waits for
// the first: whoever has called either may borrow the address again.
func (l *loan) Close() error {
	l.mu.Lock()
	again := l.closed
	l.closed = true
	l.mu.Unlock()
	if again {
		<-l.back
		return net.ErrClosed
	}
	defer close(l.back)
	err := l.kept.SetDeadline(time.Unix(1, 0)) // which wakes whoever waits
	l.accepting.Wait()
	l.lender.mu.Lock()
	defer l.lender.mu.Unlock()
	l.kept.lent = false
	return err
}
