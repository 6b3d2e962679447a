package clients

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"blockdesk/internal/runtest"
)

// frames are three: an empty one, one of 5 bytes and one of 300.
var frames = "\x81\x00" + "\x81\x05hello" + "\x81\x7e\x01\x2c" + strings.Repeat("x", 300)

// Messages are counted wherever the stream is cut, and only when they are whole.
func TestCountsWholeMessages(t *testing.T) {
	long := "\x81\x7f\x00\x00\x00\x00\x00\x01\x00\x00" + strings.Repeat("y", 1<<16)
	for name, test := range map[string]struct {
		form Form
		text string
		want int
	}{
		"frames":        {Frames, frames, 3},
		"a long one":    {Frames, long, 1},
		"all but one":   {Frames, frames[:len(frames)-1], 2},
		"half a header": {Frames, frames[:10], 2},
		"events":        {Events, "event: l2\ndata: {}\n\nid: e1-2\n\n", 2},
		"half an event": {Events, "event: l2\ndata: {}\n\nid: e1-2\n", 1},
	} {
		for _, size := range []int{1, 2, 3, 7, 1 << 20} {
			var c conn
			for rest := []byte(test.text); len(rest) > 0; {
				n := min(size, len(rest))
				c.take(test.form, rest[:n])
				rest = rest[n:]
			}
			if c.messages != test.want {
				t.Errorf("%s in pieces of %d: %d messages", name, size, c.messages)
			}
		}
	}
}

// startClients runs Serve in this process, and a listener for its clients.
func startClients(t *testing.T) (*Process, net.Listener) {
	t.Helper()
	orders, in := io.Pipe()
	out, answers := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- Serve(context.Background(), orders, answers) }()
	c := Over(in, out, func() error { return <-ended })
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		_ = listener.Close()
	})
	return c, listener
}

// answered is the answer to an order that was sent with err.
func answered(t *testing.T, c *Process, err error) *Answer {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	a, err := c.Answer()
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func accept(t *testing.T, l net.Listener, n int) []net.Conn {
	t.Helper()
	var all []net.Conn
	for range n {
		conn, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(runtest.HangTimeout))
		all = append(all, conn)
	}
	return all
}

func write(t *testing.T, conns []net.Conn, text string) {
	t.Helper()
	for _, conn := range conns {
		if _, err := conn.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
}

// A group asks, reads what comes behind the head, waits for the last of its
// members and takes the latency of each.
func TestFollows(t *testing.T) {
	c, listener := startClients(t)
	err := c.Join(Group{
		Name: "g", Addr: listener.Addr().String(), Conns: 3, Form: Frames,
		Request: []byte("GET / HTTP/1.1\r\n\r\n"), Then: []byte("then"), Skip: 3,
	})
	if err != nil {
		t.Fatal(err)
	}
	var conns []net.Conn
	for range 3 {
		conns = append(conns, accept(t, listener, 1)...)
		asked := make([]byte, 18)
		if _, err := io.ReadFull(conns[len(conns)-1], asked); err != nil || string(asked) != "GET / HTTP/1.1\r\n\r\n" {
			t.Fatalf("%q, %v", asked, err)
		}
		write(t, conns[len(conns)-1:], "HTTP/1.1 101 Switching Protocols\r\nA: b\r\n\r\n"+frames)
		if _, err := io.ReadFull(conns[len(conns)-1], asked[:4]); err != nil || string(asked[:4]) != "then" {
			t.Fatalf("%q, %v", asked[:4], err)
		}
	}
	if a := answered(t, c, nil); a.Head != "HTTP/1.1 101 Switching Protocols\r\nA: b" {
		t.Errorf("head %q", a.Head)
	}

	if err := c.Await("g", 3); err != nil {
		t.Fatal(err)
	}
	write(t, conns[:2], frames)
	before := Now()
	write(t, conns[2:], frames)
	if a := answered(t, c, nil); a.Last < before || a.Last > Now() {
		t.Errorf("the last came at %d, not after %d", a.Last, before)
	}

	start := Now() - int64(time.Second)
	write(t, conns, frames+frames)
	a := answered(t, c, c.Follow("g", Schedule{Ticks: 2, Each: 3, Start: start, Every: 100 * time.Millisecond}))
	if a.Count != 6 || a.P50 < 850e6 || a.Max < 990e6 || a.Max > int64(runtest.HangTimeout) {
		t.Errorf("latencies %+v", a)
	}
	answered(t, c, c.Leave("g"))
	if _, err := conns[0].Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("after leaving: %v", err)
	}
}

// A connection whose last bytes are the tail is counted, one that is cut off is not.
func TestCountsEnds(t *testing.T) {
	c, listener := startClients(t)
	if err := c.Join(Group{Name: "g", Addr: listener.Addr().String(), Conns: 3, Form: Frames}); err != nil {
		t.Fatal(err)
	}
	conns := accept(t, listener, 3)
	answered(t, c, nil)
	write(t, conns, strings.Repeat(frames, 10))
	write(t, conns[:2], "bye")
	for i, conn := range conns {
		if i == 1 {
			_ = conn.(*net.TCPConn).SetLinger(0)
		}
		_ = conn.Close()
	}
	a := answered(t, c, c.End("g", []byte("bye")))
	if a.Ended != 1 && a.Ended != 2 { // a reset may overtake what was written
		t.Errorf("%d ended with the tail", a.Ended)
	}
}

func TestSaysWhatIsWrong(t *testing.T) {
	c, listener := startClients(t)
	group := Group{Name: "cut", Addr: listener.Addr().String(), Conns: 1, Form: Frames}
	if err := c.Join(group); err != nil {
		t.Fatal(err)
	}
	conns := accept(t, listener, 1)
	answered(t, c, nil)
	_ = conns[0].Close()
	for _, test := range []struct {
		name string
		give func() error
	}{
		{"a group that is nowhere", func() error { return c.Await("nobody", 1) }},
		{"a name twice", func() error { return c.Join(group) }},
		{"no address", func() error { return c.Join(Group{Name: "nowhere", Addr: "nowhere", Conns: 1}) }},
		{"a schedule of nothing", func() error { return c.Follow("cut", Schedule{Ticks: 1}) }},
		{"a server that has gone", func() error { return c.Await("cut", 1) }},
	} {
		if err := test.give(); err != nil {
			t.Fatal(err)
		}
		if a, err := c.Answer(); err == nil {
			t.Errorf("%s: %+v", test.name, a)
		}
	}
}

// A refusal before the stream begins ends the joining.
func TestSaysThatTheServerRefused(t *testing.T) {
	c, listener := startClients(t)
	if err := c.Join(Group{Name: "g", Addr: listener.Addr().String(), Conns: 1, Form: Frames, Request: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	write(t, accept(t, listener, 1), "HTTP/1.1 503 Service Unavailable\r\n\r\n")
	if _, err := c.Answer(); err == nil || !strings.Contains(err.Error(), "503") {
		t.Error(err)
	}
}
