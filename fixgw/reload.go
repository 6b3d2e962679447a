package fixgw

import (
	"errors"
	"slices"
	"sync"

	"blockdesk/fixgw/participants"
)

// ErrStopped means that the gateway is stopping or has stopped.
var ErrStopped = errors.New("fix: the gateway is stopping")

// removedText ends the session of a CompID that was taken out of the file.
const removedText = codeRemoved + ": this CompID is no more configured"

// acceptors are quickfix's, oldest first.
type acceptors struct {
	mu      sync.Mutex // held by a whole reload: one at a time
	running bool       // between the start and the stop of Run
	stopped bool
	list    []*acceptor
}

// start starts the first one, for the sessions that there are.
func (a *acceptors) start(v *server) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	first := v.options.Early.take(v)
	if first == nil {
		var err error
		if first, err = v.startAcceptor(v.sessions()); err != nil {
			return err
		}
	}
	a.list, a.running = append(a.list, first), true
	return nil
}

// stop logs all sessions out and waits for quickfix's goroutines. No reload
// follows.
func (a *acceptors) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.running, a.stopped = false, true
	var stops sync.WaitGroup
	for _, one := range a.list {
		stops.Go(one.stop)
	}
	stops.Wait()
}

// Reloaded says what a reload has changed, in CompIDs.
type Reloaded struct {
	Added    []string // new to this process
	Returned []string // taken out earlier, and back with their numbers and messages
	Removed  []string // logged out, no logon any more
}

// Check reports why Reload would refuse list. It changes nothing. Any goroutine.
func (v *server) Check(list []participants.Participant) error {
	if err := participants.Validate(list, v.options.MaxSessions); err != nil {
		return err
	}
	return v.roster.Load().check(list)
}

// Reload makes list the participants, all of it or, with an error, nothing of it.
// list must not change afterwards. Risk limits are the engine's: whoever calls
// this has told it about new participants before. Any goroutine.
//
// A new CompID can log on when Reload returns; within the first second its Logon
// waits until quickfix's session has woken. One that is not in the list any more
// is logged out with a text and cannot log on. Its live orders are treated as when
// a client goes: cancelled where its last Logon asked for that, else they live on,
// and what they do is stored for the day when the CompID comes back. Passwords and
// keys hold from the next Logon on: who is logged on stays so. Self-trade
// prevention and wallet hold from the next request on.
func (v *server) Reload(list []participants.Participant) (Reloaded, error) {
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
	e, err := v.enlist(v.roster.Load(), list)
	if err != nil {
		return done, err
	}
	if a.running && len(e.fresh) > 0 {
		started, err := v.startAcceptor(e.fresh)
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
	v.roster.Store(e.next)
	for _, s := range e.fresh {
		s.handler.wished()
		done.Added = append(done.Added, s.id.TargetCompID)
	}
	for _, s := range e.gone {
		s.remove()
		done.Removed = append(done.Removed, s.id.TargetCompID)
	}
	slices.Sort(done.Added)
	slices.Sort(done.Returned)
	slices.Sort(done.Removed)
	return done, nil
}

// remove ends the session for as long as its CompID is not in the file.
func (s *session) remove() {
	s.entry.Lock()
	defer s.entry.Unlock()
	s.removed.Store(true)
	switch {
	case s.conn.Load() != nil:
		s.kick(removedText) // OnLogout sees to its orders
	case s.cancelOnDisconnect.Load():
		s.handler.cancelOrders() // it went while we were down, and has not come back
	}
}
