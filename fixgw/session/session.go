package session

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quickfixgo/quickfix"

	"blockdesk/fixgw/participants"
	"blockdesk/fixgw/wire"
	"blockdesk/market"
	"blockdesk/persist/leadership"
)

// Handler handles the application messages of one session. Its methods are called one at
// a time, under the session's lock, unless their comments say otherwise.
type Handler interface {
	// Message answers an application message that the dictionary allows. The arguments
	// alias the received bytes.
	Message(msgType, frame []byte) *wire.Reject
	// OrderRequest answers a D, F, G, H or q on the goroutine that read it from the
	// connection. alone means that no other message has been read: then the handler may
	// enqueue the command without executing it and return enqueued; RunInline executes it.
	OrderRequest(msgType byte, r *wire.OrderRequest, alone bool) (enqueued bool, reject *wire.Reject)
	// RunInline executes what OrderRequest has enqueued. The session's lock is not held.
	RunInline()
	// LogonFlagsChanged is called when the flags of the last Logon may have changed, and
	// once when the session can take messages. Any goroutine.
	LogonFlagsChanged()
	// LoggedOut ends what lives as long as a logon. The session's lock is not held.
	LoggedOut()
	// CancelOrders cancels the orders that are to end with the connection. Any goroutine.
	CancelOrders()
}

// Session is the FIX session of one CompID. It exists as long as the server, whether it
// is logged on or not, and whether its CompID is still configured or not.
type Session struct {
	host        *host
	id          quickfix.SessionID // its Qualifier is the acceptor's
	Number      uint16             // Origin of its commands
	Participant identity
	Messages    *MessageStore
	acceptor    *acceptor // of quickfix's session: see serveBy
	Handler     Handler

	terms   atomic.Pointer[terms] // never nil once the session is in a registry
	removed atomic.Bool           // not in the participants file any more: no logon, no request

	// conn is the connection that holds the session; nil = none.
	conn     atomic.Pointer[socket]
	opening  atomic.Bool // an authenticated Logon is on its way to quickfix
	loggedOn atomic.Bool // between quickfix's OnLogon and OnLogout
	kicked   atomic.Bool // its Logout is on its way; later messages are dropped
	// The choices of the last Logon; a restart keeps them.
	CancelOnDisconnect atomic.Bool // 8013
	DropCopy           atomic.Bool // 9406
	Custom             atomic.Bool // 5600
	history            logonHistory
	lastPassword       atomic.Pointer[lastPassword]
	// rejected is the text of the Reject that quickfix has just sent; nil = none. Its
	// Logout right after has the same reason.
	rejected atomic.Pointer[string]

	// entry is held while a connection takes the session, and while no connection may
	// take it.
	entry sync.Mutex
	// lock is held while a message of the client is handled, by quickfix's session
	// goroutine or by the connection's reader (fastpath.go). It guards limits and Out.
	lock   sync.Mutex
	limits limits
	Out    Outbox

	outbound outbound
}

// identity identifies a session's participant in commands and events. It never changes.
type identity struct {
	Name   string
	Number market.ParticipantID
}

// terms are the participants file's data of a session, replaced as a whole by a reload.
type terms struct {
	*participants.Participant
	hash *participants.PasswordHash // nil = no logon by password
	key  *[32]byte                  // nil = no logon by signature
}

// lastPassword is the password that a session was last authenticated by.
type lastPassword struct {
	hash string // that it was checked against: a reload may change it
	mac  [sha256.Size]byte
}

func newSession(h *host, p *participants.Participant, compID string, number uint16, messages *MessageStore, newHandler func(*Session) Handler) *Session {
	s := &Session{
		host: h, Number: number, Participant: identity{p.Name, p.Number}, Messages: messages,
		id: sessionID(&h.options, compID, ownSet),
	}
	s.setLogonFlags(messages.flags)
	s.outbound.init(h, &s.id, messages, &s.conn)
	s.Handler = newHandler(s)
	return s
}

// Fail ends the service with an error of a store: Server.Fail.
func (s *Session) Fail(err error) { s.host.Fail(err) }

// UnavailableText is Server.UnavailableText.
func (s *Session) UnavailableText(why string) string { return s.host.UnavailableText(why) }

// NoLeaderText returns the text that refuses a request which only the leader may answer
// while this node cannot confirm that it leads.
func (s *Session) NoLeaderText() string {
	return s.host.LeaderTextOr(LeaderText(leadership.Leader{}))
}

// CountReject counts a message that the gateway has refused.
func (s *Session) CountReject() { s.host.Rejects.Add(1) }

// CompID returns the client's name in FIX.
func (s *Session) CompID() string { return s.id.TargetCompID }

// Terms returns the participants file's present data of the session's participant.
func (s *Session) Terms() *participants.Participant { return s.terms.Load().Participant }

// Connected reports whether a connection has the session.
func (s *Session) Connected() bool { return s.conn.Load() != nil }

// LoggedOn reports whether the client may trade.
func (s *Session) LoggedOn() bool { return s.loggedOn.Load() }

// serveBy assigns the session to one of a's quickfix sessions, before anybody can log on.
func (s *Session) serveBy(a *acceptor, set string) {
	s.acceptor, s.id.Qualifier = a, set
}

