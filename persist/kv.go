package persist

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"blockdesk/persist/kv"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Limits of a KV.
const (
	// MaxKeyBytes and MaxValueBytes bound one entry, MaxCommitBytes one Commit.
	MaxKeyBytes    = 1 << 10
	MaxValueBytes  = 1 << 20
	MaxCommitBytes = 8 << 20
)

const (
	kvMemTable  = 16 << 20
	kvCache     = 64 << 20
	kvSyncEvery = 10 * time.Millisecond
	// kvFreeWithin is how long deleted ranges may keep their space on the disk.
	kvFreeWithin = 10 * time.Second
	// kvMaxSublevels is how many tables a read may have to merge. Above it Commit waits
	// for compactions and checks again every kvPause.
	kvMaxSublevels = 64
	kvPause        = 10 * time.Millisecond
)

// ErrLimit says that a key, a value or a whole commit is too long, or a key is empty.
// Nothing was written.
var ErrLimit = errors.New("kv: limit exceeded")

// KV is a kv.Store on a Pebble database of its own, for what a gateway must find after
// a restart. Commits without sync may be lost with the process or the machine, but only
// from the end: a commit survives whole or not at all, and only if all commits before
// it survive. Safe for concurrent use; readers never wait.
type KV struct {
	db       *pebble.DB
	fault    fault
	poisoned atomic.Bool
	dirty    atomic.Bool   // some commits are not synced
	flushed  atomic.Bool   // a flush ended since awaitCompactions checked
	waits    atomic.Uint64 // pauses of commits for compactions

	mu    sync.Mutex // one Commit at a time
	batch *pebble.Batch
}

// OpenKV opens the store in dir, or creates one in an empty or missing folder. A nil fs
// is the disk, a nil logger slog's default.
func OpenKV(dir string, fs vfs.FS, logger *slog.Logger) (*KV, error) {
	return openKV(dir, fs, logger, kvMemTable)
}

func openKV(dir string, fs vfs.FS, logger *slog.Logger, memTable int) (*KV, error) {
	fs, logger = cmp.Or(fs, vfs.Default), cmp.Or(logger, slog.Default())
	k := &KV{fault: fault{log: logger}}
	fresh, err := freshKV(fs, dir)
	if err != nil {
		return nil, err
	}
	if fresh {
		if err := createKV(fs, dir, &k.fault); err != nil {
			return nil, fmt.Errorf("creating store %s: %w", dir, err)
		}
	}
	data := fs.PathJoin(dir, kvData)
	o, _ := pebbleOptions(fs, data, memTable, &k.fault)
	o.ErrorIfNotExists = true
	o.CacheSize = kvCache
	o.FlushDelayDeleteRange = kvFreeWithin
	// Records of FIX messages and answers repeat their fields.
	o.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return pebble.DBCompressionFastest })
	o.EventListener.FlushEnd = func(pebble.FlushInfo) { k.flushed.Store(true) }
	for i := range o.Levels {
		// Most keys that the FIX gateway looks up are absent, because it checks that a
		// client's id is new.
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	if k.db, err = pebble.Open(data, o); err != nil {
		return nil, fmt.Errorf("opening store %s: %w", dir, err)
	}
	if err := k.fault.err(); err != nil {
		return nil, errors.Join(fmt.Errorf("opening store %s: %w", dir, err), k.db.Close())
	}
	k.batch = k.db.NewBatch()
	return k, nil
}

// kvIncomplete is a file that exists while the store is being created; kvData is
// Pebble's folder.
const (
	kvIncomplete = "making"
	kvData       = "data"
)

// freshKV reports whether there is no store yet: the folder is empty, or a crash
// interrupted its creation.
func freshKV(fs vfs.FS, dir string) (bool, error) {
	if used, err := hasFiles(fs, dir); err != nil || !used {
		return true, err
	}
	_, err := fs.Stat(fs.PathJoin(dir, kvIncomplete))
	if oserror.IsNotExist(err) {
		return false, nil
	}
	return true, err
}

func createKV(fs vfs.FS, dir string, f *fault) error {
	if err := MakeDir(fs, dir, dirMode); err != nil {
		return err
	}
	incomplete := fs.PathJoin(dir, kvIncomplete)
	file, err := fs.Create(incomplete, "blockdesk-kv")
	if err != nil {
		return err
	}
	if err := errors.Join(file.Sync(), file.Close(), syncDir(fs, dir)); err != nil {
		return err
	}
	data := fs.PathJoin(dir, kvData)
	o, _ := pebbleOptions(fs, data, kvMemTable, f)
	if err := fs.RemoveAll(data); err != nil {
		return err
	}
	if err := createPebble(data, o, f); err != nil {
		return err
	}
	return errors.Join(fs.Remove(incomplete), syncDir(fs, dir))
}

// Get implements kv.Reader.
func (k *KV) Get(key []byte) (value []byte, ok bool, err error) {
	v, closer, err := k.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, false, nil
	} else if err != nil {
		return nil, false, fmt.Errorf("kv: reading a key: %w", err)
	}
	value = append([]byte{}, v...)
	return value, true, closer.Close()
}

// Scan implements kv.Reader.
func (k *KV) Scan(lo, hi []byte, f func(key, value []byte) bool) error {
	return scanOver(k.db, lo, hi, f)
}

