package fixgw

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
	open(*session) handler
}

// handler handles the application messages of one session. Its methods are called one
// at a time, with the session's turn, unless they say otherwise.
type handler interface {
	// message answers an application message that the dictionary allows. It aliases
	// what was received.
	message(msgType, frame []byte) *wire.Reject
	// request answers a D, F, G, H or q on the goroutine that has read it off the
	// connection. alone means that no further message was read: then the handler may
	// leave the work to runInline, and report so by placed.
	request(msgType byte, r *wire.OrderRequest, alone bool) (placed bool, no *wire.Reject)
	// runInline carries out what request has placed. Without the turn.
	runInline()
	// wished is called when what the last Logon asked for may have changed, and once
	// when the session can take messages. Any goroutine.
	wished()
	// loggedOut ends what lives as long as a logon. Without the turn.
	loggedOut()
	// cancelOrders cancels the session's orders. Any goroutine.
	cancelOrders()
}

// session is one CompID's FIX session. It exists as long as the server, logged
// on or not, configured still or not.
type session struct {
	server      *server
	id          quickfix.SessionID // its Qualifier is the acceptor's
	number      uint16             // Origin of its commands
	participant identity
	messages    *messageStore
	acceptor    *acceptor // of quickfix's session: see serveBy
	handler     handler

	terms   atomic.Pointer[terms] // never nil once the session is in a roster
	removed atomic.Bool           // no more in the participants file: no logon, no request

	// conn is the connection that holds the session; nil = none.
	conn     atomic.Pointer[conn]
	opening  atomic.Bool // a proven Logon is on its way to quickfix
	loggedOn atomic.Bool // between quickfix's OnLogon and OnLogout
	kicked   atomic.Bool // its Logout is on its way; what still comes is dropped
	// What the last Logon asked for; after a restart too.
	cancelOnDisconnect atomic.Bool // 8013
	dropCopy           atomic.Bool // 9406
	custom             atomic.Bool // 5600: see custom.go
	history            history

	// entry is held while a connection takes the session, and by whoever must
	// know that none does meanwhile.
	entry sync.Mutex
	// turn is held by whoever handles a message of the client's: quickfix's
	// session goroutine, or the connection's reader (see express.go). It guards
	// limits and out.
	turn   sync.Mutex
	limits limits
	out    outbox

	line line
}

func newSession(v *server, p *participants.Participant, compID string, number uint16, messages *messageStore) *session {
	s := &session{
		server: v, number: number, participant: identity{p.Name, p.Number}, messages: messages,
		id: sessionID(&v.options, compID, ownSet),
	}
	s.wish(messages.flags)
	s.line.init(s)
	s.handler = v.application.open(s)
	return s
}

// serveBy makes a set of quickfix's sessions the one that this session's is of,
// before anybody can log on.
func (s *session) serveBy(a *acceptor, set string) {
	s.acceptor, s.id.Qualifier = a, set
}

// take reserves the session for c.
func (s *session) take(c *conn, l *wire.Logon) error {
	s.entry.Lock()
	defer s.entry.Unlock()
	if s.removed.Load() {
		return errBadLogon
	}
	if !s.conn.CompareAndSwap(nil, c) {
		return fmt.Errorf("%w: session %s is already connected", errConnected, s.id.TargetCompID)
	}
	if err := s.messages.setFlags(l.Wishes); err != nil {
		s.conn.CompareAndSwap(c, nil)
		s.server.fail(err)
		return errors.New(s.server.unserved("the store has failed"))
	}
	s.kicked.Store(false)
	s.opening.Store(true)
	s.wish(l.Wishes)
	s.handler.wished()
	return nil
}

// wish takes what a Logon has asked for.
func (s *session) wish(f wire.LogonFlags) {
	s.cancelOnDisconnect.Store(f&wire.FlagCancelOnDisconnect != 0)
	s.dropCopy.Store(f&wire.FlagDropCopy != 0)
	s.custom.Store(f&wire.FlagCustomFields != 0)
}

// kick ends the session: a Logout with text, then the connection is cut. Any
// goroutine but the session's own inside a callback that quickfix holds a lock
// in.
func (s *session) kick(text string) {
	if !s.kicked.CompareAndSwap(false, true) {
		return
	}
	s.server.kicks.Add(1)
	s.server.options.Logger.Info("session_ended", "comp_id", s.id.TargetCompID, "reason", text)
	logout := quickfix.NewMessage()
	logout.Header.SetString(35, "5")
	logout.Body.SetBytes(58, wire.AppendText(nil, text))
	if err := quickfix.SendToTarget(logout, s.id); err != nil {
		s.server.fail(err)
	}
	if c := s.conn.Load(); c != nil {
		time.AfterFunc(s.server.options.KickGrace, func() { c.cutOff(fmt.Errorf("session ended: %s", text)) })
	}
}

// behind reports whether the client has left more than that many bytes untaken, or is
// not connected.
func (s *session) behind(bytes int) bool {
	c := s.conn.Load()
	return c == nil || c.waiting() > bytes
}

// sendType sends an application message that begins with another field than OrderID
// (37). The caller holds the session's turn.
func (s *session) sendType(msgType string, firstTag int, body []byte, possResend bool) {
	s.server.out.Add(1)
	if err := s.out.send(s, msgType, firstTag, body, possResend); err != nil {
		s.server.fail(err)
	}
}
