package persist

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// calls counts what a logFile asks of the file below.
type calls struct {
	vfs.File
	writes, syncs int
	fail          error
}

func (c *calls) Fd() uintptr { return vfs.InvalidFd }

func (c *calls) Write(p []byte) (int, error) {
	c.writes++
	if c.fail != nil {
		return 0, c.fail
	}
	return c.File.Write(p)
}

func (c *calls) SyncData() error { c.syncs++; return c.File.SyncData() }

// TestLogFile: after a sync the file has all that was written, whatever the sizes, with
// and without synced writes of the system.
func TestLogFile(t *testing.T) {
	sizes := []int{1, 500, 4096, maxGather - 1, maxGather, maxGather + 1, 3 * maxGather, 7, 0, 32 << 10, 32 << 10, 32 << 10}
	for _, c := range []struct {
		name string
		wrap func(vfs.File) vfs.File
	}{
		{"synced writes", func(f vfs.File) vfs.File { return &guardFile{File: f, guard: &guardFS{fault: &fault{}}} }},
		{"writes and syncs", func(f vfs.File) vfs.File { return &calls{File: f} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "log")
			f, err := vfs.Default.Create(path, "test")
			if err != nil {
				t.Fatal(err)
			}
			log, err := asLog(c.wrap(f), nil)
			if err != nil {
				t.Fatal(err)
			}
			var want []byte
			for i, size := range sizes {
				part := bytes.Repeat([]byte{byte(i + 1)}, size)
				if n, err := log.Write(part); n != size || err != nil {
					t.Fatalf("write of %d bytes: %d, %v", size, n, err)
				}
				want = append(want, part...)
				if i%3 == 1 {
					continue // two writes before the next sync
				}
				if err := log.SyncData(); err != nil {
					t.Fatal(err)
				}
				if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
					t.Fatalf("after write %d: %d bytes, want %d (%v)", i, len(got), len(want), err)
				}
			}
			if _, err := log.Write([]byte("end")); err != nil {
				t.Fatal(err)
			}
			if err := log.Close(); err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, append(want, "end"...)) {
				t.Fatalf("after Close: %d bytes, want %d (%v)", len(got), len(want)+3, err)
			}
		})
	}
}

// TestLogFileSyncsWhatItWrote: a synced write covers only its own bytes, so a sync after
// an unsynced write is a sync of the file.
func TestLogFileSyncsWhatItWrote(t *testing.T) {
	f, err := vfs.NewMem().Create("log", "test")
	if err != nil {
		t.Fatal(err)
	}
	c := &calls{File: f}
	log := &logFile{File: c}
	write := func(n int) {
		t.Helper()
		if _, err := log.Write(make([]byte, n)); err != nil {
			t.Fatal(err)
		}
	}
	write(maxGather)
	write(1) // writes what was gathered
	if c.writes != 1 || !log.dirty {
		t.Fatalf("%d writes, dirty %v: want 1, true", c.writes, log.dirty)
	}
	if err := log.SyncData(); err != nil || c.writes != 2 || c.syncs != 1 || log.dirty {
		t.Fatalf("%d writes, %d syncs, dirty %v, %v: want 2, 1, false", c.writes, c.syncs, log.dirty, err)
	}
	c.fail = errors.New("bad sector")
	write(1)
	if err := log.SyncData(); !errors.Is(err, c.fail) || !log.dirty {
		t.Fatalf("a failed write: %v, dirty %v", err, log.dirty)
	}
}

// TestWriteDSync: the error of a file that cannot be written is no sign of a system
// without synced writes.
func TestWriteDSync(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := vfs.Default.Open(path) // for reading only
	if err != nil {
		t.Fatal(err)
	}
	rest, err := writeDSync(f.Fd(), []byte("x"))
	if len(rest) != 1 || err == nil || runtime.GOOS == "linux" && errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("%d bytes left, %v", len(rest), err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
