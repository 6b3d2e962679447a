package persist

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"blockdesk/engine"
	"blockdesk/internal/await"
)

var (
	errFull = errors.New("no space left on device")
	errIO   = errors.New("input/output error")
)

// content returns every file below dir with its content.
func content(t testing.TB, fs vfs.FS, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, path := range allFiles(t, fs, dir) {
		files[path] = string(readFile(t, fs, path))
	}
	return files
}

// appendUntilRefused appends command by command and returns how many were
// acknowledged and the error that ended it.
func (w *writer) appendUntilRefused(commands []engine.Command) (acked int, err error) {
	for i := range commands {
		if err := w.append(commands[i : i+1]); err != nil {
			return i, err
		}
	}
	return len(commands), nil
}

// checkFailed checks a store on a failed disk: nothing more is acknowledged, nothing
// waits or spins, it can be read and closed, and the disk stays as it was and has
// everything acknowledged.
func (w *writer) checkFailed(t *testing.T, mem *vfs.MemFS, o Options, all []engine.Command, cause error) {
	t.Helper()
	s := w.store
	rests(t)
	before := content(t, mem, o.Dir)
	acked := s.Health().Durable
	next := all[w.replica.State.Seq():]
	if _, err := w.appendUntilRefused(next[:1]); !errors.Is(err, ErrFailed) || !errors.Is(err, cause) {
		t.Errorf("append after the failure: %v, want ErrFailed because of %q", err, cause)
	}
	if err := s.Health().Failed; !errors.Is(err, ErrFailed) {
		t.Errorf("health: %v", err)
	}
	if err := within(t, "backup", func() error { return s.Backup("/backup", nil) }); !errors.Is(err, ErrFailed) {
		t.Errorf("backup: %v", err)
	}
	if err := within(t, "reading", func() error { return s.snapshotter.catchUpToEnd() }); err != nil {
		t.Errorf("reading: %v", err)
	}
	if at := s.snapshotter.at.Last(); at != acked {
		t.Errorf("read up to seq %d, acknowledged %d", at, acked)
	}
	if err := within(t, "close", s.Close); !errors.Is(err, ErrFailed) || !errors.Is(err, cause) {
		t.Errorf("close: %v, want ErrFailed because of %q", err, cause)
	}
	if !maps.Equal(before, content(t, mem, o.Dir)) {
		t.Error("the disk was changed after the failure")
	}
	for _, percent := range []int{0, 50, 100} {
		o.FS = mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rand.New(rand.NewPCG(1, 1))})
		again := mustOpen(t, o, 0, nil)
		seq := again.replica.State.Seq()
		if seq < acked {
			t.Errorf("recovered seq %d, acknowledged %d", seq, acked)
		}
		sameReplica(t, again.replica, replayed(all[:seq]))
		again.mustClose(t)
	}
}

// TestFailedDisk: a failed write or sync, of whatever file, ends acknowledgement
// at once and for good.
func TestFailedDisk(t *testing.T) {
	all := workload(t, 2500, 7)
	for _, test := range []struct {
		name, files string
		ops         []errorfs.OpKind
		err         error
		mode        Mode
	}{
		{"failed sync of the log", "*.log", failSync, errIO, Sync},
		{"full disk under the log", "*.log", failWrite, errFull, Sync},
		{"full disk under the log", "*.log", failWrite, errFull, Interval},
		{"full disk under a new log", "*.log", failCreate, errFull, Sync},
		{"failed sync of the log", "*.log", failSync, errIO, Interval},
		{"failed sync of the logs' folder", "log", failSync, errIO, Sync},
		{"full disk under the mark", "mark", failWrite, errFull, Sync},
		{"failed sync of the mark", "mark", failSync, errIO, Sync},
		{"full disk under a new table", "*.sst", failCreate, errFull, Sync},
		{"full disk under the tables", "*.sst", failWrite, errFull, Sync},
		{"full disk under the tables", "*.sst", failWrite, errFull, Interval},
		{"failed sync of the tables", "*.sst", failSync, errIO, Sync},
		{"full disk under the manifest", "MANIFEST-*", failWrite, errFull, Sync},
		{"failed sync of the manifest", "MANIFEST-*", failSync, errIO, Sync},
		{"failed sync of the folder", "frames", failSync, errIO, Sync},
	} {
		t.Run(test.name+" "+test.mode.String(), func(t *testing.T) {
			mem := vfs.NewCrashableMem()
			disk := &failing{files: test.files, ops: test.ops, err: test.err}
			o := testOptions(disk.wrap(mem))
			o.Mode, o.MemTableBytes = test.mode, MinMemTableBytes
			o.SyncHighWaterMark = true
			w := mustOpen(t, o, 0, nil)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- w.store.Run(ctx) }()
			w.mustAppend(t, all[:100], 10)
			disk.on.Store(true)
			err := within(t, "append", func() error { _, err := w.appendUntilRefused(all[100:2400]); return err })
			if !errors.Is(err, ErrFailed) || !errors.Is(err, test.err) {
				t.Fatalf("append: %v, want ErrFailed because of %q", err, test.err)
			}
			disk.on.Store(false) // which changes nothing
			cancel()
			if err := within(t, "run", func() error { return <-done }); !errors.Is(err, ErrFailed) {
				t.Errorf("run: %v", err)
			}
			w.checkFailed(t, mem, o, all, test.err)
		})
	}
}

