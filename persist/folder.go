package persist

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// ErrNoStore says that the folder has no journal.
var ErrNoStore = errors.New("the folder has no journal: name the data folder of a service")

// folder is what Store, EntryLog and the tools share: a folder that one process locks
// at a time, with a Pebble database, the high-water mark that records how far the data
// reached, and the fault that makes both read-only.
//
// syncHighWaterMark runs beside the writer; release comes after all other calls.
type folder struct {
	o             Options // with defaults; unused if read-only
	layout        layout
	lock          *pebble.Lock
	db            *pebble.DB
	batch         *pebble.Batch // used by the writer alone
	highWaterMark *highWaterMark
	fault         fault
	// highWaterMarkDue, of capacity 1, holds a token while the high-water mark is not synced.
	highWaterMarkDue chan struct{}
	// poisoned: Pebble panicked with its commit lock held, see fault.catch.
	poisoned atomic.Bool
}

func (f *folder) takeLock() error {
	lock, err := pebble.LockDirectory(f.layout.dir, f.layout.fs)
	if err != nil {
		return fmt.Errorf("locking %s: %w: is another process running on it?", f.layout.dir, err)
	}
	f.lock = lock
	return nil
}

// openToWrite locks the folder, has verify check its content, opens its database, which it
// creates if there is none, and returns the high-water mark that the database must reach.
// While verify runs the database is open read-only, because opening it to write flushes its
// logs: a folder that is refused keeps every byte, so that what is wrong can be put right.
// The caller opens the high-water mark for writing and makes the batch.
func (f *folder) openToWrite(verify func(highWaterMarkRecord) error) (highWaterMarkRecord, error) {
	if err := MakeDir(f.layout.fs, f.layout.dir, dirMode); err != nil {
		return highWaterMarkRecord{}, err
	}
	if err := f.takeLock(); err != nil {
		return highWaterMarkRecord{}, err
	}
	m, bad, fresh, err := f.layout.findHighWaterMark()
	if err != nil {
		return highWaterMarkRecord{}, err
	}
	if bad > 0 && !fresh {
		f.fault.log.Warn("some slots of the high-water mark are invalid, using the newest valid one", "slots", bad)
	}
	if fresh {
		o, _ := pebbleOptions(f.layout.fs, f.layout.frames(), f.o.MemTableBytes, &f.fault)
		if err := f.layout.create(o, &f.fault); err != nil {
			return highWaterMarkRecord{}, err
		}
		m = highWaterMarkRecord{phase: closed}
	}
	if err := f.verifyReadOnly(m, verify); err != nil {
		return highWaterMarkRecord{}, err
	}
	o, logs := pebbleOptions(f.layout.fs, f.layout.frames(), f.o.MemTableBytes, &f.fault)
	if err := logs.fill(f.layout.spares(), max(0, f.o.SpareLogs), f.o.MemTableBytes); err != nil {
		return highWaterMarkRecord{}, err
	}
	o.ErrorIfNotExists = true
	if f.db, err = pebble.Open(f.layout.frames(), o); err != nil {
		return highWaterMarkRecord{}, f.refusal(err)
	}
	return m, nil
}

// verifyReadOnly calls verify while the database is open read-only.
func (f *folder) verifyReadOnly(m highWaterMarkRecord, verify func(highWaterMarkRecord) error) error {
	if err := f.readFrames(); err != nil {
		return err
	}
	err := errors.Join(verify(m), f.closePebble())
	f.db = nil
	return err
}

// openToRead locks the folder, which must have a store, opens its database without
// changing a file and returns the high-water mark that it must reach. Errors:
// ErrNoStore, *DamageError, those of the disk.
func (f *folder) openToRead() (highWaterMarkRecord, error) {
	l := f.layout
	if used, err := hasFiles(l.fs, l.dir); err != nil || !used {
		return highWaterMarkRecord{}, errors.Join(err, fmt.Errorf("%w: %s", ErrNoStore, l.dir))
	}
	if err := f.takeLock(); err != nil {
		return highWaterMarkRecord{}, err
	}
	m, _, fresh, err := l.findHighWaterMark()
	if err != nil {
		return highWaterMarkRecord{}, err
	} else if fresh {
		return highWaterMarkRecord{}, fmt.Errorf("%w: %s", ErrNoStore, l.dir)
	}
	return m, f.readFrames()
}

// readFrames opens the frames without changing a file.
func (f *folder) readFrames() error {
	o, _ := pebbleOptions(f.layout.fs, f.layout.frames(), 64<<20, &f.fault)
	o.ReadOnly = true
	db, err := pebble.Open(f.layout.frames(), o)
	if err != nil {
		return f.refusal(err)
	}
	f.db = db
	return nil
}

// refusal returns why the frames cannot be used: a *DamageError, or the disk's error if
// a write that opening needs has failed.
func (f *folder) refusal(err error) error {
	if failed := f.fault.err(); errors.Is(failed, errDisk) {
		return failed
	}
	return f.layout.damage(f.layout.frames(), err)
}

// highWaterMarkMoved makes syncHighWaterMark sync soon. It never waits.
func (f *folder) highWaterMarkMoved() {
	select {
	case f.highWaterMarkDue <- struct{}{}:
	default:
	}
}

// syncHighWaterMark syncs the high-water mark soon after it moves, at most once in
// HighWaterMarkInterval, until ctx ends or the disk fails.
func (f *folder) syncHighWaterMark(ctx context.Context) error {
	t := time.NewTimer(0)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-f.highWaterMarkDue:
		}
		if err := f.highWaterMark.sync(); err != nil {
			return f.fault.set(err)
		}
		t.Reset(f.o.HighWaterMarkInterval)
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
	}
}

// markClosed records in the high-water mark, synced, that the folder was closed cleanly.
func (f *folder) markClosed() error {
	m, _ := f.highWaterMark.read()
	m.phase = closed
	if err := f.highWaterMark.write(m); err != nil {
		return err
	}
	return f.highWaterMark.sync()
}

// release closes what is open.
func (f *folder) release() error {
	var errs []error
	if f.batch != nil && !f.poisoned.Load() {
		errs = append(errs, f.batch.Close())
	}
	if f.db != nil && !f.poisoned.Load() {
		errs = append(errs, f.closePebble())
	}
	if f.highWaterMark != nil {
		errs = append(errs, f.highWaterMark.close())
	}
	if f.lock != nil {
		errs = append(errs, f.lock.Close())
	}
	return errors.Join(errs...)
}

func (f *folder) closePebble() (err error) {
	defer f.fault.catch(&f.poisoned, &err)
	return f.db.Close()
}
