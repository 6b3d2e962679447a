package fixgw

import (
	"bytes"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sort"
	"sync"

	"blockdesk/persist/kv"
)

// memStore is a Store in memory that can lose what was not synced.
type memStore struct {
	mu      sync.Mutex
	keys    []string // sorted, when fresh is
	fresh   bool
	values  map[string][]byte
	synced  int // commits of log that are safe
	log     []commit
	commits int
	syncs   int
	fail    error
}

type commit struct {
	sets   [][2][]byte
	ranges [][2][]byte
	order  []bool // true = set
}

func newMemStore() *memStore { return &memStore{values: map[string][]byte{}} }

func (s *memStore) Get(key []byte) ([]byte, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.values[string(key)]
	return bytes.Clone(v), ok, nil
}

func (s *memStore) Scan(lo, hi []byte, f func(key, value []byte) bool) error {
	s.mu.Lock()
	keys := slices.Clone(s.between(lo, hi))
	s.mu.Unlock()
	for _, k := range keys {
		v, ok, _ := s.Get([]byte(k))
		if ok && !f([]byte(k), v) {
			return nil
		}
	}
	return nil
}

// between returns the keys in [lo, hi). It needs mu.
func (s *memStore) between(lo, hi []byte) []string {
	if !s.fresh {
		s.keys, s.fresh = slices.Sorted(maps.Keys(s.values)), true
	}
	from, to := sort.SearchStrings(s.keys, string(lo)), sort.SearchStrings(s.keys, string(hi))
	return s.keys[from:max(from, to)]
}

func (s *memStore) Commit(fill kv.Fill, sync bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return s.fail
	}
	var c commit
	fill(func(k, v []byte) {
		c.sets = append(c.sets, [2][]byte{bytes.Clone(k), bytes.Clone(v)})
		c.order = append(c.order, true)
	}, func(lo, hi []byte) {
		c.ranges = append(c.ranges, [2][]byte{bytes.Clone(lo), bytes.Clone(hi)})
		c.order = append(c.order, false)
	})
	s.apply(&c)
	s.log = append(s.log, c)
	s.commits++
	if sync {
		s.synced = len(s.log)
		s.syncs++
	}
	return nil
}

func (s *memStore) apply(c *commit) {
	sets, ranges := c.sets, c.ranges
	for _, set := range c.order {
		if set {
			k := string(sets[0][0])
			if _, ok := s.values[k]; !ok {
				s.fresh = false
			}
			s.values[k] = sets[0][1]
			sets = sets[1:]
			continue
		}
		lo, hi := ranges[0][0], ranges[0][1]
		ranges = ranges[1:]
		if bytes.Equal(hi, after(lo)) {
			if _, ok := s.values[string(lo)]; ok {
				delete(s.values, string(lo))
				s.fresh = false
			}
			continue
		}
		for _, k := range slices.Clone(s.between(lo, hi)) {
			delete(s.values, k)
			s.fresh = false
		}
	}
}

// crash returns what a crash leaves: every synced commit and some of the others,
// the oldest first.
func (s *memStore) crash(r *rand.Rand) *memStore {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.synced
	if rest := len(s.log) - n; rest > 0 {
		n += r.IntN(rest + 1)
	}
	return s.prefix(n)
}

// prefix returns a store with the first n commits.
func (s *memStore) prefix(n int) *memStore {
	next := newMemStore()
	for i := range s.log[:n] {
		next.apply(&s.log[i])
	}
	next.log = slices.Clone(s.log[:n])
	next.synced = n
	return next
}

func (s *memStore) break_(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = err
}

var errBroken = errors.New("disk is gone")
