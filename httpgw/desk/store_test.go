package desk

import (
	"bytes"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"blockdesk/persist/kv"
)

// memStore is a Store in memory that can lose what was not synced.
type memStore struct {
	mu     sync.Mutex
	values map[string][]byte
	keys   []string // of values, sorted; nil = to be made
	log    [][]memOp
	synced int // commits of log that are safe
	fail   error
}

type memOp struct {
	set    bool
	lo, hi string // hi is the value of a set
}

var errBroken = errors.New("disk is gone")

func newMemStore() *memStore { return &memStore{values: map[string][]byte{}} }

func (s *memStore) Get(key []byte) ([]byte, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.values[string(key)]
	return bytes.Clone(v), ok, s.fail
}

func (s *memStore) Scan(lo, hi []byte, f func(key, value []byte) bool) error {
	s.mu.Lock()
	keys, values := s.between(string(lo), string(hi)), maps.Clone(s.values)
	fail := s.fail
	s.mu.Unlock()
	for _, k := range keys {
		if !f([]byte(k), values[k]) {
			break
		}
	}
	return fail
}

func (s *memStore) between(lo, hi string) []string {
	if s.keys == nil {
		s.keys = slices.Sorted(maps.Keys(s.values))
	}
	from, to := sort.SearchStrings(s.keys, lo), sort.SearchStrings(s.keys, hi)
	return slices.Clone(s.keys[from:max(from, to)])
}

func (s *memStore) Commit(fill kv.Fill, sync bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return s.fail
	}
	var ops []memOp
	fill(func(k, v []byte) {
		ops = append(ops, memOp{true, string(k), string(v)})
	}, func(lo, hi []byte) {
		ops = append(ops, memOp{false, string(lo), string(hi)})
	})
	s.apply(ops)
	s.log = append(s.log, ops)
	if sync {
		s.synced = len(s.log)
	}
	return nil
}

func (s *memStore) apply(ops []memOp) {
	for _, o := range ops {
		if o.set {
			if _, there := s.values[o.lo]; !there {
				s.keys = nil
			}
			s.values[o.lo] = []byte(o.hi)
			continue
		}
		if o.hi == o.lo+"\x00" {
			if _, there := s.values[o.lo]; there {
				delete(s.values, o.lo)
				s.keys = nil
			}
			continue
		}
		for _, k := range s.between(o.lo, o.hi) {
			delete(s.values, k)
			s.keys = nil
		}
	}
}

// crash returns what a crash leaves: every synced commit and some of the others,
// the oldest first.
func (s *memStore) crash(r *rand.Rand) *memStore {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.prefix(s.synced + r.IntN(len(s.log)-s.synced+1))
}

// prefix returns a store with the first n commits.
func (s *memStore) prefix(n int) *memStore {
	next := newMemStore()
	for _, ops := range s.log[:n] {
		next.apply(ops)
	}
	next.log = slices.Clone(s.log[:n])
	next.synced = n
	return next
}

func (s *memStore) breakNow() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = errBroken
}

// content is what matters of the store: all but the cursor and the marks.
func (s *memStore) content() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]string{}
	for k, v := range s.values {
		if k[0] != keyCursor && k[0] != keyMark {
			all[k] = string(v)
		}
	}
	return all
}

// hookStore lets a test stop who reads or syncs.
type hookStore struct {
	*memStore
	// gets, while it is not nil, gets a channel from each Get that found nothing
	// yet; it returns when the channel is closed.
	gets   atomic.Pointer[chan chan struct{}]
	onSync func()
}

func (s *hookStore) Get(key []byte) ([]byte, bool, error) {
	v, ok, err := s.memStore.Get(key)
	if hook := s.gets.Load(); hook != nil && !ok && key[0] == keyAnswer {
		c := make(chan struct{})
		*hook <- c
		<-c
	}
	return v, ok, err
}

func (s *hookStore) Commit(fill kv.Fill, sync bool) error {
	err := s.memStore.Commit(fill, sync)
	if sync && s.onSync != nil {
		s.onSync()
	}
	return err
}
