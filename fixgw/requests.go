package fixgw

import (
	"blockdesk/engine/book"
	"blockdesk/market"
)

// ref is what a session has said under one ClOrdID. Guarded by blotter.mu.
type request struct {
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
	retired bool // in blotter.closed
	// What a D that is not answered yet asks for, so that F and G may follow it
	// at once; never changes.
	instrument market.InstrumentID
	side       market.Side
	typ        book.Type
}

// requestIndex is what a session has asked for, by ClOrdID: what is not answered, is
// live, or was closed lately. Guarded by blotter.mu.
type requestIndex struct {
	refs          map[string]*request
	pending       int        // refs without an answer
	pendingQuotes int        // of them, those of QuoteRequests
	closed        []*request // ring of the answered refs that live orders do not need
	oldest        int        // next place in closed
}

// addRef registers a request that has no answer yet, unless there are most of them.
func (x *requestIndex) addRef(r *request, most int) bool {
	if x.pending >= most {
		return false
	}
	x.pending++
	if r.msgType == 'R' {
		x.pendingQuotes++
	}
	x.refs[r.clOrdID] = r
	return true
}

// refAnswered counts out a request that gets its first answer.
func (x *requestIndex) refAnswered(r *request) {
	x.pending--
	if r.msgType == 'R' {
		x.pendingQuotes--
	}
}

// removeRef takes a request out that will get no answer.
func (x *requestIndex) removeRef(r *request) {
	if x.refs[r.clOrdID] == r && r.answer == 0 {
		delete(x.refs, r.clOrdID)
		x.refAnswered(r)
	}
}

// closeRef moves r to the ring of the most refs that may be forgotten, the oldest first.
func (x *requestIndex) closeRef(r *request, most int) {
	if r.retired || x.refs[r.clOrdID] != r {
		return
	}
	r.retired = true
	if len(x.closed) < most {
		x.closed = append(x.closed, r)
		return
	}
	if old := x.closed[x.oldest]; x.refs[old.clOrdID] == old {
		delete(x.refs, old.clOrdID)
	}
	x.closed[x.oldest] = r
	x.oldest = (x.oldest + 1) % len(x.closed)
}
