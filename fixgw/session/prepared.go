package session

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"

	"github.com/quickfixgo/quickfix"
)

// Prepared is quickfix's sessions of a later server, one set of a Pool. They have no
// numbers, no store and no connection until a server takes them (Options.Prepared).
type Prepared struct {
	acceptor *acceptor
	set      string // Qualifier of the sessions
	compID   string // ours
	sessions storeFactory
	app      *deferredApp

	mu    sync.Mutex
	taken bool // by a server, which stops them, or by Close
}

// Pool prepares the FIX sessions of the successive servers of a process, such as a node of
// a group that becomes the leader several times. A new quickfix session sleeps until the
// next full second, and clients of a new leader would wait for it; prepared sessions have
// slept before. The zero value is ready. Not safe for concurrent use.
type Pool struct {
	made  uint64      // sets so far
	ready []*Prepared // not returned by Next yet, oldest first
}

// poolSize is the number of sets besides the one that Next returned last. So a set is
// prepared poolSize terms before its own, and is awake unless these terms pass within a
// second.
const poolSize = 2

// Next returns the sessions of o.Participants for the next server, the oldest ones, and
// prepares those of servers after it. o.Address names the port. The caller closes the
// result, whether or not a server has taken it. If the participants, or our address or
// CompID, have changed, all sets are prepared again; Next then waits for the old ones to
// end, as Close does. Errors: those of Options.Validate; the address's.
func (p *Pool) Next(o Options) (*Prepared, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.WithDefaults()
	if slices.ContainsFunc(p.ready, func(e *Prepared) bool { return !e.fits(&o) }) {
		p.Close()
	}
	for len(p.ready) <= poolSize {
		e, err := newPrepared(&o, "early "+strconv.FormatUint(p.made+1, 10))
		if err != nil {
			return nil, err
		}
		p.made++
		p.ready = append(p.ready, e)
	}
	next := p.ready[0]
	p.ready = slices.Delete(p.ready, 0, 1)
	return next, nil
}

// Close stops the sets that Next has not returned. It waits for those that sleep, until
// the next full second.
func (p *Pool) Close() {
	for _, e := range p.ready {
		e.Close()
	}
	p.ready = nil
}

// newPrepared makes the sessions of o.Participants, o with its defaults. set is their
// Qualifier, unique among those of the same CompIDs in this process.
func newPrepared(o *Options, set string) (*Prepared, error) {
	address, err := net.ResolveTCPAddr("tcp", o.Address)
	if err != nil || address.Port == 0 {
		return nil, fmt.Errorf("fix: address %q: must name its port: %w", o.Address, err)
	}
	e := &Prepared{set: set, compID: o.CompID, sessions: make(storeFactory), app: &deferredApp{}}
	for i := range o.Participants {
		for _, compID := range o.Participants[i].CompIDs {
			e.sessions[compID] = newMessageStore()
		}
	}
	l := profile{application: e.app, settings: productSettings()}
	if e.acceptor, err = newAcceptor(address, o, &l, e.sessions, set); err != nil {
		return nil, err
	}
	return e, nil
}

// fits reports whether these are the sessions, at the address, of a server with o.
func (e *Prepared) fits(o *Options) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := 0
	for i := range o.Participants {
		for _, compID := range o.Participants[i].CompIDs {
			if e.sessions[compID] == nil {
				return false
			}
			n++
		}
	}
	address, err := net.ResolveTCPAddr("tcp", o.Address)
	return !e.taken && n == len(e.sessions) && o.CompID == e.compID && err == nil && address.Port == e.acceptor.address.(*net.TCPAddr).Port
}

// messages returns the message store of quickfix's prepared session of a CompID, or a new
// one.
func (e *Prepared) messages(compID string) *MessageStore {
	if e != nil {
		if s := e.sessions[compID]; s != nil {
			return s
		}
	}
	return newMessageStore()
}

// take returns the acceptor to the sessions' server, which serves them by application and
// stops them; nil if there are none, or if they are closed.
func (e *Prepared) take(application quickfix.Application) *acceptor {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.taken {
		return nil
	}
	e.taken = true
	e.app.Application = application
	return e.acceptor
}

// Close stops the sessions if no server has taken them; it waits for those that still
// sleep.
func (e *Prepared) Close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.taken {
		e.taken = true
		e.acceptor.stop()
	}
}

// deferredApp is the Application of the server that has taken the sessions. Before that no
// client is connected, and OnCreate is the only call.
type deferredApp struct{ quickfix.Application }

// OnCreate does nothing, as app's.
func (*deferredApp) OnCreate(quickfix.SessionID) {}
