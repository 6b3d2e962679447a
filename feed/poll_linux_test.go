//go:build linux && !feed_goroutines

package feed

import (
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"syscall"
	"testing"

	"blockdesk/internal/await"
)

// An event of a closed connection does not reach the connection that has its slot now.
func TestSeatIsTakenOnce(t *testing.T) {
	d := newTestFeed(t, func(o *Options) { o.Shards = 1 })
	p, err := newPoll(d.feed)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	first, second := &conn{raw: aSocket(t)}, &conn{raw: aSocket(t)}
	if err := p.add(first); err != nil {
		t.Fatal(err)
	}
	p.events[0], p.count = syscall.EpollEvent{Fd: first.pollSlot, Pad: first.pollGen}, 1
	if p.collectReady(); len(p.ready) != 1 || p.ready[0] != first {
		t.Fatalf("%v", p.ready)
	}
	p.remove(first)
	if p.collectReady(); len(p.ready) != 0 {
		t.Fatalf("a connection that is gone: %v", p.ready)
	}
	if err := p.add(second); err != nil {
		t.Fatal(err)
	}
	if second.pollSlot != first.pollSlot {
		t.Fatalf("seats %d and %d: the first was free", first.pollSlot, second.pollSlot)
	}
	if p.collectReady(); len(p.ready) != 0 {
		t.Fatalf("another's event: %v", p.ready)
	}
}

// aSocket returns a socket without input.
func aSocket(t *testing.T) syscall.RawConn {
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	raw, err := conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// rawDial connects a socket without a Go net.Conn, which would use memory.
func rawDial(t *testing.T, to netip.AddrPort) int {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.Connect(fd, &syscall.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}); err != nil {
		t.Fatal(err)
	}
	return fd
}

// processUsage returns heap and stacks in bytes after garbage collection, and the number
// of goroutines.
func processUsage() (bytes, goroutines int) {
	var m runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc + m.StackInuse), runtime.NumGoroutine()
}

// An idle connection with a subscription uses little memory, no goroutine, and nothing of
// the server or the library.
func TestIdleConnectionIsSmall(t *testing.T) {
	const (
		clientCount = 1000
		most        = 3 << 10 // bytes; the goal of bench/RESULTS.md is 10 KB
	)
	d := newTestFeed(t, func(o *Options) { o.MaxPerIP = 2 * clientCount })
	to := netip.MustParseAddrPort(d.addr)
	join := func() {
		fd := rawDial(t, to)
		_, _ = syscall.Write(fd, fmt.Appendf(nil, "GET /ws/rfq HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
			"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"))
		_, _ = syscall.Write(fd, masked(0x81, `{"action":"SUBSCRIBE_MARKET","channels":["l2"],"symbols":["SLUSD/USDC"]}`))
	}
	subscribed := func(n int64) func() bool {
		return func() bool {
			// The goroutines of the upgrades end a little later.
			return d.feed.Stats().Subscriptions == n && d.feed.Stats().MessagesOut == 3*uint64(n)
		}
	}
	for range 10 {
		join()
	}
	await.True(t, "the first to be there", subscribed(10))
	before, few := processUsage()
	for i := range clientCount {
		join()
		if i%50 == 49 {
			await.True(t, "more to be there", subscribed(int64(10+i+1)))
		}
	}
	// fasthttp's workers are idle for a while before they end.
	after, many := 0, 0
	await.True(t, fmt.Sprintf("less than %d bytes a connection and %d goroutines", most, clientCount/10), func() bool {
		after, many = processUsage()
		t.Logf("%d bytes a connection, %d goroutines more", (after-before)/clientCount, many-few)
		return (after-before)/clientCount <= most && many-few < clientCount/10
	})
}
