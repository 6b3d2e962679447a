package fixgw

import (
	"blockdesk/engine/book"
	"blockdesk/market"
)

// request is what a session has sent under one ClOrdID. Guarded by blotter.mu.
type request struct {
	clOrdID string
	msgType byte // D F G q, R, J for AJ; 0 after a restart
	id      market.OrderID
	target  string // OrigClOrdID of an F or G; never changes
	order   *order // nil until accepted
	// claim is nil where there is none; before the answer, it is what was asked for.
	claim *claim
	// answer is the MsgType of the first answer, 0 while there is none.
	answer byte
	// body is the first answer, kept until it is in the store.
	body    []byte
	retired bool // in blotter.closed
	// The terms of a D that is not answered yet, so that F and G may follow it at
	// once; they never change.
	instrument market.InstrumentID
	side       market.Side
	typ        book.Type
}

// requestIndex has a session's requests by ClOrdID: unanswered, live, and recently closed.
// Guarded by blotter.mu.
type requestIndex struct {
	requests      map[string]*request
	pending       int        // requests without an answer
	pendingQuotes int        // of them, QuoteRequests
	closed        []*request // ring of the answered requests that no live order needs
	oldest        int        // next index in closed
}

// addRef adds a request without an answer. False: most requests are pending already.
func (x *requestIndex) addRef(r *request, most int) bool {
	if x.pending >= most {
		return false
	}
	x.pending++
	if r.msgType == 'R' {
		x.pendingQuotes++
	}
	x.requests[r.clOrdID] = r
	return true
}

// refAnswered counts a request as answered.
func (x *requestIndex) refAnswered(r *request) {
	x.pending--
	if r.msgType == 'R' {
		x.pendingQuotes--
	}
}

// removeRef removes a request that will get no answer.
func (x *requestIndex) removeRef(r *request) {
	if x.requests[r.clOrdID] == r && r.answer == 0 {
		delete(x.requests, r.clOrdID)
		x.refAnswered(r)
	}
}

// closeRef adds r to the ring of closed requests. A ring of most entries forgets its
// oldest one first.
func (x *requestIndex) closeRef(r *request, most int) {
	if r.retired || x.requests[r.clOrdID] != r {
		return
	}
	r.retired = true
	if len(x.closed) < most {
		x.closed = append(x.closed, r)
		return
	}
	if old := x.closed[x.oldest]; x.requests[old.clOrdID] == old {
		delete(x.requests, old.clOrdID)
	}
	x.closed[x.oldest] = r
	x.oldest = (x.oldest + 1) % len(x.closed)
}
