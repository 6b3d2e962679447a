package orders

import (
	"cmp"
	"slices"
	"sync"

	"blockdesk/engine"
	"blockdesk/engine/quotes"
	"blockdesk/fixgw/reports"
	"blockdesk/fixgw/session"
	"blockdesk/fixgw/wire"
	"blockdesk/market"
)

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
	// enqueued and executed inline. enqueued: one was.
	alone, enqueued bool
	mass            massScratch
	lists           listScratch

	mu     sync.Mutex
	orders map[market.OrderID]*order // live ones
}

// massScratch lets mass quotes be submitted without allocation.
type massScratch struct {
	fields   []wire.MassQuoteEntry
	quotes   quotes.Mass
	commands []engine.Command
	key      []byte
}

// NewSession returns the part of this package of a session.
func (e *Entry) NewSession(s *reports.Session, sessions session.Directory[Session], claims Claims) *Session {
	return &Session{
		Session: s, entry: e, sessions: sessions, claims: claims, orders: make(map[market.OrderID]*order),
		accounts: accounts{session: s.Number, store: e.Store},
	}
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
