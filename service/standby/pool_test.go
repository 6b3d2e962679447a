package standby

import (
	"errors"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"blockdesk/internal/await"
)

// A client that connects while no gateway serves an address waits, and the gateway that borrows
// it next gets the connection; one borrower at a time.
func TestPool(t *testing.T) {
	t.Parallel()
	var l Pool
	addr, err := l.Bind("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := l.Listen("tcp", "127.0.0.1:1"); !errors.Is(err, syscall.EADDRNOTAVAIL) {
		t.Fatalf("an address that was never bound: %v", err)
	}
	for range 100 {
		client, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		borrowed, err := l.Listen("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Listen("tcp", addr); !errors.Is(err, syscall.EADDRINUSE) {
			t.Fatalf("taken twice: %v", err)
		}
		conn, err := borrowed.Accept()
		if err != nil {
			t.Fatal(err)
		}
		var waiting sync.WaitGroup
		for range 3 {
			waiting.Go(func() {
				if _, err := borrowed.Accept(); !errors.Is(err, net.ErrClosed) {
					t.Errorf("Accept of what was given back: %v", err)
				}
			})
		}
		if err := borrowed.Close(); err != nil {
			t.Fatal(err)
		}
		waiting.Wait()
		if err := borrowed.Close(); !errors.Is(err, net.ErrClosed) {
			t.Fatalf("given back twice: %v", err)
		}
		conn.Close()
		client.Close()
	}
}

// After a Close has returned, the first or another, the address is free again: a
// standby closes twice, and the service stands on its addresses at once.
func TestPoolClosedTwice(t *testing.T) {
	t.Parallel()
	var l Pool
	addr, err := l.Bind("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	borrowed, err := l.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	l.mu.Lock() // the first Close does not get to its end
	var first sync.WaitGroup
	first.Go(func() { _ = borrowed.Close() })
	await.True(t, "the first Close to be under way", func() bool {
		held := borrowed.(*listener)
		held.mu.Lock()
		defer held.mu.Unlock()
		return held.closed
	})
	time.AfterFunc(20*time.Millisecond, l.mu.Unlock)
	if err := borrowed.Close(); !errors.Is(err, net.ErrClosed) {
		t.Fatal(err)
	}
	if !l.mu.TryLock() {
		t.Fatal("the second Close is over before the first")
	}
	l.mu.Unlock()
	if _, err := l.Listen("tcp", addr); err != nil {
		t.Fatalf("given back and not to be had: %v", err)
	}
	first.Wait()
}

// Many borrowers, one after the other, under clients that come all the time: each
// connection is served by one of them, or closed.
func TestPoolUnderClients(t *testing.T) {
	t.Parallel()
	var l Pool
	addr, err := l.Bind("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var clients sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		clients.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				conn, err := net.Dial("tcp", addr)
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = conn.Read(make([]byte, 1)) // ends when it is closed
				conn.Close()
			}
		})
	}
	for range 200 {
		borrowed, err := l.Listen("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		serving, served := answers(borrowed)
		<-served
		if err := borrowed.Close(); err != nil {
			t.Fatal(err)
		}
		serving.Wait()
	}
	close(stop)
	// The address stays until the last client has closed: one that dials while it is
	// unbound is refused, which says nothing about lending.
	last, err := l.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	serving, _ := answers(last)
	clients.Wait()
	if err := last.Close(); err != nil {
		t.Fatal(err)
	}
	serving.Wait()

	waiting, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer waiting.Close()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if n, err := waiting.Read(make([]byte, 1)); err == nil {
		t.Fatalf("an unbound address left a client waiting: %d bytes", n)
	}
}

// answers accepts and closes connections until the listener is closed; served has
// one in it from the first on.
func answers(listener net.Listener) (serving *sync.WaitGroup, served chan struct{}) {
	serving, served = new(sync.WaitGroup), make(chan struct{}, 1)
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conn.Close()
			select {
			case served <- struct{}{}:
			default:
			}
		}
	})
	return serving, served
}
