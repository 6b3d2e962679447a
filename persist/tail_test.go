package persist

import (
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"blockdesk/engine"
)

// TestFrames: all durable frames can be read from any frame on, complete and in order,
// and nothing else; the wake channel gets a value.
func TestFrames(t *testing.T) {
	o := testOptions(vfs.NewMem())
	all := workload(t, 1000, 31)
	w := mustOpen(t, o, 0, nil)
	wake := make(chan struct{}, 1)
	w.store.SetWake(wake)
	if err := w.store.Frames(1, func(*Frame, []byte) bool { t.Error("a frame of nothing"); return true }); err != nil {
		t.Fatal(err)
	}
	w.mustAppend(t, all, 10)
	select {
	case <-wake:
	default:
		t.Error("no reader was woken")
	}
	for _, from := range []uint64{1, 11, 991} {
		at, read := Genesis(), []engine.Command(nil)
		err := w.store.Frames(from, func(f *Frame, encoded []byte) bool {
			if from > 1 && at.Next == 1 {
				at = Position{Next: from, Hash: f.Previous}
			}
			if err := at.Advance(f, HashFrame(encoded)); err != nil {
				t.Fatal(err)
			}
			var err error
			if read, err = f.AppendCommands(read); err != nil {
				t.Fatal(err)
			}
			return true
		})
		if err != nil || at != w.store.Durable() || len(read) != len(all)-int(from)+1 || read[0] != all[from-1] {
			t.Errorf("from seq %d: ended at %+v with %d commands, want %+v: %v", from, at, len(read), w.store.Durable(), err)
		}
	}
	seen := 0
	if err := w.store.Frames(1, func(*Frame, []byte) bool { seen++; return seen < 3 }); err != nil || seen != 3 {
		t.Errorf("stopped after 3 frames, saw %d: %v", seen, err)
	}
	if err := w.store.Frames(uint64(len(all))+1, func(*Frame, []byte) bool { t.Error("a frame after the end"); return true }); err != nil {
		t.Error(err)
	}
	if err := w.store.Frames(15, func(*Frame, []byte) bool { return true }); !errors.Is(err, ErrNoFrame) {
		t.Errorf("from within a frame: %v", err)
	}
	if _, ok := w.store.NewestSnapshot(); ok {
		t.Error("a snapshot before any was taken")
	}
	w.mustClose(t)
}

// TestFramesDurableOnly: in mode Interval, Frames does not return what is written and
// not on disk.
func TestFramesDurableOnly(t *testing.T) {
	o := testOptions(vfs.NewMem())
	o.Mode = Interval
	all := workload(t, 100, 32)
	w := mustOpen(t, o, 0, nil)
	w.mustAppend(t, all, 10) // Run does not run: nothing but the epoch's frame is synced
	last := uint64(0)
	if err := w.store.Frames(1, func(f *Frame, _ []byte) bool { last = f.Last(); return true }); err != nil || last != 10 {
		t.Errorf("got frames up to seq %d: %v", last, err)
	}
	w.mustClose(t)
}

// TestSnapshotByChunks: a snapshot file read in pieces restores the replica, and the
// journal continues at its position; a damaged one is refused.
func TestSnapshotByChunks(t *testing.T) {
	o := testOptions(vfs.NewMem())
	o.SnapshotEvery, o.KeepSnapshots = 500, 2
	all := workload(t, 4000, 33)
	w := mustOpen(t, o, 0, nil)
	w.mustAppend(t, all, 10)
	w.catchUp(t)
	if err := w.store.Frames(1, func(*Frame, []byte) bool { return true }); !errors.Is(err, ErrNoFrame) {
		t.Errorf("pruned frames: %v", err)
	}
	newest, ok := w.store.NewestSnapshot()
	if !ok {
		t.Fatal("no snapshot")
	}
	if _, _, err := w.store.ReadSnapshot(77, 0, make([]byte, 10)); !errors.Is(err, ErrNoSnapshot) {
		t.Errorf("a snapshot that is not there: %v", err)
	}
	var file []byte
	for {
		chunk := make([]byte, 1000)
		n, size, err := w.store.ReadSnapshot(newest.Next, int64(len(file)), chunk)
		if err != nil {
			t.Fatal(err)
		}
		if file = append(file, chunk[:n]...); int64(len(file)) == size {
			break
		}
	}
	if n, _, err := w.store.ReadSnapshot(newest.Next, int64(len(file)), make([]byte, 1)); n != 0 || err != nil {
		t.Errorf("after the end: %d bytes, %v", n, err)
	}
	r, at, err := RestoreSnapshot(file, smallState)
	if err != nil || at != newest {
		t.Fatalf("restored at %+v, want %+v: %v", at, newest, err)
	}
	sameReplica(t, r, replayed(all[:at.Next-1]))
	for i := 0; i < len(file); i += 97 {
		bad := append([]byte(nil), file...)
		bad[i] ^= 0x40
		if _, _, err := RestoreSnapshot(bad, smallState); err == nil {
			t.Fatalf("byte %d flipped: taken", i)
		}
	}
	for _, n := range []int{0, 1, snapshotHeaderSize, len(file) - 1} {
		if _, _, err := RestoreSnapshot(file[:n], smallState); err == nil {
			t.Errorf("cut at %d: taken", n)
		}
	}
	if _, _, err := RestoreSnapshot(append(file, 0), smallState); err == nil {
		t.Error("a byte too many: taken")
	}
	w.mustClose(t)
}
