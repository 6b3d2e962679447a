package session

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/quickfixgo/quickfix"
)

// Early is quickfix's sessions of a gateway that is to come, one set of a Spares. They
// have no numbers, no store and no connection until a Gateway takes them
// (Options.Early).
type Prepared struct {
	acceptor *acceptor
	set      string // Qualifier of the sessions
	compID   string // ours
	sessions storeFactory
	app      *deferredApp

	mu    sync.Mutex
	taken bool // by a gateway, which stops them, or by Close
}

// Spares makes the FIX sessions of the gateways that a process is going to have one
// after the other, such as a node of a group that leads again and again. A session
// that quickfix has just made sleeps to the next full second, which clients of a new
// leader would wait; these have slept before. The zero value is ready. Not for
// several goroutines at once.
type Pool struct {
	made  uint64      // sets so far
	ahead []*Prepared // not asked for yet, oldest first
}

// poolSize is how many sets there are beside the one that Next has returned last. So
// a set was made that many turns before its own, and is awake unless that many turns,
// the time that another node led included, have passed within a second.
const poolSize = 2

// Next returns the sessions of o.Participants for the next gateway, those that have
// been there longest, and makes the ones of gateways after it. o.Address names the
// port. Close what it returns, whether or not a gateway has taken it. Where the
// participants, or our address or CompID, are others than before, all sets are made
// anew; Next then waits for the old ones to end, as Close does. Errors: those of
// SessionOptions.Validate; the address's.
func (p *Pool) Next(o Options) (*Prepared, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.WithDefaults()
	if slices.ContainsFunc(p.ahead, func(e *Prepared) bool { return !e.fits(&o) }) {
		p.Close()
	}
	for len(p.ahead) <= poolSize {
		e, err := newPrepared(&o, "early "+strconv.FormatUint(p.made+1, 10))
		if err != nil {
			return nil, err
		}
		p.made++
		p.ahead = append(p.ahead, e)
	}
	next := p.ahead[0]
	p.ahead = slices.Delete(p.ahead, 0, 1)
	return next, nil
}

// Close stops the sets that Next has not returned. It waits for those that sleep,
// until the next full second.
func (p *Pool) Close() {
	for _, e := range p.ahead {
		e.Close()
	}
	p.ahead = nil
}

// newPrepared makes the sessions of o.Participants, o with its defaults; set is theirs
// alone among those of the same CompIDs in this process.
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

// fits reports whether these are the sessions, at the address, of a gateway with o.
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

// messages returns the message store that quickfix's session of a CompID has
// already, or a new one.
func (e *Prepared) messages(compID string) *messageStore {
	if e != nil {
		if s := e.sessions[compID]; s != nil {
			return s
		}
	}
	return newMessageStore()
}

// take gives the sessions to the gateway that was made with them, which stops them;
// nil where there are none, or where Close was quicker.
func (e *Prepared) take(v *Server) *acceptor {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.taken {
		return nil
	}
	e.taken = true
	e.app.to.Store(&v.profile.application)
	for compID := range e.sessions {
		v.SessionNamed(compID).serveBy(e.acceptor, e.set)
	}
	return e.acceptor
}

// Close stops the sessions that no gateway has taken; those that have just been made
// must wake first.
func (e *Prepared) Close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.taken {
		e.taken = true
		e.acceptor.stop()
	}
}

// deferredApp hands quickfix's calls on to the gateway that has taken the sessions.
// Before that nobody is connected, and OnCreate the only call.
type deferredApp struct {
	to atomic.Pointer[quickfix.Application]
}

var _ quickfix.Application = (*deferredApp)(nil)

// OnCreate does nothing, as that of app.
func (*deferredApp) OnCreate(quickfix.SessionID) {}

// OnLogon implements quickfix.Application, as do the following.
func (l *deferredApp) OnLogon(id quickfix.SessionID) { (*l.to.Load()).OnLogon(id) }

// OnLogout is app's.
func (l *deferredApp) OnLogout(id quickfix.SessionID) { (*l.to.Load()).OnLogout(id) }

// ToAdmin is app's.
func (l *deferredApp) ToAdmin(m *quickfix.Message, id quickfix.SessionID) {
	(*l.to.Load()).ToAdmin(m, id)
}

// ToApp is app's.
func (l *deferredApp) ToApp(m *quickfix.Message, id quickfix.SessionID) error {
	return (*l.to.Load()).ToApp(m, id)
}

// FromAdmin is app's.
func (l *deferredApp) FromAdmin(m *quickfix.Message, id quickfix.SessionID) quickfix.MessageRejectError {
	return (*l.to.Load()).FromAdmin(m, id)
}

// FromApp is app's.
func (l *deferredApp) FromApp(m *quickfix.Message, id quickfix.SessionID) quickfix.MessageRejectError {
	return (*l.to.Load()).FromApp(m, id)
}
