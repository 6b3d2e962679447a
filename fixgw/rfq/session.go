package rfq

import (
	"cmp"
	"slices"
	"sync"

	"blockdesk/engine/rfq"
	"blockdesk/fixgw/reports"
	"blockdesk/fixgw/session"
	"blockdesk/fixgw/wire"
	"blockdesk/market"
)

// Session has the quotes and claims of one session, and handles its messages to the desk.
type Session struct {
	*reports.Session
	entry    *Entry
	sessions session.Directory[Session]

	mu     sync.Mutex
	quotes map[market.QuoteID]*quote // that the desk has not forgotten
	claims map[market.ClaimID]*claim // live ones
}

// quote is a quote that a session was given, live until the desk forgets it. Only
// the reporter changes it, under its owner's mutex; the session reads it under the same
// lock, and sets over when its client passes.
type quote struct {
	wire.ClientQuote
	owner *Session
	over  bool // reported as ended though the desk still has it: nothing more is reported, and no claim takes it

	dirty     bool // changed since the last commit; the reporter's, without the lock
	forgotten bool // the desk has forgotten it; the reporter's
}

// claim is a claim that a session has taken. Only the reporter changes it, under its
// owner's mutex; the session reads it under the same lock.
type claim struct {
	wire.ClientClaim
	owner *Session
	dirty bool // changed since the last commit; the reporter's, without the lock
}

// LiveUnder implements reports.Subject.
func (c *claim) LiveUnder(string) bool { return !c.Over() }

// snapshot returns a copy without the reporter's own fields.
func (c *claim) snapshot() claim { return claim{ClientClaim: c.ClientClaim, owner: c.owner} }

// NewSession returns the part of this package of a session.
func (e *Entry) NewSession(s *reports.Session, sessions session.Directory[Session]) *Session {
	return &Session{
		Session: s, entry: e, sessions: sessions,
		quotes: make(map[market.QuoteID]*quote), claims: make(map[market.ClaimID]*claim),
	}
}

// Open returns copies of the live claims that match, by their ids.
func (s *Session) Open(matches func(market.InstrumentID, market.Side) bool) (list []wire.ClientClaim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.claims {
		if matches(c.Terms.Instrument, market.Buy) {
			list = append(list, c.ClientClaim)
		}
	}
	slices.SortFunc(list, func(a, b wire.ClientClaim) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// reserved returns copies of the claims that wait for a payment.
func (s *Session) reserved() (list []rfq.Claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.claims {
		if c.State == rfq.ClaimReserved {
			list = append(list, c.Claim)
		}
	}
	return list
}

func (s *Session) addQuote(q *quote) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.quotes[q.ID] = q
}

func (s *Session) addClaim(c *claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.claims[c.ID] = c
}

// restoreClaim adds a live claim of the store, before Run.
func (s *Session) restoreClaim(c *claim) {
	s.addClaim(c)
	s.Restore(&reports.Request{ClOrdID: c.Ref, ID: market.OrderID(c.ID), Subject: c})
}

// forgetClaim drops a claim that has ended and is stored as ended. A late payment may make
// it live again, from the store.
func (s *Session) forgetClaim(c *claim) {
	s.mu.Lock()
	delete(s.claims, c.ID)
	s.mu.Unlock()
	s.Detach(c.Ref, c)
}

// liveClaim returns a copy of a claim of the session that has not ended.
func (s *Session) liveClaim(id market.ClaimID) (c claim, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.claims[id]; known != nil {
		return known.snapshot(), true
	}
	return claim{}, false
}

// quoteNamed returns a copy of a live quote of the session.
func (s *Session) quoteNamed(id market.QuoteID) (wire.ClientQuote, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.quotes[id]; q != nil && !q.over {
		return q.ClientQuote, true
	}
	return wire.ClientQuote{}, false
}

// endQuote ends a quote for its client, and returns a copy of it.
func (s *Session) endQuote(id market.QuoteID) (wire.ClientQuote, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.quotes[id]
	if q == nil {
		return wire.ClientQuote{}, false
	}
	q.over = true
	return q.ClientQuote, true
}

// quoteCount returns how many quotes of the session are live or requested.
func (s *Session) quoteCount() int {
	requested := s.Counts().PendingQuotes // first: an answered one is among the quotes
	s.mu.Lock()
	defer s.mu.Unlock()
	return requested + len(s.quotes)
}
