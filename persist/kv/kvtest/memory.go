package kvtest

import (
	"bytes"
	"errors"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"sync"

	"blockdesk/persist/kv"
)

// Memory is a kv.Store in memory that can lose unsynced commits, as a crash does, and
// fail, as a disk does.
type Memory struct {
	mu     sync.Mutex
	values map[string][]byte
	keys   []string   // sorted keys of values; nil after one was added or deleted
	log    [][]change // every commit
	synced int        // number of commits in log that are durable
	before func(sync bool) error
	broken error // of every call
}

// change is a set of lo to hi, or the deletion of [lo, hi).
type change struct {
	set    bool
	lo, hi string
}

// All, for Crash, loses everything that was not synced.
const All = math.MaxInt

// ErrBroken is an error for Break and FailCommits.
var ErrBroken = errors.New("the disk is gone")

// New returns an empty store.
func New() *Memory { return &Memory{values: map[string][]byte{}} }

// Get implements kv.Store.
func (m *Memory) Get(key []byte) ([]byte, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.values[string(key)]
	return bytes.Clone(v), ok, m.broken
}

// Scan implements kv.Store.
func (m *Memory) Scan(lo, hi []byte, f func(key, value []byte) bool) error {
	m.mu.Lock()
	err := m.broken
	keys := slices.Clone(m.between(string(lo), string(hi), hi == nil))
	values := make([][]byte, len(keys))
	for i, k := range keys {
		values[i] = m.values[k]
	}
	m.mu.Unlock()
	for i, k := range keys {
		if err != nil || !f([]byte(k), bytes.Clone(values[i])) {
			break
		}
	}
	return err
}

// between returns the keys of a range. The caller holds mu.
func (m *Memory) between(lo, hi string, open bool) []string {
	if m.keys == nil {
		m.keys = slices.Sorted(maps.Keys(m.values))
	}
	from, to := sort.SearchStrings(m.keys, lo), len(m.keys)
	if !open {
		to = sort.SearchStrings(m.keys, hi)
	}
	return m.keys[from:max(from, to)]
}

// Commit implements kv.Store.
func (m *Memory) Commit(fill kv.Fill, sync bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.before != nil {
		if err := m.before(sync); err != nil {
			return err
		}
	}
	if m.broken != nil {
		return m.broken
	}
	var commit []change
	fill(func(key, value []byte) {
		commit = append(commit, change{true, string(key), string(value)})
	}, func(lo, hi []byte) {
		commit = append(commit, change{false, string(lo), string(hi)})
	})
	m.apply(commit)
	m.log = append(m.log, commit)
	if sync {
		m.synced = len(m.log)
	}
	return nil
}

func (m *Memory) apply(commit []change) {
	for _, c := range commit {
		switch {
		case c.set:
			if _, ok := m.values[c.lo]; !ok {
				m.keys = nil
			}
			m.values[c.lo] = []byte(c.hi)
		case c.hi == c.lo+"\x00": // one key, the common case
			m.remove(c.lo)
		default:
			for _, k := range slices.Clone(m.between(c.lo, c.hi, false)) {
				m.remove(k)
			}
		}
	}
}

func (m *Memory) remove(key string) {
	if _, ok := m.values[key]; ok {
		delete(m.values, key)
		m.keys = nil
	}
}

// Before sets a function that each Commit calls first; its error fails the Commit,
// which then writes nothing. f must not call the store.
func (m *Memory) Before(f func(sync bool) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.before = f
}

// FailCommits makes each Commit fail with err; nil ends that. Reads continue.
func (m *Memory) FailCommits(err error) { m.Before(func(bool) error { return err }) }

// Break makes every call fail with err; nil ends that.
func (m *Memory) Break(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.broken = err
}

// Commits returns the number of commits.
func (m *Memory) Commits() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.log)
}

// Synced returns how many of the commits, from the first, are durable.
func (m *Memory) Synced() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.synced
}

// Changes returns the number of changes in commit n, from 0.
func (m *Memory) Changes(n int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.log[n])
}

// Content returns a copy of all entries.
func (m *Memory) Content() map[string]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	content := make(map[string]string, len(m.values))
	for k, v := range m.values {
		content[k] = string(v)
	}
	return content
}

// Put sets an entry without a Commit of the store's owner.
func (m *Memory) Put(key string, value []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.log = append(m.log, []change{{true, key, string(value)}})
	m.apply(m.log[len(m.log)-1])
}

// Drop deletes an entry without a Commit of the store's owner.
func (m *Memory) Drop(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.log = append(m.log, []change{{false, key, key + "\x00"}})
	m.apply(m.log[len(m.log)-1])
}

// Keys returns the keys with a prefix, in order.
func (m *Memory) Keys(prefix string) (keys []string) {
	for k := range m.Content() {
		if strings.HasPrefix(k, prefix) {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

// Prefix returns a store with the first n commits, all durable.
func (m *Memory) Prefix(n int) *Memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.prefix(n)
}

func (m *Memory) prefix(n int) *Memory {
	next := New()
	next.log = slices.Clone(m.log[:n])
	for _, commit := range next.log {
		next.apply(commit)
	}
	next.synced = n
	return next
}

// Crash returns the store after a crash that loses at most lose of the unsynced
// commits.
func (m *Memory) Crash(lose int) *Memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.prefix(max(m.synced, len(m.log)-lose))
}

// CrashAnywhere is Crash with a random loss.
func (m *Memory) CrashAnywhere(r *rand.Rand) *Memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.prefix(m.synced + r.IntN(len(m.log)-m.synced+1))
}
