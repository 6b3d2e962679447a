package session

import (
	"fmt"
	"testing"

	"blockdesk/fixgw/participants"
	"blockdesk/fixgw/session/sessiontest"
	"blockdesk/persist/kv/kvtest"
)

// TestForgottenCompIDsAreBounded: at the limit and one past it.
func TestForgottenCompIDsAreBounded(t *testing.T) {
	t.Parallel()
	v, err := opened(Options{Address: "127.0.0.1:0", Participants: sessiontest.Participants("MM")}.WithDefaults(), kvtest.New())
	if err != nil {
		t.Fatal(err)
	}
	r := v.registry.Load()
	for i := range maxRemoved - 1 {
		s := newSession(&v.host, &participants.Participant{Name: fmt.Sprint(i), Number: 9}, fmt.Sprint("X", i), uint16(i+10), r.byCompID["MM"].Messages, v.newHandler)
		s.removed.Store(true)
		r.byCompID[s.id.TargetCompID] = s // no other goroutine uses it
	}
	if _, err := v.prepare(r, sessiontest.Participants("TK")); err != nil {
		t.Errorf("%d CompIDs: %v", maxRemoved, err)
	}
	s := newSession(&v.host, &participants.Participant{Name: "y", Number: 9}, "Y", 5000, r.byCompID["MM"].Messages, v.newHandler)
	s.removed.Store(true)
	r.byCompID["Y"] = s
	if _, err := v.prepare(r, sessiontest.Participants("TK")); err == nil {
		t.Error("one more was taken")
	}
}
