package leadership

import (
	"errors"
	"testing"
)

func TestLeaderText(t *testing.T) {
	for want, l := range map[string]Leader{
		"": {FIX: "h:1"}, "b": {ID: "b", Base: "http://h"}, "b at h:1": {ID: "b", FIX: "h:1"},
	} {
		if got := l.String(); got != want {
			t.Errorf("%+v is %q, want %q", l, got, want)
		}
	}
}

// TestPlaces: what a node without a group, a follower and a leader answer. A follower
// has no other functions than Leader.
func TestPlaces(t *testing.T) {
	doubt := errors.New("nobody confirms")
	leads := func(over bool, err error) *Leadership {
		return &Leadership{Deposed: func() bool { return over }, Barrier: func() error { return err }}
	}
	for name, c := range map[string]struct {
		l              *Leadership
		follower, over bool
		confirm        error
	}{
		"no group": {nil, false, false, nil},
		"follower": {&Leadership{ReadOnly: true}, true, false, nil},
		"leader":   {leads(false, nil), false, false, nil},
		"in doubt": {leads(false, doubt), false, false, doubt},
		"deposed":  {leads(true, doubt), false, true, doubt},
	} {
		if c.l.Follower() != c.follower || c.l.LostLeadership() != c.over || !errors.Is(c.l.Confirm(), c.confirm) {
			t.Errorf("%s: follower %v, over %v, confirm %v", name, c.l.Follower(), c.l.LostLeadership(), c.l.Confirm())
		}
	}
}
