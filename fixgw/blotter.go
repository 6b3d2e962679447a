package fixgw

import (
	"sync"

	"blockdesk/fixgw/session"
	"blockdesk/market"
)

// blotter is what one session's client has asked for and what came of it: its requests
// by ClOrdID, and its live orders, quotes and claims. It handles the messages of its
// session.
type blotter struct {
	*session.Session
	gateway *Gateway

	// Guarded by the session's turn.
	//
	// alone: nothing else has been read of the connection, so a command may be
	// placed and done at once. placed: one was, and wants Engine.RunInline.
	alone, placed bool

	// Only the follower:
	reports     reportBatch // not sent
	uncommitted bool        // its sent reports wait for the commit

	mu sync.Mutex
	requestIndex
	orders map[market.OrderID]*order // live ones
	desk   *deskClient
}

func newBlotter(g *Gateway, s *session.Session) *blotter {
	b := &blotter{
		Session: s, gateway: g, requestIndex: requestIndex{refs: make(map[string]*request)},
		orders: make(map[market.OrderID]*order),
	}
	b.desk = &deskClient{blotter: b, quotes: make(map[market.QuoteID]*quote), claims: make(map[market.ClaimID]*claim)}
	b.reports.Before = b.publishAnswers
	return b
}

// adopt takes a live order from the store, before Run.
func (s *blotter) restoreOrder(o *order) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.orders[o.ID] = o
	s.refs[o.ClOrdID] = &request{clOrdID: o.ClOrdID, msgType: 'D', id: o.ID, order: o, answer: '8'}
}

// enter registers a request under a ClOrdID that is new, before it is
// submitted, or says that too many have no answer yet.
func (s *blotter) enter(r *request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addRef(r, s.gateway.options.MaxPendingOrders)
}

// withdraw takes back what enter has registered, when the engine has not taken
// the command.
func (s *blotter) withdraw(r *request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removeRef(r)
}

func (s *blotter) targetOf(clOrdID []byte) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.refs[string(clOrdID)]; r != nil {
		return r.target
	}
	return ""
}

// settled lets go of the answer of r, which is in the store now.
func (s *blotter) settled(r *request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.body = nil
	inUse := r.order != nil && r.order.Live() && r.order.ClOrdID == r.clOrdID || r.claim != nil && !r.claim.Over()
	if !inUse {
		s.retireLocked(r)
	}
}

// retire moves r to the ring of those that may be forgotten.
func (s *blotter) retire(r *request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retireLocked(r)
}

// retireLocked needs mu.
func (s *blotter) retireLocked(r *request) { s.closeRef(r, s.gateway.options.ClosedRefs) }

// forget drops an order that has ended and is in the store as such.
func (s *blotter) forget(o *order) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.orders, o.ID)
	if r := s.refs[o.ClOrdID]; r != nil && r.body == nil {
		s.retireLocked(r)
	}
}
