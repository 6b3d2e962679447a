package persist

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"blockdesk/internal/runtest"
)

// The crash tests run on a file system in memory, which has no synced writes. These run on
// the kernel's: an ext4 in an image file. A copy of the file is the disk after a power cut,
// because the page cache is not in it.

// powerDisk is a mounted ext4 whose power can fail.
type powerDisk struct{ image, dir string }

// newPowerDisk skips the test where the system lets it mount nothing.
func newPowerDisk(t *testing.T) powerDisk {
	t.Helper()
	d := powerDisk{image: filepath.Join(t.TempDir(), "disk")}
	err := os.WriteFile(d.image, nil, 0o600)
	if err = errors.Join(err, os.Truncate(d.image, 64<<20)); err != nil {
		t.Fatal(err)
	}
	if err := command("mkfs.ext4", "-q", "-F", d.image); err != nil {
		skipMount(t, err)
	}
	d.dir = mount(t, d.image)
	return d
}

func skipMount(t *testing.T, err error) {
	t.Helper()
	t.Skipf("skipped: a power cut needs root, loop devices and mkfs.ext4: %v", err)
}

// mount mounts an image until the test ends. No commit of the file system's own comes in
// between, so that a copy is of one moment.
func mount(t *testing.T, image string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := command("mount", "-o", "loop,noatime,commit=300", image, dir); err != nil {
		skipMount(t, err)
	}
	t.Cleanup(func() {
		if err := command("umount", dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func command(name string, args ...string) error {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

// cut returns the folder of the file system as it is after the power has failed now.
func (d powerDisk) cut(t *testing.T) (dir string) {
	t.Helper()
	image := filepath.Join(t.TempDir(), "copy")
	if err := command("cp", "--sparse=always", d.image, image); err != nil {
		t.Fatal(err)
	}
	return mount(t, image)
}

// TestPowerCutLosesUnsyncedWrites: a synced write is on the disk, and a plain write is not.
// Without this the next test would show nothing.
func TestPowerCutLosesUnsyncedWrites(t *testing.T) {
	d := newPowerDisk(t)
	f, err := vfs.Default.Create(filepath.Join(d.dir, "log"), "test")
	if err != nil {
		t.Fatal(err)
	}
	zeros := make([]byte, 32<<10)
	if _, err := f.WriteAt(zeros, 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	if rest, err := writeDSync(f.Fd(), []byte("synced")); err != nil || len(rest) > 0 {
		t.Fatalf("synced write: %d bytes left, %v", len(rest), err)
	}
	if _, err := f.WriteAt([]byte("unsynced"), 16<<10); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(d.cut(t), "log"))
	if err != nil {
		t.Fatal(err)
	}
	want := append([]byte("synced"), zeros[len("synced"):]...)
	if string(got) != string(want) {
		t.Errorf("after a power cut: %q at the start, %q in the middle", got[:8], got[16<<10:16<<10+8])
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestPowerCut cuts the power after acknowledged frames: none is lost. A journal that does
// not sync loses some.
func TestPowerCut(t *testing.T) {
	const cuts = 6
	commands := deskWorkload(t, 600, 3)
	ref := newReference(commands)
	for name, appendWith := range map[string]appendFunc{"as it is": (*writer).append, "no sync": plantedBugs["no sync"]} {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(runtest.Seed(t), 1))
			d := newPowerDisk(t)
			o := testOptions(vfs.Default)
			o.Dir, o.Mode, o.SpareLogs = filepath.Join(d.dir, "journal"), Sync, 1
			w := mustOpen(t, o, NewestSnapshot, nil)
			at, lost := 0, 0
			for range cuts {
				for range 1 + rng.IntN(8) {
					n := 1 + rng.IntN(8)
					if err := appendWith(w, commands[at:at+n]); err != nil {
						t.Fatal(err)
					}
					at += n
				}
				o := o
				o.Dir = filepath.Join(d.cut(t), "journal")
				after := mustOpen(t, o, NewestSnapshot, nil)
				if err := ref.check(after.replica); err != nil {
					t.Error(err)
				}
				if int(after.replica.State.Seq()) < at {
					lost++
				}
				if err := after.store.release(); err != nil {
					t.Error(err)
				}
			}
			if err := w.store.release(); err != nil {
				t.Error(err)
			}
			if bug := name == "no sync"; bug != (lost > 0) {
				t.Errorf("%d of %d power cuts lost acknowledged commands", lost, cuts)
			}
		})
	}
}
