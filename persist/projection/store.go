package projection

import (
	"context"
	"encoding/binary"
	"sync/atomic"
	"time"

	"blockdesk/engine/event"
	"blockdesk/persist/kv"
)

// The keys that every projection has. Frozen.
const (
	KeyVersion byte = 'v' // layout version, 1 byte
	KeyCursor  byte = 'c' // cursor, in the owner's encoding
)

// Layout describes the owner's entries.
type Layout struct {
	Version byte
	// Err is wrapped by the error of Open where the store has another version.
	Err error
	// Mark is the key that Sync writes a counter to, 8 bytes. An owner that never
	// calls Sync has none.
	SyncKey byte
	// Load reads the cursor's value and returns its Seq. Open calls it where there is
	// one.
	Load func(cursor []byte) (seq uint64, err error)
}

// Consumer is what the owner of a projection follows: engine.Consumer.
type Consumer interface {
	Next(ctx context.Context) ([]event.Event, error)
	Poll() []event.Event
	Release(n int)
	// Whole returns the highest Seq whose events have all been returned.
	CompleteSeq() uint64
}

// Store is a kv.Store with a cursor: see the package.
type Store struct {
	kv.Store
	syncKey byte
	syncs   uint64 // Sync's own

	committed, durable atomic.Uint64
}

// Open checks the layout of a store, or writes it into an empty one, and reads the
// cursor. Errors: those of the store, Layout.Err, those of Layout.Load.
func Open(store kv.Store, l Layout) (*Store, error) {
	s := &Store{Store: store, syncKey: l.SyncKey}
	if err := kv.CheckLayout(s.Store, KeyVersion, l.Version, l.Err); err != nil {
		return nil, err
	}
	value, ok, err := s.Get([]byte{KeyCursor})
	if err != nil || !ok {
		return s, err
	}
	seq, err := l.Load(value)
	s.committed.Store(seq)
	s.durable.Store(seq)
	return s, err
}

// Cursor returns the Seq up to which everything is in the store, though perhaps not
// synced: the events of every later command must be replayed.
func (s *Store) Cursor() uint64 { return s.committed.Load() }

// DurableCursor returns the Cursor that a crash of the machine leaves.
func (s *Store) DurableCursor() uint64 { return s.durable.Load() }

// Commit applies the changes that fill asks for and writes the cursor, which says that
// the store then has everything up to seq, in one step; with sync, it returns when they are
// durable. seq may be lower than before: a Reconcile takes the cursor back.
func (s *Store) Commit(seq uint64, cursor []byte, fill kv.Fill, sync bool) error {
	err := s.Store.Commit(func(set func(key, value []byte), deleteRange func(lo, hi []byte)) {
		fill(set, deleteRange)
		set([]byte{KeyCursor}, cursor)
	}, sync)
	if err != nil {
		return err
	}
	s.committed.Store(seq)
	if sync || seq < s.durable.Load() {
		s.durable.Store(seq)
	}
	return nil
}

// Sync makes durable what was committed before the call. One goroutine at a time; it
// may be another one than Commit's.
func (s *Store) Sync() error {
	committed := s.committed.Load()
	if committed == s.durable.Load() {
		return nil
	}
	s.syncs++
	err := s.Store.Commit(func(set func(key, value []byte), _ func(lo, hi []byte)) {
		set([]byte{s.syncKey}, binary.BigEndian.AppendUint64(nil, s.syncs))
	}, true)
	if err != nil {
		return err
	}
	// A Commit beside it may have synced more.
	for old := s.durable.Load(); old < committed && !s.durable.CompareAndSwap(old, committed); old = s.durable.Load() {
	}
	return nil
}

// Drain returns a context that ends d after ctx, with cause as its context.Cause:
// for a Run that follows the engine's last events past the end of its own context,
// but not for ever. cancel ends it at once.
func Drain(ctx context.Context, d time.Duration, cause error) (drained context.Context, cancel func()) {
	drained, end := context.WithCancelCause(context.WithoutCancel(ctx))
	unhook := context.AfterFunc(ctx, func() {
		time.AfterFunc(d, func() { end(cause) })
	})
	return drained, func() {
		unhook()
		end(nil)
	}
}