func scanOver(db pebble.Reader, lo, hi []byte, f func(key, value []byte) bool) error {
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: lo, UpperBound: hi})
	if err != nil {
		return fmt.Errorf("kv: reading a range: %w", err)
	}
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return errors.Join(fmt.Errorf("kv: reading a range: %w", err), it.Close())
		}
		if !f(it.Key(), value) {
			break
		}
	}
	return it.Close() // returns the iterator's error too
}

// KVView is a KV as of one moment. Until it is closed it holds the space of what was
// deleted since.
type KVView struct{ snap *pebble.Snapshot }

// View returns a view of what has been committed so far. Close it before the KV.
func (k *KV) View() *KVView { return &KVView{k.db.NewSnapshot()} }

// Scan is KV.Scan on the view.
func (v *KVView) Scan(lo, hi []byte, f func(key, value []byte) bool) error {
	return scanOver(v.snap, lo, hi, f)
}

// Close releases the view.
func (v *KVView) Close() error { return v.snap.Close() }

// Commit implements kv.Store. It waits while compactions are far behind. Errors:
// ErrLimit; an error that wraps ErrFailed is final.
func (k *KV) Commit(fill kv.Fill, sync bool) error {
	k.awaitCompactions()
	if !sync {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.batch.Reset()
		return k.apply(k.batch, fill, pebble.NoSync)
	}
	return k.commitSynced(k.db.NewBatch(), fill)
}

// commitSynced applies b under the lock and waits for the disk without it, so that
// commits without sync continue. It closes b unless there is an error: Pebble may still
// hold b then.
func (k *KV) commitSynced(b *pebble.Batch, fill kv.Fill) error {
	k.mu.Lock()
	err := k.apply(b, fill, pebble.Sync)
	k.mu.Unlock()
	if err != nil {
		return err
	}
	if err := b.SyncWait(); err != nil {
		return k.fault.set(err)
	}
	if err := k.fault.err(); err != nil {
		return err
	}
	return b.Close()
}

// apply fills b and passes it to Pebble. The caller holds mu.
func (k *KV) apply(b *pebble.Batch, fill kv.Fill, how *pebble.WriteOptions) (err error) {
	if err := k.fault.err(); err != nil {
		return err
	}
	if err := fillBatch(b, fill); err != nil {
		return err
	}
	defer k.fault.catch(&k.poisoned, &err)
	if how.Sync {
		err = k.db.ApplyNoSyncWait(b, how)
	} else {
		k.dirty.Store(true)
		err = k.db.Apply(b, how)
	}
	if err != nil {
		return k.fault.set(err)
	}
	return k.fault.err()
}

// awaitCompactions waits while compactions are too far behind. Pebble would wait by
// itself, but a failure could not end that wait.
func (k *KV) awaitCompactions() {
	for k.flushed.Swap(false) && k.db.Metrics().Levels[0].Sublevels >= kvMaxSublevels && !k.fault.latched() {
		k.flushed.Store(true)
		k.waits.Add(1)
		time.Sleep(kvPause)
	}
}

func fillBatch(b *pebble.Batch, fill kv.Fill) error {
	var refused error
	check := func(key []byte, value int) bool {
		switch {
		case refused != nil:
		case len(key) == 0 || len(key) > MaxKeyBytes:
			refused = fmt.Errorf("%w: key of %d bytes: must be 1 to %d", ErrLimit, len(key), MaxKeyBytes)
		case value > MaxValueBytes:
			refused = fmt.Errorf("%w: value of %d bytes: must be at most %d", ErrLimit, value, MaxValueBytes)
		case b.Len()+len(key)+value > MaxCommitBytes:
			refused = fmt.Errorf("%w: commit of more than %d bytes", ErrLimit, MaxCommitBytes)
		}
		return refused == nil
	}
	fill(func(key, value []byte) {
		if check(key, len(value)) {
			refused = b.Set(key, value, nil)
		}
	}, func(lo, hi []byte) {
		switch {
		case !check(lo, len(hi)) || !check(hi, 0):
		case len(hi) == len(lo)+1 && hi[len(lo)] == 0 && bytes.HasPrefix(hi, lo):
			// The range is one key. A tombstone for a range would be slow: after each
			// new one, the next Get sorts all of the memtable, 0.5 ms if they are many.
			refused = b.Delete(lo, nil)
		default:
			refused = b.DeleteRange(lo, hi, nil)
		}
	})
	return refused
}

// Sync makes everything committed so far durable.
func (k *KV) Sync() error {
	if err := k.fault.err(); err != nil || !k.dirty.Swap(false) {
		return err
	}
	b := k.db.NewBatch()
	// When this empty record is on disk, so is everything before it.
	if err := b.LogData(nil, nil); err != nil {
		return err
	}
	return k.commitSynced(b, func(func(key, value []byte), func(lo, hi []byte)) {})
}

// Run syncs the commits made without sync, every 10 ms, until ctx ends.
func (k *KV) Run(ctx context.Context) error { return every(ctx, kvSyncEvery, k.Sync) }

// DiskBytes returns what the store's files take. It waits for no disk.
func (k *KV) DiskBytes() uint64 { return k.db.Metrics().DiskSpaceUsage() }

// Failed returns why the store is read-only, nil while it works.
func (k *KV) Failed() error { return k.fault.err() }

// Close syncs and closes. No other call may be under way.
func (k *KV) Close() (err error) {
	failed := k.Sync()
	if k.poisoned.Load() {
		return failed
	}
	defer k.fault.catch(&k.poisoned, &err)
	return errors.Join(failed, k.batch.Close(), k.db.Close())
}
