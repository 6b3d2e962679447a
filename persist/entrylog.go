package persist

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Limits of an EntryLog.
const (
	// MaxEntryBytes bounds one entry: a frame and what a consensus library adds.
	MaxEntryBytes = MaxFrameBytes + 1<<10
	// MaxRegisterBytes bounds the name and the value of a register.
	MaxRegisterBytes = 1 << 10
)

// ErrEntryLimit says that an entry or a register is too long, or that entries do not
// follow the last one. Nothing was written.
var ErrEntryLimit = errors.New("entry log: limit exceeded")

// EntryLogOptions are the options of an EntryLog. The zero value of each field but Dir
// means the default of Options.
type EntryLogOptions struct {
	// Dir is the log's own folder; OpenEntryLog creates it. The caller may use its
	// subfolder snapshots.
	Dir                   string
	FS                    vfs.FS
	HighWaterMarkInterval time.Duration
	MemTableBytes         int
	SpareLogs             int
	Logger                *slog.Logger
	// Advice is what a *DamageError says to do.
	Advice string
	// ReadOnly opens a log that exists (else ErrNoStore) without changing the folder.
	// Such a log takes no writes and must not Run.
	ReadOnly bool
}

// EntryLog stores what a consensus library needs: entries under consecutive indexes, of
// which the first or the last may be deleted, and a few registers. It guards its data
// as Store does: a call that returned nil is on disk, the first failure is final, and a
// folder with less than was acknowledged is refused with a *DamageError.
//
// Each write also counts itself, in the database and in the high-water mark, so that a
// lost end is detected, be it of entries, of a truncation or of a register.
//
// Safe for concurrent use; writes are serialized.
type EntryLog struct {
	folder

	write sync.Mutex // one write at a time; guards the folder's batch, buf and count
	buf   []byte
	count uint64 // of writes

	mu          sync.RWMutex
	first, last uint64 // 0, 0: there are no entries
}

// Keys: an entry's begins with 'e', a register's with 'r'. countKey has the number of
// writes (u64) and the hash of the last one (u64), little-endian.
const (
	entryPrefix    = 'e'
	registerPrefix = 'r'
	entryKeyBytes  = 1 + 8
)

func countKey() []byte { return []byte{'c'} }

func entryKey(index uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{entryPrefix}, index)
}

func registerKey(name []byte) []byte { return append([]byte{registerPrefix}, name...) }

// OpenEntryLog opens the log in o.Dir, or creates one in an empty folder, and reads all
// of it. Errors: *DamageError if it does not have what was acknowledged; those of the
// disk.
func OpenEntryLog(o EntryLogOptions) (*EntryLog, error) {
	p := Options{
		Dir: o.Dir, FS: o.FS, HighWaterMarkInterval: o.HighWaterMarkInterval, MemTableBytes: o.MemTableBytes, SpareLogs: o.SpareLogs, Logger: o.Logger,
	}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	p = p.withDefaults()
	l := &EntryLog{folder: folder{
		o: p, layout: layout{fs: p.FS, dir: p.Dir, advice: o.Advice}, fault: fault{log: p.Logger}, highWaterMarkDue: make(chan struct{}, 1),
	}}
	open := l.open
	if o.ReadOnly {
		open = l.openReadOnly
	}
	if err := open(); err != nil {
		return nil, errors.Join(err, l.release())
	}
	return l, nil
}

