package rfq

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"blockdesk/desk"
	"blockdesk/engine"
	"blockdesk/engine/rfq"
	"blockdesk/fixgw/reports"
	"blockdesk/fixgw/session"
	"blockdesk/fixgw/wire"
	"blockdesk/market"
	"blockdesk/persist/kv"
)

// Engine takes the commands of requests to the desk.
type Engine interface {
	// SubmitAll enqueues the commands of one request, next to each other and all or
	// none: engine.Engine.SubmitAll.
	SubmitAll([]engine.Command) error
}

// Desk is what the gateway reads of the RFQ desk: desk.Desk. Requests go to the Engine,
// and their results come back as its events.
type Desk interface {
	// View returns the newest durable view; nil before the first. It does not
	// block. Any goroutine may call it.
	View() *rfq.View
}

// Settlement makes what a client signs, and proves payments. Any goroutine may call it.
// Clients see only *desk.Refusal; any other error is CHAIN_UNAVAILABLE to them.
type Settlement interface {
	// Ready returns nil where a package can be made now. It does not block.
	Ready() error
	// Package returns what the client needs to pay for a reserved claim, and for the
	// same claim always the same package. A *desk.Refusal gives the reason why there is
	// none. It may block until ctx ends.
	Package(ctx context.Context, c *rfq.Claim, payer desk.FeePayer) (desk.Package, error)
	// Verify looks for a payment on the chain and, if it is final, books it at the desk.
	// It may block until ctx ends.
	Verify(ctx context.Context, p *desk.PaymentProof) (desk.Verdict, error)
}

// Entry is what the requests of all sessions to the desk share.
type Entry struct {
	Engine      Engine
	Desk        Desk       // nil = the desk is not enabled
	Settlement  Settlement // nil = no chain is configured
	Instruments *market.Instruments
	Store       kv.Store
	Requests    *reports.Requests
	Now         func() time.Time
	MaxQuotes   int            // of a session, live or requested
	Group       market.ShardID // part of the ids of quotes and claims; 0 = the instruments are not split
	// Format1 makes only commands that release 0.1.0 reads (engine.Format1).
	Format1 bool
}

// settles reports whether a claim could be reserved now.
func (e *Entry) settles() bool { return e.Settlement != nil && e.Settlement.Ready() == nil }

// view returns the desk's newest view.
func (e *Entry) view() (*rfq.View, *wire.Refusal) {
	if e.Desk == nil {
		return nil, wire.Refuse(wire.OrdRejUnsupported, wire.CodeUnsupported, "the desk is not enabled")
	}
	v := e.Desk.View()
	if v == nil {
		return nil, wire.Refuse(wire.OrdRejOther, wire.CodeOverloaded, "the desk is starting, try again")
	}
	return v, nil
}

// Session has the quotes and claims of one session, and handles its messages to the desk.
type Session struct {
	*reports.Session
	entry    *Entry
	sessions session.Directory[Session]
	payments *Payments

	mu     sync.Mutex
	quotes map[market.QuoteID]*quote // that the desk has not forgotten
	claims map[market.ClaimID]*claim // live ones
}

// NewSession returns the part of this package of a session.
func (e *Entry) NewSession(s *reports.Session, sessions session.Directory[Session], payments *Payments) *Session {
	return &Session{
		Session: s, entry: e, sessions: sessions, payments: payments,
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

// claimOf returns a copy of a claim of the session, live or ended; ok is false if it has
// none with that id. Any goroutine that does not hold its mutex.
func (s *Session) claimOf(id market.ClaimID) (c claim, ok bool, err error) {
	if c, ok = s.liveClaim(id); ok {
		return c, true, nil
	}
	stored, err := storedClaim(s.entry.Store, id, s.sessions)
	if err != nil || stored == nil || stored.owner != s {
		return claim{}, false, err
	}
	return *stored, true, nil
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

// claimUnder returns a copy of the claim that was taken under a ClOrdID, or under
// QuoteRespPrefix and a QuoteRespID, today or yesterday.
func (s *Session) claimUnder(key string) (c claim, ok bool, err error) {
	if len(key) == 0 || len(key) > wire.MaxClOrdID {
		return claim{}, false, nil
	}
	r, asked := s.Find(key)
	if known, isClaim := r.Subject.(*claim); isClaim {
		s.mu.Lock()
		defer s.mu.Unlock()
		return known.snapshot(), true, nil
	}
	if r.Subject != nil { // an order
		return claim{}, false, nil
	}
	if !asked {
		if r.ID, asked, err = s.StoredID([]byte(key)); err != nil || !asked {
			return claim{}, false, err
		}
	}
	if c, ok, err = s.claimOf(market.ClaimID(r.ID)); !ok || c.Ref != key {
		return claim{}, false, err
	}
	return c, true, nil
}

// claimNamed returns a copy of the session's claim by its id, as in OrderID (37), or by
// the ClOrdID that it was taken under.
func (s *Session) claimNamed(orderID, clOrdID []byte) (c claim, ok bool, err error) {
	if id, isClaim := market.ParseClaimID(orderID); isClaim {
		if c, ok, err = s.claimOf(id); ok || err != nil {
			return c, ok, err
		}
	}
	return s.claimUnder(string(clOrdID))
}

// participantClaim returns a copy of a claim that a session of the participant has taken.
func (s *Session) participantClaim(id market.ClaimID) (claim, bool, error) {
	// Live claims first: a new one is in the store a moment later.
	for _, other := range s.sessions.All() {
		if other.Participant.Number == s.Participant.Number {
			if c, ok := other.liveClaim(id); ok {
				return c, true, nil
			}
		}
	}
	stored, err := storedClaim(s.entry.Store, id, s.sessions)
	if err != nil || stored == nil || stored.owner.Participant.Number != s.Participant.Number {
		return claim{}, false, err
	}
	return *stored, true, nil
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
