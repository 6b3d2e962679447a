package feed

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"blockdesk/engine/event"
	"blockdesk/engine/marketdata"
	"blockdesk/internal/await"
	"blockdesk/market"
)

// cpu returns the CPU time of the process.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// readers are connections whose input stays in the kernel until drain.
type readers struct {
	b     *testing.B
	conns []net.Conn
}

// drain reads all available input.
func (r *readers) drain() {
	buf := make([]byte, 256<<10)
	for _, conn := range r.conns {
		raw, err := conn.(*net.TCPConn).SyscallConn()
		if err != nil {
			r.b.Fatal(err)
		}
		err = raw.Read(func(fd uintptr) bool {
			for {
				if n, err := syscall.Read(int(fd), buf); n <= 0 || err != nil {
					return true
				}
			}
		})
		if err != nil {
			r.b.Fatal(err)
		}
	}
}

const (
	fanout = 1000 // connections
	round  = 50   // messages between two drains, which are not counted
)

// BenchmarkFanout compares the CPU time of a delivery to one of 1,000 connections, engine
// and encoding included, with that of a bare write(2) of as many bytes to as many
// sockets. burst is the number of updates at once.
func BenchmarkFanout(b *testing.B) {
	for _, burst := range []int{1, 10} {
		b.Run(fmt.Sprintf("feed/burst%d", burst), func(b *testing.B) { fanoutFeed(b, burst) })
	}
	b.Run("write", fanoutWrite)
}

// scriptedEvents is a source of a benchmark's own events.
type scriptedEvents struct{ slices chan []event.Event }

func (s *scriptedEvents) Next(ctx context.Context) ([]event.Event, error) {
	select {
	case slice, more := <-s.slices:
		if !more {
			return nil, io.EOF
		}
		return slice, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *scriptedEvents) Poll() []event.Event { return nil }
func (s *scriptedEvents) Release(int)         {}
func (s *scriptedEvents) AtBatchEnd() bool    { return true }

// restingOrder returns a batch of one event: an order that rests at a price of its own.
func restingOrder(seq uint64) event.Event {
	return event.Event{
		Seq: seq, At: int64(seq) * 1000, Kind: event.Accepted, Side: market.Buy,
		OrderID: market.OrderID(seq), Price: market.Price(1_000_000 + seq), Qty: 5_000_000, Aux: 5_000_000,
	}
}

// serveScript runs a feed of scripted events behind a server and returns both with the
// server's address.
func serveScript(b *testing.B) (*Feed, *scriptedEvents, string) {
	f, err := New(Options{MaxPerIP: fanout, SendBuffer: 256 << 10}, instruments(), marketdata.New(), 1)
	if err != nil {
		b.Fatal(err)
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := &fasthttp.Server{Handler: f.Handler, KeepHijackedConns: true}
	events := &scriptedEvents{slices: make(chan []event.Event)}
	var running sync.WaitGroup
	running.Go(func() {
		if err := f.Run(context.Background(), events); err != nil {
			b.Error(err)
		}
	})
	running.Go(func() { _ = server.Serve(listener) })
	b.Cleanup(func() {
		close(events.slices)
		_ = server.Shutdown()
		running.Wait()
	})
	return f, events, listener.Addr().String()
}

func fanoutFeed(b *testing.B, burst int) {
	f, events, addr := serveScript(b)
	delivered := func(messages uint64) {
		for f.Stats().MessagesOut < messages {
			time.Sleep(200 * time.Microsecond) // sleep: a benchmark's poll must not take the time that it measures
		}
	}
	await.True(b, "the feed to run", f.running.Load)
	events.slices <- []event.Event{{Seq: 1, At: 1, Kind: event.EpochStarted, Other: 1}}
	all := &readers{b: b}
	for range fanout {
		conn, err := net.Dial("tcp4", addr)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = conn.Close() })
		_, _ = fmt.Fprintf(conn, "GET /ws/rfq HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
			"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
		_, _ = conn.Write(masked(0x81, `{"action":"SUBSCRIBE_MARKET","channels":["l2"],"symbols":["SLUSD/USDC"]}`))
		all.conns = append(all.conns, conn)
	}
	sent := uint64(3) // welcome, ack, snapshot
	delivered(fanout * sent)
	var spent time.Duration
	seq, updates := uint64(1), uint64(0)
	for updates < uint64(b.N) {
		before := cpu()
		for range round / burst {
			var slice []event.Event
			for range burst {
				seq++
				slice = append(slice, restingOrder(seq))
			}
			events.slices <- slice
			sent += uint64(burst)
			updates += uint64(burst)
			delivered(fanout * sent)
		}
		spent += cpu() - before
		all.drain()
	}
	b.ReportMetric(float64(spent.Nanoseconds())/float64(updates*fanout), "cpu-ns/delivery")
	b.ReportMetric(0, "ns/op")
}

func fanoutWrite(b *testing.B) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer listener.Close()
	all := &readers{b: b}
	var fds []int
	for range fanout {
		near, err := net.Dial("tcp4", listener.Addr().String())
		if err != nil {
			b.Fatal(err)
		}
		far, err := listener.Accept()
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _, _ = near.Close(), far.Close() })
		raw, err := far.(*net.TCPConn).SyscallConn()
		if err != nil {
			b.Fatal(err)
		}
		if err := raw.Control(func(fd uintptr) { fds = append(fds, int(fd)) }); err != nil {
			b.Fatal(err)
		}
		all.conns = append(all.conns, near)
	}
	frame := make([]byte, 220)
	var spent time.Duration
	sent := 0
	for sent < b.N {
		before := cpu()
		for range round {
			for _, fd := range fds {
				if n, err := syscall.Write(fd, frame); n != len(frame) || err != nil {
					b.Fatal(n, err)
				}
			}
		}
		spent += cpu() - before
		sent += round
		all.drain()
	}
	b.ReportMetric(float64(spent.Nanoseconds())/float64(sent*fanout), "cpu-ns/delivery")
	b.ReportMetric(0, "ns/op")
}