func (l *EntryLog) open() error {
	var hash uint64
	m, err := l.openToWrite(func(m highWaterMarkRecord) (err error) {
		hash, err = l.verifyEntries(m)
		if err = errors.Join(err, l.fault.err()); err != nil {
			return l.refusal(err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	at := highWaterMarkRecord{phase: open, count: m.count, slot: m.slot, last: l.count, hash: hash}
	if l.highWaterMark, err = openHighWaterMark(l.layout.fs, l.layout.highWaterMark(), at); err != nil {
		return err
	}
	l.batch = l.db.NewBatch(pebble.WithMaxRetainedSizeBytes(1 << 20))
	return nil
}

func (l *EntryLog) openReadOnly() error {
	m, err := l.openToRead()
	if err != nil {
		return err
	}
	if _, err = l.verifyEntries(m); err != nil {
		return l.refusal(err)
	}
	return nil
}

// verifyEntries reads everything, compares the number of writes with the high-water
// mark and finds the first and the last entry. It returns the hash of the last write.
func (l *EntryLog) verifyEntries(m highWaterMarkRecord) (hash uint64, err error) {
	v, closer, err := l.db.Get(countKey())
	switch {
	case errors.Is(err, pebble.ErrNotFound):
	case err != nil:
		return 0, fmt.Errorf("the record of the number of writes: %w", err)
	default:
		if len(v) == 16 {
			l.count, hash = binary.LittleEndian.Uint64(v), binary.LittleEndian.Uint64(v[8:])
		}
		if err := closer.Close(); err != nil {
			return 0, err
		}
	}
	switch {
	case l.count < m.last:
		return 0, fmt.Errorf("the log ends after write %d, but %d were acknowledged", l.count, m.last)
	case l.count == m.last && hash != m.hash:
		return 0, fmt.Errorf("write %d is not the one that the high-water mark names: hash %016x, want %016x", l.count, hash, m.hash)
	}
	it, err := l.db.NewIter(&pebble.IterOptions{LowerBound: []byte{entryPrefix}, UpperBound: []byte{entryPrefix + 1}})
	if err != nil {
		return 0, err
	}
	return hash, errors.Join(l.scanEntries(it), it.Close())
}

func (l *EntryLog) scanEntries(it *pebble.Iterator) error {
	for ok := it.First(); ok; ok = it.Next() {
		key := it.Key()
		if len(key) != entryKeyBytes {
			return fmt.Errorf("%x is not the key of an entry", key)
		}
		index := binary.BigEndian.Uint64(key[1:])
		if l.last != 0 && index != l.last+1 {
			return fmt.Errorf("entry %d follows entry %d", index, l.last)
		}
		if _, err := it.ValueAndErr(); err != nil {
			return fmt.Errorf("entry %d: %w", index, err)
		}
		if l.first == 0 {
			l.first = index
		}
		l.last = index
	}
	return it.Error()
}

// Bounds returns the indexes of the first and the last entry, 0 and 0 if there are
// none.
func (l *EntryLog) Bounds() (first, last uint64) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.first, l.last
}

// Entry calls use with the entry, which is valid only during the call. ok is false, and
// use is not called, if there is no such entry.
func (l *EntryLog) Entry(index uint64, use func(value []byte) error) (ok bool, err error) {
	return l.get(entryKey(index), use)
}

// Register returns a copy of a register's value; ok is false if it was never set.
func (l *EntryLog) Register(name []byte) (value []byte, ok bool, err error) {
	ok, err = l.get(registerKey(name), func(v []byte) error { value = append([]byte{}, v...); return nil })
	return value, ok, err
}

func (l *EntryLog) get(key []byte, use func(value []byte) error) (ok bool, err error) {
	v, closer, err := l.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("entry log: %w", err)
	}
	return true, errors.Join(use(v), closer.Close())
}

// Append writes n entries under first, first+1, … in one synced step. encode appends
// entry i to dst. first must follow the last entry; in an empty log it is any number
// but 0. Errors: ErrEntryLimit; an error that wraps ErrFailed is final.
func (l *EntryLog) Append(first uint64, n int, encode func(dst []byte, i int) []byte) error {
	if n == 0 {
		return nil
	}
	l.write.Lock()
	defer l.write.Unlock()
	if _, last := l.Bounds(); first == 0 || last != 0 && first != last+1 {
		return fmt.Errorf("%w: entry %d does not follow entry %d", ErrEntryLimit, first, last)
	}
	l.batch.Reset()
	for i := range n {
		l.buf = encode(l.buf[:0], i)
		if len(l.buf) > MaxEntryBytes {
			return fmt.Errorf("%w: entry %d of %d bytes: at most %d", ErrEntryLimit, first+uint64(i), len(l.buf), MaxEntryBytes)
		}
		if err := l.batch.Set(entryKey(first+uint64(i)), l.buf, nil); err != nil {
			return l.fault.set(err)
		}
	}
	if err := l.commit(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first == 0 {
		l.first = first
	}
	l.last = first + uint64(n) - 1
	return nil
}

// SetRegister writes one register, synced. Errors: as Append's.
func (l *EntryLog) SetRegister(name, value []byte) error {
	if len(name) > MaxRegisterBytes || len(value) > MaxRegisterBytes {
		return fmt.Errorf("%w: a register with a name of %d bytes and a value of %d: at most %d in all", ErrEntryLimit, len(name), len(value), MaxRegisterBytes)
	}
	l.write.Lock()
	defer l.write.Unlock()
	l.batch.Reset()
	if err := l.batch.Set(registerKey(name), value, nil); err != nil {
		return l.fault.set(err)
	}
	return l.commit()
}

// DeleteRange deletes the entries from through to, inclusive: the first ones, the last
// ones or all, never some in between. Missing entries are ignored. Deleting the last
// ones is on disk when it returns. Deleting the first ones frees their space and may be
// undone by a crash.
func (l *EntryLog) DeleteRange(from, to uint64) error {
	l.write.Lock()
	defer l.write.Unlock()
	first, last := l.Bounds()
	from, to = max(from, first), min(to, last)
	switch {
	case last == 0 || from > to:
		return nil
	case to == last:
		return l.deleteLast(from)
	case from == first:
		return l.deleteFirst(to)
	}
	return fmt.Errorf("%w: cannot delete entries %d to %d of %d to %d: only the first or the last ones", ErrEntryLimit, from, to, first, last)
}

func (l *EntryLog) deleteLast(from uint64) error {
	l.batch.Reset()
	_, last := l.Bounds()
	if err := l.batch.DeleteRange(entryKey(from), entryKey(last+1), nil); err != nil {
		return l.fault.set(err)
	}
	if err := l.commit(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = from - 1
	if from == l.first {
		l.first, l.last = 0, 0
	}
	return nil
}

// deleteFirst excises, because that unlinks whole tables; see Store.prune.
func (l *EntryLog) deleteFirst(to uint64) error {
	if err := l.fault.err(); err != nil {
		return err
	}
	// Move the bound first, so that no reader looks for a deleted entry.
	l.mu.Lock()
	l.first = to + 1
	l.mu.Unlock()
	span := pebble.KeyRange{Start: entryKey(0), End: entryKey(to + 1)}
	if err := l.db.Excise(context.Background(), span); err != nil {
		return l.fault.set(fmt.Errorf("deleting entries up to %d: %w", to, err))
	}
	return l.fault.err()
}

// commit makes the batch durable, counts it and moves the high-water mark. The caller
// holds write.
func (l *EntryLog) commit() (err error) {
	if err := l.fault.err(); err != nil {
		return err
	}
	defer l.fault.catch(&l.poisoned, &err)
	hash := xxhash.Sum64(l.batch.Repr())
	var count [16]byte
	binary.LittleEndian.PutUint64(count[0:], l.count+1)
	binary.LittleEndian.PutUint64(count[8:], hash)
	if err := l.batch.Set(countKey(), count[:], nil); err != nil {
		return l.fault.set(err)
	}
	if err := l.db.Apply(l.batch, pebble.Sync); err != nil {
		return l.fault.set(err)
	}
	// Apply returns nil after a failed sync if the logger's Fatalf returns.
	if err := l.fault.err(); err != nil {
		return err
	}
	l.count++
	if err := l.highWaterMark.write(highWaterMarkRecord{phase: open, last: l.count, hash: hash}); err != nil {
		return l.fault.set(err)
	}
	l.highWaterMarkMoved()
	return nil
}

// Run syncs the high-water mark until ctx ends. It returns the log's failure.
func (l *EntryLog) Run(ctx context.Context) error {
	_ = l.syncHighWaterMark(ctx) // l.fault keeps the error
	<-ctx.Done()
	return l.fault.err()
}

// Failed returns why the log is read-only, nil while it works.
func (l *EntryLog) Failed() error { return l.fault.err() }

// DiskBytes returns what the log's files take. It waits for no disk. Any goroutine.
func (l *EntryLog) DiskBytes() uint64 { return l.db.Metrics().DiskSpaceUsage() }

// Close releases the folder. No other call may be under way. After a failure it writes
// nothing and returns the failure.
func (l *EntryLog) Close() error {
	err := l.fault.err()
	if err == nil && l.highWaterMark != nil { // nil if read-only
		err = l.markClosed()
	}
	return errors.Join(err, l.release())
}
