package desk

import (
	"sync"
	"sync/atomic"
	"time"

	"blockdesk/engine"
	"blockdesk/engine/rfq"
	"blockdesk/market"
	"blockdesk/persist/projection"
)

// shards is the number of locks of each table. A power of two.
const shards = 64

// waiter is one call of Do. Only the sender on done may touch result and err before
// done has a value in it. A waiter gets one value for each request that it has joined,
// unless it has left before.
type waiter struct {
	done     chan struct{} // capacity 1
	timer    *time.Timer
	joined   bool // another call has sent the request
	result   *Result
	err      error
	commands []engine.Command
	unkeyed  inflight // of a request without a key
}

// inflight is a request on its way to its outcome. With a key it may have several
// waiters. Without a waiter a keyed request stays in flight, because a second request
// with the key must not be sent before the outcome is in the store.
type inflight struct {
	requestID uint64
	key       rfq.IdempotencyKey
	claim     market.ClaimID // that the request names or makes; 0 = none
	waiters   []*waiter      // guarded by the key's shard, if it has a key
	abandoned bool           // has no waiters, and keeps the slot of the last one
}

// table indexes the requests in flight by request ID and by key. The two locks of one
// request are never held together.
type table struct {
	slots   atomic.Int64 // taken: calls of Do, and abandoned requests
	limit   int64
	byID    [shards]requestShard
	keys    [shards]keyShard
	waiters sync.Pool
}

type requestShard struct {
	mu       sync.Mutex
	inflight map[uint64]*inflight
	_        [64]byte // so that no two locks share a cache line
}

type keyShard struct {
	mu       sync.Mutex
	inflight map[[16]byte]*inflight
	// completed counts the requests that have ended. A caller that read the store
	// before one of them ended must read it again.
	completed uint64
	_         [64]byte
}

func (t *table) init(limit int) {
	t.limit = int64(limit)
	for i := range t.byID {
		t.byID[i].inflight = map[uint64]*inflight{}
		t.keys[i].inflight = map[[16]byte]*inflight{}
	}
	t.waiters.New = func() any {
		timer := time.NewTimer(time.Hour)
		timer.Stop()
		return &waiter{done: make(chan struct{}, 1), timer: timer}
	}
}

func (t *table) requestShard(requestID uint64) *requestShard { return &t.byID[requestID%shards] }

func (t *table) keyShard(id *[16]byte) *keyShard { return &t.keys[id[0]%shards] }

// acquire takes a slot and a waiter; nil if there is no slot.
func (t *table) acquire() *waiter {
	if t.slots.Add(1) > t.limit {
		t.slots.Add(-1)
		return nil
	}
	w := t.waiters.Get().(*waiter)
	w.joined, w.result, w.err = false, nil, nil
	return w
}

// release frees the waiter, and its slot unless an abandoned request keeps the
// slot.
func (t *table) release(w *waiter, slotInUse bool) {
	if !slotInUse {
		t.slots.Add(-1)
	}
	w.result, w.err = nil, nil
	t.waiters.Put(w)
}

// add makes f findable by its request ID.
func (t *table) add(f *inflight) {
	s := t.requestShard(f.requestID)
	s.mu.Lock()
	s.inflight[f.requestID] = f
	s.mu.Unlock()
}

// remove undoes add; false means that f's outcome has been found already.
func (t *table) remove(f *inflight) bool {
	s := t.requestShard(f.requestID)
	s.mu.Lock()
	there := s.inflight[f.requestID] == f
	if there {
		delete(s.inflight, f.requestID)
	}
	s.mu.Unlock()
	return there
}

// find reports whether a call waits for the outcome of a request, and which claim the
// request is about.
func (t *table) find(requestID uint64) (claim market.ClaimID, ok bool) {
	s := t.requestShard(requestID)
	s.mu.Lock()
	f := s.inflight[requestID]
	if f != nil {
		claim, ok = f.claim, true
	}
	s.mu.Unlock()
	return claim, ok
}

// complete gives the result to all waiters of a request. If there is a key, the store
// already has the answer.
func (t *table) complete(requestID uint64, r *Result) {
	s := t.requestShard(requestID)
	s.mu.Lock()
	f := s.inflight[requestID]
	delete(s.inflight, requestID)
	s.mu.Unlock()
	switch {
	case f == nil:
	case f.key == rfq.IdempotencyKey{}:
		f.waiters[0].give(r, nil)
	default:
		t.close(f, r, nil)
	}
}

