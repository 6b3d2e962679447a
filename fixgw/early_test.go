package fixgw

import (
	"net"
	"slices"
	"testing"

	"github.com/quickfixgo/quickfix"

	"blockdesk/fixgw/participants"
)

// takeEarly has the gateway of o listen on a port that is known before, and takes the
// sessions of these participants, made ahead, from spares.
func takeEarly(t *testing.T, spares *Spares, o *SessionOptions, participants []participants.Participant) *Early {
	t.Helper()
	listener, err := net.Listen("tcp", o.Address)
	if err != nil {
		t.Fatal(err)
	}
	o.Address = listener.Addr().String()
	o.Listen = func(string, string) (net.Listener, error) { return listener, nil }
	ahead := *o
	ahead.Participants = participants
	return nextSpare(t, spares, &ahead)
}

func nextSpare(t *testing.T, spares *Spares, o *SessionOptions) *Early {
	t.Helper()
	early, err := spares.Next(*o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(early.Close)
	t.Cleanup(spares.Close)
	return early
}

// known is how many of a set's sessions quickfix knows.
func known(e *Early) (n int) {
	for _, id := range e.acceptor.sessions {
		if _, err := quickfix.GetLog(id); err == nil {
			n++
		}
	}
	return n
}

// TestEarlySessionsServe: gateways take sessions that were made before the gateway
// before them began, with their numbers from the store, and let go of them when they
// end.
func TestEarlySessionsServe(t *testing.T) {
	t.Parallel()
	var spares Spares
	var early *Early
	d := newDesk(t, []string{"MM"}, func(o *Options) {
		early = takeEarly(t, &spares, &o.SessionOptions, o.Participants)
		o.Early = early
	})
	sender, target := 1, 1
	for term := range spareSets + 2 {
		after := spares.ahead[0]
		mm := d.dial("MM", keep(sender, target))
		mm.order("a", "1", "10", "1", "59=1|")
		if term == 0 {
			mm.want("35=8 11=a 150=0")
		} else {
			mm.want("35=8 11=a 97=Y")
		}
		if s := d.gateway.sessionNamed("MM"); s.acceptor != early.acceptor || s.id != early.acceptor.sessions[0] {
			t.Errorf("term %d: the session was made anew", term)
		}
		sender, target = mm.leave()
		// Who is still logged on hears that the service stops, which is kept for it.
		d.awaitStats("0 sessions logged on", func(s Stats) bool { return s.Sessions == 0 })
		d.stop()
		early.Close() // which was the gateway's
		if n := known(early); n != 0 {
			t.Errorf("term %d: quickfix keeps %d sessions that have ended", term, n)
		}
		if early = takeEarly(t, &spares, &d.options.SessionOptions, d.options.Participants); early != after {
			t.Errorf("term %d: the next one's sessions were not there before", term)
		}
		d.options.Early = early
		d.start()
	}
}

// TestSparesAreMadeAhead: so many sets as are asked for at once were made before, all
// beside each other; where the participants are others, all are made anew.
func TestSparesAreMadeAhead(t *testing.T) {
	t.Parallel()
	var spares Spares
	o := SessionOptions{Address: "127.0.0.1:9878", CompID: t.Name(), Participants: testParticipants("MM")}
	sets := []*Early{nextSpare(t, &spares, &o)}
	for turn := range 2 * spareSets {
		ahead := slices.Clone(spares.ahead)
		if len(ahead) != spareSets {
			t.Fatalf("turn %d: %d sets ahead, want %d", turn, len(ahead), spareSets)
		}
		sets = append(sets, nextSpare(t, &spares, &o))
		if sets[turn+1] != ahead[0] || spares.ahead[0] != ahead[1] {
			t.Errorf("turn %d: not the set that was there longest", turn)
		}
	}
	sets = append(sets, spares.ahead...)
	for i, e := range sets {
		if n := known(e); n != 1 {
			t.Errorf("set %d: quickfix knows %d sessions", i, n)
		}
	}
	old := slices.Clone(spares.ahead)
	o.Participants = testParticipants("MM", "TAKER")
	fresh := nextSpare(t, &spares, &o)
	if n := known(fresh); n != 2 || len(spares.ahead) != spareSets {
		t.Errorf("with another participant quickfix knows %d sessions of the next set, and %d are ahead", n, len(spares.ahead))
	}
	for _, e := range old {
		if n := known(e); n != 0 {
			t.Errorf("quickfix keeps %d sessions of a set that nobody can use", n)
		}
	}
}

// TestEarlySessionsOfOthers: where the participants have changed since, the gateway
// makes its sessions itself.
func TestEarlySessionsOfOthers(t *testing.T) {
	t.Parallel()
	var spares Spares
	var early *Early
	d := newDesk(t, []string{"MM", "TAKER"}, func(o *Options) {
		early = takeEarly(t, &spares, &o.SessionOptions, o.Participants[:1])
		o.Early = early
	})
	for _, who := range []string{"MM", "TAKER"} {
		c := d.dial(who, keep(1, 1))
		c.order("a", "1", "10", "1", "59=1|")
		c.want("35=8 11=a 150=0")
		if d.gateway.sessionNamed(who).acceptor == early.acceptor {
			t.Errorf("%s has a session that was stopped", who)
		}
	}
}

// TestSparesNeedAPort: and make nothing without one.
func TestSparesNeedAPort(t *testing.T) {
	t.Parallel()
	var spares Spares
	o := SessionOptions{Address: "127.0.0.1:0", CompID: t.Name(), Participants: testParticipants("MM")}
	if e, err := spares.Next(o); err == nil {
		e.Close()
		t.Error("made without a port")
	}
	if len(spares.ahead) != 0 {
		t.Errorf("%d sets ahead", len(spares.ahead))
	}
}
