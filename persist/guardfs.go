package persist

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// errDisk says that the disk refused a write. The stored content is not damaged.
var errDisk = errors.New("the disk failed")

// guardFS shields Pebble from a failing disk, because Pebble cannot handle one: it ends
// the process when it cannot sync a log, the manifest or a folder, and when it cannot
// write a table it retries without pause and without end, while writers wait in its
// write stall for that flush.
//
// The first change that fails is latched in the fault. From then on the folder is
// frozen: nothing in it is written, synced, renamed or removed. Pebble gets success and
// continues in memory, so its flushes end, no writer waits for them without end, and
// reading and closing still work. That is safe because writers check the fault before they
// trust Pebble, and because Pebble removes a file only after its replacement was
// reported to be on disk: the frozen folder has everything that was acknowledged.
//
// Memory holds what was not flushed when the disk failed: no new data is accepted, and
// compactions stop (see haltingScheduler).
type guardFS struct {
	vfs.FS
	dirs   []string // Pebble's own and that of its logs
	fault  *fault
	memory *vfs.MemFS // files begun after the failure, by their base names
}

// compacting is Pebble's category of a file that a compaction writes.
const compacting vfs.DiskWriteCategory = "pebble-compaction"

func (g *guardFS) isPebbleFile(path string) bool { return slices.Contains(g.dirs, g.PathDir(path)) }

func (g *guardFS) inMemory(path string) bool {
	if !g.fault.latched() || !g.isPebbleFile(path) {
		return false
	}
	_, err := g.memory.Stat(g.PathBase(path))
	return err == nil
}

// Create creates a file, in memory if the disk fails or is frozen.
func (g *guardFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return g.begin(name, c, func() (vfs.File, error) { return g.FS.Create(name, c) })
}

// ReuseForWrite recycles a log.
func (g *guardFS) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return g.begin(to, c, func() (vfs.File, error) { return g.FS.ReuseForWrite(from, to, c) })
}

func (g *guardFS) begin(name string, c vfs.DiskWriteCategory, create func() (vfs.File, error)) (vfs.File, error) {
	if !g.isPebbleFile(name) {
		return create()
	}
	f := &guardFile{guard: g, name: name, table: strings.HasSuffix(name, ".sst")}
	err := f.change("creating", func() (err error) { f.File, err = create(); return err })
	if f.File != nil {
		return f, nil
	}
	if c == compacting {
		return nil, err // no caller waits for a compaction, and its output can be large
	}
	return g.memory.Create(g.PathBase(name), c)
}

// Open opens the file in memory if there is one.
func (g *guardFS) Open(name string, options ...vfs.OpenOption) (vfs.File, error) {
	if g.inMemory(name) {
		return g.memory.Open(g.PathBase(name), options...)
	}
	return g.FS.Open(name, options...)
}

// Stat looks where Open does.
func (g *guardFS) Stat(name string) (vfs.FileInfo, error) {
	if g.inMemory(name) {
		return g.memory.Stat(g.PathBase(name))
	}
	return g.FS.Stat(name)
}

// OpenDir opens a folder to sync it.
func (g *guardFS) OpenDir(name string) (vfs.File, error) {
	f, err := g.FS.OpenDir(name)
	if err != nil || !slices.Contains(g.dirs, name) {
		return f, err
	}
	return &guardFile{File: f, guard: g, name: name}, nil
}

// Remove ignores a frozen file. A file that cannot be removed only costs its space,
// which is no failure.
func (g *guardFS) Remove(name string) error {
	if !g.isPebbleFile(name) || !g.fault.latched() {
		return g.FS.Remove(name)
	}
	_ = g.memory.Remove(g.PathBase(name)) // a file on disk stays
	return nil
}

// Rename ignores a frozen file.
func (g *guardFS) Rename(from, to string) error {
	if g.fault.latched() && (g.isPebbleFile(from) || g.isPebbleFile(to)) {
		return nil
	}
	return g.FS.Rename(from, to)
}

// Unwrap returns the file system below.
func (g *guardFS) Unwrap() vfs.FS { return g.FS }

// guardFile is a file, or a folder, open for writing on disk.
type guardFile struct {
	vfs.File
	guard *guardFS
	name  string
	table bool
}

// change runs do, which changes the disk, unless the disk is frozen. Pebble gets the
// error only for a table, which it would read back: it gives up the half-written table
// and writes it again, in memory.
func (f *guardFile) change(doing string, do func() error) error {
	fault := f.guard.fault
	if !fault.latched() {
		err := do()
		if err == nil {
			return nil
		}
		fault.latch(fmt.Errorf("%w: %s %s: %w", errDisk, doing, f.name, err))
	}
	if f.table {
		return fault.err()
	}
	return nil
}

func (f *guardFile) Write(p []byte) (int, error) {
	if err := f.change("writing", func() error { _, err := f.File.Write(p); return err }); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (f *guardFile) Sync() error { return f.change("syncing", f.File.Sync) }

func (f *guardFile) SyncData() error { return f.change("syncing", f.File.SyncData) }

func (f *guardFile) SyncTo(length int64) (full bool, err error) {
	err = f.change("syncing", func() (err error) { full, err = f.File.SyncTo(length); return err })
	return full, err
}

func (f *guardFile) Close() error {
	err := f.File.Close()
	return f.change("closing", func() error { return err })
}
