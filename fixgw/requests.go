package fixgw

import (
	"blockdesk/engine/book"
	"blockdesk/fixgw/wire"
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
	body   []byte
	closed bool // in blotter.closed
	// The terms of a D that is not answered yet, so that F and G may follow it at
	// once; they never change.
	instrument market.InstrumentID
	side       market.Side
	typ        book.Type
	tif        book.TIF
	terms      wire.OrderTerms
	// content is wire.OrderRequest.Content; 0 where it is not known.
	content uint64
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

// addRequest adds a request without an answer. False: limit requests are pending already.
func (x *requestIndex) addRequest(r *request, limit int) bool {
	if x.pending >= limit {
		return false
	}
	x.pending++
	if r.msgType == 'R' {
		x.pendingQuotes++
	}
	x.requests[r.clOrdID] = r
	return true
}

// requestAnswered counts a request as answered.
func (x *requestIndex) requestAnswered(r *request) {
	x.pending--
	if r.msgType == 'R' {
		x.pendingQuotes--
	}
}

// removeRequest removes a request that will get no answer.
func (x *requestIndex) removeRequest(r *request) {
	if x.requests[r.clOrdID] == r && r.answer == 0 {
		delete(x.requests, r.clOrdID)
		x.requestAnswered(r)
	}
}

// closeRequest adds r to the ring of closed requests. A ring of limit entries forgets its
// oldest one first.
func (x *requestIndex) closeRequest(r *request, limit int) {
	if r.closed || x.requests[r.clOrdID] != r {
		return
	}
	r.closed = true
	if len(x.closed) < limit {
		x.closed = append(x.closed, r)
		return
	}
	if old := x.closed[x.oldest]; x.requests[old.clOrdID] == old {
		delete(x.requests, old.clOrdID)
	}
	x.closed[x.oldest] = r
	x.oldest = (x.oldest + 1) % len(x.closed)
}
