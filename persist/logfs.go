package persist

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// logFS gives Pebble log files that are already written, because a sync of a growing file
// also syncs its metadata and takes two to three times as long. Pebble recycles its logs
// for that reason, but starts each run with new ones.
type logFS struct {
	vfs.FS
	dir string // of the logs

	spare string // folder of the spares
	count int    // how many to keep
	size  int    // of each

	mu     sync.Mutex
	spares []string // paths of whole spare files
}

func (l *logFS) isLog(path string) bool { return l.PathDir(path) == l.dir }

// Create uses a spare file if Pebble creates a new log.
func (l *logFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if !l.isLog(name) {
		return l.FS.Create(name, c)
	}
	if spare, ok := l.take(); ok {
		return asLog(l.FS.ReuseForWrite(spare, name, c))
	}
	return asLog(l.FS.Create(name, c))
}

// ReuseForWrite recycles a log.
func (l *logFS) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return asLog(l.FS.ReuseForWrite(from, to, c))
}

// Remove keeps a log that is as large as a spare, for the next start.
func (l *logFS) Remove(name string) error {
	if l.isLog(name) {
		if spared, err := l.keep(name); spared || err != nil {
			return err
		}
	}
	return l.FS.Remove(name)
}

func (l *logFS) keep(name string) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.spares) >= l.count {
		return false, nil
	}
	info, err := l.Stat(name)
	if err != nil || info.Size() < int64(l.size) {
		return false, err
	}
	path := l.PathJoin(l.spare, l.PathBase(name)+spareSuffix)
	if err := l.Rename(name, path); err != nil {
		return false, err
	}
	l.spares = append(l.spares, path)
	return true, nil
}

// Unwrap returns the file system below.
func (l *logFS) Unwrap() vfs.FS { return l.FS }

// maxGather is the most that a log gathers before it writes, in bytes: two of Pebble's
// blocks.
const maxGather = 64 << 10

// logFile is a log open for writing. It gathers what Pebble writes before a sync, so that
// the sync of a small frame is one system call, which writes and syncs.
//
// Pebble promises nothing about a write before its sync, so nothing is lost by gathering.
// One goroutine at a time uses a logFile, as Pebble does.
type logFile struct {
	vfs.File
	gathered []byte // not written yet
	dirty    bool   // what was written is not synced yet
}

func asLog(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &logFile{File: f}, nil
}

// Preallocate does nothing: a log is a spare or recycled, so its blocks exist, or one
// of the first few, which a reservation does not speed up.
func (*logFile) Preallocate(int64, int64) error { return nil }

func (l *logFile) Write(p []byte) (int, error) {
	if len(l.gathered)+len(p) > maxGather {
		if err := l.flush(); err != nil {
			return 0, err
		}
	}
	if len(p) > maxGather {
		l.dirty = true
		return l.File.Write(p)
	}
	l.gathered = append(l.gathered, p...)
	return len(p), nil
}

// flush writes what was gathered, without a sync.
func (l *logFile) flush() error {
	if len(l.gathered) == 0 {
		return nil
	}
	l.dirty = true
	_, err := l.File.Write(l.gathered)
	l.gathered = l.gathered[:0]
	return err
}

// SyncData returns when everything written is on disk. A synced write covers its own bytes
// only, so it is no replacement for a sync if others were written before.
func (l *logFile) SyncData() error {
	if len(l.gathered) > 0 && !l.dirty {
		err := writeSynced(l.File, l.gathered)
		l.gathered = l.gathered[:0]
		l.dirty = err != nil
		return err
	}
	if err := l.flush(); err != nil {
		return err
	}
	err := l.File.SyncData()
	l.dirty = err != nil
	return err
}

// Sync is SyncData with the file's times.
func (l *logFile) Sync() error {
	if err := l.flush(); err != nil {
		return err
	}
	err := l.File.Sync()
	l.dirty = err != nil
	return err
}

// SyncTo starts writing to the disk, without waiting for it.
func (l *logFile) SyncTo(length int64) (full bool, err error) {
	if err := l.flush(); err != nil {
		return false, err
	}
	return l.File.SyncTo(length)
}

// Close writes what was gathered.
func (l *logFile) Close() error { return errors.Join(l.flush(), l.File.Close()) }

// writeSynced writes p at the file's position and returns when p is on disk.
func writeSynced(f vfs.File, p []byte) error {
	if g, ok := f.(*guardFile); ok {
		return g.change("writing", func() error { return writeSynced(g.File, p) })
	}
	if fd := f.Fd(); fd != vfs.InvalidFd {
		rest, err := writeDSync(fd, p)
		if err == nil || !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
		p = rest
	}
	if _, err := f.Write(p); err != nil {
		return err
	}
	return f.SyncData()
}

func (l *logFS) take() (string, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.spares) == 0 {
		return "", false
	}
	spare := l.spares[len(l.spares)-1]
	l.spares = l.spares[:len(l.spares)-1]
	return spare, true
}

// fill makes sure that dir has count spares of size bytes and nothing else. It uses
// complete spares of an earlier run.
func (l *logFS) fill(dir string, count, size int) error {
	l.spare, l.count, l.size = dir, count, size
	if err := l.MkdirAll(dir, dirMode); err != nil {
		return fmt.Errorf("creating the spare logs' directory: %w", err)
	}
	names, err := l.List(dir)
	if err != nil {
		return fmt.Errorf("listing spare logs: %w", err)
	}
	for _, name := range names {
		path := l.PathJoin(dir, name)
		info, err := l.Stat(path)
		if err != nil {
			return fmt.Errorf("reading the state of spare log %s: %w", name, err)
		}
		if info.Size() >= int64(size) && len(l.spares) < count && strings.HasSuffix(name, spareSuffix) {
			l.spares = append(l.spares, path)
		} else if err := l.Remove(path); err != nil {
			return fmt.Errorf("removing spare log %s: %w", name, err)
		}
	}
	for i := 0; len(l.spares) < count; i++ {
		path := l.PathJoin(dir, fmt.Sprintf("%d%s", i, spareSuffix))
		if slices.Contains(l.spares, path) {
			continue
		}
		if err := l.prewrite(path, size); err != nil {
			return fmt.Errorf("writing spare log %s: %w", path, err)
		}
		l.spares = append(l.spares, path)
	}
	return nil
}

const spareSuffix = ".spare"

// prewrite writes a file of zeros to disk. Pebble takes zeros at the end of a log for
// its end.
func (l *logFS) prewrite(path string, size int) error {
	f, err := l.FS.Create(path, "blockdesk-spare")
	if err != nil {
		return err
	}
	zeros := make([]byte, 1<<20)
	for n := 0; n < size && err == nil; n += len(zeros) {
		_, err = f.Write(zeros[:min(len(zeros), size-n)])
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
