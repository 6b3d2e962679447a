package session

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/quickfixgo/quickfix"
	"github.com/quickfixgo/quickfix/config"

	"blockdesk/fixgw/participants"
	"blockdesk/fixgw/wire"
	"blockdesk/market"
	"blockdesk/persist/kv"
)

// Server accepts FIX connections, proves their Logons, and owns the sessions of all
// CompIDs. The steps of its life, in this order: New, Open, Listen, StartSessions, Serve,
// StopAccepting, LogOut, CloseStores.
type Server struct {
	options    Options
	newHandler func(*Session) Handler
	rates      rates
	store      kv.Store
	validator  quickfix.Validator
	listener   *listener
	registry   atomic.Pointer[registry]
	noHash     *participants.PasswordHash
	proofs     *proofs
	profile    profile
	stopping   atomic.Bool
	acceptors  acceptors
	news       newsSender
	failed     chan error // capacity 1: the first error of a store
	counters
}

// counters count since the start.
type counters struct {
	In, Out, Rejects, RateLimited, Kicks, RefusedLogons atomic.Uint64
}

// profile is the application that a session calls and the rules for a Logon. Only the
// acceptance tests change it: their scripts need an echo, heartbeats of two seconds, no
// answer to a bad Logon, quickfix's own texts, and a second connection that is refused.
type profile struct {
	application  quickfix.Application
	settings     map[string]string // quickfix's, of every session
	minHeartBt   int               // seconds
	silentRefuse bool              // a refused Logon is answered by closing
	fastPath     bool              // ordinary requests go past quickfix: see fastpath.go
	codedTexts   bool              // quickfix's own texts get a code
	takeover     bool              // a new Logon may replace a silent connection
}

func productProfile(v *Server) profile {
	return profile{application: app{v}, settings: productSettings(), codedTexts: true, takeover: true, minHeartBt: wire.MinHeartBtInt, fastPath: !v.options.Leadership.Follower()}
}

// productSettings turns off the checks of quickfix that our validator makes itself,
// because the validator writes the texts of its rejects.
func productSettings() map[string]string {
	return map[string]string{
		config.ValidateFieldsHaveValues: "N",
		config.ValidateFieldsOutOfOrder: "N",
		config.RejectInvalidMessage:     "N",
	}
}

