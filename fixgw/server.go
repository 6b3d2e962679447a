package fixgw

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

// server accepts FIX connections, proves their Logons, and owns the sessions of all
// CompIDs. openServer reads its store; listen, start, serve, shut, logOut and
// closeStores are the steps of its life, in this order.
type server struct {
	options     SessionOptions
	application application
	rates       rates
	store       kv.Store
	validator   quickfix.Validator
	door        *door
	roster      atomic.Pointer[roster]
	noHash      *participants.PasswordHash
	verifying   chan struct{} // a slot for each password being checked
	layer       layer
	stopping    atomic.Bool
	acceptors   acceptors
	news        announcer
	failed      chan error // capacity 1: the first error of a store
	counters
}

// counters count since the start.
type counters struct {
	in, out, rejects, rateLimited, kicks, refusedLogons atomic.Uint64
}

// layer is what stands on a session and what it asks of a Logon. It is always
// as productLayer has it, but in the test of the session alone: the acceptance
// scripts want an echo, heartbeats of two seconds and no word to a bad Logon.
type layer struct {
	application  quickfix.Application
	settings     map[string]string // quickfix's, of every session
	minHeartBt   int               // seconds
	silentRefuse bool              // a refused Logon is answered by closing
	express      bool              // ordinary requests go past quickfix: see express.go
}

func productLayer(v *server) layer {
	return layer{application: app{v}, settings: productSettings(), minHeartBt: wire.MinHeartBtInt, express: !v.options.Leadership.Follower()}
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

// openServer reads the sessions of o, which has its defaults, from the store.
func openServer(o SessionOptions, store kv.Store, application application) (*server, error) {
	if o.Early != nil && !o.Early.fits(&o) {
		o.Early.Close()
		o.Early = nil
	}
	v := &server{
		options: o, application: application, store: store, rates: newRates(o.Rate),
		verifying: make(chan struct{}, MaxVerifies), failed: make(chan error, 1),
	}
	v.layer = productLayer(v)
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
func (v *server) openSessions() error {
	empty := &roster{
		byCompID: make(map[string]*session),
		numbers:  make(map[string]market.ParticipantID), names: make(map[market.ParticipantID]string),
	}
	e, err := v.enlist(empty, slices.Clone(v.options.Participants))
	if err != nil {
		return err
	}
	for s, terms := range e.terms {
		s.terms.Store(terms)
	}
	v.roster.Store(e.next)
	for _, s := range e.fresh {
		s.handler.wished()
	}
	return nil
}

// listen opens the socket.
func (v *server) listen() error {
	listener, err := v.options.Listen("tcp", v.options.Address)
	if err != nil {
		return fmt.Errorf("fix: %w", err)
	}
	v.door = newDoor(v, listener)
	return nil
}

// secure puts TLS around an accepted connection, where it is configured.
func (v *server) secure(inner net.Conn) net.Conn {
	if v.options.TLS == nil {
		return inner
	}
	return tls.Server(inner, v.options.TLS)
}

// fail ends Run with the first error of the store.
func (v *server) fail(err error) {
	select {
	case v.failed <- err:
	default:
	}
}

// Addr returns the address that the gateway listens on.
func (v *server) Addr() net.Addr { return v.door.Listener.Addr() }

// Close frees the socket of a gateway that is not run.
func (v *server) Close() error {
	v.door.shut()
	return v.door.Listener.Close()
}

// figures returns how many sockets there are and were refused for want of room, and
// how many sessions are logged on.
func (v *server) figures() (conns, sessions int, refused uint64) {
	conns, _, refused = v.door.figures()
	for _, s := range v.sessions() {
		if s.loggedOn.Load() {
			sessions++
		}
	}
	return conns, sessions, refused
}

// shut lets nobody in any more. Who is logged on stays so.
func (v *server) shut() {
	v.stopping.Store(true)
	v.door.shut()
}

// logOut ends all sessions and waits for quickfix's goroutines.
func (v *server) logOut() {
	// Who is logged on hears why before the Logout, whose text says it again. An
	// error is the store's, which closing it tells.
	_, _ = v.announce(v.sessions(), v.farewell(), "Log on again when the service is back.")
	v.acceptors.stop()
}

// saveMessages reserves sequence numbers ahead of their use, and commits the messages
// that no report takes along.
func (v *server) saveMessages() error {
	for _, s := range v.sessions() {
		if s.messages.low() {
			if err := s.messages.extend(); err != nil {
				return err
			}
		}
		if err := s.messages.save(); err != nil {
			return err
		}
	}
	return nil
}

// runConns runs each connection that the door lets in, until the door is shut:
// one goroutine writes, another reads the Logon and, once it is proven, gives the
// connection to quickfix, which reads on.
func (v *server) runConns(ctx context.Context, conns *sync.WaitGroup) {
	for {
		c, err := v.door.accept()
		if errors.Is(err, net.ErrClosed) {
			return
		} else if err != nil {
			v.fail(fmt.Errorf("fix: %w", err))
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
func (v *server) ran(c *conn, err error) {
	if errors.Is(err, errSlowReader) {
		v.options.Logger.Warn("connection_cut", "remote", c.RemoteAddr().String(), "reason", err.Error())
	}
}

// closeStores gives the reserved numbers back and makes everything safe.
func (v *server) closeStores() error {
	var all error
	for _, s := range v.sessions() {
		all = errors.Join(all, s.messages.Close())
	}
	return all
}
