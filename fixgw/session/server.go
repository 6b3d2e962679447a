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
// CompIDs. Open reads its store; listen, start, serve, shut, logOut and
// closeStores are the steps of its life, in this order.
type Server struct {
	options     Options
	application application
	rates       rates
	store       kv.Store
	validator   quickfix.Validator
	listener    *listener
	registry    atomic.Pointer[registry]
	noHash      *participants.PasswordHash
	verifying   chan struct{} // a slot for each password being checked
	profile     profile
	stopping    atomic.Bool
	acceptors   acceptors
	news        newsSender
	failed      chan error // capacity 1: the first error of a store
	counters
}

// counters count since the start.
type counters struct {
	In, Out, Rejects, RateLimited, Kicks, RefusedLogons atomic.Uint64
}

// layer is what stands on a session and what it asks of a Logon. It is always
// as productProfile has it, but in the test of the session alone: the acceptance
// scripts want an echo, heartbeats of two seconds and no word to a bad Logon.
type profile struct {
	application  quickfix.Application
	settings     map[string]string // quickfix's, of every session
	minHeartBt   int               // seconds
	silentRefuse bool              // a refused Logon is answered by closing
	fastPath     bool              // ordinary requests go past quickfix: see express.go
}

func productProfile(v *Server) profile {
	return profile{application: app{v}, settings: productSettings(), minHeartBt: wire.MinHeartBtInt, fastPath: !v.options.Leadership.Follower()}
}

// productSettings leaves to our validator what quickfix would look at: that words its
// rejects.
func productSettings() map[string]string {
	return map[string]string{
		config.ValidateFieldsHaveValues: "N",
		config.ValidateFieldsOutOfOrder: "N",
		config.RejectInvalidMessage:     "N",
	}
}

// Open reads the sessions of o, which has its defaults, from the store.
func Open(o Options, store kv.Store, application application) (*Server, error) {
	if o.Prepared != nil && !o.Prepared.fits(&o) {
		o.Prepared.Close()
		o.Prepared = nil
	}
	v := &Server{
		options: o, application: application, store: store, rates: newRates(o.Rate),
		verifying: make(chan struct{}, MaxVerifies), failed: make(chan error, 1),
	}
	v.profile = productProfile(v)
	var err error
	if v.options.Dictionary == nil {
		if v.options.Dictionary, err = ReadDictionary(); err != nil {
			return nil, err
		}
	}
	v.validator = v.options.Dictionary.validator
	if v.noHash, err = participants.RandomHash(); err != nil {
		return nil, err
	}
	return v, v.openSessions()
}

// openSessions makes the first roster. Run makes their acceptor.
func (v *Server) openSessions() error {
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

// Fail ends Run with the first error of the store.
func (v *Server) Fail(err error) {
	select {
	case v.failed <- err:
	default:
	}
}

// FirstError returns where the first error of a store comes.
func (v *Server) FirstError() <-chan error { return v.failed }

// Addr returns the address that the gateway listens on.
func (v *Server) Addr() net.Addr { return v.listener.Listener.Addr() }

// Close frees the socket of a gateway that is not run.
func (v *Server) Close() error {
	v.listener.shut()
	return v.listener.Listener.Close()
}

// Figures returns how many sockets there are and were refused for want of room, and
// how many sessions are logged on.
func (v *Server) Figures() (conns, sessions int, refused uint64) {
	conns, _, refused = v.listener.figures()
	for _, s := range v.All() {
		if s.loggedOn.Load() {
			sessions++
		}
	}
	return conns, sessions, refused
}

// Shut lets nobody in any more. Who is logged on stays so.
func (v *Server) Shut() {
	v.stopping.Store(true)
	v.listener.shut()
}

// LogOut ends all sessions and waits for quickfix's goroutines.
func (v *Server) LogOut() {
	// Who is logged on hears why before the Logout, whose text says it again. An
	// error is the store's, which closing it tells.
	_, _ = v.announce(v.All(), v.farewell(), "Log on again when the service is back.")
	v.acceptors.stop()
}

// SaveMessages reserves sequence numbers ahead of their use, and commits the messages
// that no report takes along.
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

// Serve runs each connection that the door lets in, until the door is shut:
// one goroutine writes, another reads the Logon and, once it is proven, gives the
// connection to quickfix, which reads on.
func (v *Server) Serve(ctx context.Context, conns *sync.WaitGroup) {
	for {
		c, err := v.listener.accept()
		if errors.Is(err, net.ErrClosed) {
			return
		} else if err != nil {
			v.Fail(fmt.Errorf("fix: %w", err))
			return
		}
		conns.Go(func() { v.ran(c, c.Run(ctx)) })
		conns.Go(func() {
			if c.admit() != nil || c.session.Load().acceptor.hand(c) != nil {
				// Who reads no more has gone, whatever Close says.
				_ = c.Close()
			}
		})
	}
}

// ran logs why a connection has ended, where it is of interest.
func (v *Server) ran(c *conn, err error) {
	if errors.Is(err, errSlowReader) {
		v.options.Logger.Warn("connection_cut", "remote", c.RemoteAddr().String(), "reason", err.Error())
	}
}

// CloseStores gives the reserved numbers back and makes everything safe.
func (v *Server) CloseStores() error {
	var all error
	for _, s := range v.All() {
		all = errors.Join(all, s.Messages.Close())
	}
	return all
}

// Unserved is the text of a refusal of what cannot be taken for a while.
func (v *Server) Unserved(why string) string { return v.DeposedOr(wire.CodeReadOnly + ": " + why) }

// farewell is the text of the Logout of a gateway that stops.
func (v *Server) farewell() string { return v.DeposedOr(stoppingText) }

// DeposedOr says that another node leads, where one does, and else text.
func (v *Server) DeposedOr(text string) string {
	if l := v.options.Leadership; l.LostLeadership() {
		return LeaderText(l.Leader())
	}
	return text
}
