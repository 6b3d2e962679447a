package fixgw

import (
	"errors"
	"flag"
	"testing"

	"go.uber.org/goleak"

	"blockdesk/fixgw/session"
	"blockdesk/fixgw/session/sessiontest"
	"blockdesk/fixgw/wire/wiretest"
	"blockdesk/persist/kv/kvtest"
	"blockdesk/persist/projection"
)

// quickfix v0.9.11 arms timers that send to a session's channel: one for each
// Logout of its own, one for each Logon of an initiator. When the session stops
// before they fire, their goroutines wait for ever: one for a session and stop,
// at the end of the process.
func TestMain(m *testing.M) {
	// Most tests here wait for a full second, to which quickfix's new sessions sleep, and
	// use little of a processor. A -parallel of the caller's stands.
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		if err := flag.Set("test.parallel", "16"); err != nil {
			panic(err)
		}
	}
	const quickfix = "github.com/quickfixgo/quickfix."
	goleak.VerifyTestMain(m,
		goleak.IgnoreTopFunction(quickfix+"(*session).initiateLogoutInReplyTo.func1"),
		goleak.IgnoreTopFunction(quickfix+"(*stateMachine).Connect.func1"))
}

func TestOrderLife(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM", "TK"}, nil)
	mm, tk := d.dial("MM", nil), d.dial("TK", nil)
	mm.order("a", "1", "10", "1.5", "59=1|")
	m := mm.want("35=8 11=a 150=0 39=0 55=SLUSD/USDC 54=1 38=10.00 44=1.5000 151=10.00 14=0.00 6=0 40=2 59=1 41=")
	id := m.Get(37)
	tk.order("x", "2", "4", "1.4", "59=3|")
	tk.want("35=8 11=x 150=0 39=0")
	fill := tk.want("35=8 11=x 150=F 39=2 32=4.00 31=1.5000 151=0.00 14=4.00 6=1.5000")
	maker := mm.want("35=8 11=a 150=F 39=1 32=4.00 31=1.5000 151=6.00 14=4.00 6=1.5000 37=" + id)
	if fill.Get(17)+"M" != maker.Get(17) {
		t.Errorf("ExecIDs %s and %s are not of one trade", fill.Get(17), maker.Get(17))
	}
	mm.send("G", "11=b|41=a|55=SLUSD/USDC|54=1|38=12|40=2|44=1.6|"+now60)
	mm.want("35=8 11=b 41=a 150=5 39=1 38=12.00 44=1.6000 151=8.00 14=4.00 37=" + id)
	mm.send("F", "11=c|41=b|55=SLUSD/USDC|54=1|38=12|"+now60)
	mm.want("35=8 11=c 41=b 150=4 39=4 151=0.00 14=4.00 37=" + id)
	mm.send("F", "11=d|41=b|55=SLUSD/USDC|54=1|38=12|"+now60)
	mm.want("35=9 11=d 41=b 434=1 102=0 39=4 37=" + id)
	mm.send("F", "11=e|41=nope|55=SLUSD/USDC|54=1|38=12|"+now60)
	mm.want("35=9 11=e 41=nope 434=1 102=1 39=8 37=NONE")
}

func TestOptionsValidate(t *testing.T) {
	t.Parallel()
	good := Options{Options: session.Options{Address: "127.0.0.1:0", Participants: sessiontest.Participants("A", "B")}}
	nobody := Options{Options: session.Options{Address: good.Address}}
	if err := errors.Join(good.Validate(), nobody.Validate()); err != nil {
		t.Fatal(err)
	}
	for _, change := range []func(*Options){
		func(o *Options) { o.Address = "" },
		func(o *Options) { o.CompID = "a b" },
		func(o *Options) { o.MaxSessions = 1 },
		func(o *Options) { o.MaxSessions = 10_001 },
		func(o *Options) { o.MaxPending = -1 },
		func(o *Options) { o.LogonBytes = 255 },
		func(o *Options) { o.MaxMessage = 1<<20 + 1 },
		func(o *Options) { o.MaxOutbox = 1 },
		func(o *Options) { o.Rate = -1 },
		func(o *Options) { o.ReserveSeqs = 1 },
		func(o *Options) { o.DrainTimeout = -1 },
	} {
		bad := good
		change(&bad)
		if bad.Validate() == nil {
			t.Errorf("%+v passed", bad)
		}
	}
}

func TestBadRecordsAreRefused(t *testing.T) {
	t.Parallel()
	for name, key := range map[string][]byte{
		"layout": {projection.KeyVersion}, "session": {'s', 0, 1}, "reservation": {'r', 0, 1}, "cursor": {projection.KeyCursor}, "order": {'o', 0, 0, 0, 0, 0, 0, 0, 9},
	} {
		disk := kvtest.New()
		disk.Commit(func(set func(key, value []byte), _ func(lo, hi []byte)) { set(key, []byte{7, 7}) }, true)
		g, err := New(Options{Options: session.Options{Address: "127.0.0.1:0", Participants: sessiontest.Participants("A")}}, nil, disk, Dependencies{}, wiretest.Instruments(t))
		if !errors.Is(err, session.ErrLayout) {
			t.Errorf("%s: %v", name, err)
		}
		if g != nil {
			g.Close()
		}
	}
}
