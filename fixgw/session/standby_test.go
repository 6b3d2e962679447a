package session

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"blockdesk/fixgw/session/sessiontest"
	"blockdesk/fixgw/wire"
	"blockdesk/internal/runtest"
	"blockdesk/persist/leadership"
)

// startStandby runs a standby until the test ends.
func startStandby(t *testing.T, o StandbyOptions) (*Standby, func()) {
	t.Helper()
	o.Address = "127.0.0.1:0"
	s, err := NewStandby(o)
	if err != nil {
		t.Fatal(err)
	}
	return s, runtest.Start(t, s.Run)
}

// saidBy writes to a standby and returns all that it says until it closes.
func saidBy(t *testing.T, s *Standby, text []byte) sessiontest.Message {
	t.Helper()
	conn, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(runtest.HangTimeout))
	if _, err := conn.Write(text); err != nil {
		t.Fatal(err)
	}
	_ = conn.(*net.TCPConn).CloseWrite()
	all, err := io.ReadAll(conn)
	if err != nil && !errors.Is(err, net.ErrClosed) && !strings.Contains(err.Error(), "reset") {
		t.Fatal(err)
	}
	return sessiontest.Message(all)
}

// aLogon is one of CompID QF to us.
func aLogon(us string) []byte {
	return wire.AppendMessage(nil, wire.Header{MsgType: "A", Sender: "QF", Target: us, Seq: 7, At: time.Now()}, []byte("98=0\x01108=30"))
}

// TestStandby: what it answers to what a connection begins with.
func TestStandby(t *testing.T) {
	t.Parallel()
	var leader atomic.Pointer[leadership.Leader]
	known, none := leadership.Leader{ID: "b", FIX: "10.0.0.2:9878"}, leadership.Leader{}
	hostile := leadership.Leader{ID: "b\x0110=000\x01", FIX: strings.Repeat("x", 2*MaxOperatorText)}
	leader.Store(&known)
	s, _ := startStandby(t, StandbyOptions{CompID: "DESK", Leader: func() leadership.Leader { return *leader.Load() }, LogonBytes: 512, LogonTimeout: runtest.HangTimeout})
	const head = "35=5 34=0 49=DESK 56=QF 52=19700101-00:00:00.000 "
	got := saidBy(t, s, aLogon("DESK"))
	got.Want(t, head)
	if text := got.Get(58); text != "LEADER_CHANGED: the leader is b at 10.0.0.2:9878" {
		t.Errorf("text %q", text)
	}
	if _, n, err := wire.ScanFrame([]byte(got), 4096); n != len(got) || err != nil {
		t.Errorf("%q is not one message", got)
	}
	leader.Store(&none)
	if text := saidBy(t, s, aLogon("DESK")).Get(58); text != "LEADER_CHANGED: no leader is known, try again" {
		t.Errorf("no leader: text %q", text)
	}
	leader.Store(&hostile)
	got = saidBy(t, s, aLogon("DESK"))
	if _, n, _ := wire.ScanFrame([]byte(got), 4096); n != len(got) || len(got.Get(58)) > MaxOperatorText+len("LEADER_CHANGED: the leader is ") {
		t.Errorf("hostile: %q", got)
	}
	for name, text := range map[string][]byte{
		"another CompID": aLogon("OTHER"), "no FIX": []byte("GET / HTTP/1.1\r\n\r\n"), "nothing": nil,
		"too long":        wire.AppendMessage(nil, wire.Header{MsgType: "A", Sender: "QF", Target: "DESK", Seq: 1, At: time.Now()}, []byte("96="+strings.Repeat("x", 512))),
		"no Logon":        wire.AppendMessage(nil, wire.Header{MsgType: "D", Sender: "QF", Target: "DESK", Seq: 1, At: time.Now()}, []byte("11=a")),
		"a garbled Logon": bytes.Replace(aLogon("DESK"), []byte("108=30"), []byte("108=31"), 1),
		"a bad sender":    wire.AppendMessage(nil, wire.Header{MsgType: "A", Sender: "a b\xff", Target: "DESK", Seq: 1, At: time.Now()}, []byte("98=0")),
	} {
		if got := saidBy(t, s, text); len(got) > 0 {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestStandbyLimits: no more connections than there is room for, none for longer
// than it may take, and none when Run has ended.
func TestStandbyLimits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const limit = 500 * time.Millisecond
		pipes := sessiontest.NewPipes()
		_, stop := startStandby(t, StandbyOptions{
			CompID: "DESK", Leader: func() leadership.Leader { return leadership.Leader{} }, MaxPending: 2, LogonTimeout: limit,
			Listen: func(string, string) (net.Listener, error) { return pipes, nil },
		})
		var open [3]net.Conn
		for i := range open {
			conn, err := pipes.Dial()
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			open[i] = conn
			synctest.Wait()
		}
		began := time.Now()
		// The third is closed at once, the others when their time is up.
		for _, c := range []struct {
			conn  int
			after time.Duration
		}{{2, 0}, {0, limit}, {1, limit}} {
			n, err := open[c.conn].Read(make([]byte, 1))
			if took := time.Since(began); n > 0 || err == nil || took != c.after {
				t.Errorf("connection %d: %d bytes after %v, %v", c.conn, n, took, err)
			}
		}
		late, err := pipes.Dial()
		if err != nil {
			t.Fatal(err)
		}
		defer late.Close()
		stop()
		if _, err := late.Read(make([]byte, 1)); err == nil {
			t.Error("a connection has outlived Run")
		}
	})
	if _, err := NewStandby(StandbyOptions{Address: "127.0.0.1:0"}); err == nil {
		t.Error("no leader function")
	}
}

// FuzzStandbyLogon: whatever comes first, the answer is one message or none.
func FuzzStandbyLogon(f *testing.F) {
	f.Add(aLogon("DESK"))
	f.Add([]byte("8=FIX.4.4\x019=5\x0135=A\x0110=000\x01"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		frame, err := readLogon(bytes.NewReader(raw), 512)
		if err != nil {
			return
		}
		reply := standbyLogout(frame, "DESK", leadership.Leader{ID: "b", FIX: "h:1"})
		if _, n, err := wire.ScanFrame(reply, 4096); reply != nil && (n != len(reply) || err != nil) {
			t.Fatalf("%q gets %q", raw, reply)
		}
	})
}

// TestUnserved: what a leader says of what it cannot take.
func TestUnserved(t *testing.T) {
	g := &Server{}
	over := false
	if got := g.UnavailableText("why"); got != "READ_ONLY: why" {
		t.Errorf("a single node: %q", got)
	}
	g.options.Leadership = &leadership.Leadership{
		Leader: func() leadership.Leader { return leadership.Leader{} }, Deposed: func() bool { return over },
	}
	if got := g.UnavailableText("why"); got != "READ_ONLY: why" {
		t.Errorf("a leader: %q", got)
	}
	over = true
	if got := g.UnavailableText("why"); got != "LEADER_CHANGED: no leader is known, try again" {
		t.Errorf("deposed: %q", got)
	}
}
