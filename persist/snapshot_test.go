package persist

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"blockdesk/engine"
	"blockdesk/persist/projection"
)

// TestSnapshotFallback: recovery uses an older snapshot, or the whole journal, in place
// of a damaged one; without either the store does not start.
func TestSnapshotFallback(t *testing.T) {
	for _, keep := range []int{1, 2, 100} {
		o := testOptions(vfs.NewMem())
		o.SnapshotEvery, o.KeepSnapshots = 500, keep
		all := workload(t, 2600, 11)
		w := mustOpen(t, o, 0, nil)
		w.mustAppend(t, all, 10)
		w.catchUp(t)
		w.mustClose(t)
		damage := func(seq uint64) {
			path := w.store.layout.snapshot(seq)
			data := readFile(t, o.FS, path)
			data[len(data)/2] ^= 4
			writeFile(t, o.FS, path, data)
		}
		list, _, err := listSnapshots(o.FS, w.store.layout.snapshots())
		if err != nil {
			t.Fatal(err)
		}
		for i := len(list) - 1; i >= 0; i-- {
			damage(list[i].seq)
			s, err := Open(o)
			if err != nil {
				t.Fatal(err)
			}
			r, err := s.Recover(NewestSnapshot, nil)
			// Genesis is the fallback until some snapshots were pruned.
			if i == 0 && keep < 100 {
				var d *DamageError
				if !errors.As(err, &d) {
					t.Errorf("keep %d: without a whole snapshot: %v", keep, err)
				}
			} else if err != nil {
				t.Errorf("keep %d, snapshot %d damaged: %v", keep, i, err)
			} else {
				sameReplica(t, r, replayed(all))
			}
			if err := s.release(); err != nil {
				t.Fatal(err)
			}
			if names, err := o.FS.List(s.layout.snapshots()); err != nil || len(names) != len(list) {
				t.Errorf("files %v: a damaged snapshot must be set aside, not deleted", names)
			}
		}
	}
}

// TestSnapshotOfAnotherVersion: a program that cannot read a snapshot's version says
// so. It is no damage, so nothing is set aside and the right program still starts.
func TestSnapshotOfAnotherVersion(t *testing.T) {
	all := workload(t, 1200, 16)
	for name, change := range map[string]func(head, body []byte){
		"file": func(head, _ []byte) {
			binary.LittleEndian.PutUint16(head[4:], snapshotVersion+1)
			binary.LittleEndian.PutUint32(head[92:], crc32.Checksum(head[:92], castagnoli))
		},
		"replica": func(_, body []byte) { body[4]++ },
		"state":   func(_, body []byte) { body[24+4] = 99 },
	} {
		o := testOptions(vfs.NewMem())
		o.SnapshotEvery = 500
		w := mustOpen(t, o, 0, nil)
		w.mustAppend(t, all, 10)
		w.catchUp(t)
		w.mustClose(t)
		list := w.store.snapshots.get()
		newest := list[len(list)-1]
		path := w.store.layout.snapshot(newest.seq)
		whole := readFile(t, o.FS, path)
		_, body, err := readSnapshot(o.FS, path, true)
		if err != nil {
			t.Fatal(err)
		}
		change(make([]byte, snapshotHeaderSize), body)
		if err := writeSnapshot(o.FS, w.store.layout.snapshots(), &newest, body); err != nil {
			t.Fatal(err)
		}
		data := readFile(t, o.FS, path)
		change(data[:snapshotHeaderSize], make([]byte, len(body)))
		writeFile(t, o.FS, path, data)

		s, err := Open(o)
		if err == nil {
			_, err = s.Recover(NewestSnapshot, nil)
			err = errors.Join(err, s.release())
		}
		var d *DamageError
		if !errors.Is(err, engine.ErrVersion) || errors.As(err, &d) {
			t.Errorf("%s: %v", name, err)
		}
		writeFile(t, o.FS, path, whole)
		w = mustOpen(t, o, NewestSnapshot, nil)
		sameReplica(t, w.replica, replayed(all))
		if got := w.store.snapshots.get(); len(got) != len(list) {
			t.Errorf("%s: %d snapshots are left of %d", name, len(got), len(list))
		}
		w.mustClose(t)
	}
}

// TestSnapshotLeftovers: no half-written snapshot stays after a failure or a crash.
func TestSnapshotLeftovers(t *testing.T) {
	mem := vfs.NewMem()
	disk := &failing{files: "*" + tempSuffix, ops: failSync, err: errFull}
	o := testOptions(disk.wrap(mem))
	w := mustOpen(t, o, 0, nil)
	w.mustAppend(t, workload(t, 100, 18), 10)
	dir := w.store.layout.snapshots()
	half := mem.PathJoin(dir, snapshotName(7)+tempSuffix)
	disk.on.Store(true)
	if err := w.store.Close(); err == nil {
		t.Error("a snapshot on a failing disk")
	}
	if names, err := mem.List(dir); err != nil || len(names) != 0 {
		t.Errorf("after the failure: %v %v", names, err)
	}
	disk.on.Store(false)
	writeFile(t, mem, half, []byte("half"))
	w = mustOpen(t, o, 0, nil)
	if names, err := mem.List(dir); err != nil || len(names) != 0 {
		t.Errorf("after the next start: %v %v", names, err)
	}
	w.mustClose(t)
}

