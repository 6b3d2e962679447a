package session

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"blockdesk/fixgw/participants"
	"blockdesk/market"
)

// ErrIdentity is wrapped by the error for a list of participants that gives a number, a
// name or a CompID to another participant.
var ErrIdentity = errors.New("participants: a participant must keep its number, name and CompIDs")

// maxRemoved limits the removed CompIDs that a process keeps. Their orders may still be
// live, and quickfix has a goroutine for each. A restart drops them.
const maxRemoved = 1024

// registry has every session of this process and its participant. It is immutable: a
// reload publishes another one. A CompID that is removed from the participants file stays
// in it as a removed session, so that reports of its orders still reach its message store,
// and it gets them when it is added again.
type registry struct {
	byCompID map[string]*Session
	byNumber []*Session                      // index = session number
	numbers  map[string]market.ParticipantID // by participant's name
	names    map[market.ParticipantID]string
}

// check returns an error if list contradicts r: a number means the same participant in
// every journaled command, and a session's orders belong to its participant.
func (r *registry) check(list []participants.Participant) error {
	for i := range list {
		p := &list[i]
		if number, known := r.numbers[p.Name]; known && number != p.Number {
			return fmt.Errorf("%w: %q has the number %d, not %d", ErrIdentity, p.Name, number, p.Number)
		}
		if name, known := r.names[p.Number]; known && name != p.Name {
			return fmt.Errorf("%w: number %d belongs to %q, not to %q", ErrIdentity, p.Number, name, p.Name)
		}
		for _, compID := range p.CompIDs {
			if s := r.byCompID[compID]; s != nil && s.Participant.Number != p.Number {
				return fmt.Errorf("%w: comp_id %q belongs to %q, not to %q", ErrIdentity, compID, s.Participant.Name, p.Name)
			}
		}
	}
	return nil
}

// add adds a session to a registry that is not published yet.
func (r *registry) add(s *Session) {
	r.byCompID[s.id.TargetCompID] = s
	for len(r.byNumber) <= int(s.Number) {
		r.byNumber = append(r.byNumber, nil)
	}
	r.byNumber[s.Number] = s
}

// sessions has the present registry: a reload replaces it. Any goroutine.
type sessions struct{ registry atomic.Pointer[registry] }

// SessionNamed returns the session of a CompID, or nil. Any goroutine.
func (l *sessions) SessionNamed(compID string) *Session { return l.registry.Load().byCompID[compID] }

// Numbered returns the session of a number, or nil. Any goroutine.
func (l *sessions) Numbered(number uint16) *Session {
	r := l.registry.Load()
	if int(number) >= len(r.byNumber) {
		return nil
	}
	return r.byNumber[number]
}

// All returns all sessions, by their number. Any goroutine.
func (l *sessions) All() []*Session {
	return slices.DeleteFunc(slices.Clone(l.registry.Load().byNumber), func(s *Session) bool { return s == nil })
}