// close ends a keyed request for all its waiters.
func (t *table) close(f *inflight, r *Result, err error) {
	s := t.keyShard(&f.key.ID)
	s.mu.Lock()
	if s.inflight[f.key.ID] != f { // its last waiter has ended it
		s.mu.Unlock()
		return
	}
	delete(s.inflight, f.key.ID)
	s.completed++
	waiters, abandoned := f.waiters, f.abandoned
	f.waiters = nil
	s.mu.Unlock()
	if abandoned {
		t.slots.Add(-1)
	}
	var replayed *Result
	for _, w := range waiters {
		if w.joined && r != nil {
			if replayed == nil {
				replayed = r.asReplayed()
			}
			w.give(replayed, err)
		} else {
			w.give(r, err)
		}
	}
}

func (w *waiter) give(r *Result, err error) {
	w.result, w.err = r, err
	w.done <- struct{}{}
}

// completed returns how many requests of the key's shard have ended.
func (t *table) completed(id *[16]byte) uint64 {
	s := t.keyShard(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.completed
}

// join adds w to the key's request: to the one in flight with the same body (joined),
// or to a new one that w must send. It returns nil if the request in flight has
// another body. storeStale: a request has left since the caller read since from completed,
// so the answer to a new one may be in the store.
func (t *table) join(key *rfq.IdempotencyKey, w *waiter, since uint64) (f *inflight, storeStale bool) {
	s := t.keyShard(&key.ID)
	s.mu.Lock()
	defer s.mu.Unlock()
	f = s.inflight[key.ID]
	switch {
	case f == nil:
		f = &inflight{key: *key}
		s.inflight[key.ID] = f
	case f.key.Body != key.Body:
		return nil, false
	default:
		w.joined = true
		if f.abandoned {
			f.abandoned = false
			t.slots.Add(-1)
		}
	}
	f.waiters = append(f.waiters, w)
	return f, s.completed != since
}

// abandon removes w from f before the outcome; ok is false if the outcome has been found
// and is on its way to w. If f has a key and no waiter is left, f ends with
// endRequest set, and otherwise keeps w's slot.
func (t *table) abandon(f *inflight, w *waiter, endRequest bool) (slotInUse, ok bool) {
	if f.key == (rfq.IdempotencyKey{}) {
		return false, t.remove(f)
	}
	s := t.keyShard(&f.key.ID)
	s.mu.Lock()
	if s.inflight[f.key.ID] != f {
		s.mu.Unlock()
		return false, false
	}
	for i := range f.waiters {
		if f.waiters[i] == w {
			last := len(f.waiters) - 1
			f.waiters[i], f.waiters[last] = f.waiters[last], nil
			f.waiters = f.waiters[:last]
			break
		}
	}
	empty := len(f.waiters) == 0
	if empty && endRequest {
		delete(s.inflight, f.key.ID)
	} else if empty {
		f.abandoned, slotInUse = true, true
	}
	s.mu.Unlock()
	if empty && endRequest {
		t.remove(f)
	}
	return slotInUse, true
}

// Result is the outcome of a request, with the records of what it made or changed as
// they were then. It is shared and read-only.
type Result struct {
	rfq.Outcome
	Quote   *rfq.Quote
	Claim   *rfq.Claim
	Ticket  *rfq.Ticket // the ticket that Outcome.Ticket names
	Payment *rfq.Payment
	// Replayed is set if this is the stored answer to an earlier request with the
	// same key.
	Replayed bool
}

// asReplayed returns r as the answer to a later request with its key.
func (r *Result) asReplayed() *Result {
	c := *r
	c.Replayed = true
	return &c
}

// shared is what the callers of Desk and its projector both use.
type shared struct {
	o     Options
	store *projection.Store
	table table
	view  atomic.Pointer[rfq.View]

	counts struct {
		busy, timeouts, replayed, conflicts atomic.Uint64
		claims                              [rfq.ClaimRefundDue + 1]atomic.Uint64 // records, by state
	}
}

func (d *shared) count(s rfq.ClaimState) {
	if int(s) < len(d.counts.claims) {
		d.counts.claims[s].Add(1)
	}
}
