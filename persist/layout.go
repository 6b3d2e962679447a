package persist

import (
	"cmp"
	"errors"
	"fmt"
	"os"

	"blockdesk/engine"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// layout has the paths of a store.
type layout struct {
	fs     vfs.FS
	dir    string
	advice string // of a DamageError
}

func (l layout) highWaterMark() string { return l.fs.PathJoin(l.dir, "mark") }
func (l layout) frames() string        { return l.fs.PathJoin(l.dir, "frames") }
func (l layout) logs() string          { return l.fs.PathJoin(l.frames(), logFolder) }
func (l layout) snapshots() string     { return l.fs.PathJoin(l.dir, "snapshots") }
func (l layout) spares() string        { return l.fs.PathJoin(l.dir, "spare") }
func (l layout) snapshot(seq uint64) string {
	return l.fs.PathJoin(l.snapshots(), snapshotName(seq))
}

func (l layout) damage(where string, err error) error {
	return &DamageError{Dir: l.dir, Where: where, Err: err, Advice: l.advice}
}

// dirMode is the mode of the directories inside a data folder, which only its owner enters.
const dirMode = 0o755

// MakeDir creates a directory and syncs the parent of each level that it creates, so that the
// directory survives a power failure. A nil fs is the disk.
func MakeDir(fs FS, path string, perm os.FileMode) error {
	fs = cmp.Or(fs, vfs.Default)
	var made []string
	for p := path; ; p = fs.PathDir(p) {
		if _, err := fs.Stat(p); err == nil || fs.PathDir(p) == p {
			break
		} else if !oserror.IsNotExist(err) {
			return fmt.Errorf("reading the state of %s: %w", p, err)
		}
		made = append(made, fs.PathDir(p))
	}
	if err := fs.MkdirAll(path, perm); err != nil {
		return fmt.Errorf("creating %s: %w", path, err)
	}
	for _, p := range made {
		if err := syncDir(fs, p); err != nil {
			return fmt.Errorf("syncing %s: %w", p, err)
		}
	}
	return nil
}

// hasFiles reports whether a directory has any file; a missing one has none.
func hasFiles(fs vfs.FS, path string) (bool, error) {
	names, err := fs.List(path)
	if oserror.IsNotExist(err) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("listing %s: %w", path, err)
	}
	return len(names) > 0, nil
}

// findHighWaterMark reads the high-water mark. fresh reports a folder without a store, or
// one whose creation was interrupted: nothing was acknowledged there. A folder with
// frames or snapshots but without a valid high-water mark is damaged.
func (l layout) findHighWaterMark() (m highWaterMarkRecord, bad int, fresh bool, err error) {
	m, bad, err = readHighWaterMark(l.fs, l.highWaterMark())
	if err == nil && m.phase == copying {
		return m, bad, false, l.damage(l.highWaterMark(), errUnfinished)
	}
	if err == nil {
		return m, bad, m.phase == creating, nil
	}
	if !errors.Is(err, errHighWaterMarkMissing) && !errors.Is(err, errHighWaterMarkDamaged) {
		return m, bad, false, err
	}
	for _, dir := range []string{l.frames(), l.snapshots()} {
		used, lerr := hasFiles(l.fs, dir)
		if lerr != nil {
			return m, bad, false, lerr
		}
		if used {
			return m, bad, false, l.damage(l.highWaterMark(), err)
		}
	}
	return m, bad, true, nil
}

// create creates an empty store. It writes the high-water mark first, with the phase
// "creating" until everything else exists, so that a crash in between is recognized.
func (l layout) create(o *pebble.Options, f *fault) error {
	m, err := openHighWaterMark(l.fs, l.highWaterMark(), highWaterMarkRecord{phase: creating})
	if err != nil {
		return err
	}
	err = errors.Join(
		l.fs.RemoveAll(l.frames()),
		l.fs.RemoveAll(l.snapshots()),
		MakeDir(l.fs, l.snapshots(), dirMode),
	)
	if err == nil {
		err = createPebble(l.frames(), o, f)
	}
	if err == nil {
		err = m.write(highWaterMarkRecord{phase: open})
	}
	if err == nil {
		err = m.sync()
	}
	if err = errors.Join(err, m.close()); err != nil {
		return fmt.Errorf("creating journal %s: %w", l.dir, err)
	}
	return nil
}

// loadSnapshot reads a snapshot, restores its replica and checks it against the header.
func (l layout) loadSnapshot(seq uint64, o engine.StateOptions) (snapshot, *engine.Replica, error) {
	snap, data, err := readSnapshot(l.fs, l.snapshot(seq), true)
	if err != nil {
		return snap, nil, err
	}
	r, err := engine.RestoreReplica(data, o)
	if errors.Is(err, engine.ErrVersion) {
		return snap, nil, err
	} else if err != nil {
		return snap, nil, fmt.Errorf("%w: %w", errSnapshot, err)
	}
	if snap.seq != seq || r.State.Seq() != seq || r.Digest != snap.digest {
		return snap, nil, fmt.Errorf("%w: holds seq %d and digest %016x, should be %d and %016x",
			errSnapshot, r.State.Seq(), r.Digest, seq, snap.digest)
	}
	return snap, r, nil
}

func (l layout) setAside(name string) error {
	path := l.fs.PathJoin(l.snapshots(), name)
	if err := l.fs.Rename(path, path+damagedSuffix); err != nil {
		return fmt.Errorf("setting a damaged snapshot aside: %w", err)
	}
	return nil
}
