package fixgw

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

// acceptor is one Acceptor of quickfix with the sessions that it was made for: it
// takes no other while it runs, so each reload that brings new CompIDs makes one
// more. It is also the listener which that Acceptor accepts from: what comes out
// of it are connections whose Logon the gate has proven, each for a session of
// this acceptor.
type acceptor struct {
	quickfix *quickfix.Acceptor
	address  net.Addr
	conns    chan *conn
	awake    time.Time // when the sessions have woken
	done     chan struct{}
	shut     sync.Once
}

// wakeMargin is how long after the full second that quickfix's session goroutines
// sleep to they are taken for awake.
const wakeMargin = 20 * time.Millisecond

// startAcceptor starts quickfix's sessions for ours. Stop it.
func (g *Gateway) startAcceptor(sessions []*session) (*acceptor, error) {
	settings, err := g.settings(sessions)
	if err != nil {
		return nil, err
	}
	a := &acceptor{address: g.Addr(), conns: make(chan *conn), done: make(chan struct{})}
	byCompID := make(map[string]*session, len(sessions))
	for _, s := range sessions {
		byCompID[s.id.TargetCompID] = s
	}
	if a.quickfix, err = quickfix.NewAcceptor(g.layer.application, stores(byCompID), settings, logs{g, byCompID}); err != nil {
		return nil, unregister(sessions, err)
	}
	a.quickfix.SetNewListenerCallback(func(string, *tls.Config) (net.Listener, error) { return a, nil })
	if err := a.quickfix.Start(); err != nil {
		return nil, unregister(sessions, err)
	}
	a.awake = time.Now().Truncate(time.Second).Add(time.Second + wakeMargin)
	for _, s := range sessions {
		s.acceptor = a
	}
	return a, nil
}

// unregister lets go of quickfix's sessions that were made before err, and
// returns err.
func unregister(sessions []*session, err error) error {
	for _, s := range sessions {
		// The one that is not there is the one that was not made.
		_ = quickfix.UnregisterSession(s.id)
	}
	return fmt.Errorf("fix: %w", err)
}

// hand gives quickfix a connection whose Logon is proven. A session that has just
// been made is asleep until the next full second; the Logon waits for it, since a
// connection handed to a session that stops in its sleep is never let go.
func (a *acceptor) hand(c *conn) error {
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

// Close ends Accept and hand.
func (a *acceptor) Close() error {
	a.shut.Do(func() { close(a.done) })
	return nil
}

// Addr returns the address that the gateway listens on.
func (a *acceptor) Addr() net.Addr { return a.address }

// stores gives quickfix the message stores that are open already, by CompID.
type stores map[string]*session

func (f stores) Create(id quickfix.SessionID) (quickfix.MessageStore, error) {
	s := f[id.TargetCompID]
	if s == nil {
		return nil, fmt.Errorf("session %s is not configured", id.TargetCompID)
	}
	return s.messages, nil
}

func (g *Gateway) settings(sessions []*session) (*quickfix.Settings, error) {
	port := g.Addr().(*net.TCPAddr).Port
	settings := quickfix.NewSettings()
	global := settings.GlobalSettings()
	global.Set(config.SocketAcceptPort, strconv.Itoa(port))
	global.Set(config.BeginString, quickfix.BeginStringFIX44)
	global.Set(config.SenderCompID, g.options.CompID)
	global.Set(config.InChanCapacity, strconv.Itoa(2*inChanCapacity))
	for name, value := range g.layer.settings {
		global.Set(name, value)
	}
	for _, s := range sessions {
		one := quickfix.NewSessionSettings()
		one.Set(config.TargetCompID, s.id.TargetCompID)
		if _, err := settings.AddSession(one); err != nil {
			return nil, fmt.Errorf("fix: session %s: %w", s.id.TargetCompID, err)
		}
	}
	return settings, nil
}
