package persist

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// logFS stands between Pebble and the folder of its logs, for two reasons.
//
// It gives Pebble log files that were written once before. A sync of a file that
// grows also syncs its metadata and costs two to three times as much; Pebble
// recycles its logs for that reason, but begins each run with new ones.
//
// And it keeps a failure of the log from Pebble, which would bring down the
// process from inside a lock. The first error of a log file or its folder is
// latched in the fault; from then on the logs are frozen: Pebble is told that
// all is well, and nothing is written, removed or recycled. That is safe because
// whoever writes asks the fault before believing Pebble, and because the frozen
// logs hold everything that was acknowledged.
type logFS struct {
	vfs.FS
	dir   string // of the logs
	fault *fault

	spare string // folder of the spares
	count int    // how many to keep
	size  int    // of each

	mu     sync.Mutex
	spares []string // paths of whole spare files
}

func (l *logFS) ours(path string) bool { return l.PathDir(path) == l.dir }

func (l *logFS) frozen() bool { return l.fault.first.Load() != nil }

// latch keeps an error from Pebble.
func (l *logFS) latch(doing, path string, err error) {
	l.fault.latch(fmt.Errorf("%s %s: %w", doing, path, err))
}

// Create takes a spare where Pebble asks for a new log.
func (l *logFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if !l.ours(name) {
		return l.FS.Create(name, c)
	}
	if spare, ok := l.take(); ok {
		return l.log(name, func() (vfs.File, error) { return l.FS.ReuseForWrite(spare, name, c) })
	}
	return l.log(name, func() (vfs.File, error) { return l.FS.Create(name, c) })
}

// ReuseForWrite recycles a log.
func (l *logFS) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if !l.ours(to) {
		return l.FS.ReuseForWrite(from, to, c)
	}
	return l.log(to, func() (vfs.File, error) { return l.FS.ReuseForWrite(from, to, c) })
}

// log opens a log for writing, or a file that swallows what is written.
func (l *logFS) log(name string, open func() (vfs.File, error)) (vfs.File, error) {
	if !l.frozen() {
		f, err := open()
		if err == nil {
			return &logFile{File: f, fs: l, name: name}, nil
		}
		l.latch("creating", name, err)
	}
	return &logFile{File: vfs.NewMemFile(nil), fs: l, name: name}, nil
}

// Remove leaves a frozen log alone, and keeps one that has the size of a spare
// for the next start.
func (l *logFS) Remove(name string) error {
	if !l.ours(name) {
		return l.FS.Remove(name)
	}
	if l.frozen() {
		return nil
	}
	if kept, err := l.keep(name); kept || err != nil {
		return err
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

// OpenDir is for syncing the folder.
func (l *logFS) OpenDir(name string) (vfs.File, error) {
	f, err := l.FS.OpenDir(name)
	if err == nil && name == l.dir {
		f = &logFile{File: f, fs: l, name: name}
	}
	return f, err
}

// Unwrap is the file system below.
func (l *logFS) Unwrap() vfs.FS { return l.FS }

// logFile is a log, or the logs' folder, open for writing.
type logFile struct {
	vfs.File
	fs   *logFS
	name string
}

// guard does what changes the disk, unless the logs are frozen.
func (f *logFile) guard(doing string, do func() error) {
	if f.fs.frozen() {
		return
	}
	if err := do(); err != nil {
		f.fs.latch(doing, f.name, err)
	}
}

func (f *logFile) Write(p []byte) (int, error) {
	f.guard("writing", func() error { _, err := f.File.Write(p); return err })
	return len(p), nil
}

func (f *logFile) Sync() error {
	f.guard("syncing", f.File.Sync)
	return nil
}

func (f *logFile) SyncData() error {
	f.guard("syncing", f.File.SyncData)
	return nil
}

func (f *logFile) SyncTo(length int64) (full bool, err error) {
	f.guard("syncing", func() (err error) { full, err = f.File.SyncTo(length); return err })
	return full, nil
}

// Preallocate does nothing: a log is a spare or a recycled one, whose blocks are
// there, or one of the few at the beginning, which a reservation does not make
// faster.
func (f *logFile) Preallocate(int64, int64) error { return nil }

func (f *logFile) Close() error {
	if err := f.File.Close(); err != nil && !f.fs.frozen() {
		f.fs.latch("closing", f.name, err)
	}
	return nil
}

func (l *logFS) take() (string, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.spares) == 0 || l.frozen() {
		return "", false
	}
	spare := l.spares[len(l.spares)-1]
	l.spares = l.spares[:len(l.spares)-1]
	return spare, true
}

// fill sees to it that dir holds count spares of size bytes, and nothing else.
// Spares of an earlier run are taken over if they are whole.
func (l *logFS) fill(dir string, count, size int) error {
	l.spare, l.count, l.size = dir, count, size
	if err := l.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making the spare logs' directory: %w", err)
	}
	names, err := l.List(dir)
	if err != nil {
		return fmt.Errorf("listing spare logs: %w", err)
	}
	for _, name := range names {
		path := l.PathJoin(dir, name)
		info, err := l.Stat(path)
		if err != nil {
			return fmt.Errorf("looking at spare log %s: %w", name, err)
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

// prewrite makes a file of zeros whose blocks are on disk. Pebble reads zeros at
// the end of a log as its end.
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
