package persist

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// maxUnsyncedFile is the size from which a file of unsynced frames is made anew instead
// of being overwritten.
const maxUnsyncedFile = 16 << 20

// unsynced keeps the frames that mode Interval has acknowledged and not synced yet.
// Pebble's log has them too, but Pebble writes them when it finds the time; here the
// operating system has them before they are acknowledged, so the death of the process
// loses none.
//
// Two files take turns, and each has frames one after the other from its start. At every
// sync the files change over: the one that was written is needed until that sync has
// ended, the other one has only frames that an earlier sync made durable. The bytes after
// the frames of a file are of an earlier turn; they do not continue the journal, because
// each frame has the hash of the one before.
//
// write belongs to the appender, turn to the syncer.
type unsynced struct {
	fs    vfs.FS
	paths [2]string

	mu      sync.Mutex
	files   [2]vfs.File
	current int
	offset  int64 // in the current file
}

// openUnsynced creates both files.
func openUnsynced(l layout) (*unsynced, error) {
	u := &unsynced{fs: l.fs, paths: l.unsynced()}
	for i := range u.files {
		if err := u.create(i); err != nil {
			return nil, errors.Join(err, u.close())
		}
	}
	return u, nil
}

func (u *unsynced) create(i int) error {
	f, err := u.fs.Create(u.paths[i], "blockdesk-unsynced")
	if err != nil {
		return fmt.Errorf("creating %s: %w", u.paths[i], err)
	}
	u.files[i] = f
	return nil
}

// write appends an encoded frame. When it returns, the frame survives the process.
func (u *unsynced) write(frame []byte) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, err := u.files[u.current].WriteAt(frame, u.offset); err != nil {
		return fmt.Errorf("writing %s: %w", u.paths[u.current], err)
	}
	u.offset += int64(len(frame))
	return nil
}

// switchFiles changes the files over. The caller then syncs all frames written before, and
// calls turn again only after that.
func (u *unsynced) switchFiles() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	next := 1 - u.current
	info, err := u.files[next].Stat()
	if err != nil {
		return fmt.Errorf("reading the state of %s: %w", u.paths[next], err)
	}
	if info.Size() > maxUnsyncedFile {
		if err := errors.Join(u.files[next].Close(), u.create(next)); err != nil {
			return err
		}
	}
	u.current, u.offset = next, 0
	return nil
}

func (u *unsynced) close() (err error) {
	for _, f := range u.files {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	return err
}

// readUnsynced returns the frames that the files of a crashed process have, by the hash
// of the frame before each.
func readUnsynced(l layout) (map[uint64][]byte, error) {
	frames := map[uint64][]byte{}
	for _, path := range l.unsynced() {
		data, err := readWhole(l.fs, path)
		if err != nil {
			return nil, err
		}
		for len(data) >= frameHeaderSize+frameTrailerSize {
			n := frameHeaderSize + uint64(binary.LittleEndian.Uint32(data[28:])) + frameTrailerSize
			if n > uint64(len(data)) {
				break
			}
			f, err := ParseFrame(data[:n])
			if err != nil {
				break
			}
			frames[f.Previous] = data[:n]
			data = data[n:]
		}
	}
	return frames, nil
}

// readWhole returns the content of a file, nothing if it does not exist.
func readWhole(fs vfs.FS, path string) ([]byte, error) {
	f, err := fs.Open(path)
	if oserror.IsNotExist(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("opening %s: %w", path, err)
	}
	data, err := io.ReadAll(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return data, nil
}

func (l layout) unsynced() [2]string {
	return [2]string{l.fs.PathJoin(l.dir, "unsynced-a"), l.fs.PathJoin(l.dir, "unsynced-b")}
}

func (l layout) removeUnsynced() error {
	for _, path := range l.unsynced() {
		if err := l.fs.Remove(path); err != nil && !oserror.IsNotExist(err) {
			return fmt.Errorf("removing %s: %w", path, err)
		}
	}
	return nil
}
