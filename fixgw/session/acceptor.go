package session

import (
	"crypto/tls"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/quickfixgo/quickfix"
	"github.com/quickfixgo/quickfix/config"
)

// acceptor is one quickfix.Acceptor with its sessions. A running Acceptor takes no further
// sessions, so each reload that adds CompIDs starts another one. acceptor is also the
// net.Listener of its Acceptor: Accept returns connections whose Logon is authenticated.
type acceptor struct {
	quickfix *quickfix.Acceptor
	sessions []quickfix.SessionID // as quickfix calls them: all with the same Qualifier
	address  net.Addr
	conns    chan net.Conn
	awake    time.Time // when the new sessions stop sleeping
	done     chan struct{}
	shut     sync.Once
}

// wakeMargin is added to the full second until which quickfix's new session goroutines
// sleep.
const wakeMargin = 20 * time.Millisecond

// inChanCapacity is how many messages may lie between a connection and its session.
// quickfix's channel takes twice as many, because what its last connection has left may
// be counted for this one.
const inChanCapacity = 64

// ownSet is the Qualifier of the sessions that a server makes itself. quickfix registers a
// session once per process, by CompIDs and Qualifier. The Qualifier is in no message, so
// Pool can prepare sessions of the same CompIDs under another one. No Qualifier is empty,
// because an Acceptor that stops unregisters the sessions with the empty one.
const ownSet = "own"

// sessionID returns quickfix's id of the session of a CompID in a set.
func sessionID(o *Options, compID, set string) quickfix.SessionID {
	return quickfix.SessionID{BeginString: quickfix.BeginStringFIX44, SenderCompID: o.CompID, TargetCompID: compID, Qualifier: set}
}

// newAcceptor starts a quickfix session for each message store; set is their Qualifier.
// The caller stops it.
func newAcceptor(address net.Addr, o *Options, l *profile, messages storeFactory, set string) (*acceptor, error) {
	settings, err := acceptorSettings(address, o, l, messages, set)
	if err != nil {
		return nil, err
	}
	a := &acceptor{address: address, conns: make(chan net.Conn), done: make(chan struct{})}
	for compID := range messages {
		a.sessions = append(a.sessions, sessionID(o, compID, set))
	}
	if a.quickfix, err = quickfix.NewAcceptor(l.application, messages, settings, logFactory{o.Logger, messages}); err != nil {
		a.unregister()
		return nil, fmt.Errorf("fix: %w", err)
	}
	a.quickfix.SetNewListenerCallback(func(string, *tls.Config) (net.Listener, error) { return a, nil })
	if err := a.quickfix.Start(); err != nil {
		a.unregister()
		return nil, fmt.Errorf("fix: %w", err)
	}
	a.awake = time.Now().Truncate(time.Second).Add(time.Second + wakeMargin)
	return a, nil
}

// stop logs the sessions out and waits for quickfix's goroutines. The goroutine of a new
// session sleeps first.
func (a *acceptor) stop() {
	a.quickfix.Stop()
	a.unregister()
}

// unregister removes the sessions from quickfix's registry. Its Acceptor looks for them
// without the Qualifier, and finds none.
func (a *acceptor) unregister() {
	for _, id := range a.sessions {
		// An error means that the session was never made.
		_ = quickfix.UnregisterSession(id)
	}
}

// handOver gives quickfix a connection whose Logon is authenticated. It waits until new sessions have
// stopped sleeping, because quickfix never closes a connection of a session that stops
// while it sleeps.
func (a *acceptor) handOver(c net.Conn) error {
	if wait := time.Until(a.awake); wait > 0 {
		select {
		case <-time.After(wait):
		case <-a.done:
		}
	}
	select {
	case a.conns <- c:
		return nil
	case <-a.done:
		return errClosed
	}
}

// Accept gives quickfix the next connection.
func (a *acceptor) Accept() (net.Conn, error) {
	select {
	case c := <-a.conns:
		return c, nil
	case <-a.done:
		return nil, net.ErrClosed
	}
}

// Close ends Accept and handOver.
func (a *acceptor) Close() error {
	a.shut.Do(func() { close(a.done) })
	return nil
}

// Addr returns the address that the gateway listens on.
func (a *acceptor) Addr() net.Addr { return a.address }

func acceptorSettings(address net.Addr, o *Options, l *profile, messages storeFactory, set string) (*quickfix.Settings, error) {
	settings := quickfix.NewSettings()
	global := settings.GlobalSettings()
	global.Set(config.SocketAcceptPort, strconv.Itoa(address.(*net.TCPAddr).Port))
	global.Set(config.BeginString, quickfix.BeginStringFIX44)
	global.Set(config.SenderCompID, o.CompID)
	global.Set(config.SessionQualifier, set)
	global.Set(config.InChanCapacity, strconv.Itoa(2*inChanCapacity))
	for name, value := range l.settings {
		global.Set(name, value)
	}
	for compID := range messages {
		one := quickfix.NewSessionSettings()
		one.Set(config.TargetCompID, compID)
		if _, err := settings.AddSession(one); err != nil {
			return nil, fmt.Errorf("fix: session %s: %w", compID, err)
		}
	}
	return settings, nil
}

// acceptors are the Acceptors of quickfix, oldest first.
type acceptors struct {
	mu      sync.Mutex // held by a whole reload: one at a time
	running bool       // between the start and the stop of Run
	stopped bool
	list    []*acceptor
}

// stop logs all sessions out and waits for quickfix's goroutines. A reload is refused
// from then on.
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