// New returns a server without sessions. o has its defaults.
func New(o Options, store kv.Store) (*Server, error) {
	if o.Prepared != nil && !o.Prepared.fits(&o) {
		o.Prepared.Close()
		o.Prepared = nil
	}
	v := &Server{
		options: o, store: store, rates: newRates(o.Rate),
		failed: make(chan error, 1),
	}
	v.profile = productProfile(v)
	var err error
	if v.proofs, err = newProofs(); err != nil {
		return nil, err
	}
	if v.options.Dictionary == nil {
		if v.options.Dictionary, err = ReadDictionary(); err != nil {
			return nil, err
		}
	}
	v.validator = v.options.Dictionary.validator
	if v.noHash, err = participants.RandomHash(); err != nil {
		return nil, err
	}
	return v, nil
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

// Listen opens the socket.
func (v *Server) Listen() error {
	listener, err := v.options.Listen("tcp", v.options.Address)
	if err != nil {
		return fmt.Errorf("fix: %w", err)
	}
	v.listener = newListener(v, listener)
	return nil
}

// secure puts TLS around an accepted connection, where it is configured.
func (v *Server) secure(inner net.Conn) net.Conn {
	if v.options.TLS == nil {
		return inner
	}
	return tls.Server(inner, v.options.TLS)
}

// Fail ends the service with the first error of a store. Any goroutine.
func (v *Server) Fail(err error) {
	select {
	case v.failed <- err:
	default:
	}
}

// FirstError returns the channel of Fail's first error.
func (v *Server) FirstError() <-chan error { return v.failed }

// Addr returns the address that the server listens on.
func (v *Server) Addr() net.Addr { return v.listener.Listener.Addr() }

// Close frees the socket of a server that does not run.
func (v *Server) Close() error {
	v.listener.stopAccepting()
	return v.listener.Listener.Close()
}

// Counts returns the number of connections, of sessions logged on, and of connections
// refused because of a limit.
func (v *Server) Counts() (conns, sessions int, refused uint64) {
	conns, _, refused = v.listener.counts()
	for _, s := range v.All() {
		if s.loggedOn.Load() {
			sessions++
		}
	}
	return conns, sessions, refused
}

// StopAccepting refuses new connections. Sessions stay logged on.
func (v *Server) StopAccepting() {
	v.stopping.Store(true)
	v.listener.stopAccepting()
}

// LogOut ends all sessions and waits for quickfix's goroutines.
func (v *Server) LogOut() {
	// Clients get the reason as News before the Logout, whose text repeats it. An error
	// is the store's, which CloseStores returns again.
	_, _ = v.announce(v.All(), v.logoutText(), "Log on again when the service is back.")
	v.acceptors.stop()
}

// SaveMessages reserves sequence numbers ahead of their use, and commits the messages
// that no commit of reports has stored.
func (v *Server) SaveMessages() error {
	for _, s := range v.All() {
		if s.Messages.needsReserve() {
			if err := s.Messages.extend(); err != nil {
				return err
			}
		}
		if err := s.Messages.Save(); err != nil {
			return err
		}
	}
	return nil
}

// Serve runs each connection that the listener accepts, until the listener is closed. One
// goroutine writes. Another reads the Logon and, once it is proven, hands the connection
// to quickfix, which reads the rest.
func (v *Server) Serve(ctx context.Context, conns *sync.WaitGroup) {
	for {
		c, err := v.listener.accept()
		if errors.Is(err, net.ErrClosed) {
			return
		} else if err != nil {
			v.Fail(fmt.Errorf("fix: %w", err))
			return
		}
		conns.Go(func() { v.logSlowClient(c, c.Run(ctx)) })
		conns.Go(func() {
			if c.admit() != nil || c.session.Load().acceptor.handOver(c) != nil {
				// The client is gone: the error of Close does not matter.
				_ = c.Close()
			}
		})
	}
}

// logSlowClient logs the end of a connection that reads too slowly.
func (v *Server) logSlowClient(c *conn, err error) {
	if errors.Is(err, errSlowReader) {
		v.options.Logger.Warn("FIX connection closed: client reads too slowly", "remote", c.RemoteAddr().String(), "reason", err.Error())
	}
}

// CloseStores releases the unused reserved numbers and syncs every session's numbers.
func (v *Server) CloseStores() error {
	var all error
	for _, s := range v.All() {
		all = errors.Join(all, s.Messages.Close())
	}
	return all
}

// UnavailableText returns the text that refuses a request which the node cannot serve now.
func (v *Server) UnavailableText(why string) string {
	return v.LeaderTextOr(wire.CodeReadOnly + ": " + why)
}

// logoutText returns the Logout's text when the service stops.
func (v *Server) logoutText() string { return v.LeaderTextOr(stoppingText) }

// LeaderTextOr returns a text that names the leader where this node has lost the leadership,
// else text.
func (v *Server) LeaderTextOr(text string) string {
	if l := v.options.Leadership; l.LostLeadership() {
		return LeaderText(l.Leader())
	}
	return text
}

// SessionNamed returns the session of a CompID, or nil. Any goroutine.
func (v *Server) SessionNamed(compID string) *Session { return v.registry.Load().byCompID[compID] }

// Numbered returns the session of a number, or nil. Any goroutine.
func (v *Server) Numbered(number uint16) *Session {
	r := v.registry.Load()
	if int(number) >= len(r.byNumber) {
		return nil
	}
	return r.byNumber[number]
}

// All returns all sessions, by their number. Any goroutine.
func (v *Server) All() []*Session {
	return slices.DeleteFunc(slices.Clone(v.registry.Load().byNumber), func(s *Session) bool { return s == nil })
}
