package session

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"blockdesk/fixgw/participants"
	"blockdesk/market"
)

// ErrStopped means that the gateway is stopping or has stopped.
var ErrStopped = errors.New("fix: the gateway is stopping")

// registryChange is the change of a registry by a list of participants.
type registryChange struct {
	next    *registry
	terms   map[*Session]*terms // of every session of the list
	added   []*Session          // not in the registry before
	removed []*Session          // in the registry, not in the list, and not removed yet
}

// prepare makes the sessions of list that r does not have. It stores their numbers, and
// changes nothing else.
func (v *Server) prepare(r *registry, list []participants.Participant) (*registryChange, error) {
	e := &registryChange{
		next: &registry{
			byCompID: maps.Clone(r.byCompID), byNumber: slices.Clone(r.byNumber),
			numbers: maps.Clone(r.numbers), names: maps.Clone(r.names),
		},
		terms: make(map[*Session]*terms),
	}
	var sessions []sessionOwner
	for i := range list {
		for _, compID := range list[i].CompIDs {
			sessions = append(sessions, sessionOwner{compID, list[i].Number})
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
				if s, err = v.openSession(p, compID, numbers[sessionOwner{compID, p.Number}]); err != nil {
					return nil, err
				}
				e.added = append(e.added, s)
				e.next.add(s)
			}
			e.terms[s] = &terms{Participant: p, hash: hash, key: key}
		}
	}
	for _, s := range r.byCompID {
		if e.terms[s] == nil && !s.removed.Load() {
			e.removed = append(e.removed, s)
		}
	}
	if forgotten := len(e.next.byCompID) - len(e.terms); forgotten > maxRemoved {
		return nil, fmt.Errorf("participants: %d comp_ids were removed since the start, at most %d are allowed: restart the service", forgotten, maxRemoved)
	}
	return e, nil
}

// Open reads the sessions from the store. newHandler returns the handler of a session that
// was just made and that no other goroutine has yet. StartSessions starts their acceptor.
func (v *Server) Open(newHandler func(*Session) Handler) error {
	v.newHandler = newHandler
	empty := &registry{
		byCompID: make(map[string]*Session),
		numbers:  make(map[string]market.ParticipantID), names: make(map[market.ParticipantID]string),
	}
	e, err := v.prepare(empty, slices.Clone(v.options.Participants))
	if err != nil {
		return err
	}
	for s, terms := range e.terms {
		s.terms.Store(terms)
	}
	v.registry.Store(e.next)
	for _, s := range e.added {
		s.Handler.LogonFlagsChanged()
	}
	return nil
}

func (v *Server) openSession(p *participants.Participant, compID string, number uint16) (*Session, error) {
	messages := v.options.Prepared.messages(compID)
	if err := messages.open(v.store, number, &v.options); err != nil {
		return nil, err
	}
	return newSession(&v.host, p, compID, number, messages, v.newHandler), nil
}

// StartSessions starts quickfix's sessions of the registry.
func (v *Server) StartSessions() error {
	a := &v.acceptors
	a.mu.Lock()
	defer a.mu.Unlock()
	prepared := v.options.Prepared
	first := prepared.take(v.profile.application)
	if first != nil {
		for compID := range prepared.sessions {
			v.SessionNamed(compID).serveBy(first, prepared.set)
		}
	} else {
		var err error
		if first, err = v.startAcceptor(v.All()); err != nil {
			return err
		}
	}
	a.list, a.running = append(a.list, first), true
	return nil
}

// startAcceptor starts a quickfix session for each of sessions. The caller stops it.
func (v *Server) startAcceptor(sessions []*Session) (*acceptor, error) {
	messages := make(storeFactory, len(sessions))
	for _, s := range sessions {
		messages[s.id.TargetCompID] = s.Messages
	}
	a, err := newAcceptor(v.Addr(), &v.options, &v.profile, messages, ownSet)
	if err != nil {
		return nil, err
	}
	for _, s := range sessions {
		s.serveBy(a, ownSet)
	}
	return a, nil
}

// Reloaded lists the CompIDs that a reload has changed.
type Reloaded struct {
	Added    []string // new to this process
	Returned []string // taken out earlier, and back with their numbers and messages
	Removed  []string // logged out, and refused from now on
}

// Check returns the error that Reload would return for list. It changes nothing. Any
// goroutine.
func (v *Server) Check(list []participants.Participant) error {
	if err := participants.Validate(list, v.options.MaxSessions); err != nil {
		return err
	}
	return v.registry.Load().check(list)
}

// Reload replaces the participants by list, all of it or, with an error, nothing of it.
// list must not change afterwards. The caller has set the new participants' risk limits
// in the engine before. Any goroutine.
//
// A new CompID can log on when Reload returns; within the first second its Logon waits
// until quickfix's session is awake. A CompID that is not in list is logged out with a
// text and refused from then on. Its live orders are treated as on a disconnect: they are
// cancelled if its last Logon asked for that. Otherwise they stay, and their reports are
// stored until the CompID is added again. Passwords and keys apply from the next Logon on;
// self-trade prevention and wallet from the next request on.
func (v *Server) Reload(list []participants.Participant) (Reloaded, error) {
	var done Reloaded
	a := &v.acceptors
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stopped || v.stopping.Load() {
		return done, ErrStopped
	}
	if err := v.Check(list); err != nil {
		return done, err
	}
	e, err := v.prepare(v.registry.Load(), list)
	if err != nil {
		return done, err
	}
	if a.running && len(e.added) > 0 {
		started, err := v.startAcceptor(e.added)
		if err != nil {
			return done, err
		}
		a.list = append(a.list, started)
	}
	for s, terms := range e.terms {
		s.terms.Store(terms)
		if s.removed.CompareAndSwap(true, false) {
			done.Returned = append(done.Returned, s.id.TargetCompID)
		}
	}
	v.registry.Store(e.next)
	for _, s := range e.added {
		s.Handler.LogonFlagsChanged()
		done.Added = append(done.Added, s.id.TargetCompID)
	}
	for _, s := range e.removed {
		s.remove()
		done.Removed = append(done.Removed, s.id.TargetCompID)
	}
	slices.Sort(done.Added)
	slices.Sort(done.Returned)
	slices.Sort(done.Removed)
	return done, nil
}