// TestFailureEndsStall: a writer does not wait for a flush that cannot end.
func TestFailureEndsStall(t *testing.T) {
	all := workload(t, 8000, 8)
	for _, test := range []struct {
		name, files string
		ops         []errorfs.OpKind
	}{
		{"new table", "*.sst", failCreate},
		{"table", "*.sst", failWrite},
		{"sync of a table", "*.sst", failSync},
		{"manifest", "MANIFEST-*", failWrite},
		{"sync of the manifest", "MANIFEST-*", failSync},
		{"sync of the folder", "frames", failSync},
	} {
		t.Run(test.name, func(t *testing.T) {
			mem, log := vfs.NewCrashableMem(), newStallLog()
			disk := &failing{files: test.files, ops: test.ops, err: errFull, after: log.stalled}
			o := testOptions(disk.wrap(mem))
			o.MemTableBytes, o.Logger = MinMemTableBytes, slog.New(log)
			w := mustOpen(t, o, 0, nil)
			w.mustAppend(t, all[:100], 10)
			disk.on.Store(true)
			err := within(t, "append in the stall", func() error { _, err := w.appendUntilRefused(all[100:7900]); return err })
			if !errors.Is(err, ErrFailed) || !errors.Is(err, errFull) {
				t.Fatalf("append: %v", err)
			}
			w.checkFailed(t, mem, o, all, errFull)
			if n := disk.hits.Load(); n != 1 {
				t.Errorf("asked the disk %d times, want once", n)
			}
		})
	}
}

// TestFailureEndsPrune: pruning waits for a flush too.
func TestFailureEndsPrune(t *testing.T) {
	all := workload(t, 600, 9)
	for files, ops := range map[string][]errorfs.OpKind{"*.sst": failWrite, "MANIFEST-*": failSync} {
		t.Run(files, func(t *testing.T) {
			mem := vfs.NewCrashableMem()
			disk := &failing{files: files, ops: ops, err: errIO}
			o := testOptions(disk.wrap(mem))
			o.SnapshotEvery, o.KeepSnapshots = 200, 1
			w := mustOpen(t, o, 0, nil)
			w.mustAppend(t, all[:500], 7)
			disk.on.Store(true)
			within(t, "prune", func() error { _, err := w.store.snapshotter.catchUp(); return err })
			if err := w.store.Health().SnapshotFailed; !errors.Is(err, ErrFailed) {
				t.Errorf("snapshot: %v", err)
			}
			w.checkFailed(t, mem, o, all, errIO)
		})
	}
}

// TestPruneCannotRead: pruning reads the table that it cuts. If it cannot, the frames
// stay and nothing else happens.
func TestPruneCannotRead(t *testing.T) {
	all := workload(t, 600, 9)
	disk := &failing{files: "*.sst", ops: failRead, err: errIO}
	o := testOptions(disk.wrap(vfs.NewMem()))
	o.SnapshotEvery, o.KeepSnapshots = 200, 1
	w := mustOpen(t, o, 0, nil)
	w.mustAppend(t, all[:500], 7)
	disk.on.Store(true)
	within(t, "prune", func() error { _, err := w.store.snapshotter.catchUp(); return err })
	if err := w.store.Health().SnapshotFailed; !errors.Is(err, errIO) {
		t.Errorf("snapshot: %v", err)
	}
	rests(t)
	disk.on.Store(false)
	within(t, "append", func() bool { w.mustAppend(t, all[500:], 1); return true })
	if err := within(t, "close", w.store.Close); err != nil {
		t.Error(err)
	}
	w = mustOpen(t, o, NewestSnapshot, nil)
	sameReplica(t, w.replica, replayed(all))
	w.mustClose(t)
}

