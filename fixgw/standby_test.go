package fixgw

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/quickfixgo/quickfix"
	"github.com/quickfixgo/quickfix/config"

	"blockdesk/fixgw/session"
	"blockdesk/fixgw/session/sessiontest"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/persist/leadership"
)

var leaderB = leadership.Leader{ID: "b", FIX: "10.0.0.2:9878"}

// leads is the leadership of a node that leads for certain.
func leads(known leadership.Leader) *leadership.Leadership {
	return &leadership.Leadership{
		Leader: func() leadership.Leader { return known }, Deposed: func() bool { return false }, Barrier: func() error { return nil },
	}
}

// TestStandbyStockClient: a stock client whose first address is a standby's trades
// at the leader with its numbers as they were, also when it has been there before.
func TestStandbyStockClient(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"QF"}, nil)
	var refused atomic.Int32
	s, err := session.NewStandby(session.StandbyOptions{Address: "127.0.0.1:0", CompID: d.options.CompID, Leader: func() leadership.Leader { refused.Add(1); return leadership.Leader{ID: "b", FIX: d.addr()} }})
	if err != nil {
		t.Fatal(err)
	}
	runtest.Start(t, s.Run)
	i := &initiator{password: sessiontest.Password, in: make(chan sessiontest.Message, 1000), on: make(chan bool, 10)}
	settings, session := quickfix.NewSettings(), quickfix.NewSessionSettings()
	host, port, _ := strings.Cut(s.Addr().String(), ":")
	host1, port1, _ := strings.Cut(d.addr(), ":")
	for k, v := range map[string]string{
		config.BeginString: "FIX.4.4", config.SenderCompID: "QF", config.TargetCompID: d.options.CompID, config.HeartBtInt: "30",
		config.SocketConnectHost: host, config.SocketConnectPort: port, "SocketConnectHost1": host1, "SocketConnectPort1": port1,
		config.DataDictionary: "session/FIX44.xml", config.ReconnectInterval: "1",
	} {
		session.Set(k, v)
	}
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
		for m.Get(35) == "5" { // of the session before
			m = i.want(t, "")
		}
		m.Want(t, "35=8 150=4") // what happened meanwhile is not lost
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

// TestReadOnlyFIX: a follower serves market data, and names the leader to clients that
// trade.
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
		if got.Get(35) == "3" { // the message was not right as such
			t.Errorf("%s: %s", m[0], got)
			continue
		}
		got.Want(t, "35=j 380=4 372="+m[0])
		if got.Get(58) != "LEADER_CHANGED: the leader is b at 10.0.0.2:9878" {
			t.Errorf("%s: text %q", m[0], got.Get(58))
		}
	}
	if n := len(d.journal.commands); n > 8 {
		t.Errorf("%d commands", n)
	}
}

// TestDeposedFIX: a leader that is deposed names its successor in refusals and in the
// Logout; requests without a durable result get no report.
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

// TestStatusBehindBarrier: only a node that has confirmed its leadership answers an
// order's status.
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
	if m := c.want("35=j 372=H 380=4 379=a"); !strings.HasPrefix(m.Get(58), "LEADER_CHANGED") {
		t.Errorf("%s", m)
	}
}
