package fixgw

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quickfixgo/quickfix"

	"blockdesk/engine/book"
	"blockdesk/fixgw/wire"
	"blockdesk/internal/ratelimit"
	"blockdesk/market"
)

// session is one CompID's FIX session. It exists as long as the gateway, logged
// on or not, configured still or not.
type session struct {
	gateway     *Gateway
	id          quickfix.SessionID // its Qualifier is the acceptor's
	number      uint16             // Origin of its commands
	participant identity
	messages    *messageStore
	acceptor    *acceptor // of quickfix's session: see serveBy

	terms   atomic.Pointer[terms] // never nil once the session is in a roster
	removed atomic.Bool           // no more in the participants file: no logon, no request

	// conn is the connection that holds the session; nil = none.
	conn     atomic.Pointer[conn]
	opening  atomic.Bool   // a proven Logon is on its way to quickfix
	loggedOn atomic.Bool   // between quickfix's OnLogon and OnLogout
	kicked   atomic.Bool   // its Logout is on its way; what still comes is dropped
	limited  atomic.Uint64 // messages over the rate
	// What the last Logon asked for; after a restart too.
	cancelOnDisconnect atomic.Bool // 8013
	dropCopy           atomic.Bool // 9406
	custom             atomic.Bool // 5600: see custom.go

	// entry is held while a connection takes the session, and by whoever must
	// know that none does meanwhile.
	entry sync.Mutex
	// turn is held by whoever handles a message of the client's: quickfix's
	// session goroutine, or the connection's reader (see express.go). It guards
	// the fields below.
	turn sync.Mutex
	// alone: nothing else has been read of the connection, so a command may be
	// placed and done at once. placed: one was, and wants Engine.Turn.
	alone, placed bool

	rate    ratelimit.Bucket // of messages
	resends ratelimit.Bucket
	strikes int       // messages over the rate
	struck  time.Time // last of them
	out     outbox

	line line

	// Only the follower:
	reports batch // not sent
	owed    bool  // its sent reports wait for the commit

	mu      sync.Mutex
	orders  map[market.OrderID]*order // live ones
	refs    map[string]*ref           // by ClOrdID: what is not answered, live, or just closed
	pending int                       // refs without an answer
	closed  []*ref                    // ring of the answered refs that live orders do not need
	oldest  int                       // next place in closed
	history history
	quotes  map[market.QuoteID]*quote // that the desk has not forgotten
	claims  map[market.ClaimID]*claim // live ones
	asking  int                       // refs of QuoteRequests without an answer
}

// ref is what a session has said under one ClOrdID. Guarded by session.mu.
type ref struct {
	clOrdID string
	msgType byte // D F G q, R, J for AJ; 0 after a restart
	id      market.OrderID
	target  string // OrigClOrdID of an F or G; never changes
	order   *order // nil until accepted
	// claim is nil where there is none; before the answer, what was asked for.
	claim *claim
	// body is the first answer, kept until the store has it. answer is its
	// MsgType, 0 while there is none.
	answer  byte
	body    []byte
	retired bool // in session.closed
	// What a D that is not answered yet asks for, so that F and G may follow it
	// at once; never changes.
	instrument market.InstrumentID
	side       market.Side
	typ        book.Type
}

func newSession(g *Gateway, p *Participant, compID string, number uint16, messages *messageStore) *session {
	s := &session{
		gateway: g, number: number, participant: identity{p.Name, p.Number}, messages: messages,
		id:   sessionID(&g.options, compID, ownSet),
		refs: make(map[string]*ref), orders: make(map[market.OrderID]*order),
		quotes: make(map[market.QuoteID]*quote), claims: make(map[market.ClaimID]*claim),
	}
	s.wish(messages.flags)
	s.line.init(s)
	return s
}

// serveBy makes a set of quickfix's sessions the one that this session's is of,
// before anybody can log on.
func (s *session) serveBy(a *acceptor, set string) {
	s.acceptor, s.id.Qualifier = a, set
}

// adopt takes a live order from the store, before Run.
func (s *session) adopt(o *order) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.orders[o.ID] = o
	s.refs[o.ClOrdID] = &ref{clOrdID: o.ClOrdID, msgType: 'D', id: o.ID, order: o, answer: '8'}
}

// enter registers a request under a ClOrdID that is new, before it is
// submitted, or says that too many have no answer yet.
func (s *session) enter(r *ref) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending >= s.gateway.options.MaxPendingOrders {
		return false
	}
	s.pending++
	if r.msgType == 'R' {
		s.asking++
	}
	s.refs[r.clOrdID] = r
	return true
}

// withdraw takes back what enter has registered, when the engine has not taken
// the command.
func (s *session) withdraw(r *ref) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refs[r.clOrdID] == r && r.answer == 0 {
		delete(s.refs, r.clOrdID)
		s.pending--
		if r.msgType == 'R' {
			s.asking--
		}
	}
}

func (s *session) targetOf(clOrdID []byte) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.refs[string(clOrdID)]; r != nil {
		return r.target
	}
	return ""
}

// settled lets go of the answer of r, which is in the store now.
func (s *session) settled(r *ref) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.body = nil
	inUse := r.order != nil && r.order.Live() && r.order.ClOrdID == r.clOrdID || r.claim != nil && !r.claim.Over()
	if !inUse {
		s.retireLocked(r)
	}
}

// retire moves r to the ring of those that may be forgotten.
func (s *session) retire(r *ref) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retireLocked(r)
}

func (s *session) retireLocked(r *ref) {
	if r.retired || s.refs[r.clOrdID] != r {
		return
	}
	r.retired = true
	if len(s.closed) < s.gateway.options.ClosedRefs {
		s.closed = append(s.closed, r)
		return
	}
	if old := s.closed[s.oldest]; s.refs[old.clOrdID] == old {
		delete(s.refs, old.clOrdID)
	}
	s.closed[s.oldest] = r
	s.oldest = (s.oldest + 1) % len(s.closed)
}

// forget drops an order that has ended and is in the store as such.
func (s *session) forget(o *order) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.orders, o.ID)
	if r := s.refs[o.ClOrdID]; r != nil && r.body == nil {
		s.retireLocked(r)
	}
}

// claim reserves the session for c.
func (s *session) claim(c *conn, l *wire.Logon) error {
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
		s.gateway.fail(err)
		return errors.New(s.gateway.unserved("the store has failed"))
	}
	s.kicked.Store(false)
	s.opening.Store(true)
	s.wish(l.Wishes)
	s.gateway.copies.follow(s)
	return nil
}

// wish takes what a Logon has asked for. Drop copies follow.
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
	s.gateway.kicks.Add(1)
	s.gateway.options.Logger.Info("session_ended", "comp_id", s.id.TargetCompID, "reason", text)
	logout := quickfix.NewMessage()
	logout.Header.SetString(35, "5")
	logout.Body.SetBytes(58, wire.AppendText(nil, text))
	if err := quickfix.SendToTarget(logout, s.id); err != nil {
		s.gateway.fail(err)
	}
	if c := s.conn.Load(); c != nil {
		time.AfterFunc(s.gateway.options.KickGrace, func() { c.cutOff(fmt.Errorf("session ended: %s", text)) })
	}
}