// TestCloseDoesNotWait: a snapshot replica that is far behind does not delay a close;
// the next start replays the rest.
func TestCloseDoesNotWait(t *testing.T) {
	o := testOptions(vfs.NewMem())
	all := workload(t, 1200, 17)
	w := mustOpen(t, o, 0, nil)
	w.mustAppend(t, all, 10)
	w.store.snapshotter.closeTimeout = -1
	w.mustClose(t)
	if list := w.store.snapshots.get(); len(list) != 0 || w.store.snapshotter.at.Last() >= uint64(len(all)) {
		t.Errorf("it waited: snapshots %+v", list)
	}
	w = mustOpen(t, o, NewestSnapshot, nil)
	sameReplica(t, w.replica, replayed(all))
	w.mustClose(t)
	if list := w.store.snapshots.get(); len(list) != 1 || list[0].seq != uint64(len(all)) {
		t.Errorf("snapshots of a close in time: %+v", list)
	}
}

// TestFloor: events that a consumer has not taken stay and are visited again.
func TestFloor(t *testing.T) {
	o := testOptions(vfs.NewMem())
	o.SnapshotEvery, o.KeepSnapshots = 500, 2
	all := workload(t, 4000, 12)
	w := mustOpen(t, o, 0, nil)
	const floor = 1234
	w.store.SetFloor(func() uint64 { return floor })
	w.mustAppend(t, all, 10)
	w.catchUp(t)
	w.mustClose(t)
	w = mustOpen(t, o, floor, nil)
	sameReplica(t, w.replica, replayed(all))
	if b := w.store.begin.Next; b <= 1 || b > floor {
		t.Errorf("the journal begins at seq %d, the consumer stopped at %d", b, floor)
	}
	// Without the floor the next snapshot prunes it, and Recover returns an error.
	w.mustAppend(t, nextTicks(&all, 600), 10)
	w.catchUp(t)
	w.mustClose(t)
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Recover(floor, nil); !errors.Is(err, projection.ErrPruned) {
		t.Errorf("below the oldest snapshot: %v", err)
	}
	if err := s.release(); err != nil {
		t.Fatal(err)
	}
}

func TestKeepers(t *testing.T) {
	list := []snapshot{{seq: 10}, {seq: 20}, {seq: 30}, {seq: 40}}
	for _, test := range []struct {
		keep  int
		floor uint64
		want  uint64 // the oldest that stays
	}{
		{2, NewestSnapshot, 30},
		{2, 35, 30},
		{2, 25, 20},
		{2, 10, 10},
		{2, 9, 10},
		{4, 40, 10},
		{9, 40, 10},
		{1, 40, 40},
	} {
		if got := snapshotsToKeep(list, test.keep, test.floor); got[0].seq != test.want {
			t.Errorf("keep %d, floor %d: oldest %d, want %d", test.keep, test.floor, got[0].seq, test.want)
		}
	}
}

func FuzzSnapshotHeader(f *testing.F) {
	f.Add((&snapshot{seq: 5, epoch: 2, hash: 3, digest: 4, length: 100, sum: 9}).encode())
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) >= snapshotHeaderSize {
			binary.LittleEndian.PutUint32(data[92:], crc32.Checksum(data[:92], castagnoli))
		}
		s, err := decodeSnapshotHeader(data)
		if err != nil {
			return
		}
		if s.length > MaxSnapshotBytes {
			t.Fatalf("length %d", s.length)
		}
		again, err := decodeSnapshotHeader(s.encode())
		if err != nil || again != s {
			t.Fatalf("%+v, again %+v: %v", s, again, err)
		}
	})
}

func FuzzMark(f *testing.F) {
	var p [highWaterMarkSize]byte
	(&highWaterMarkRecord{phase: open, count: 3, last: 9, first: 8, hash: 7, epoch: 1}).encode(&p)
	f.Add(p[:])
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) >= highWaterMarkSize {
			binary.LittleEndian.PutUint32(data[60:], crc32.Checksum(data[:60], castagnoli))
		}
		r, ok := decodeHighWaterMark(data)
		if !ok {
			return
		}
		var p [highWaterMarkSize]byte
		r.encode(&p)
		if again, ok := decodeHighWaterMark(p[:]); !ok || again != r {
			t.Fatalf("%+v, again %+v", r, again)
		}
	})
}