// TestFailedRemove: a file that cannot be removed costs its space.
func TestFailedRemove(t *testing.T) {
	disk := &failing{files: "*", ops: failRemove, err: errIO}
	mem := vfs.NewMem()
	k := mustOpenKV(t, disk.wrap(mem))
	disk.on.Store(true)
	err := within(t, "commit", func() error {
		for {
			err := errors.Join(set(k, true, "a", "1", "z", "1"), k.db.Flush())
			if err != nil || disk.hits.Load() > 0 {
				return err
			}
		}
	})
	if err != nil {
		t.Error(err)
	}
	rests(t)
	if err := within(t, "close", func() error { return errors.Join(set(k, true, "b", "1"), k.Close()) }); err != nil {
		t.Error(err)
	}
	k = mustOpenKV(t, mem)
	if got := scan(t, k, "", ""); got != "a=1 b=1 z=1" {
		t.Errorf("after a restart: %s", got)
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
}

// openFailing opens on a disk that fails meanwhile. If anything failed, the error must
// say so and not call it damage.
func openFailing(t testing.TB, o Options, mem vfs.FS, disk *failing) error {
	t.Helper()
	o.FS = disk.wrap(mem)
	disk.on.Store(true)
	err := within(t, "open", func() error {
		s, err := Open(o)
		disk.on.Store(false)
		if err == nil {
			err = s.release()
		}
		return err
	})
	var damage *DamageError
	if errors.As(err, &damage) || errors.Is(err, disk.err) != (disk.hits.Load() > 0) {
		return fmt.Errorf("%d operations failed, open says: %w", disk.hits.Load(), err)
	}
	return nil
}

// TestBackupToFailedDisk: a disk that fails under a backup fails the backup, not
// the journal.
func TestBackupToFailedDisk(t *testing.T) {
	all := workload(t, 600, 12)
	for _, files := range []string{"*", "frames", "*.log", "MANIFEST-*", "marker.*"} {
		for name, ops := range map[string][]errorfs.OpKind{
			"create": failCreate, "write": failWrite, "sync": failSync, "remove": failRemove,
		} {
			disk := &failing{files: files, ops: ops, err: errIO, below: "/backup/here"}
			w := mustOpen(t, testOptions(disk.wrap(vfs.NewMem())), 0, nil)
			w.mustAppend(t, all[:300], 7)
			disk.on.Store(true)
			err := within(t, "backup", func() error { return w.store.Backup("/backup/here", nil) })
			if (disk.hits.Load() > 0) != (err != nil) {
				t.Errorf("%s, %s: %d operations failed, backup: %v", files, name, disk.hits.Load(), err)
			}
			if err := w.append(all[300:]); err != nil {
				t.Errorf("%s, %s: append: %v", files, name, err)
			}
			w.mustClose(t)
		}
	}
}

// TestOpenOnFailedDisk: Open flushes what it replays; on a full disk it returns an
// error that is no damage.
func TestOpenOnFailedDisk(t *testing.T) {
	all := workload(t, 3000, 11)
	mem := vfs.NewCrashableMem()
	o := testOptions(mem)
	o.MemTableBytes = 1 << 20
	w := mustOpen(t, o, 0, nil)
	w.mustAppend(t, all, 10)
	killed := mem.CrashClone(vfs.CrashCloneCfg{})
	w.mustClose(t)
	o.MemTableBytes = MinMemTableBytes
	for _, files := range []string{"*.sst", "*.log", "MANIFEST-*", "OPTIONS-*", "marker.*", "mark", "frames", "log"} {
		for name, ops := range map[string][]errorfs.OpKind{"create": failCreate, "write": failWrite, "sync": failSync} {
			now := killed.CrashClone(vfs.CrashCloneCfg{})
			if err := openFailing(t, o, now, &failing{files: files, ops: ops, err: errFull}); err != nil {
				t.Errorf("%s, %s: %v", files, name, err)
			}
			o.FS = now
			w := mustOpen(t, o, 0, nil)
			sameReplica(t, w.replica, replayed(all))
			w.mustClose(t)
		}
	}
}

// TestCreateOnFailedDisk: a store whose creation failed is created anew.
func TestCreateOnFailedDisk(t *testing.T) {
	for _, files := range []string{"*.log", "MANIFEST-*", "OPTIONS-*", "marker.*", "mark", "frames", "log"} {
		for name, ops := range map[string][]errorfs.OpKind{"create": failCreate, "write": failWrite, "sync": failSync} {
			mem := vfs.NewCrashableMem()
			o := testOptions(mem)
			if err := openFailing(t, o, mem, &failing{files: files, ops: ops, err: errFull}); err != nil {
				t.Errorf("%s, %s: %v", files, name, err)
			}
			o.FS = mem.CrashClone(vfs.CrashCloneCfg{})
			mustOpen(t, o, 0, nil).mustClose(t)
		}
	}
}

// TestKVFailureEndsStall is TestFailureEndsStall for a KV.
func TestKVFailureEndsStall(t *testing.T) {
	mem, log := vfs.NewCrashableMem(), newStallLog()
	disk := &failing{files: "*.sst", ops: failWrite, err: errFull, after: log.stalled}
	k, err := openKV("/kv", disk.wrap(mem), slog.New(log), MinMemTableBytes)
	if err != nil {
		t.Fatal(err)
	}
	disk.on.Store(true)
	value, acked := strings.Repeat("v", MinMemTableBytes/10), 0
	err = within(t, "commit in the stall", func() error {
		for ; acked < 200; acked++ {
			if err := set(k, true, fmt.Sprintf("%03d", acked), value); err != nil {
				return err
			}
		}
		return nil
	})
	if !errors.Is(err, ErrFailed) || !errors.Is(err, errFull) {
		t.Fatalf("commit: %v", err)
	}
	rests(t)
	before := content(t, mem, "/kv")
	for i := range acked {
		if v, ok, err := k.Get(fmt.Appendf(nil, "%03d", i)); err != nil || !ok || len(v) != len(value) {
			t.Fatalf("reading goes on: %d: %v %v", i, ok, err)
		}
	}
	if err := within(t, "close", k.Close); !errors.Is(err, ErrFailed) {
		t.Errorf("close: %v", err)
	}
	if !maps.Equal(before, content(t, mem, "/kv")) {
		t.Error("the disk was changed after the failure")
	}
	// A disk that is still full does not let it open, nor hang.
	killed := mem.CrashClone(vfs.CrashCloneCfg{})
	disk.after = nil
	err = within(t, "open", func() error {
		_, err := openKV("/kv", disk.wrap(killed), quiet(), MinMemTableBytes)
		return err
	})
	if !errors.Is(err, ErrFailed) || !errors.Is(err, errFull) {
		t.Errorf("open: %v", err)
	}
	k = mustOpenKV(t, killed)
	if n := len(strings.Fields(scan(t, k, "", ""))); n < acked {
		t.Errorf("%d entries, %d were acknowledged", n, acked)
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
}

// compactionFails is a disk on which every compaction fails, and late.
type compactionFails struct {
	vfs.FS
	begun, fail chan struct{}
}

func (d *compactionFails) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if c != compacting {
		return d.FS.Create(name, c)
	}
	select {
	case d.begun <- struct{}{}:
	default:
	}
	<-d.fail
	return nil, errFull
}

// TestKVWaitsForCompactions: when they are far behind, Commit waits; when one
// fails, it waits no longer.
func TestKVWaitsForCompactions(t *testing.T) {
	disk := &compactionFails{FS: vfs.NewMem(), begun: make(chan struct{}, 1), fail: make(chan struct{})}
	k := mustOpenKV(t, disk)
	err := within(t, "filling", func() (err error) {
		for err == nil && k.db.Metrics().Levels[0].Sublevels < kvMaxSublevels {
			err = errors.Join(set(k, false, "a", "1", "z", "1"), k.db.Flush())
		}
		<-disk.begun
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- set(k, true, "b", "1") }()
	await.True(t, "the commit to have waited five times", func() bool { return k.waits.Load() >= 5 || len(done) > 0 })
	if len(done) > 0 {
		t.Error("commit did not wait")
	}
	close(disk.fail)
	if err := within(t, "commit", func() error { return <-done }); !errors.Is(err, ErrFailed) || !errors.Is(err, errFull) {
		t.Errorf("commit: %v", err)
	}
	rests(t)
	if n := k.db.Metrics().Compact.FailedCount; n != 1 {
		t.Errorf("%d compactions failed, want one", n)
	}
	if err := within(t, "close", k.Close); !errors.Is(err, ErrFailed) {
		t.Errorf("close: %v", err)
	}
}

// TestKVDamagedTable: Pebble reads every table after opening. A table that it cannot read
// is a failure, which must not burn a core.
func TestKVDamagedTable(t *testing.T) {
	fs := vfs.NewMem()
	k := mustOpenKV(t, fs)
	if err := errors.Join(set(k, true, "a", "1"), k.db.Flush(), k.Close()); err != nil {
		t.Fatal(err)
	}
	for _, path := range allFiles(t, fs, "/kv") {
		if strings.HasSuffix(path, ".sst") {
			data := readFile(t, fs, path)
			writeFile(t, fs, path, slices.Concat(data[:len(data)-8], bytes.Repeat([]byte{0}, 8)))
		}
	}
	k, err := OpenKV("/kv", fs, quiet())
	if err != nil {
		return // found at once
	}
	within(t, "commit", func() bool {
		for set(k, true, "b", "1") == nil {
		}
		return true
	})
	rests(t)
	if err := within(t, "close", k.Close); !errors.Is(err, ErrFailed) {
		t.Errorf("close: %v", err)
	}
}
