package reports

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"blockdesk/engine"
	"blockdesk/fixgw/session"
	"blockdesk/fixgw/wire"
	"blockdesk/market"
	"blockdesk/persist/kv"
)

// Requests is what the requests of all sessions share.
type Requests struct {
	MaxPending int // requests of a session without an answer
	MaxClosed  int // answered ClOrdIDs that a session keeps in memory
	Now        func() time.Time
	IDs        *wire.IDs // of messages that no event causes

	Duplicates atomic.Uint64 // repeated requests, answered again
	Overloaded atomic.Uint64 // requests refused because of a limit or a full queue

	answers *answers
}

// NewRequests returns the requests of a gateway; their answers are in the store. The caller
// sets the limits.
func NewRequests(store kv.Store, now func() time.Time) *Requests {
	return &Requests{Now: now, IDs: wire.NewIDs(now()), answers: newAnswers(store, now)}
}

// FillFilter adds the store's answers from yesterday on to the filter of answered requests, and
// returns. Until then every request is looked up in the store.
func (q *Requests) FillFilter(ctx context.Context) error { return q.answers.fillFilter(ctx) }

// Session has the requests of one session by ClOrdID, and the reports that are on their way
// to it.
type Session struct {
	*session.Session
	shared *Requests

	// The reporter's only:
	batch       batch // not sent
	uncommitted bool  // its sent reports wait for the commit

	mu sync.Mutex
	index
}

// NewSession returns the part of this package of a session.
func (q *Requests) NewSession(s *session.Session) *Session {
	own := &Session{Session: s, shared: q, index: index{requests: make(map[string]*Request)}}
	own.batch.Before = own.publishAnswers
	return own
}

// Find returns a copy of the request under a ClOrdID.
func (s *Session) Find(clOrdID string) (Request, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.requests[clOrdID]; r != nil {
		return *r, true
	}
	return Request{}, false
}

// Pending calls visit for each request without an answer, under the session's mutex.
func (s *Session) Pending(visit func(*Request)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.requests {
		if r.answer == 0 {
			visit(r)
		}
	}
}

// Counts are the sizes of a session's memory of requests.
type Counts struct {
	Known         int // ClOrdIDs
	Pending       int // requests without an answer
	PendingQuotes int // of them, QuoteRequests
	Closed        int // that no live order or claim needs
}

// Counts returns how many requests the session remembers.
func (s *Session) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Counts{len(s.requests), s.pending, s.pendingQuotes, len(s.closed)}
}

// Restore adds the answered request of a live order or claim of the store, before Run.
func (s *Session) Restore(r *Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.answer = '8'
	s.requests[r.ClOrdID] = r
}

// errPending refuses a request beyond MaxPending.
var errPending = errors.New("too many requests wait for an answer")

// Register adds a request under its new ClOrdID, before its commands are submitted. It returns
// an error if too many requests wait for an answer.
func (s *Session) Register(r *Request) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.add(r, s.shared.MaxPending) {
		s.shared.Overloaded.Add(1)
		return errPending
	}
	return nil
}

