package session

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"blockdesk/fixgw/session/sessiontest"
	"blockdesk/fixgw/wire"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/persist/kv"
	"blockdesk/persist/kv/kvtest"
)

// productServer runs a server whose sessions have the rules of the product and handle
// nothing.
func productServer(t *testing.T, o Options) *Server {
	t.Helper()
	o.Address, o.Participants = "127.0.0.1:0", sessiontest.Participants("TW")
	v, err := opened(o.WithDefaults(), busyStore{kvtest.New()})
	if err == nil {
		err = v.Listen()
	}
	if err != nil {
		t.Fatal(err)
	}
	runtest.Start(t, func(ctx context.Context) error { return runServer(ctx, v) })
	return v
}

// busyStore lets other goroutines go first, for a while.
type busyStore struct{ kv.Store }

func (s busyStore) Commit(fill func(set func(key, value []byte), deleteRange func(lo, hi []byte)), sync bool) error {
	for range rand.IntN(30) {
		runtime.Gosched()
	}
	return s.Store.Commit(fill, sync)
}

// TestTakeovers: whatever connections fight for one session, each of a living client gets
// an answer to its Logon or is closed; one that is logged on gets its answers and reports,
// in the order of their numbers; and at the end the session is free for the next.
func TestTakeovers(t *testing.T) {
	t.Parallel()
	dictionary, err := ReadDictionary()
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(6) {
		synctest.Test(t, func(t *testing.T) {
			takeovers(t, dictionary, seed)
		})
	}
}

func takeovers(t *testing.T, dictionary *Dictionary, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	pipes := sessiontest.NewPipes()
	v := productServer(t, Options{
		CompID: fmt.Sprintf("TAKE%d", seed), Dictionary: dictionary,
		Listen: func(string, string) (net.Listener, error) { return pipes, nil },
	})
	s := v.SessionNamed("TW")
	if c, err := pipes.Dial(); err != nil || c.Close() != nil { // accepted: the sessions are there
		t.Fatal(err)
	}
	var sending, clients sync.WaitGroup
	stop := make(chan struct{})
	sending.Go(func() { report(t, s, stop) })
	for n := range 60 {
		c := &rival{server: v, pipes: pipes, name: fmt.Sprintf("client %d of %d", n, seed), end: rng.IntN(rivalEnds), reset: rng.IntN(2) == 0}
		c.start, c.life = time.Duration(rng.IntN(5000))*time.Millisecond, time.Duration(rng.IntN(2500))*time.Millisecond
		clients.Go(func() {
			if err := c.run(); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		})
	}
	clients.Wait()
	last := &rival{server: v, pipes: pipes, name: "the last", reset: true, life: 3 * time.Second}
	if err := last.run(); err != nil || !last.loggedOn {
		t.Errorf("after all: %v, logged on: %v", err, last.loggedOn)
	}
	close(stop)
	sending.Wait()
	await.True(t, "the session to be free", func() bool { return !s.Connected() })
	await.VirtualSleep(t, time.Minute) // quickfix's timers of the Logouts
}

// TestTakeoverOfOneThatHasGone: a Logon that waits for the session is dropped when its
// client goes. Otherwise the client, which comes again with the same MsgSeqNum because it
// had no answer, would find its number used.
func TestTakeoverOfOneThatHasGone(t *testing.T) {
	t.Parallel()
	v := productServer(t, Options{CompID: "TAKEGONE", TakeoverSilence: time.Hour, MaxPending: 8})
	dial := func(seq uint64) *rival {
		conn, err := net.Dial("tcp", v.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(runtest.HangTimeout))
		c := &rival{server: v, conn: conn, seq: seq}
		if err := c.send("A", rivalLogon); err != nil {
			t.Fatal(err)
		}
		return c
	}
	first := dial(1)
	defer first.conn.Close()
	await.True(t, "the first to be logged on", v.SessionNamed("TW").LoggedOn)
	second := dial(2)
	in := bufio.NewReader(first.conn)
	for msgType := ""; msgType != "1"; { // until the service asks the first for the second's sake
		m, err := readMessage(in)
		if err != nil {
			t.Fatal(err)
		}
		msgType = wire.MsgType(m)
	}
	second.conn.Close()
	await.True(t, "the second to be dropped", func() bool { conns, _, _ := v.Counts(); return conns == 1 })
	first.conn.Close()
	third := dial(2)
	defer third.conn.Close()
	m, err := readMessage(bufio.NewReader(third.conn))
	if err != nil || wire.MsgType(m) != "A" {
		t.Errorf("the number of the Logon that was dropped: %s, %v", sessiontest.Message(m), err)
	}
}

// report sends a message to the session again and again.
func report(t *testing.T, s *Session, stop <-chan struct{}) {
	var out Outbox
	for {
		select {
		case <-stop:
			return
		case <-time.After(3 * time.Millisecond):
		}
		if err := out.Send(s, "j", 45, []byte("1\x01372=D\x01380=0"), false); err != nil {
			t.Error(err)
		}
	}
}

