package session

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quickfixgo/quickfix"

	"blockdesk/fixgw/participants"
	"blockdesk/fixgw/wire"
)

// application is what a server's sessions serve.
type application interface {
	// open returns what handles the messages of a session that was just made. Nobody
	// else has the session yet.
	NewHandler(*Session) Handler
}

// Handler handles the application messages of one session. Its methods are called one
// at a time, with the session's turn, unless they say otherwise.
type Handler interface {
	// message answers an application message that the dictionary allows. It aliases
	// what was received.
	Message(msgType, frame []byte) *wire.Reject
	// request answers a D, F, G, H or q on the goroutine that has read it off the
	// connection. alone means that no further message was read: then the handler may
	// leave the work to RunInline, and report so by placed.
	OrderRequest(msgType byte, r *wire.OrderRequest, alone bool) (placed bool, no *wire.Reject)
	// RunInline carries out what request has placed. Without the turn.
	RunInline()
	// wished is called when what the last Logon asked for may have changed, and once
	// when the session can take messages. Any goroutine.
	LogonFlagsChanged()
	// LoggedOut ends what lives as long as a logon. Without the turn.
	LoggedOut()
	// CancelOrders cancels the session's orders. Any goroutine.
	CancelOrders()
}

// Session is one CompID's FIX session. It exists as long as the server, logged
// on or not, configured still or not.
type Session struct {
	server      *Server
	id          quickfix.SessionID // its Qualifier is the acceptor's
	Number      uint16             // Origin of its commands
	Participant identity
	Messages    *messageStore
	acceptor    *acceptor // of quickfix's session: see serveBy
	Handler     Handler

	terms   atomic.Pointer[terms] // never nil once the session is in a roster
	removed atomic.Bool           // no more in the participants file: no logon, no request

	// conn is the connection that holds the session; nil = none.
	conn     atomic.Pointer[conn]
	opening  atomic.Bool // a proven Logon is on its way to quickfix
	loggedOn atomic.Bool // between quickfix's OnLogon and OnLogout
	kicked   atomic.Bool // its Logout is on its way; what still comes is dropped
	// What the last Logon asked for; after a restart too.
	CancelOnDisconnect atomic.Bool // 8013
	DropCopy           atomic.Bool // 9406
	Custom             atomic.Bool // 5600: see custom.go
	history            logonHistory

	// entry is held while a connection takes the session, and by whoever must
	// know that none does meanwhile.
	entry sync.Mutex
	// turn is held by whoever handles a message of the client's: quickfix's
	// session goroutine, or the connection's reader (see express.go). It guards
	// limits and out.
	lock   sync.Mutex
	limits limits
	Out    Outbox

	outbound outbound
}

func newSession(v *Server, p *participants.Participant, compID string, number uint16, messages *messageStore) *Session {
	s := &Session{
		server: v, Number: number, Participant: identity{p.Name, p.Number}, Messages: messages,
		id: sessionID(&v.options, compID, ownSet),
	}
	s.setLogonFlags(messages.flags)
	s.outbound.init(s)
	s.Handler = v.application.NewHandler(s)
	return s
}

// CompID returns the client's name in FIX.
func (s *Session) CompID() string { return s.id.TargetCompID }

// Terms returns what the participants file says of the session's participant now.
func (s *Session) Terms() *participants.Participant { return s.terms.Load().Participant }

// Connected reports whether a connection has the session.
func (s *Session) Connected() bool { return s.conn.Load() != nil }

// LoggedOn reports whether the client may trade.
func (s *Session) LoggedOn() bool { return s.loggedOn.Load() }

// serveBy makes a set of quickfix's sessions the one that this session's is of,
// before anybody can log on.
func (s *Session) serveBy(a *acceptor, set string) {
	s.acceptor, s.id.Qualifier = a, set
}

// take reserves the session for c.
func (s *Session) attach(c *conn, l *wire.Logon) error {
	s.entry.Lock()
	defer s.entry.Unlock()
	if s.removed.Load() {
		return errBadLogon
	}
	if !s.conn.CompareAndSwap(nil, c) {
		return fmt.Errorf("%w: session %s is already connected", errConnected, s.id.TargetCompID)
	}
	if err := s.Messages.setFlags(l.Wishes); err != nil {
		s.conn.CompareAndSwap(c, nil)
		s.server.Fail(err)
		return errors.New(s.server.Unserved("the store has failed"))
	}
	s.kicked.Store(false)
	s.opening.Store(true)
	s.setLogonFlags(l.Wishes)
	s.Handler.LogonFlagsChanged()
	return nil
}

// wish takes what a Logon has asked for.
func (s *Session) setLogonFlags(f wire.LogonFlags) {
	s.CancelOnDisconnect.Store(f&wire.FlagCancelOnDisconnect != 0)
	s.DropCopy.Store(f&wire.FlagDropCopy != 0)
	s.Custom.Store(f&wire.FlagCustomFields != 0)
}

// kick ends the session: a Logout with text, then the connection is cut. Any
// goroutine but the session's own inside a callback that quickfix holds a lock
// in.
func (s *Session) kick(text string) {
	if !s.kicked.CompareAndSwap(false, true) {
		return
	}
	s.server.Kicks.Add(1)
	s.server.options.Logger.Info("session_ended", "comp_id", s.id.TargetCompID, "reason", text)
	logout := quickfix.NewMessage()
	logout.Header.SetString(35, "5")
	logout.Body.SetBytes(58, wire.AppendText(nil, text))
	if err := quickfix.SendToTarget(logout, s.id); err != nil {
		s.server.Fail(err)
	}
	if c := s.conn.Load(); c != nil {
		time.AfterFunc(s.server.options.KickGrace, func() { c.cutOff(fmt.Errorf("session ended: %s", text)) })
	}
}

// Behind reports whether the client has left more than that many bytes untaken, or is
// not connected.
func (s *Session) Behind(bytes int) bool {
	c := s.conn.Load()
	return c == nil || c.waiting() > bytes
}

// SendType sends an application message that begins with another field than OrderID
// (37). The caller holds the session's turn.
func (s *Session) SendType(msgType string, firstTag int, body []byte, possResend bool) {
	if err := s.Out.Send(s, msgType, firstTag, body, possResend); err != nil {
		s.server.Fail(err)
	}
}

// end takes the session's right to trade, and reports whether it had it. A
// request that is being handled is through when it returns, and none begins.
func (s *Session) end() bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.outbound.online.Store(nil)
	return s.loggedOn.CompareAndSwap(true, false)
}

// over counts a message and reports whether it is above the session's rate. A session
// that goes on for as many messages as the rate allows in a second is logged out.
func (s *Session) over(now time.Time) bool {
	over, ended := s.limits.over(now, s.server.rates.messages, s.server.options.Rate)
	if ended {
		s.kick(fmt.Sprintf("%s: more than %d messages a second, for too long", wire.CodeRateLimited, s.server.options.Rate))
	}
	return over
}

// remove ends the session for as long as its CompID is not in the file.
func (s *Session) remove() {
	s.entry.Lock()
	defer s.entry.Unlock()
	s.removed.Store(true)
	switch {
	case s.conn.Load() != nil:
		s.kick(removedText) // OnLogout sees to its orders
	case s.CancelOnDisconnect.Load():
		s.Handler.CancelOrders() // it went while we were down, and has not come back
	}
}
