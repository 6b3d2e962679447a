package archive

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"sync"

	"blockdesk/persist/kv"
)

// memStore is a Store in memory that can lose what was not synced.
type memStore struct {
	mu     sync.Mutex
	states []map[string][]byte // after each commit since the last sync, and before them
	fail   error
}

var errBroken = errors.New("disk is gone")

func newMemStore() *memStore { return &memStore{states: []map[string][]byte{{}}} }

func (s *memStore) values() map[string][]byte { return s.states[len(s.states)-1] }

func (s *memStore) Get(key []byte) ([]byte, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.values()[string(key)]
	return bytes.Clone(v), ok, s.fail
}

func (s *memStore) Scan(lo, hi []byte, f func(key, value []byte) bool) error {
	s.mu.Lock()
	values, fail := s.values(), s.fail
	s.mu.Unlock()
	for _, k := range slices.Sorted(maps.Keys(values)) {
		if k >= string(lo) && k < string(hi) && !f([]byte(k), values[k]) {
			break
		}
	}
	return fail
}

func (s *memStore) Commit(fill kv.Fill, sync bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return s.fail
	}
	next := maps.Clone(s.values())
	fill(func(k, v []byte) { next[string(k)] = bytes.Clone(v) }, func(lo, hi []byte) {
		maps.DeleteFunc(next, func(k string, _ []byte) bool { return k >= string(lo) && k < string(hi) })
	})
	s.states = append(s.states, next)
	if sync {
		s.states = s.states[len(s.states)-1:]
	}
	return nil
}

// crash returns the store as a crash leaves it that takes the last lose commits
// that were not synced; it reports how many could be lost.
func (s *memStore) crash(lose int) (*memStore, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	most := len(s.states) - 1
	kept := s.states[most-min(lose, most)]
	return &memStore{states: []map[string][]byte{maps.Clone(kept)}}, most
}
