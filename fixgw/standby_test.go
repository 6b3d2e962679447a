package fixgw

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

	"github.com/quickfixgo/quickfix"
	"github.com/quickfixgo/quickfix/config"

	"blockdesk/fixgw/wire"
	"blockdesk/internal/await"
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
func saidBy(t *testing.T, s *Standby, text []byte) msg {
	t.Helper()
	conn, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(wait))
	if _, err := conn.Write(text); err != nil {
		t.Fatal(err)
	}
	_ = conn.(*net.TCPConn).CloseWrite()
	all, err := io.ReadAll(conn)
	if err != nil && !errors.Is(err, net.ErrClosed) && !strings.Contains(err.Error(), "reset") {
		t.Fatal(err)
	}
	return msg(all)
}

var leaderB = leadership.Leader{ID: "b", FIX: "10.0.0.2:9878"}

// leads is the leadership of a node that leads for certain.
func leads(known leadership.Leader) *leadership.Leadership {
	return &leadership.Leadership{
		Leader: func() leadership.Leader { return known }, Deposed: func() bool { return false }, Barrier: func() error { return nil },
	}
}

// aLogon is one of CompID QF to us.
func aLogon(us string) []byte {
	return wire.AppendMessage(nil, wire.Header{MsgType: "A", Sender: "QF", Target: us, Seq: 7, At: time.Now()}, []byte("98=0\x01108=30"))
}

// TestStandby: what it answers to what a connection begins with.
func TestStandby(t *testing.T) {
	t.Parallel()
	var leader atomic.Pointer[leadership.Leader]
	known, none := leaderB, leadership.Leader{}
	hostile := leadership.Leader{ID: "b\x0110=000\x01", FIX: strings.Repeat("x", 2*MaxOperatorText)}
	leader.Store(&known)
	s, _ := startStandby(t, StandbyOptions{CompID: "DESK", Leader: func() leadership.Leader { return *leader.Load() }, LogonBytes: 512, LogonTimeout: wait})
	const head = "35=5 34=0 49=DESK 56=QF 52=19700101-00:00:00.000 "
	got := saidBy(t, s, aLogon("DESK"))
	got.want(t, head)
	if text := got.get(58); text != "LEADER_CHANGED: the leader is b at 10.0.0.2:9878" {
		t.Errorf("text %q", text)
	}
	if _, n, err := wire.ScanFrame([]byte(got), 4096); n != len(got) || err != nil {
		t.Errorf("%q is not one message", got)
	}
	leader.Store(&none)
	if text := saidBy(t, s, aLogon("DESK")).get(58); text != "LEADER_CHANGED: no leader is known, try again" {
		t.Errorf("no leader: text %q", text)
	}
	leader.Store(&hostile)
	got = saidBy(t, s, aLogon("DESK"))
	if _, n, _ := wire.ScanFrame([]byte(got), 4096); n != len(got) || len(got.get(58)) > MaxOperatorText+len("LEADER_CHANGED: the leader is ") {
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
		pipes := newPipes()
		_, stop := startStandby(t, StandbyOptions{
			CompID: "DESK", Leader: func() leadership.Leader { return leadership.Leader{} }, MaxPending: 2, LogonTimeout: limit,
			Listen: func(string, string) (net.Listener, error) { return pipes, nil },
		})
		var open [3]net.Conn
		for i := range open {
			conn, err := pipes.dial()
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
		late, err := pipes.dial()
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

// TestStandbyStockClient: a stock client whose first address is a standby's trades
// at the leader with its numbers as they were, also when it has been there before.
func TestStandbyStockClient(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"QF"}, nil)
	var refused atomic.Int32
	s, _ := startStandby(t, StandbyOptions{CompID: d.options.CompID, Leader: func() leadership.Leader { refused.Add(1); return leadership.Leader{ID: "b", FIX: d.addr()} }})
	i := &initiator{password: testPassword, in: make(chan msg, 1000), on: make(chan bool, 10)}
	settings, session := quickfix.NewSettings(), quickfix.NewSessionSettings()
	host, port, _ := strings.Cut(s.Addr().String(), ":")
	host1, port1, _ := strings.Cut(d.addr(), ":")
	for k, v := range map[string]string{
		config.BeginString: "FIX.4.4", config.SenderCompID: "QF", config.TargetCompID: d.options.CompID, config.HeartBtInt: "30",
		config.SocketConnectHost: host, config.SocketConnectPort: port, "SocketConnectHost1": host1, "SocketConnectPort1": port1,
		config.DataDictionary: "FIX44.xml", config.ReconnectInterval: "1",
	} {
		session.Set(k, v)
	}
	var err error
	if i.id, err = settings.AddSession(session); err != nil {
		t.Fatal(err)
	}
	stores := &keptStore{}
	for round := range 2 {
		q, err := quickfix.NewInitiator(i, stores, settings, quickfix.NewNullLogFactory())
		if err != nil {
			t.Fatal(err)
		}
		before := refused.Load()
		if err := q.Start(); err != nil {
			t.Fatal(err)
		}
		await.Receive(t, "the Logon at the leader", i.on)
		if refused.Load() == before {
			t.Error("the standby was not asked")
		}
		if round == 0 {
			i.send(t, "D", "11=a", "55=SLUSD/USDC", "54=1", "38=10", "40=2", "44=1", "59=1", "60=20260101-00:00:00.000")
			i.want(t, "35=8 150=0 39=0 11=a")
			q.Stop()
			d.awaitFree("QF") // its order is cancelled then
			continue
		}
		m := i.want(t, "")
		for m.get(35) == "5" { // of the session before
			m = i.want(t, "")
		}
		m.want(t, "35=8 150=4") // what happened meanwhile is not lost
		q.Stop()
	}
}

// keptStore gives one session the same store again.
type keptStore struct{ quickfix.MessageStore }

func (k *keptStore) Create(id quickfix.SessionID) (quickfix.MessageStore, error) {
	if k.MessageStore == nil {
		store, err := stockStores{}.Create(id)
		if err != nil {
			return nil, err
		}
		k.MessageStore = store
	}
	return k.MessageStore, nil
}

// TestReadOnlyFIX: a follower serves the market and sends who trades to the leader.
func TestReadOnlyFIX(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM"}, func(o *Options) {
		o.Leadership = &leadership.Leadership{Leader: func() leadership.Leader { return leaderB }, ReadOnly: true}
	})
	c := d.dial("MM", nil)
	c.send("V", "262=m|263=0|264=5|265=1|267=1|269=0|146=1|55=SLUSD/USDC|")
	c.want("35=W 262=m")
	c.send("x", "320=l|559=4|")
	c.want("35=y 320=l")
	c.send("e", "324=s|55=SLUSD/USDC|263=0|")
	c.want("35=f 324=s")
	const at = "60=20260101-00:00:00.000|"
	for _, m := range [][2]string{
		{"D", "11=a|55=SLUSD/USDC|54=1|38=10|40=2|44=1|59=1|" + at},
		{"F", "11=b|41=a|55=SLUSD/USDC|54=1|38=10|" + at},
		{"G", "11=c|41=a|55=SLUSD/USDC|54=1|38=8|40=2|44=1|" + at},
		{"H", "11=a|55=SLUSD/USDC|54=1|"},
		{"q", "11=d|530=7|" + at},
		{"R", "131=r|146=1|55=SLUSD/USDC|54=1|152=250|"},
		{"AJ", "693=x|694=1|117=q|55=SLUSD/USDC|" + at},
	} {
		c.send(m[0], m[1])
		got := c.next()
		if got.get(35) == "3" { // the message was not right as such
			t.Errorf("%s: %s", m[0], got)
			continue
		}
		got.want(t, "35=j 380=4 372="+m[0])
		if got.get(58) != "LEADER_CHANGED: the leader is b at 10.0.0.2:9878" {
			t.Errorf("%s: text %q", m[0], got.get(58))
		}
	}
	if n := len(d.journal.commands); n > 8 {
		t.Errorf("%d commands", n)
	}
}

