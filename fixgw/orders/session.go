package orders

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"blockdesk/engine"
	"blockdesk/fixgw/reports"
	"blockdesk/fixgw/session"
	"blockdesk/fixgw/wire"
	"blockdesk/market"
	"blockdesk/persist/kv"
	"blockdesk/persist/leadership"
)

// Engine takes the commands of orders.
type Engine interface {
	// Submit enqueues a command without waiting: engine.Engine.Submit.
	Submit(*engine.Command) error
	// SubmitAll enqueues the commands of one request, next to each other and all or
	// none: engine.Engine.SubmitAll.
	SubmitAll([]engine.Command) error
	// Enqueue is Submit without waking the matcher: engine.Engine.Enqueue.
	Enqueue(*engine.Command) error
	// NextOrderID returns an id that no order has had: engine.OrderIDs.Next.
	NextOrderID() market.OrderID
	// NextOrderIDs returns the first of n consecutive ids: engine.OrderIDs.NextN.
	NextOrderIDs(n int) market.OrderID
}

// Entry is what the order entry of all sessions shares.
type Entry struct {
	Engine      Engine
	Instruments *market.Instruments
	Store       kv.Store
	Leadership  *leadership.Leadership
	Requests    *reports.Requests
	Now         func() time.Time
	// Format1 makes only commands that release 0.1.0 reads (engine.Format1).
	Format1 bool
}

// Claims answers requests that name a claim of the session in place of an order.
type Claims interface {
	// ChangeClaim answers an F, and with amend a G. It reports false if the request names
	// no claim.
	ChangeClaim(r *wire.OrderRequest, amend bool) (handled bool, reject *wire.Reject)
	// ClaimStatus answers an H in the same way.
	ClaimStatus(r *wire.OrderRequest) (handled bool, reject *wire.Reject)
}

// Session has the live orders of one session, and handles its requests for orders.
type Session struct {
	*reports.Session
	entry    *Entry
	sessions session.Directory[Session]
	claims   Claims
	accounts accounts

	// Guarded by the session's lock.
	//
	// alone: no other message has been read from the connection, so a command may be
	// enqueued and executed inline. placed: one was enqueued.
	alone, placed bool
	quoter        massQuoter

	mu     sync.Mutex
	orders map[market.OrderID]*order // live ones
}

// NewSession returns the part of this package of a session.
func (e *Entry) NewSession(s *reports.Session, sessions session.Directory[Session], claims Claims) *Session {
	own := &Session{
		Session: s, entry: e, sessions: sessions, claims: claims, orders: make(map[market.OrderID]*order),
		accounts: accounts{session: s.Number, store: e.Store},
	}
	own.quoter.Session = own
	return own
}

// Live returns the number of live orders.
func (s *Session) Live() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.orders)
}

// Open returns copies of the live orders that match, by their ids.
func (s *Session) Open(matches func(market.InstrumentID, market.Side) bool) (list []wire.ClientOrder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.orders {
		if o.Live() && matches(o.Instrument, o.Side) {
			list = append(list, o.ClientOrder)
		}
	}
	slices.SortFunc(list, func(a, b wire.ClientOrder) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// restore adds a live order of the store, before Run.
func (s *Session) restore(o *order) {
	s.add(o)
	if o.QuoteSet == 0 {
		s.Restore(&reports.Request{ClOrdID: o.ClOrdID, MsgType: 'D', ID: o.ID, Subject: o})
	}
}

func (s *Session) add(o *order) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.orders[o.ID] = o
}

// forget drops an order that has ended and is stored as ended.
func (s *Session) forget(o *order) {
	s.mu.Lock()
	delete(s.orders, o.ID)
	s.mu.Unlock()
	if o.QuoteSet == 0 {
		s.Close(o.ClOrdID)
	}
}

// live returns a copy of a live order.
func (s *Session) live(id market.OrderID) (wire.ClientOrder, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.orders[id]; o != nil {
		return o.ClientOrder, true
	}
	return wire.ClientOrder{}, false
}

// copyOf returns a copy of an order of the session that may have ended.
func (s *Session) copyOf(o *order) wire.ClientOrder {
	s.mu.Lock()
	defer s.mu.Unlock()
	return o.ClientOrder
}

// stored returns an order that has ended today or yesterday, or nil.
func (s *Session) stored(id market.OrderID) (*order, error) {
	for _, day := range reports.RecentDays(s.entry.Now().UnixNano()) {
		value, ok, err := s.entry.Store.Get(closedKey(nil, day, id))
		if err != nil {
			return nil, err
		}
		if ok {
			return parseOrderRecord(id, value, s.sessions.Numbered)
		}
	}
	return nil, nil
}
