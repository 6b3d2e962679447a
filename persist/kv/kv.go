// Package kv defines a durable ordered map of bytes, the store of every package that
// must find something after a restart. persist.KV implements it on Pebble, quorum.Store
// in a raft log, kvtest.Memory in memory; package kvtest tests all of them.
//
// Invariants of every implementation: a commit is visible whole or not at all; a crash
// loses commits only from the end; a synced commit is not lost; a Scan sees one moment.
// After a failed commit nothing of it is visible. Limits of keys, values and commits are
// the implementation's.
package kv

import (
	"errors"
	"fmt"
)

// Reader reads an ordered map of bytes. Any goroutine may call its methods.
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

// Store is an ordered durable map of bytes. Any goroutine may call its methods.
type Store interface {
	Reader

	// Commit applies the changes of fill as one atomic step; later changes win over
	// earlier ones. A crash loses commits only from the end: a commit survives whole or
	// not at all, and only if all commits before it survive. With sync, Commit returns
	// when this commit and all before it are durable. An error means that nothing of
	// the commit is visible.
	Commit(fill Fill, sync bool) error
}

// Fill lists the changes of one commit by calling set and deleteRange, which copy their
// arguments and must not be called after Fill returns. deleteRange deletes [lo, hi).
type Fill = func(set func(key, value []byte), deleteRange func(lo, hi []byte))

// ErrStop ends an Each without an error.
var ErrStop = errors.New("kv: stop")

// Each is Scan with a function that may fail: it ends at the first error of f and
// returns it, or the store's error. ErrStop ends it with nil.
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

// Named returns s with a name that begins its errors.
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

// CheckLayout writes version, synced, into a store that has no entry under key. If the
// store has another version the error wraps layout.
func CheckLayout(s Store, key, version byte, layout error) error {
	value, ok, err := s.Get([]byte{key})
	if err == nil && !ok {
		err = s.Commit(func(set func(key, value []byte), _ func(lo, hi []byte)) { set([]byte{key}, []byte{version}) }, true)
	}
	if ok && (len(value) != 1 || value[0] != version) {
		err = fmt.Errorf("%w: its layout has version %x, this program reads version %d", layout, value, version)
	}
	return err
}
