package session

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"blockdesk/fixgw/wire"
	"blockdesk/persist/kv"
)

// Server accepts FIX connections, authenticates their Logons, and owns the sessions of all
// CompIDs. The steps of its life, in this order: New, Open, Listen, StartSessions, Serve,
// StopAccepting, LogOut, CloseStores.
type Server struct {
	host
	sessions
	newHandler func(*Session) Handler
	store      kv.Store
	listener   *listener
	logons     logons
	acceptors  acceptors
	news       newsSender
}

// newsSender sends News (35=B).
type newsSender struct {
	mu  sync.Mutex
	out Outbox
}

func productProfile(v *Server) profile {
	return profile{application: app{&v.host, &v.sessions}, settings: productSettings(), codedTexts: true, takeover: true, minHeartBt: wire.MinHeartBtInt, fastPath: !v.options.Leadership.Follower()}
}

// New returns a server without sessions. o has its defaults.
func New(o Options, store kv.Store) (*Server, error) {
	if o.Prepared != nil && !o.Prepared.fits(&o) {
		o.Prepared.Close()
		o.Prepared = nil
	}
	v := &Server{store: store}
	v.options, v.rates, v.failed = o, newRates(o.Rate), make(chan error, 1)
	v.profile = productProfile(v)
	var err error
	if v.options.Dictionary == nil {
		if v.options.Dictionary, err = ReadDictionary(); err != nil {
			return nil, err
		}
	}
	v.validator = v.options.Dictionary.validator
	v.logons, err = newLogons(&v.host, &v.sessions)
	return v, err
}

// Listen opens the socket.
func (v *Server) Listen() error {
	listener, err := v.options.Listen("tcp", v.options.Address)
	if err != nil {
		return fmt.Errorf("fix: %w", err)
	}
	v.listener = newListener(&v.host, v.logons.passwords, listener)
	return nil
}

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

// announce sends news to those of list that are logged on.
func (v *Server) announce(list []*Session, headline, text string) (sent int, err error) {
	v.news.mu.Lock()
	defer v.news.mu.Unlock()
	body := fmt.Appendf(nil, "%s\x0133=1\x0158=%s", headline, text)
	for _, s := range list {
		if !s.loggedOn.Load() || s.kicked.Load() {
			continue
		}
		if err := v.news.out.Send(s, "B", TagHeadline, body, false); err != nil {
			v.Fail(err)
			return sent, err
		}
		sent++
	}
	return sent, nil
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

// DropOld deletes the sent messages that are older than Options.KeepFor.
func (v *Server) DropOld() error {
	if v.options.KeepFor == 0 {
		return nil
	}
	before := v.options.Now().Add(-v.options.KeepFor)
	for _, s := range v.All() {
		if err := s.Messages.dropBefore(before); err != nil {
			return err
		}
	}
	return nil
}

// Serve runs each connection that the listener accepts, until the listener is closed. One
// goroutine writes. Another reads the Logon and, once it is authenticated, gives the connection
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
		conns.Go(func() {
			if err := c.Run(ctx); errors.Is(err, errSlowReader) {
				v.options.Logger.Warn("FIX connection closed: client reads too slowly", "remote", c.RemoteAddr().String(), "reason", err.Error())
			}
		})
		conns.Go(func() {
			if v.logons.admit(c, v.listener) != nil || c.session.Load().acceptor.handOver(c) != nil {
				// The client is gone: the error of Close does not matter.
				_ = c.Close()
			}
		})
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
