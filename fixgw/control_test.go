package fixgw

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"blockdesk/fixgw/fixclient"
	"blockdesk/fixgw/session"
	"blockdesk/fixgw/session/sessiontest"
	"blockdesk/internal/await"
)

func TestSessionStatus(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM", "TK"}, nil)
	mm := d.dial("MM", keep(1, 1))
	mm.order("a", "1", "1", "1", "59=1|")
	mm.want("35=8 11=a 150=0")
	await.True(t, "the order's number to be counted", func() bool { return d.gateway.Sessions()[0].NextIn == 3 })
	list := d.gateway.Sessions()
	if len(list) != 2 {
		t.Fatalf("%+v", list)
	}
	on, off := list[0], list[1]
	if on.CompID != "MM" || on.Participant != "mm" || on.Number != 1 || !on.LoggedOn || on.Since == 0 || on.Since != on.LastLogon ||
		!strings.HasPrefix(on.Remote, "127.0.0.1:") || on.NextIn != 3 || on.NextOut != 3 || on.LiveOrders != 1 || on.CancelOnDisconnect || on.Removed {
		t.Errorf("logged on: %+v", on)
	}
	if off.CompID != "TK" || off.LoggedOn || off.Since != 0 || off.Remote != "" || off.NextIn != 1 || off.NextOut != 1 {
		t.Errorf("not logged on: %+v", off)
	}
	mm.leave()
	d.awaitFree("MM")
	if on := d.gateway.Sessions()[0]; on.LoggedOn || on.Since != 0 || on.LastLogon == 0 || on.Remote != "" {
		t.Errorf("after the Logout: %+v", on)
	}
}

// TestResetSequence: only of a session that is not logged on, or that is logged
// out for it.
func TestResetSequence(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM"}, nil)
	mm := d.dial("MM", keep(1, 1))
	mm.order("a", "1", "1", "1", "59=1|")
	mm.want("35=8 11=a 150=0")
	if err := d.gateway.ResetSequence("MM", false); !errors.Is(err, session.ErrLoggedOn) {
		t.Errorf("of one that is logged on: %v", err)
	}
	if err := d.gateway.ResetSequence("XX", false); !errors.Is(err, session.ErrUnknownSession) {
		t.Errorf("of an unknown one: %v", err)
	}
	if err := d.gateway.ResetSequence("MM", true); err != nil {
		t.Fatal(err)
	}
	if text := mm.loggedOut(); !strings.Contains(text, "LOGGED_OUT: the sequence numbers are being reset") {
		t.Errorf("logged out with %s", text)
	}
	if st := d.gateway.Sessions()[0]; st.NextIn != 1 || st.NextOut != 1 || st.LiveOrders != 1 {
		t.Errorf("%+v", st)
	}
	again := d.dial("MM", keep(1, 1))
	again.send("H", "11=a|55=SLUSD/USDC|54=1|")
	again.want("35=8 11=a 39=0 34=2")
	again.leave()
	d.awaitFree("MM")
	if err := d.gateway.ResetSequence("MM", false); err != nil {
		t.Errorf("of one that has logged out: %v", err)
	}
}

// TestResetWhileReported: no report gets a number from before a reset, although
// the follower reports to the session all the time.
func TestResetWhileReported(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM", "TK"}, nil)
	mm := d.dial("MM", keep(1, 1))
	mm.order("m", "1", "10000", "1", "59=1|")
	mm.want("35=8 11=m 150=0")
	mm.leave()
	d.awaitFree("MM")
	tk := d.dial("TK", nil)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for i := range 200 {
			tk.order(strconv.Itoa(i), "2", "1", "1", "59=3|")
			sent <- struct{}{}
			tk.want("35=8 150=0")
			tk.want("35=8 150=F")
		}
	}()
	for range sent { // while the order is on its way, and perhaps its report
		for range 5 {
			if err := d.gateway.ResetSequence("MM", false); err != nil {
				t.Fatal(err)
			}
		}
	}
	// Messages after the last reset are there under the numbers from 1 on.
	messages := d.gateway.SessionNamed("MM").Messages
	next := messages.NextSenderMsgSeqNum()
	want := 1
	err := messages.IterateMessages(1, next-1, func(raw []byte) error {
		if n := sessiontest.Message(raw).Get(34); n != strconv.Itoa(want) {
			t.Errorf("number %s, want %d", n, want)
		}
		want++
		return nil
	})
	if err != nil || want != next {
		t.Errorf("%d messages under numbers below %d: %v", want-1, next, err)
	}
}

func TestKick(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM"}, nil)
	if err := d.gateway.Kick("MM", "x"); !errors.Is(err, session.ErrNotLoggedOn) {
		t.Errorf("one that is not logged on: %v", err)
	}
	if err := d.gateway.Kick("XX", "x"); !errors.Is(err, session.ErrUnknownSession) {
		t.Errorf("an unknown one: %v", err)
	}
	mm := d.dial("MM", nil)
	d.awaitLoggedOn("MM")
	for _, text := range []string{"", "a\x01b", "é", strings.Repeat("x", session.MaxOperatorText+1)} {
		if err := d.gateway.Kick("MM", text); !errors.Is(err, session.ErrText) {
			t.Errorf("text %q: %v", text, err)
		}
	}
	text := strings.Repeat("x", session.MaxOperatorText)
	if err := d.gateway.Kick("MM", text); err != nil {
		t.Fatal(err)
	}
	if got := mm.loggedOut(); !strings.Contains(got, "LOGGED_OUT: "+text) {
		t.Errorf("logged out with %s", got)
	}
	d.awaitFree("MM")
	d.dial("MM", nil)
}

func TestAnnounce(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM", "TK", "OFF"}, nil)
	mm, tk := d.dial("MM", nil), d.dial("TK", nil)
	d.awaitLoggedOn("MM", "TK")
	if n, err := d.gateway.Announce("", "down at 18:00 UTC"); n != 2 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	for _, k := range []*client{mm, tk} {
		if m := k.want("35=B 33=1"); m.Get(148) != "MAINTENANCE: down at 18:00 UTC" || m.Get(58) != "down at 18:00 UTC" {
			t.Errorf("%s", m)
		}
	}
	if n, err := d.gateway.Announce("TK", "x"); n != 1 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	tk.want("35=B 58=x")
	mm.none()
	if _, err := d.gateway.Announce("OFF", "x"); !errors.Is(err, session.ErrNotLoggedOn) {
		t.Errorf("one that is not logged on: %v", err)
	}
	if _, err := d.gateway.Announce("XX", "x"); !errors.Is(err, session.ErrUnknownSession) {
		t.Errorf("an unknown one: %v", err)
	}
	if _, err := d.gateway.Announce("", "a\nb"); !errors.Is(err, session.ErrText) {
		t.Errorf("a text of two lines: %v", err)
	}
}

// TestStopNotifiesClients: when the service stops, clients that are logged on get a News
// and a Logout with a text.
func TestStopNotifiesClients(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM"}, nil)
	mm := d.dial("MM", func(o *fixclient.Options) { o.LogonFields = "8013=N\x01" })
	d.awaitLoggedOn("MM")
	d.stop()
	mm.want("35=B 33=1")
	if text := mm.loggedOut(); !strings.Contains(text, "MAINTENANCE: the service is stopping") {
		t.Errorf("logged out with %s", text)
	}
	if _, err := d.gateway.Reload(sessiontest.Participants("MM")); !errors.Is(err, session.ErrStopped) {
		t.Errorf("a reload after the stop: %v", err)
	}
}
