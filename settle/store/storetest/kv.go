package storetest

import (
	"bytes"
	"slices"
	"sync"

	"blockdesk/persist/kv"
)

// KV is a kv.Store in memory. The zero value is empty and ready.
type KV struct {
	// Before, where it is set, is called before each Commit with its sync; its
	// error is the Commit's, and nothing is written then.
	Before func(sync bool) error

	mu      sync.Mutex
	entries map[string][]byte
	keys    []string // in order
}

// Get is kv.Store's.
func (k *KV) Get(key []byte) ([]byte, bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	value, ok := k.entries[string(key)]
	return bytes.Clone(value), ok, nil
}

// Scan is kv.Store's.
func (k *KV) Scan(lo, hi []byte, f func(key, value []byte) bool) error {
	for _, e := range k.between(lo, hi) {
		if !f(e[0], e[1]) {
			break
		}
	}
	return nil
}

// between copies the entries of a range.
func (k *KV) between(lo, hi []byte) (list [][2][]byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	from, to := k.places(lo, hi)
	for _, key := range k.keys[from:to] {
		list = append(list, [2][]byte{[]byte(key), bytes.Clone(k.entries[key])})
	}
	return list
}

// places returns where a range is in keys. nil hi is no end.
func (k *KV) places(lo, hi []byte) (from, to int) {
	from, _ = slices.BinarySearch(k.keys, string(lo))
	to = len(k.keys)
	if hi != nil {
		to, _ = slices.BinarySearch(k.keys, string(hi))
	}
	return from, max(from, to)
}

// Commit is kv.Store's.
func (k *KV) Commit(fill kv.Fill, sync bool) error {
	if k.Before != nil {
		if err := k.Before(sync); err != nil {
			return err
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	fill(k.set, func(lo, hi []byte) {
		from, to := k.places(lo, hi)
		for _, key := range k.keys[from:to] {
			delete(k.entries, key)
		}
		k.keys = slices.Delete(k.keys, from, to)
	})
	return nil
}

func (k *KV) set(key, value []byte) {
	if k.entries == nil {
		k.entries = map[string][]byte{}
	}
	at, ok := slices.BinarySearch(k.keys, string(key))
	if !ok {
		k.keys = slices.Insert(k.keys, at, string(key))
	}
	k.entries[string(key)] = bytes.Clone(value)
}
