package reports

import (
	"slices"
	"testing"

	"blockdesk/fixgw/session"
)

// The list of drop copies is in the order of the sessions' numbers, and each is in
// it once.
func TestDropCopiesList(t *testing.T) {
	var d DropCopies
	list := []*Session{{Session: &session.Session{Number: 3}}, {Session: &session.Session{Number: 1}}, {Session: &session.Session{Number: 2}}}
	wish := func(s *Session, copies bool) {
		s.DropCopy.Store(copies)
		d.Update(s)
		d.Update(s)
	}
	for _, s := range list {
		wish(s, true)
	}
	wish(list[2], false)
	got := d.all()
	if want := []*Session{list[1], list[0]}; !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	wish(list[0], false)
	if len(got) != 2 || len(d.all()) != 1 {
		t.Errorf("a list that was handed out has changed: %v", got)
	}
}
