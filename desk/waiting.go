package desk

import (
	"sync"
	"sync/atomic"
	"time"

	"blockdesk/engine"
	"blockdesk/engine/rfq"
	"blockdesk/market"
)

// shards is how many locks the two tables have each. A power of two.
const shards = 64

// waiter is one call of Do. Nobody else may touch result and err before done
// has a token in it; there comes one for each flight that it is in, unless it
// has left the flight before.
type waiter struct {
	done     chan struct{} // capacity 1
	timer    *time.Timer
	joined   bool // another call has sent the request
	result   *Result
	err      error
	commands []engine.Command
	unkeyed  inflight // of a request without a key
}

// flight is one request on its way to its outcome. With a key it may have
// several waiters, or none any more: then it goes on, since a second request
// with the key must not be sent before its outcome is in the store.
type inflight struct {
	token     uint64
	key       rfq.IdempotencyKey
	claim     market.ClaimID // that the request names or makes; 0 = none
	waiters   []*waiter      // guarded by the key's shard, if it has a key
	abandoned bool           // has no waiters and keeps the place of the last one
}

// table has the requests under way by token and by key. The two locks of one
// flight are never held together.
type table struct {
	slots   atomic.Int64 // taken: calls of Do, and orphans
	limit   int64
	tokens  [shards]tokenShard
	keys    [shards]keyShard
	waiters sync.Pool
}

type tokenShard struct {
	mu       sync.Mutex
	inflight map[uint64]*inflight
	_        [64]byte // another line for the next lock
}

type keyShard struct {
	mu       sync.Mutex
	inflight map[[16]byte]*inflight
	// landed counts the flights that have left: who looked into the store
	// before must look again.
	completed uint64
	_         [64]byte
}

func (t *table) init(limit int) {
	t.limit = int64(limit)
	for i := range t.tokens {
		t.tokens[i].inflight = map[uint64]*inflight{}
		t.keys[i].inflight = map[[16]byte]*inflight{}
	}
	t.waiters.New = func() any {
		timer := time.NewTimer(time.Hour)
		timer.Stop()
		return &waiter{done: make(chan struct{}, 1), timer: timer}
	}
}

func (t *table) tokenShard(token uint64) *tokenShard { return &t.tokens[token%shards] }

func (t *table) keyShard(id *[16]byte) *keyShard { return &t.keys[id[0]%shards] }

// enter takes a place and a waiter, or returns nil when there is none left.
func (t *table) acquire() *waiter {
	if t.slots.Add(1) > t.limit {
		t.slots.Add(-1)
		return nil
	}
	w := t.waiters.Get().(*waiter)
	w.joined, w.result, w.err = false, nil, nil
	return w
}

// exit gives the waiter back, and the place unless it was left to an orphan.
func (t *table) release(w *waiter, placeKept bool) {
	if !placeKept {
		t.slots.Add(-1)
	}
	w.result, w.err = nil, nil
	t.waiters.Put(w)
}

// launch lets f's outcome be found by its token.
func (t *table) add(f *inflight) {
	s := t.tokenShard(f.token)
	s.mu.Lock()
	s.inflight[f.token] = f
	s.mu.Unlock()
}

// recall takes f back; false says that its outcome has been found.
func (t *table) remove(f *inflight) bool {
	s := t.tokenShard(f.token)
	s.mu.Lock()
	there := s.inflight[f.token] == f
	if there {
		delete(s.inflight, f.token)
	}
	s.mu.Unlock()
	return there
}

// find reports whether somebody waits for the outcome of token, and which claim
// the request is about.
func (t *table) find(token uint64) (claim market.ClaimID, ok bool) {
	s := t.tokenShard(token)
	s.mu.Lock()
	f := s.inflight[token]
	if f != nil {
		claim, ok = f.claim, true
	}
	s.mu.Unlock()
	return claim, ok
}

// land gives the result to everybody who waits for token. If there is a key, the
// store has the answer already.
func (t *table) complete(token uint64, r *Result) {
	s := t.tokenShard(token)
	s.mu.Lock()
	f := s.inflight[token]
	delete(s.inflight, token)
	s.mu.Unlock()
	switch {
	case f == nil:
	case f.key == rfq.IdempotencyKey{}:
		f.waiters[0].give(r, nil)
	default:
		t.close(f, r, nil)
	}
}

// close ends a flight with a key for all of its waiters.
func (t *table) close(f *inflight, r *Result, err error) {
	s := t.keyShard(&f.key.ID)
	s.mu.Lock()
	if s.inflight[f.key.ID] != f { // its last waiter has left for good
		s.mu.Unlock()
		return
	}
	delete(s.inflight, f.key.ID)
	s.completed++
	waiters, orphan := f.waiters, f.abandoned
	f.waiters = nil
	s.mu.Unlock()
	if orphan {
		t.slots.Add(-1)
	}
	var again *Result
	for _, w := range waiters {
		if w.joined && r != nil {
			if again == nil {
				again = r.again()
			}
			w.give(again, err)
		} else {
			w.give(r, err)
		}
	}
}

func (w *waiter) give(r *Result, err error) {
	w.result, w.err = r, err
	w.done <- struct{}{}
}

// landed returns how many flights of the key's shard have landed so far.
func (t *table) completed(id *[16]byte) uint64 {
	s := t.keyShard(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.completed
}

// board puts w on the flight of the key: a flight under way with the same body
// (joined), or a new one that w has to send. It returns nil where the flight
// under way has another body. unseen says that a flight has landed since the
// caller took the figure since: a new flight's answer may be in the store.
func (t *table) join(key *rfq.IdempotencyKey, w *waiter, since uint64) (f *inflight, unseen bool) {
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

// leave takes w off f before its outcome. ok is false when the outcome has been
// found and is being given. Of a flight with a key that has no waiter left, final
// says that nobody will come back to it: then it ends. Else it keeps w's place.
func (t *table) leave(f *inflight, w *waiter, final bool) (placeKept, ok bool) {
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
	if empty && final {
		delete(s.inflight, f.key.ID)
	} else if empty {
		f.abandoned, placeKept = true, true
	}
	s.mu.Unlock()
	if empty && final {
		t.remove(f)
	}
	return placeKept, true
}