// Unregister removes a request whose commands the engine has refused with err.
func (s *Session) Unregister(r *Request, err error) {
	if errors.Is(err, engine.ErrFull) {
		s.shared.Overloaded.Add(1)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(r)
}

// RefusalText returns the text for an error of Register or of the engine.
func (s *Session) RefusalText(err error) string {
	switch {
	case errors.Is(err, errPending):
		return fmt.Sprintf("%s: %d requests of this session wait for an answer", wire.CodeOverloaded, s.shared.MaxPending)
	case errors.Is(err, engine.ErrFull):
		return wire.CodeOverloaded + ": the engine's queue is full, try again"
	}
	return s.UnavailableText(err.Error())
}

// IsOverload reports whether a later repetition may succeed: the error is of Register, or
// the engine takes no command now.
func IsOverload(err error) bool {
	return errors.Is(err, errPending) || errors.Is(err, engine.ErrFull) || errors.Is(err, engine.ErrReadOnly) || errors.Is(err, engine.ErrStopped)
}

// Repeated answers a repeated request with the first answer, or with nothing while the first
// answer is pending. key is that of s.requests: a ClOrdID, or a prefix and another id.
// duplicate means that the first request had other content: the caller refuses this one.
// The caller holds the session's lock.
func (s *Session) Repeated(key []byte, content uint64) (done, duplicate bool, reject *wire.Reject) {
	if len(key) == 0 || len(key) > wire.MaxClOrdID {
		return false, false, nil
	}
	differs := func(first uint64) bool { return first != 0 && first != content }
	s.mu.Lock()
	known := s.requests[string(key)]
	waits := known != nil && known.answer == 0
	if known != nil && differs(known.Content) {
		s.mu.Unlock()
		return false, true, nil
	}
	var first answer
	if known != nil && known.body != nil {
		first = answer{msgType: known.answer, body: known.body}
	}
	s.mu.Unlock()
	if known == nil || !waits && first.body == nil {
		stored, ok, err := s.shared.answers.find(s.Number, key)
		if err != nil {
			return true, false, s.StoreFailed(wire.WithoutPrefix(key), err)
		}
		if known == nil && !ok {
			return false, false, nil
		}
		if differs(stored.content) {
			return false, true, nil
		}
		first = stored
	}
	s.shared.Duplicates.Add(1)
	if len(first.body) > 0 {
		msgType, tag := wire.AnswerForm(first.msgType)
		if !s.Custom.Load() { // the first answer may have had custom fields
			first.body = wire.WithoutCustom(first.body)
		}
		s.Send(msgType, tag, first.body, true)
	}
	return true, false, nil
}

// Used reports whether an earlier request has had that ClOrdID, today or yesterday.
func (s *Session) Used(clOrdID []byte) (bool, error) {
	if _, ok := s.Find(string(clOrdID)); ok {
		return true, nil
	}
	_, ok, err := s.StoredID(clOrdID)
	return ok, err
}

// StoredID returns the id of the order or claim of a request that was answered today or
// yesterday.
func (s *Session) StoredID(clOrdID []byte) (id market.OrderID, ok bool, err error) {
	a, ok, err := s.shared.answers.find(s.Number, clOrdID)
	return a.id, ok, err
}

// StoreFailed ends the service with an error of the store, and rejects the request with
// that id.
func (s *Session) StoreFailed(id []byte, err error) *wire.Reject {
	s.Fail(err)
	return wire.BusinessReject(wire.RejNotAvailable, id, s.UnavailableText(session.StoreFailedText))
}

// SendReport sends a message whose first field is OrderID (37). The caller holds the
// session's lock.
func (s *Session) SendReport(msgType string, body []byte) {
	s.Send(msgType, wire.TagOrderID, body, false)
}

// RejectChange answers an F, or with amend a G, of which nothing is carried out. order has
// the id and the status of the order or claim.
func (s *Session) RejectChange(r *wire.OrderRequest, order wire.CancelReject, amend bool, refusal *wire.Refusal) {
	s.CountReject()
	order.Reason = refusal.Reason
	if order.Reason != wire.CxlRejTooLate && order.Reason != wire.CxlRejUnknownOrder && order.Reason != wire.CxlRejDuplicate {
		order.Reason = wire.CxlRejOther
	}
	order.ClOrdID, order.OrigClOrdID = wire.AppendText(nil, string(r.ClOrdID)), wire.AppendText(nil, string(r.OrigClOrdID))
	if len(order.OrigClOrdID) == 0 {
		order.OrigClOrdID = order.ClOrdID
	}
	order.Amend, order.Text, order.At = amend, wire.AppendText(nil, refusal.Text), s.shared.Now().UnixNano()
	s.Out.Scratch = order.AppendBody(s.Out.Scratch[:0])
	s.SendReport("9", s.Out.Scratch)
}

// answerStored drops the answer of r, because the store has it.
func (s *Session) answerStored(r *Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.body = nil
	if r.Subject == nil || !r.Subject.LiveUnder(r.ClOrdID) {
		s.close(r, s.shared.MaxClosed)
	}
}

// Close moves a request to those that may be forgotten, unless its answer is not in the
// store yet: then answerStored does it.
func (s *Session) Close(clOrdID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.requests[clOrdID]; r != nil && r.body == nil {
		s.close(r, s.shared.MaxClosed)
	}
}

// Detach takes an ended subject from its request, which may be forgotten.
func (s *Session) Detach(clOrdID string, of Subject) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.requests[clOrdID]; r != nil && r.Subject == of {
		r.Subject = nil
		if r.body == nil {
			s.close(r, s.shared.MaxClosed)
		}
	}
}

// publishAnswers publishes the answers of the batch to their requests. From then on a
// repetition of such a request is answered, after the batch.
func (s *Session) publishAnswers() {
	if len(s.batch.answers) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range s.batch.answers {
		u.to.answer, u.to.body = u.code, u.body
	}
}