// attach gives the session to c.
func (s *Session) attach(c *socket, l *wire.Logon) error {
	s.entry.Lock()
	defer s.entry.Unlock()
	if s.removed.Load() {
		return errBadLogon
	}
	if !s.conn.CompareAndSwap(nil, c) {
		return fmt.Errorf("%w: session %s is already connected", errConnected, s.id.TargetCompID)
	}
	if err := s.Messages.setFlags(l.Flags); err != nil {
		s.conn.CompareAndSwap(c, nil)
		s.host.Fail(err)
		return errors.New(s.host.UnavailableText(StoreFailedText))
	}
	s.kicked.Store(false)
	s.opening.Store(true)
	s.setLogonFlags(l.Flags)
	s.Handler.LogonFlagsChanged()
	return nil
}

func (s *Session) setLogonFlags(f wire.LogonFlags) {
	s.CancelOnDisconnect.Store(f&wire.FlagCancelOnDisconnect != 0)
	s.DropCopy.Store(f&wire.FlagDropCopy != 0)
	s.Custom.Store(f&wire.FlagCustomFields != 0)
}

// kick ends the session: a Logout with text, then the connection is cut. Any goroutine,
// except inside a callback during which quickfix holds a lock.
func (s *Session) kick(text string) {
	if !s.kicked.CompareAndSwap(false, true) {
		return
	}
	s.host.Kicks.Add(1)
	s.host.options.Logger.Info("FIX session logged out by the service", "comp_id", s.id.TargetCompID, "reason", text)
	logout := quickfix.NewMessage()
	logout.Header.SetString(35, "5")
	logout.Body.SetBytes(58, wire.AppendText(nil, text))
	if err := quickfix.SendToTarget(logout, s.id); err != nil {
		s.host.Fail(err)
	}
	if c := s.conn.Load(); c != nil {
		time.AfterFunc(s.host.options.KickGrace, func() { c.cutOff(fmt.Errorf("session ended: %s", text)) })
	}
}

// testRequest asks the client for a sign of life, and reports whether it could: the client
// is logged on. It goes the way of application messages, which only a connection gets that
// has been sent a Logon: meanwhile another may have the session.
func (s *Session) testRequest() bool {
	if !s.loggedOn.Load() {
		return false
	}
	const tagTestReqID = 112
	var out Outbox
	if err := out.Send(s, "1", tagTestReqID, []byte("ANOTHER LOGON"), false); err != nil {
		s.host.Fail(err)
	}
	return true
}

// Behind reports whether more than that many bytes wait for the client, or no client is
// connected.
func (s *Session) Behind(bytes int) bool {
	c := s.conn.Load()
	return c == nil || c.waiting() > bytes
}

// Send sends an application message whose first field is firstTag. body has the form of
// draft. The caller holds the session's lock.
func (s *Session) Send(msgType string, firstTag int, body []byte, possResend bool) {
	if err := s.Out.Send(s, msgType, firstTag, body, possResend); err != nil {
		s.host.Fail(err)
	}
}

// Deliver numbers the messages of b and sends them, or only stores them where the client
// is not logged on. An error is the store's, and final. Any goroutine that holds none of
// quickfix's locks.
func (s *Session) Deliver(b *Batch) error { return s.outbound.deliver(b) }

// Store numbers the messages of b while quickfix does not run. b may be empty: transient
// messages are not sent later.
func (s *Session) Store(b *Batch) error { return s.outbound.store(b) }

// end takes the session's right to trade, and reports whether it had it. It waits for the
// request in hand; none begins afterwards.
func (s *Session) end() bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.outbound.online.Store(nil)
	return s.loggedOn.CompareAndSwap(true, false)
}

// over counts a message and reports whether it is above the session's rate. A client that
// stays above it for as many messages as the rate allows in a second is logged out.
func (s *Session) over(now time.Time) bool {
	over, ended := s.limits.over(now, s.host.rates.messages, s.host.options.Rate)
	if ended {
		s.kick(fmt.Sprintf("%s: more than %d messages a second, for too long", wire.CodeRateLimited, s.host.options.Rate))
	}
	return over
}

// remove ends the session until its CompID is configured again.
func (s *Session) remove() {
	s.entry.Lock()
	defer s.entry.Unlock()
	s.removed.Store(true)
	switch {
	case s.conn.Load() != nil:
		s.kick(removedText) // OnLogout cancels its orders
	default:
		s.Handler.CancelOrders() // the client left while the service was down
	}
}

// Outbox sends application messages one by one. One goroutine at a time.
type Outbox struct {
	batch   Batch
	Scratch []byte
}

// Send gives one message to the session: it is stored, and written when the
// session is logged on. body is in the form of draft; it is copied. An error is
// the store's, and final.
func (o *Outbox) Send(s *Session, msgType string, firstTag int, body []byte, possResend bool) error {
	o.batch.Clear()
	o.batch.Add(msgType, firstTag, body, possResend)
	return s.Deliver(&o.batch)
}

// TagHeadline is the first field of News.
const TagHeadline = 148
