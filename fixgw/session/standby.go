package session

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"blockdesk/fixgw/wire"
	"blockdesk/persist/leadership"
)

// StandbyOptions configures a Standby. The zero value of a field means its default,
// that of Options.
type StandbyOptions struct {
	Address string // host:port to listen on; port 0 picks one
	// Listen binds Address; default net.Listen.
	Listen func(network, addr string) (net.Listener, error)
	TLS    *tls.Config // nil = plain TCP
	CompID string      // ours
	// Leader returns the leader that this node knows of. It must not block. Required.
	Leader func() leadership.Leader

	MaxPending, MaxPendingPerIP int           // connections: of all, of one address (IPv6: one /64)
	LogonBytes                  int           // of the Logon
	LogonTimeout                time.Duration // for the Logon, the handshake of TLS included

	Logger *slog.Logger
}

// Standby holds the FIX address of a node that does not lead. It reads the Logon of
// each connection, answers with a Logout whose text names the leader, and closes. It checks
// no password and knows no session's numbers.
//
// The Logout is outside of the session's numbering, because only the leader can number
// messages: MsgSeqNum is 0, which no message has, and SendingTime is in 1970. An engine
// that checks either one does not count the Logout. QuickFIX C++ counts every Logout with a right SendingTime,
// whatever its number: it would never ask for the message of that number, which may be the
// report of a fill. QuickFIX/Go and /J count none with an unexpected number. So the client
// logs on at the leader with its numbers unchanged (our choice; tested with QuickFIX/Go
// and C++).
type Standby struct {
	o        StandbyOptions
	listener net.Listener

	mu    sync.Mutex
	conns map[net.Conn]bool
	from  map[netip.Addr]int // conns, by address
	ended bool
}

const (
	// standbyLinger is how long a client has to read the Logout and to close, and
	// standbyRest how many of its bytes are read meanwhile.
	standbyLinger = time.Second
	standbyRest   = 64 << 10
)

// NewStandby opens the socket. Close it, or Run it.
func NewStandby(o StandbyOptions) (*Standby, error) {
	all := Options{
		Address: o.Address, Listen: o.Listen, CompID: o.CompID, MaxPending: o.MaxPending, MaxPendingPerIP: o.MaxPendingPerIP,
		LogonBytes: o.LogonBytes, LogonTimeout: o.LogonTimeout, Logger: o.Logger,
	}
	if err := all.Validate(); err != nil {
		return nil, err
	}
	if o.Leader == nil {
		return nil, errors.New("fix: a standby needs StandbyOptions.Leader")
	}
	all = all.WithDefaults()
	o.Listen, o.CompID, o.MaxPending, o.MaxPendingPerIP = all.Listen, all.CompID, all.MaxPending, all.MaxPendingPerIP
	o.LogonBytes, o.LogonTimeout, o.Logger = all.LogonBytes, all.LogonTimeout, all.Logger
	listener, err := o.Listen("tcp", o.Address)
	if err != nil {
		return nil, fmt.Errorf("fix: %w", err)
	}
	return &Standby{o: o, listener: listener, conns: make(map[net.Conn]bool), from: make(map[netip.Addr]int)}, nil
}

// Addr returns the address that the standby listens on.
func (s *Standby) Addr() net.Addr { return s.listener.Addr() }

// Close frees the socket of a standby that is not run.
func (s *Standby) Close() error { return s.listener.Close() }

// Run serves until ctx ends, then closes the socket and every connection. It
// returns nil after an orderly end, and may be called once.
func (s *Standby) Run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		_ = s.listener.Close() // accept ends by it
		s.cutAll()
	})
	defer stop()
	var conns sync.WaitGroup
	defer conns.Wait()
	for {
		conn, err := s.listener.Accept()
		switch {
		case err == nil:
		case ctx.Err() != nil || errors.Is(err, net.ErrClosed):
			return nil
		case isTemporary(err):
			time.Sleep(acceptPause)
			continue
		default:
			s.cutAll()
			return errors.Join(fmt.Errorf("fix: standby: %w", err), s.listener.Close())
		}
		if !s.add(conn) {
			_ = conn.Close() // nothing was sent on it
			continue
		}
		conns.Go(func() {
			defer s.remove(conn)
			if err := s.serve(conn); err != nil {
				s.o.Logger.Debug("FIX standby connection failed", "remote", conn.RemoteAddr().String(), "error", err.Error())
			}
		})
	}
}

// add counts a connection, or returns false when a limit is reached.
func (s *Standby) add(conn net.Conn) bool {
	address := addressOf(conn)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || len(s.conns) >= s.o.MaxPending || s.from[address] >= s.o.MaxPendingPerIP {
		return false
	}
	s.conns[conn] = true
	s.from[address]++
	return true
}

// remove closes a connection and forgets it.
func (s *Standby) remove(conn net.Conn) {
	_ = conn.Close() // the client is gone: the error does not matter
	address := addressOf(conn)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, conn)
	if s.from[address]--; s.from[address] <= 0 {
		delete(s.from, address)
	}
}

// cutAll closes every connection and refuses further ones.
func (s *Standby) cutAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	for conn := range s.conns {
		_ = conn.Close() // its goroutine returns
	}
}

// serve reads a Logon, answers it, and waits for the client to close. Any other message
// gets no answer.
func (s *Standby) serve(inner net.Conn) error {
	if err := inner.SetDeadline(time.Now().Add(s.o.LogonTimeout)); err != nil {
		return err
	}
	conn := inner
	if s.o.TLS != nil {
		conn = tls.Server(inner, s.o.TLS)
	}
	frame, err := readLogon(conn, s.o.LogonBytes)
	if err != nil {
		return err
	}
	reply := standbyLogout(frame, s.o.CompID, s.o.Leader())
	if reply == nil {
		return errBadLogon
	}
	if err := inner.SetDeadline(time.Now().Add(standbyLinger)); err != nil {
		return err
	}
	if _, err := conn.Write(reply); err != nil {
		return err
	}
	// A socket that is closed with bytes unread is reset, and the Logout lost.
	_, err = io.CopyN(io.Discard, conn, standbyRest)
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// readLogon reads the first message of a connection, of at most most bytes.
func readLogon(conn io.Reader, most int) ([]byte, error) {
	in := make([]byte, 0, most)
	for {
		skip, n, err := wire.ScanFrame(in, most-wire.MaxHeader)
		switch {
		case err != nil:
			return nil, err
		case n > 0:
			return in[:n], nil
		case skip > 0:
			return nil, wire.ErrNotFIX
		case len(in) == cap(in):
			return nil, wire.ErrTooLarge
		}
		n, err = conn.Read(in[len(in):cap(in)])
		if in = in[:len(in)+n]; n == 0 && err != nil {
			return nil, err
		}
	}
}

// standbyLogout returns the Logout that answers the Logon in frame; nil if it is not a
// Logon to us.
func standbyLogout(frame []byte, ourCompID string, leader leadership.Leader) []byte {
	var msgType, sender, target []byte
	wire.EachField(frame, func(tag int, value []byte) {
		switch tag {
		case 35:
			msgType = value
		case 49:
			sender = value
		case 56:
			target = value
		}
	})
	if string(msgType) != "A" || string(target) != ourCompID || !wire.IsCompID(string(sender)) {
		return nil
	}
	body := wire.AppendText([]byte("58="), LeaderText(leader))
	return wire.AppendMessage(nil, wire.Header{MsgType: "5", Sender: ourCompID, Target: string(sender), At: time.Unix(0, 0)}, body)
}