// How a rival ends. Until then it answers what it is asked.
const (
	endsByLogout = iota
	endsByClosing
	endsBySilence  // it reads, and says nothing more
	endsByDeafness // it does not even read
	rivalEnds
)

// rival is one of several clients of one session.
type rival struct {
	server      *Server
	pipes       *sessiontest.Pipes
	name        string
	end         int
	reset       bool          // 141=Y
	start, life time.Duration // the life begins with the Logon

	conn     net.Conn
	seq      uint64
	loggedOn bool
	alive    time.Time // when it asked for a sign of life; zero = it has an answer
}

const rivalLogon = "98=0\x01108=10\x01553=tw\x01554=" + sessiontest.Password

// rivalPatience is how long a living client waits for the answer to its Logon, to a
// TestRequest, and for a report.
const rivalPatience = 10 * time.Second

func (c *rival) send(msgType, body string) error {
	m := wire.AppendMessage(nil, wire.Header{MsgType: msgType, Sender: "TW", Target: c.server.options.CompID, Seq: c.seq, At: time.Now()}, []byte(body))
	c.seq++
	_, err := c.conn.Write(m)
	return err
}

// ask sends a TestRequest.
func (c *rival) ask() error {
	c.alive = time.Now()
	return c.send("1", "112=alive")
}

// fill answers a ResendRequest: nothing is sent again, so the TestRequest is made again.
func (c *rival) fill(from string) error {
	next := c.seq
	c.seq, _ = wire.ParseSeq([]byte(from))
	err := c.send("4", fmt.Sprintf("43=Y\x01123=Y\x0136=%d", next))
	c.seq = next
	return cmp.Or(err, c.ask())
}

// run returns what the service has done wrong.
func (c *rival) run() error {
	<-time.After(c.start)
	var err error
	if c.conn, err = c.pipes.Dial(); err != nil {
		return err
	}
	defer c.conn.Close()
	over := time.Now().Add(c.life + rivalPatience)
	_ = c.conn.SetDeadline(time.Now().Add(rivalPatience))
	c.seq = 1
	body := rivalLogon
	if c.reset {
		body += "\x01141=Y"
	} else {
		c.seq = uint64(c.server.SessionNamed("TW").Messages.NextTargetMsgSeqNum())
	}
	if err := c.send("A", body); err != nil {
		return ended(err)
	}
	in := bufio.NewReader(c.conn)
	expected, quiet := uint64(0), false
	for {
		m, err := readMessage(in)
		switch {
		case errors.Is(err, errSilentService) && time.Now().Before(over.Add(rivalPatience)) && (c.end == endsBySilence || c.end == endsByDeafness):
			return nil
		case err != nil:
			return ended(err)
		}
		seq, msgType := sessiontest.Message(m).Get(34), wire.MsgType(m)
		switch {
		case msgType == "5":
			return nil
		case msgType == "A" && !c.loggedOn:
			c.loggedOn, over = true, time.Now().Add(c.life)
			expected, _ = wire.ParseSeq([]byte(seq))
			if err := c.ask(); err != nil {
				return ended(err)
			}
		case !c.loggedOn:
			return fmt.Errorf("before the Logon: %s", sessiontest.Message(m))
		}
		if n, _ := wire.ParseSeq([]byte(seq)); n != expected {
			return fmt.Errorf("number %d expected: %s", expected, sessiontest.Message(m))
		}
		expected++
		switch {
		case msgType == "0" && sessiontest.Message(m).Get(112) == "alive":
			c.alive = time.Time{}
		case !quiet && !c.alive.IsZero() && time.Since(c.alive) > time.Second:
			return errSilentService
		}
		if quiet {
			continue
		}
		switch msgType {
		case "1":
			err = c.send("0", "112="+sessiontest.Message(m).Get(112))
		case "2":
			err = c.fill(sessiontest.Message(m).Get(7))
		}
		if err != nil {
			return ended(err)
		}
		// Each answer and report puts the end of its patience off.
		_ = c.conn.SetDeadline(time.Now().Add(rivalPatience))
		if time.Now().Before(over) {
			continue
		}
		switch c.end {
		case endsByLogout:
			if err := c.send("5", "58=bye"); err != nil {
				return ended(err)
			}
			quiet = true
		case endsByClosing:
			return nil
		case endsBySilence:
			quiet = true
			_ = c.conn.SetDeadline(time.Now().Add(time.Minute))
		case endsByDeafness:
			<-time.After(time.Minute)
			return nil
		}
	}
}

// errSilentService is what a client says that has waited in vain.
var errSilentService = errors.New("no answer in time")

// ended returns nil where the service has ended the connection, which it may at any time.
func ended(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	if n, ok := errors.AsType[net.Error](err); ok && n.Timeout() {
		return errSilentService
	}
	return err
}

// readMessage reads one message.
func readMessage(in *bufio.Reader) ([]byte, error) {
	var m []byte
	for {
		field, err := in.ReadBytes(wire.SOH)
		if m = append(m, field...); err != nil {
			return nil, err
		}
		if bytes.HasPrefix(field, []byte("10=")) && strings.HasPrefix(string(m), "8=FIX") {
			return m, nil
		}
	}
}
