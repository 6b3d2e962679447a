package fixclient

import (
	"bufio"
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"blockdesk/internal/runtest"
)

// peer is the other side of a session, as the test writes it.
type peer struct {
	t    *testing.T
	conn net.Conn
	in   *Client // reads
	out  *Client // encodes
}

// accept waits for the next connection and for its Logon, which it returns.
func accept(t *testing.T, l net.Listener) (*peer, string) {
	t.Helper()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return peerOf(t, conn)
}

// peerOf waits for the Logon of a connection, which it returns.
func peerOf(t *testing.T, conn net.Conn) (*peer, string) {
	t.Helper()
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(runtest.HangTimeout))
	p := &peer{
		t: t, conn: conn, in: &Client{in: bufio.NewReader(conn)},
		out: &Client{opts: Options{SenderCompID: "DESK", TargetCompID: "MM"}},
	}
	return p, p.next("A")
}

// next returns the next message, which must be of a type, with '|' for SOH.
func (p *peer) next(msgType string) string {
	p.t.Helper()
	m, err := p.in.read()
	if err != nil {
		p.t.Fatal(err)
	}
	if m.Type() != msgType {
		p.t.Fatalf("%q, want a message of type %s", m.Raw(), msgType)
	}
	return strings.ReplaceAll(string(m.Raw()), "\x01", "|")
}

func (p *peer) send(msgType string, seq int, fields string) {
	p.t.Helper()
	if _, err := p.conn.Write(p.out.append(nil, msgType, seq, []byte(strings.ReplaceAll(fields, "|", "\x01")))); err != nil {
		p.t.Fatal(err)
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// heard is what Numbers was given. The test reads it while nothing writes.
type heard struct{ sender, target int }

func (h *heard) SetSender(next int) error { h.sender = next; return nil }
func (h *heard) SetTarget(next int) error { h.target = next; return nil }

// dialed starts Dial, which ends when the peer has answered.
func dialed(o Options) (result chan error, client **Client) {
	result, client = make(chan error, 1), new(*Client)
	go func() {
		c, err := Dial(context.Background(), o)
		*client = c
		result <- err
	}()
	return result, client
}

func wants(t *testing.T, message string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(message, part) {
			t.Errorf("%s is not in %s", part, message)
		}
	}
}

// A session outlives its connection: the numbers go on, and what was sent before
// can be asked for after it, as far as it is asked for.
func TestRedialGoesOn(t *testing.T) {
	l, reported := listen(t), &heard{}
	var traced []string
	logon, client := dialed(Options{
		Addr: l.Addr().String(), SenderCompID: "MM", TargetCompID: "DESK", KeepSequence: true, Reset: true, Numbers: reported,
		NextSender: 70, NextTarget: 80, // of no account: Reset
		Trace: func(sent bool, m []byte) {
			if sent {
				traced = append(traced, AsMessage(m).Type())
			}
		},
	})
	p, first := accept(t, l)
	wants(t, first, "|34=1|", "|141=Y|")
	p.send("A", 1, "98=0|108=30|141=Y|")
	if err := <-logon; err != nil {
		t.Fatal(err)
	}
	c := *client
	for _, id := range []string{"a", "b"} {
		if err := c.Send("D", []byte("11="+id+"\x01")); err != nil {
			t.Fatal(err)
		}
		p.next("D")
	}
	p.conn.Close()
	if err := c.Run(t.Context(), nil); err == nil {
		t.Error("a cut connection is no error")
	}
	if sender, target := c.NextSequence(); sender != 4 || target != 2 || reported.sender != 4 || reported.target != 2 {
		t.Errorf("the numbers are %d and %d, reported %+v", sender, target, reported)
	}

	go func() { logon <- c.Redial(context.Background()) }()
	p, second := accept(t, l)
	wants(t, second, "|34=4|")
	if strings.Contains(second, "141=Y") {
		t.Error("the numbers were reset again")
	}
	p.send("A", 2, "98=0|108=30|")
	if err := <-logon; err != nil {
		t.Fatal(err)
	}
	got := make(chan string, 1)
	go func() {
		if err := c.Run(t.Context(), func(m *Message) error { got <- string(m.Get(58)); return nil }); err != nil {
			t.Error(err)
		}
	}()
	p.send("2", 3, "7=2|16=2|")
	wants(t, p.next("D"), "|34=2|", "|43=Y|", "|122=", "|11=a|")
	p.send("B", 4, "58=news|")
	if text := <-got; text != "news" {
		t.Errorf("got %q", text)
	}
	p.send("2", 5, "7=1|16=0|")
	wants(t, p.next("4"), "|34=1|", "|36=2|")
	wants(t, p.next("D"), "|34=2|")
	wants(t, p.next("D"), "|34=3|", "|11=b|")
	wants(t, p.next("4"), "|34=4|", "|36=5|") // the second Logon; nothing was used up since
	if err := c.Logout(); err != nil {
		t.Fatal(err)
	}
	wants(t, p.next("5"), "|34=5|")
	p.send("5", 6, "")
	if got := strings.Join(traced, " "); got != "A D D A D 4 D D 4 5" {
		t.Errorf("traced %v", traced)
	}
}

// A peer that has lost the session is not believed.
func TestLowNumbersAreRefused(t *testing.T) {
	l := listen(t)
	logon, _ := dialed(Options{
		Addr: l.Addr().String(), SenderCompID: "MM", TargetCompID: "DESK", KeepSequence: true, NextSender: 3, NextTarget: 5,
	})
	p, _ := accept(t, l)
	p.send("A", 4, "98=0|108=30|")
	if err := <-logon; !errors.Is(err, ErrSequence) {
		t.Errorf("%v", err)
	}
}

// A silent side gets a TestRequest, and then the session ends.
func TestSilentPeerIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		logon, client := dialed(Options{
			SenderCompID: "MM", TargetCompID: "DESK", HeartBtInt: 10,
			DialContext: func(context.Context, string, string) (net.Conn, error) { return here, nil },
		})
		p, _ := peerOf(t, there)
		began := time.Now()
		after := func(want time.Duration) {
			t.Helper()
			if took := time.Since(began); took != want*time.Second {
				t.Errorf("after %v, want %d s", took, want)
			}
		}
		p.send("A", 1, "98=0|108=10|141=Y|")
		if err := <-logon; err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- (*client).Run(context.Background(), nil) }()
		wants(t, p.next("1"), "|112=still there|")
		after(10)
		p.send("0", 2, "112=still there|")
		p.next("0") // heard: an ordinary heartbeat follows
		after(20)
		p.next("1")
		after(30)
		if err := <-ended; !errors.Is(err, ErrSilent) {
			t.Errorf("%v", err)
		}
		after(40)
	})
}
