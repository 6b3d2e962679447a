package reports

import (
	"blockdesk/fixgw/wire"
	"blockdesk/market"
)

// Request is what a session has sent under one ClOrdID. Everything but Subject is set
// before it is registered and never changes.
type Request struct {
	ClOrdID string // or a prefix and another id: the key
	MsgType byte   // D F G q i, R, J for AJ; 0 after a restart
	ID      market.OrderID
	// Content is wire.OrderRequest.Content; 0 where it is not known.
	Content    uint64
	Instrument market.InstrumentID
	// The order that a D, F or G asks for, so that an F or G may follow at once.
	Side   market.Side
	Terms  wire.AmendTarget
	Target string // OrigClOrdID of an F or G

	// Subject is the order or claim that the request has made or names, from the answer on;
	// for a claim already before it. nil = none. Guarded by the session's mutex.
	Subject Subject
	// answer is the MsgType of the first answer, 0 while there is none.
	answer byte
	// body is the first answer, kept until it is in the store.
	body   []byte
	closed bool // in index.closed
}

// Subject is the order or claim of a request.
type Subject interface {
	// LiveUnder reports whether the subject is live under that ClOrdID. The caller is the one
	// that changes subjects.
	LiveUnder(clOrdID string) bool
}

// Pending reports whether the request has no answer yet.
func (r *Request) Pending() bool { return r.answer == 0 }

// index has a session's requests by ClOrdID: unanswered, live, and recently closed.
type index struct {
	requests      map[string]*Request
	pending       int        // requests without an answer
	pendingQuotes int        // of them, QuoteRequests
	closed        []*Request // ring of the answered requests that no live subject needs
	oldest        int        // next index in closed
}

// add adds a request without an answer. False: limit requests are pending already.
func (x *index) add(r *Request, limit int) bool {
	if x.pending >= limit {
		return false
	}
	x.pending++
	if r.MsgType == 'R' {
		x.pendingQuotes++
	}
	x.requests[r.ClOrdID] = r
	return true
}

// answered counts a request as answered.
func (x *index) answered(r *Request) {
	x.pending--
	if r.MsgType == 'R' {
		x.pendingQuotes--
	}
}

// remove removes a request that will get no answer.
func (x *index) remove(r *Request) {
	if x.requests[r.ClOrdID] == r && r.answer == 0 {
		delete(x.requests, r.ClOrdID)
		x.answered(r)
	}
}

// close adds r to the ring of closed requests. A ring of limit entries forgets its oldest
// one first.
func (x *index) close(r *Request, limit int) {
	if r.closed || x.requests[r.ClOrdID] != r {
		return
	}
	r.closed = true
	if len(x.closed) < limit {
		x.closed = append(x.closed, r)
		return
	}
	if old := x.closed[x.oldest]; x.requests[old.ClOrdID] == old {
		delete(x.requests, old.ClOrdID)
	}
	x.closed[x.oldest] = r
	x.oldest = (x.oldest + 1) % len(x.closed)
}
