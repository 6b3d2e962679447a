// Package kv is the contract of a durable map: what every package that must find
// something again after a restart asks of its store. persist.KV keeps one on Pebble,
// quorum.Store one in a raft log, kvtest.Memory one in memory; kvtest holds all of
// them to this contract.
package kv

import (
	"errors"
	"fmt"
)

// Reader reads an ordered map of bytes. All methods may be called from any goroutine.
type Reader interface {
	// Get returns a copy of the value of key. ok is false if the key is absent; an
	// empty value is present.
	Get(key []byte) (value []byte, ok bool, err error)

	// Scan calls f with each entry in [lo, hi) in ascending order of keys, as of the
	// moment of the call, until f returns false. A nil lo is the first key, a nil hi
	// is past the last one. key and value are valid only during f, which may call any
	// method of the store: Scan holds no lock that Commit takes.
	Scan(lo, hi []byte, f func(key, value []byte) bool) error
}

// Store is an ordered durable map of bytes. All methods may be called from any
// goroutine.
type Store interface {
	Reader

	// Commit applies the changes that fill asks for as one atomic step; later changes
	// win over earlier ones. A crash loses commits only from the end: a commit survives
	// whole or not at all, and only if all commits before it survive. With sync, Commit
	// returns when this commit and all before it are durable. After an error nothing of
	// it is visible.
	Commit(fill Fill, sync bool) error
}

// Fill asks for the changes of one commit. set and deleteRange copy what they are
// given and must not be called after Fill returns; deleteRange deletes [lo, hi).
type Fill = func(set func(key, value []byte), deleteRange func(lo, hi []byte))

// ErrStop ends an Each without an error.
var ErrStop = errors.New("kv: stop")

// Each is Scan with a function that may fail: it calls f until that returns an error, and
// returns this error, or that of the store. After ErrStop it returns nil.
func Each(r Reader, lo, hi []byte, f func(key, value []byte) error) error {
	var failed error
	err := r.Scan(lo, hi, func(key, value []byte) bool {
		failed = f(key, value)
		return failed == nil
	})
	if err == nil && !errors.Is(failed, ErrStop) {
		err = failed
	}
	return err
}

// Named returns s with a name, which begins its errors.
func Named(s Store, name string) Store { return &named{s, name} }

type named struct {
	store Store
	name  string
}

func (n *named) wrap(err error) error {
	if err != nil {
		err = fmt.Errorf("%s: %w", n.name, err)
	}
	return err
}

func (n *named) Get(key []byte) ([]byte, bool, error) {
	value, ok, err := n.store.Get(key)
	return value, ok, n.wrap(err)
}

func (n *named) Scan(lo, hi []byte, f func(key, value []byte) bool) error {
	return n.wrap(n.store.Scan(lo, hi, f))
}

func (n *named) Commit(fill Fill, sync bool) error { return n.wrap(n.store.Commit(fill, sync)) }

// After returns the first key that is greater than key: [key, After(key)) is key alone.
func After(key []byte) []byte { return append(append(make([]byte, 0, len(key)+1), key...), 0) }

// CheckLayout writes version into a store that has no entry under key, synced, and
// refuses one that has another version, by an error that wraps layout.
func CheckLayout(s Store, key, version byte, layout error) error {
	value, ok, err := s.Get([]byte{key})
	if err == nil && !ok {
		err = s.Commit(func(set func(key, value []byte), _ func(lo, hi []byte)) { set([]byte{key}, []byte{version}) }, true)
	}
	if ok && (len(value) != 1 || value[0] != version) {
		err = fmt.Errorf("%w: layout version %x, this program knows %d", layout, value, version)
	}
	return err
}
