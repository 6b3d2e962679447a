package fixgw

import (
	"net"
	"testing"

	"blockdesk/fixgw/participants"
	"blockdesk/fixgw/session"
)

// takeEarly has the gateway of o listen on a port that is known before, and takes the
// sessions of these participants, made ahead, from spares.
func takeEarly(t *testing.T, spares *session.Pool, o *session.Options, participants []participants.Participant) *session.Prepared {
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

// nextSpare takes the sessions of o's participants out of spares.
func nextSpare(t *testing.T, spares *session.Pool, o *session.Options) *session.Prepared {
	t.Helper()
	early, err := spares.Next(*o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(early.Close)
	t.Cleanup(spares.Close)
	return early
}

// TestEarlySessionsServe: gateways take sessions that were made before the gateway
// before them began, with their numbers from the store, and let go of them when they
// end.
func TestEarlySessionsServe(t *testing.T) {
	t.Parallel()
	var spares session.Pool
	var early *session.Prepared
	d := newDesk(t, []string{"MM"}, func(o *Options) {
		early = takeEarly(t, &spares, &o.Options, o.Participants)
		o.Prepared = early
	})
	sender, target := 1, 1
	for term := range 4 {
		after := spares.Ahead()
		mm := d.dial("MM", keep(sender, target))
		mm.order("a", "1", "10", "1", "59=1|")
		if term == 0 {
			mm.want("35=8 11=a 150=0")
		} else {
			mm.want("35=8 11=a 97=Y")
		}
		if !d.hooks.PreparedFor("MM", early) {
			t.Errorf("term %d: the session was made anew", term)
		}
		sender, target = mm.leave()
		// A client that is still logged on gets the News of the stop, which is kept for it.
		d.awaitStats("0 sessions logged on", func(s Stats) bool { return s.Sessions == 0 })
		d.stop()
		early.Close() // which was the gateway's
		if n := early.Registered(); n != 0 {
			t.Errorf("term %d: quickfix keeps %d sessions that have ended", term, n)
		}
		if early = takeEarly(t, &spares, &d.options.Options, d.options.Participants); early != after {
			t.Errorf("term %d: the next one's sessions were not there before", term)
		}
		d.options.Prepared = early
		d.start()
	}
}

// TestEarlySessionsOfOthers: where the participants have changed since, the gateway
// makes its sessions itself.
func TestEarlySessionsOfOthers(t *testing.T) {
	t.Parallel()
	var spares session.Pool
	var early *session.Prepared
	d := newDesk(t, []string{"MM", "TAKER"}, func(o *Options) {
		early = takeEarly(t, &spares, &o.Options, o.Participants[:1])
		o.Prepared = early
	})
	for _, compID := range []string{"MM", "TAKER"} {
		c := d.dial(compID, keep(1, 1))
		c.order("a", "1", "10", "1", "59=1|")
		c.want("35=8 11=a 150=0")
		if d.hooks.PreparedFor(compID, early) {
			t.Errorf("%s has a session that was stopped", compID)
		}
	}
}
