package fixgw

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"blockdesk/fixgw/participants"
	"blockdesk/market"
)

// ErrIdentity is wrapped by what refuses a list of participants that gives
// somebody's number, name or CompID to somebody else.
var ErrIdentity = errors.New("participants: who has been here keeps number, name and CompIDs")

// maxForgotten is how many CompIDs that are no more configured a process keeps:
// their orders may still live, and quickfix has a goroutine for each. A restart
// lets go of them.
const maxForgotten = 1024

// roster is every session that this process has had, and whose they are. It
// never changes: a reload publishes another. A CompID that is taken out of the
// participants file stays in it, as a session that is removed, so that what its
// orders do is still reported into its message store, and so that it finds
// everything again when it comes back.
type roster struct {
	byCompID map[string]*session
	byNumber []*session                      // index = session number
	numbers  map[string]market.ParticipantID // by participant's name
	names    map[market.ParticipantID]string
}

// identity is what a session's participant is in commands and events: for ever.
type identity struct {
	Name   string
	Number market.ParticipantID
}

// terms are what the participants file says of a session, replaced as a whole.
type terms struct {
	*participants.Participant
	hash *participants.PasswordHash // nil = no logon by password
	key  *[32]byte                  // nil = no logon by signature
}

// sessionNamed returns the session of a CompID, or nil. Any goroutine.
func (v *server) sessionNamed(compID string) *session { return v.roster.Load().byCompID[compID] }

// numbered returns the session of a number, or nil. Any goroutine.
func (v *server) numbered(number uint16) *session {
	r := v.roster.Load()
	if int(number) >= len(r.byNumber) {
		return nil
	}
	return r.byNumber[number]
}

// sessions returns all sessions, by their number. Any goroutine.
func (v *server) sessions() []*session {
	return slices.DeleteFunc(slices.Clone(v.roster.Load().byNumber), func(s *session) bool { return s == nil })
}

// check reports whom a list of participants contradicts r about. A number means
// the same participant in every journaled command, and a session's orders are
// its participant's.
func (r *roster) check(list []participants.Participant) error {
	for i := range list {
		p := &list[i]
		if number, known := r.numbers[p.Name]; known && number != p.Number {
			return fmt.Errorf("%w: %q has the number %d, not %d", ErrIdentity, p.Name, number, p.Number)
		}
		if name, known := r.names[p.Number]; known && name != p.Name {
			return fmt.Errorf("%w: the number %d is that of %q, not of %q", ErrIdentity, p.Number, name, p.Name)
		}
		for _, compID := range p.CompIDs {
			if s := r.byCompID[compID]; s != nil && s.participant.Number != p.Number {
				return fmt.Errorf("%w: comp_id %q is of %q, not of %q", ErrIdentity, compID, s.participant.Name, p.Name)
			}
		}
	}
	return nil
}

// enlisting is what a list of participants makes of a roster.
type enlisting struct {
	next  *roster
	terms map[*session]*terms // of every session of the list
	fresh []*session          // not in the roster before
	gone  []*session          // in the roster, not in the list, and not removed yet
}

// enlist makes the sessions of list that r does not have. Their numbers are in
// the store when it returns; nothing else has happened yet.
func (v *server) enlist(r *roster, list []participants.Participant) (*enlisting, error) {
	e := &enlisting{
		next: &roster{
			byCompID: maps.Clone(r.byCompID), byNumber: slices.Clone(r.byNumber),
			numbers: maps.Clone(r.numbers), names: maps.Clone(r.names),
		},
		terms: make(map[*session]*terms),
	}
	var sessions []owned
	for i := range list {
		for _, compID := range list[i].CompIDs {
			sessions = append(sessions, owned{compID, list[i].Number})
		}
	}
	numbers, err := sessionNumbers(v.store, sessions)
	if err != nil {
		return nil, err
	}
	for i := range list {
		p := &list[i]
		e.next.numbers[p.Name], e.next.names[p.Number] = p.Number, p.Name
		hash, key, err := p.Credentials()
		if err != nil {
			return nil, fmt.Errorf("participant %q: %w", p.Name, err)
		}
		for _, compID := range p.CompIDs {
			s := r.byCompID[compID]
			if s == nil {
				if s, err = v.openSession(p, compID, numbers[owned{compID, p.Number}]); err != nil {
					return nil, err
				}
				e.fresh = append(e.fresh, s)
				e.next.add(s)
			}
			e.terms[s] = &terms{Participant: p, hash: hash, key: key}
		}
	}
	for _, s := range r.byCompID {
		if e.terms[s] == nil && !s.removed.Load() {
			e.gone = append(e.gone, s)
		}
	}
	if forgotten := len(e.next.byCompID) - len(e.terms); forgotten > maxForgotten {
		return nil, fmt.Errorf("participants: %d comp_ids were taken out since the start: at most %d, restart the service", forgotten, maxForgotten)
	}
	return e, nil
}

func (v *server) openSession(p *participants.Participant, compID string, number uint16) (*session, error) {
	messages := v.options.Early.messages(compID)
	if err := messages.open(v.store, number, &v.options); err != nil {
		return nil, err
	}
	return newSession(v, p, compID, number, messages), nil
}

// add puts a session into a roster that nobody else has yet.
func (r *roster) add(s *session) {
	r.byCompID[s.id.TargetCompID] = s
	for len(r.byNumber) <= int(s.number) {
		r.byNumber = append(r.byNumber, nil)
	}
	r.byNumber[s.number] = s
}