// TestDeposedFIX: a leader that is deposed refuses with who leads, and says so in
// its Logout; what was under way gets no report.
func TestDeposedFIX(t *testing.T) {
	t.Parallel()
	var over atomic.Bool
	d := newDesk(t, []string{"MM"}, func(o *Options) {
		o.Leadership = leads(leaderB)
		o.Leadership.Deposed = over.Load
	})
	c := d.dial("MM", nil)
	c.order("a", "1", "1", "1", "")
	c.want("35=8 11=a 150=0")
	over.Store(true)
	d.stop()
	if text := c.loggedOut(); !strings.Contains(text, "LEADER_CHANGED: the leader is b at 10.0.0.2:9878") {
		t.Errorf("text %q", text)
	}
}

// TestStatusBehindBarrier: an order's status is told by who leads for certain.
func TestStatusBehindBarrier(t *testing.T) {
	t.Parallel()
	var doubt atomic.Bool
	d := newDesk(t, []string{"MM"}, func(o *Options) {
		o.Leadership = leads(leadership.Leader{})
		o.Leadership.Barrier = func() error {
			if doubt.Load() {
				return errors.New("nobody confirms")
			}
			return nil
		}
	})
	c := d.dial("MM", nil)
	c.order("a", "1", "1", "1", "")
	c.want("35=8 11=a 150=0")
	c.send("H", "11=a|55=SLUSD/USDC|54=1|")
	c.want("35=8 11=a 150=I 39=0")
	doubt.Store(true)
	c.send("H", "11=a|55=SLUSD/USDC|54=1|")
	if m := c.want("35=j 372=H 380=4 379=a"); !strings.HasPrefix(m.get(58), codeLeaderChanged) {
		t.Errorf("%s", m)
	}
}

// TestUnserved: what a leader says of what it cannot take.
func TestUnserved(t *testing.T) {
	g := &server{}
	over := false
	if got := g.unserved("why"); got != "READ_ONLY: why" {
		t.Errorf("a single node: %q", got)
	}
	g.options.Leadership = leads(leadership.Leader{})
	g.options.Leadership.Deposed = func() bool { return over }
	if got := g.unserved("why"); got != "READ_ONLY: why" {
		t.Errorf("a leader: %q", got)
	}
	over = true
	if got := g.unserved("why"); got != "LEADER_CHANGED: no leader is known, try again" {
		t.Errorf("deposed: %q", got)
	}
}
