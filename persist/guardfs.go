package persist

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// errDisk is a change that the disk did not take. It is no damage: what is there
// is whole.
var errDisk = errors.New("the disk failed")

// guardFS stands between Pebble and its folder and keeps a failing disk from
// Pebble, which has no answer to one: it brings down the process when a log, the
// manifest or a folder cannot be synced, and tries again at once and for ever
// when a table cannot be written, while writers wait in its write stall for the
// flush that never ends.
//
// The first change that fails is latched in the fault, and from then on the
// folder is frozen: nothing in it is written, synced, renamed or removed. Pebble
// is told that all is well and goes on in memory, so its flushes end, whoever
// waits for one returns, and all can still be read and closed. That is safe
// because whoever writes asks the fault before believing Pebble, and because
// Pebble removes nothing before it was told that what replaces it is on disk: the
// frozen folder holds everything that was acknowledged.
//
// What goes to memory is what was not flushed when the disk failed, since nothing
// new is accepted, and compactions stop (see calm).
type guardFS struct {
	vfs.FS
	dirs   []string // Pebble's own and that of its logs
	fault  *fault
	memory *vfs.MemFS // files begun after the failure, by their base names
}

// compacting is what Pebble calls a file that a compaction writes.
const compacting vfs.DiskWriteCategory = "pebble-compaction"

func (g *guardFS) isPebbleFile(path string) bool { return slices.Contains(g.dirs, g.PathDir(path)) }

func (g *guardFS) inMemory(path string) bool {
	if !g.fault.latched() || !g.isPebbleFile(path) {
		return false
	}
	_, err := g.memory.Stat(g.PathBase(path))
	return err == nil
}

// Create begins a file, in memory if the disk does not or must not.
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
		return nil, err // nobody waits for it, and it can be long
	}
	return g.memory.Create(g.PathBase(name), c)
}

// Open reads what is in memory from there.
func (g *guardFS) Open(name string, options ...vfs.OpenOption) (vfs.File, error) {
	if g.inMemory(name) {
		return g.memory.Open(g.PathBase(name), options...)
	}
	return g.FS.Open(name, options...)
}

// Stat looks where Open reads.
func (g *guardFS) Stat(name string) (vfs.FileInfo, error) {
	if g.inMemory(name) {
		return g.memory.Stat(g.PathBase(name))
	}
	return g.FS.Stat(name)
}

// OpenDir is for syncing a folder.
func (g *guardFS) OpenDir(name string) (vfs.File, error) {
	f, err := g.FS.OpenDir(name)
	if err != nil || !slices.Contains(g.dirs, name) {
		return f, err
	}
	return &guardFile{File: f, guard: g, name: name}, nil
}

// Remove leaves a frozen file alone. A file that cannot be removed costs its
// space, which is no failure.
func (g *guardFS) Remove(name string) error {
	if !g.isPebbleFile(name) || !g.fault.latched() {
		return g.FS.Remove(name)
	}
	_ = g.memory.Remove(g.PathBase(name)) // or it is on disk, and stays
	return nil
}

// Rename leaves a frozen file alone.
func (g *guardFS) Rename(from, to string) error {
	if g.fault.latched() && (g.isPebbleFile(from) || g.isPebbleFile(to)) {
		return nil
	}
	return g.FS.Rename(from, to)
}

// Unwrap is the file system below.
func (g *guardFS) Unwrap() vfs.FS { return g.FS }

// guardFile is a file, or a folder, open for writing on disk.
type guardFile struct {
	vfs.File
	guard *guardFS
	name  string
	table bool
}

// change does what changes the disk, unless that is frozen. Pebble is told of a
// failure only where it would read back what it wrote: a table half on disk is
// given up, and written again in memory.
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
