package cluster

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"blockdesk/bench/server"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
)

// way is what one node sends to another, on all connections between them, no matter which
// of the two has dialled.
type way struct{ from, to string }

// weather is what happens to the bytes on a way.
type weather struct {
	// held: bytes wait, as packets do that a network loses and TCP sends again
	// until it heals.
	held  bool
	delay time.Duration
}

// network joins nodes on this machine by connections that the test can disturb:
// each node is reached through a gate. The first bytes identify the dialling node,
// since all nodes have to have one list of addresses.
type network struct {
	sender  func(first []byte) string // the node that sends these
	mu      sync.Mutex
	changed *sync.Cond
	weather map[way]weather
	gates   []*gate
	closed  bool
	holding int // pieces that wait for the weather to change
	all     sync.WaitGroup
}

// gate is where a node is dialled.
type gate struct {
	net      *network
	listener net.Listener
	held     net.PacketConn      // see server.FreePort
	to       string              // the node
	target   string              // its address
	conns    map[net.Conn]string // both ends, with the dialling node; network.mu guards it
}

func newNetwork(t testing.TB, sender func(first []byte) string) *network {
	n := &network{sender: sender, weather: map[way]weather{}}
	n.changed = sync.NewCond(&n.mu)
	t.Cleanup(n.close)
	return n
}

// open makes the gate of a node, which listens on target, and returns where the
// others have to dial.
func (n *network) open(t testing.TB, to, target string) string {
	t.Helper()
	port, held, err := server.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{net: n, listener: l, held: held, to: to, target: target, conns: map[net.Conn]string{}}
	n.mu.Lock()
	n.gates = append(n.gates, g)
	n.mu.Unlock()
	n.all.Go(g.accept)
	return l.Addr().String()
}

func (n *network) close() {
	n.mu.Lock()
	n.closed = true
	for _, g := range n.gates {
		_, _ = g.listener.Close(), g.held.Close()
		g.cut()
	}
	n.changed.Broadcast()
	n.mu.Unlock()
	n.all.Wait()
}

// set changes the weather on some ways.
func (n *network) set(w weather, ways ...way) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, on := range ways {
		n.weather[on] = w
	}
	n.changed.Broadcast()
}

// heal ends all weather.
func (n *network) heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.weather)
	n.changed.Broadcast()
}

// reset breaks the connections between two nodes, as a firewall does that sends
// resets.
func (n *network) reset(a, b string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, g := range n.gates {
		for c, from := range g.conns {
			if g.to == a && from == b || g.to == b && from == a {
				_ = c.Close() // its readers get an error
			}
		}
	}
}

// cut closes a gate's connections. The caller holds the network's mu.
func (g *gate) cut() {
	for c := range g.conns {
		_ = c.Close() // its readers get an error
	}
}

func (g *gate) accept() {
	for {
		in, err := g.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		} else if err != nil {
			time.Sleep(time.Millisecond) // sleep: before the next try, where there are no descriptors
			continue
		}
		g.net.all.Go(func() { g.carry(in) })
	}
}

// carry joins a connection to the target until one end closes.
func (g *gate) carry(in net.Conn) {
	defer in.Close()
	if !g.keep(in, "") {
		return
	}
	defer g.forget(in)
	first := make([]byte, 64<<10)
	size, err := in.Read(first)
	from := g.net.sender(first[:size])
	there := way{from, g.to}
	if err != nil || !g.net.pass(there) {
		return
	}
	out, err := net.DialTimeout("tcp", g.target, runtest.HangTimeout)
	if err != nil {
		return
	}
	defer out.Close()
	if !g.keep(out, from) || !g.keep(in, from) {
		return
	}
	defer g.forget(out)
	if _, err := out.Write(first[:size]); err != nil {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { g.net.pump(out, in, there) })
	both.Go(func() { g.net.pump(in, out, way{g.to, from}) })
	both.Wait()
}

func (g *gate) keep(c net.Conn, from string) bool {
	g.net.mu.Lock()
	defer g.net.mu.Unlock()
	g.conns[c] = from
	return !g.net.closed
}

func (g *gate) forget(c net.Conn) {
	g.net.mu.Lock()
	defer g.net.mu.Unlock()
	delete(g.conns, c)
}

// pass waits for the weather on a way; false: the network is closed.
func (n *network) pass(on way) bool {
	n.mu.Lock()
	n.holding++
	for n.weather[on].held && !n.closed {
		n.changed.Wait()
	}
	n.holding--
	delay, closed := n.weather[on].delay, n.closed
	n.mu.Unlock()
	time.Sleep(delay) // sleep: this is the slow line
	return !closed
}

// pump copies what goes one way; at the end it closes both ends.
func (n *network) pump(to, from net.Conn, on way) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 64<<10)
	for {
		size, err := from.Read(buf)
		if size > 0 {
			if !n.pass(on) {
				return
			}
			if _, err := to.Write(buf[:size]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// The network holds the bytes that a test makes it hold, one way only, and gives it out when
// it heals; what it delays comes late; a reset breaks the line.
func TestClusterNetwork(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	n := newNetwork(t, func(first []byte) string { return string(first[:1]) })
	address := n.open(t, "b", l.Addr().String())
	a, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if _, err := io.WriteString(a, "a"); err != nil {
		t.Fatal(err)
	}
	b, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	deliver := func(from, to net.Conn, text string) {
		t.Helper()
		if _, err := io.WriteString(from, text); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(text))
		if _, err := io.ReadFull(to, got); err != nil || string(got) != text {
			t.Fatalf("%q came as %q: %v", text, got, err)
		}
	}
	if _, err := io.ReadFull(b, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	deliver(a, b, "one")
	n.set(weather{held: true}, way{"a", "b"})
	deliver(b, a, "two") // the other way is open
	if _, err := io.WriteString(a, "three"); err != nil {
		t.Fatal(err)
	}
	await.Equal(t, "the number of pieces that are held", 1, func() int {
		n.mu.Lock()
		defer n.mu.Unlock()
		return n.holding
	})
	if err := b.SetReadDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := b.Read(make([]byte, 5)); err == nil {
		t.Fatalf("%d bytes pass a way that is held", n)
	}
	if err := b.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	n.heal()
	got := make([]byte, 5)
	if _, err := io.ReadFull(b, got); err != nil || string(got) != "three" {
		t.Fatalf("after the healing %q: %v", got, err)
	}
	n.set(weather{delay: 30 * time.Millisecond}, way{"b", "a"})
	began := time.Now()
	if deliver(b, a, "four"); time.Since(began) < 30*time.Millisecond {
		t.Error("a slow way is not slow")
	}
	n.reset("b", "a")
	if _, err := a.Read(got); err == nil {
		t.Error("the line stands after a reset")
	}
}
