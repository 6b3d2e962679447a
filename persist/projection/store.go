package projection

import (
	"context"
	"encoding/binary"
	"sync"
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
	// SyncKey is the key of a counter, 8 bytes, that Sync writes. Not needed by an
	// owner that never calls Sync.
	SyncKey byte
	// Load decodes the cursor's value and returns its Seq. Open calls it if the store
	// has a cursor.
	Load func(cursor []byte) (seq uint64, err error)
}

// Consumer delivers the events to the owner of a projection: engine.Consumer.
type Consumer interface {
	Next(ctx context.Context) ([]event.Event, error)
	Poll() []event.Event
	Release(n int)
	// CompleteSeq returns the highest Seq whose events have all been returned.
	CompleteSeq() uint64
}

// Store is a kv.Store with a cursor. See the package documentation.
type Store struct {
	kv.Store
	syncKey            byte
	committed, durable atomic.Uint64 // cursors

	// syncing keeps Sync from raising the durable cursor while a Commit lowers it.
	syncing sync.Mutex
	syncs   uint64 // calls of Sync that wrote
}

// Open checks the layout version of a store, or writes it into an empty one, and reads
// the cursor. Errors: those of the store, Layout.Err, those of Layout.Load.
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

// Cursor returns the Seq up to which the store has the changes of every command,
// perhaps not synced. The events of all later commands must be replayed.
func (s *Store) Cursor() uint64 { return s.committed.Load() }

// DurableCursor returns the lowest Seq that Cursor can have after a crash of the machine.
func (s *Store) DurableCursor() uint64 { return s.durable.Load() }

// Commit applies the changes of fill and writes the cursor in one atomic step; with
// sync it returns when both are durable. cursor is the owner's encoding of seq. A seq
// below the last one takes the cursor back, as a Reconcile does.
func (s *Store) Commit(seq uint64, cursor []byte, fill kv.Fill, sync bool) error {
	if seq < s.committed.Load() {
		s.syncing.Lock()
		defer s.syncing.Unlock()
	}
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

// Sync makes durable what was committed before the call. Any goroutine.
func (s *Store) Sync() error {
	s.syncing.Lock()
	defer s.syncing.Unlock()
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
	// A concurrent Commit may have synced more.
	for old := s.durable.Load(); old < committed && !s.durable.CompareAndSwap(old, committed); old = s.durable.Load() {
	}
	return nil
}

// Drain returns a context that ends d after ctx, with cause as its context.Cause. A
// Run method uses it to consume the engine's last events after its own context has
// ended, for a bounded time. cancel ends it immediately.
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
