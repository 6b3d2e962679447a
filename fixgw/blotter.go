package fixgw

import (
	"sync"

	"blockdesk/fixgw/session"
	"blockdesk/internal/ratelimit"
	"blockdesk/market"
)

// blotter has the requests of one session by ClOrdID, its live orders, and its quotes and
// claims. It is the session's Handler.
type blotter struct {
	*session.Session
	gateway *Gateway

	// Guarded by the session's lock.
	//
	// alone: no other message has been read from the connection, so a command may be
	// enqueued and executed inline. placed: one was enqueued, for RunInline.
	alone, placed bool
	rebuilds      ratelimit.Bucket // AF, AD and AN
	quoter        massQuoter

	// The reporter's only:
	reports     reportBatch // not sent
	uncommitted bool        // its sent reports wait for the commit

	mu sync.Mutex
	requestIndex
	orders map[market.OrderID]*order // live ones
	desk   *deskClient

	accounts accounts
}

func newBlotter(g *Gateway, s *session.Session) *blotter {
	b := &blotter{
		Session: s, gateway: g, requestIndex: requestIndex{requests: make(map[string]*request)},
		orders: make(map[market.OrderID]*order),
	}
	b.desk = &deskClient{blotter: b, quotes: make(map[market.QuoteID]*quote), claims: make(map[market.ClaimID]*claim)}
	b.quoter.blotter = b
	b.reports.Before = b.publishAnswers
	b.accounts = accounts{session: s.Number, store: g.store}
	return b
}

// restoreOrder adds a live order of the store, before Run.
func (s *blotter) restoreOrder(o *order) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.orders[o.ID] = o
	if o.QuoteSet != 0 {
		return
	}
	s.requests[o.ClOrdID] = &request{clOrdID: o.ClOrdID, msgType: 'D', id: o.ID, order: o, answer: '8'}
}

// register adds a request under a new ClOrdID before it is submitted. False: too many
// requests wait for an answer.
func (s *blotter) register(r *request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addRequest(r, s.gateway.options.MaxPendingOrders)
}

// unregister removes a request whose command the engine has refused.
func (s *blotter) unregister(r *request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removeRequest(r)
}

func (s *blotter) targetOf(clOrdID []byte) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.requests[string(clOrdID)]; r != nil {
		return r.target
	}
	return ""
}

// answerStored drops the answer of r, because the store has it.
func (s *blotter) answerStored(r *request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.body = nil
	inUse := r.order != nil && r.order.Live() && r.order.ClOrdID == r.clOrdID || r.claim != nil && !r.claim.Over()
	if !inUse {
		s.closeLocked(r)
	}
}

// close moves r to the ring of requests that may be forgotten.
func (s *blotter) close(r *request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closeLocked(r)
}

// closeLocked needs mu.
func (s *blotter) closeLocked(r *request) { s.closeRequest(r, s.gateway.options.ClosedRefs) }

// forget drops an order that has ended and is stored as ended.
func (s *blotter) forget(o *order) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.orders, o.ID)
	if o.QuoteSet != 0 {
		return
	}
	if r := s.requests[o.ClOrdID]; r != nil && r.body == nil {
		s.closeLocked(r)
	}
}
