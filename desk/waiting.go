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
	alone    flight // of a request without a key
}

// flight is one request on its way to its outcome. With a key it may have
// several waiters, or none any more: then it goes on, since a second request
// with the key must not be sent before its outcome is in the store.
type flight struct {
	token   uint64
	key     rfq.Key
	claim   market.ClaimID // that the request names or makes; 0 = none
	waiters []*waiter      // guarded by the key's shard, if it has a key
	orphan  bool           // has no waiters and keeps the place of the last one
}

// table has the requests under way by token and by key. The two locks of one
// flight are never held together.
type table struct {
	places  atomic.Int64 // taken: calls of Do, and orphans
	limit   int64
	tokens  [shards]tokenShard
	keys    [shards]keyShard
	waiters sync.Pool
}

type tokenShard struct {
	mu      sync.Mutex
	flights map[uint64]*flight
	_       [64]byte // another line for the next lock
}

type keyShard struct {
	mu      sync.Mutex
	flights map[[16]byte]*flight
	// landed counts the flights that have left: who looked into the store
	// before must look again.
	landed uint64
	_      [64]byte
}

func (t *table) init(limit int) {
	t.limit = int64(limit)
	for i := range t.tokens {
		t.tokens[i].flights = map[uint64]*flight{}
		t.keys[i].flights = map[[16]byte]*flight{}
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
func (t *table) enter() *waiter {
	if t.places.Add(1) > t.limit {
		t.places.Add(-1)
		return nil
	}
	w := t.waiters.Get().(*waiter)
	w.joined, w.result, w.err = false, nil, nil
	return w
}

// exit gives the waiter back, and the place unless it was left to an orphan.
func (t *table) exit(w *waiter, placeKept bool) {
	if !placeKept {
		t.places.Add(-1)
	}
	w.result, w.err = nil, nil
	t.waiters.Put(w)
}

// launch lets f's outcome be found by its token.
func (t *table) launch(f *flight) {
	s := t.tokenShard(f.token)
	s.mu.Lock()
	s.flights[f.token] = f
	s.mu.Unlock()
}

// recall takes f back; false says that its outcome has been found.
func (t *table) recall(f *flight) bool {
	s := t.tokenShard(f.token)
	s.mu.Lock()
	there := s.flights[f.token] == f
	if there {
		delete(s.flights, f.token)
	}
	s.mu.Unlock()
	return there
}

// find reports whether somebody waits for the outcome of token, and which claim
// the request is about.
func (t *table) find(token uint64) (claim market.ClaimID, ok bool) {
	s := t.tokenShard(token)
	s.mu.Lock()
	f := s.flights[token]
	if f != nil {
		claim, ok = f.claim, true
	}
	s.mu.Unlock()
	return claim, ok
}

// land gives the result to everybody who waits for token. If there is a key, the
// store has the answer already.
func (t *table) land(token uint64, r *Result) {
	s := t.tokenShard(token)
	s.mu.Lock()
	f := s.flights[token]
	delete(s.flights, token)
	s.mu.Unlock()
	switch {
	case f == nil:
	case f.key == rfq.Key{}:
		f.waiters[0].give(r, nil)
	default:
		t.close(f, r, nil)
	}
}

// close ends a flight with a key for all of its waiters.
func (t *table) close(f *flight, r *Result, err error) {
	s := t.keyShard(&f.key.ID)
	s.mu.Lock()
	if s.flights[f.key.ID] != f { // its last waiter has left for good
		s.mu.Unlock()
		return
	}
	delete(s.flights, f.key.ID)
	s.landed++
	waiters, orphan := f.waiters, f.orphan
	f.waiters = nil
	s.mu.Unlock()
	if orphan {
		t.places.Add(-1)
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
func (t *table) landed(id *[16]byte) uint64 {
	s := t.keyShard(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.landed
}

// board puts w on the flight of the key: a flight under way with the same body
// (joined), or a new one that w has to send. It returns nil where the flight
// under way has another body. unseen says that a flight has landed since the
// caller took the figure since: a new flight's answer may be in the store.
func (t *table) board(key *rfq.Key, w *waiter, since uint64) (f *flight, unseen bool) {
	s := t.keyShard(&key.ID)
	s.mu.Lock()
	defer s.mu.Unlock()
	f = s.flights[key.ID]
	switch {
	case f == nil:
		f = &flight{key: *key}
		s.flights[key.ID] = f
	case f.key.Body != key.Body:
		return nil, false
	default:
		w.joined = true
		if f.orphan {
			f.orphan = false
			t.places.Add(-1)
		}
	}
	f.waiters = append(f.waiters, w)
	return f, s.landed != since
}

// leave takes w off f before its outcome. ok is false when the outcome has been
// found and is being given. Of a flight with a key that has no waiter left, final
// says that nobody will come back to it: then it ends. Else it keeps w's place.
func (t *table) leave(f *flight, w *waiter, final bool) (placeKept, ok bool) {
	if f.key == (rfq.Key{}) {
		return false, t.recall(f)
	}
	s := t.keyShard(&f.key.ID)
	s.mu.Lock()
	if s.flights[f.key.ID] != f {
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
		delete(s.flights, f.key.ID)
	} else if empty {
		f.orphan, placeKept = true, true
	}
	s.mu.Unlock()
	if empty && final {
		t.recall(f)
	}
	return placeKept, true
}
