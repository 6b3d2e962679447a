package persist

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"blockdesk/engine"
	"blockdesk/internal/runtest"
)

func toolsFor(o Options) ToolOptions {
	return ToolOptions{Dir: o.Dir, FS: o.FS, State: o.State, Logger: quiet()}
}

// catchUp lets the snapshotter catch up and take the snapshots that are due.
func (w *writer) catchUp(t testing.TB) {
	t.Helper()
	if err := w.store.snapshotter.catchUpToEnd(); err != nil {
		t.Fatal(err)
	}
}

func TestVerifyAndReplay(t *testing.T) {
	o := testOptions(vfs.NewMem())
	o.SnapshotEvery = 1000
	all := workload(t, 3500, 8)
	w := mustOpen(t, o, 0, nil)
	w.mustAppend(t, all, 10)
	w.catchUp(t)
	w.mustClose(t)
	tool := toolsFor(o)
	var reported []uint64
	tool.Progress = func(done, total uint64) error {
		reported = append(reported, done, total)
		return nil
	}
	rep, err := Verify(tool)
	if err != nil {
		t.Fatal(err)
	}
	want := replayed(all)
	last := uint64(len(all))
	if rep.Last != last || rep.HighWaterMark != last || rep.Seq != last || rep.Digest != want.Digest || rep.StateHash != want.State.Hash() {
		t.Errorf("report: %+v", rep)
	}
	if len(rep.Snapshots) != 3 || rep.Commands+rep.Base != last || rep.First != rep.Base+1 || rep.Epoch != 1 {
		t.Errorf("report: %+v", rep)
	}
	if n := len(reported); n < 2 || reported[n-1] != reported[n-2] || reported[n-1] != rep.Commands {
		t.Errorf("progress: %v", reported)
	}
	naive := toolsFor(o)
	naive.State.Naive = true
	if slow, err := Replay(naive, NewestSnapshot); err != nil || slow.StateHash != rep.StateHash || slow.Digest != rep.Digest {
		t.Errorf("the obvious book replays to %x, the fast one to %x: %v", slow.StateHash, rep.StateHash, err)
	}
	if half, err := Replay(tool, rep.First+99); err != nil || half.Seq < rep.First+99 || half.Seq > rep.First+109 {
		t.Errorf("replay to seq %d ended at %d: %v", rep.First+99, half.Seq, err)
	}
}

// TestProgressEnds: a progress callback may end long work. The journal stays as it is,
// and an unfinished copy is not a store.
func TestProgressEnds(t *testing.T) {
	o := testOptions(vfs.NewMem())
	all := workload(t, 500, 8)
	w := mustOpen(t, o, 0, nil)
	w.mustAppend(t, all, 10)
	w.mustClose(t)
	enough := errors.New("enough")
	tool := toolsFor(o)
	tool.Progress = func(uint64, uint64) error { return enough }
	const copied = "copied"
	for name, run := range map[string]func() error{
		"verify":  func() error { _, err := Verify(tool); return err },
		"replay":  func() error { _, err := Replay(tool, NewestSnapshot); return err },
		"dump":    func() error { return Dump(tool, 1, NewestSnapshot, io.Discard) },
		"restore": func() error { return Restore(tool, copied) },
		"recover": func() error {
			stopping := o
			stopping.Progress = tool.Progress
			store, err := Open(stopping)
			if err != nil {
				t.Fatal(err)
			}
			_, err = store.Recover(0, nil) // all of it
			return errors.Join(err, store.Close())
		},
	} {
		if err := run(); !errors.Is(err, enough) || errors.As(err, new(*DamageError)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if rep, err := Verify(toolsFor(o)); err != nil || rep.Last != uint64(len(all)) {
		t.Errorf("the journal ends at %d: %v", rep.Last, err)
	}
	half := toolsFor(o)
	half.Dir = copied
	if _, err := Verify(half); err == nil {
		t.Error("a copy that was broken off proves right")
	}
}

func TestVerifyFindsAll(t *testing.T) {
	o := testOptions(vfs.NewMem())
	o.SnapshotEvery = 500
	w := mustOpen(t, o, 0, nil)
	w.mustAppend(t, workload(t, 2000, 9), 10)
	w.catchUp(t)
	w.mustClose(t)
	list, _, err := listSnapshots(o.FS, w.store.layout.snapshots())
	if err != nil || len(list) != 3 {
		t.Fatalf("%d snapshots: %v", len(list), err)
	}
	// One header, one body.
	for i, at := range []int{10, 200} {
		path := w.store.layout.snapshot(list[i+1].seq)
		data := readFile(t, o.FS, path)
		data[at] ^= 1
		writeFile(t, o.FS, path, data)
	}
	_, err = Verify(toolsFor(o))
	var damage *DamageError
	if !errors.As(err, &damage) {
		t.Fatalf("error %v, want damage", err)
	}
	for i := range 2 {
		if name := snapshotName(list[i+1].seq); !strings.Contains(err.Error(), name) {
			t.Errorf("the damage of %s is not named in %v", name, err)
		}
	}
}

func TestToolsRefuse(t *testing.T) {
	fs := vfs.NewMem()
	if _, err := Verify(ToolOptions{Dir: "/nothing", FS: fs, Logger: quiet()}); !errors.Is(err, ErrNoStore) {
		t.Errorf("no store: %v", err)
	}
	o := testOptions(fs)
	w := mustOpen(t, o, 0, nil)
	if _, err := Verify(toolsFor(o)); err == nil || !strings.Contains(err.Error(), "running") {
		t.Errorf("a store that is open: %v", err)
	}
	if _, err := Open(o); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("opened twice: %v", err)
	}
	w.mustClose(t)
}

const wantDump = `{"seq":7,"frame":7,"at":1700000000000000000,"time":"2023-11-14T22:13:20Z","kind":"new_order","instrument":1,"order_id":72623859790382856,"participant":2,"side":1,"type":1,"tif":1,"stp":2,"price_ticks":999,"qty_lots":5000,"origin":3,"ref":"ord-1"}
{"seq":8,"frame":7,"at":1700000000000000000,"time":"2023-11-14T22:13:20Z","kind":"cancel_order","instrument":1,"order_id":72623859790382856,"participant":2,"origin":3}
{"seq":9,"frame":7,"at":1700000000000000001,"time":"2023-11-14T22:13:20.000000001Z","kind":"new_order","instrument":65535,"order_id":9223372036854775809,"participant":65535,"side":2,"type":4,"tif":5,"stp":4,"flags":255,"price_ticks":-1,"stop_ticks":1,"qty_lots":2,"display_lots":3,"expire_at":4,"status":1,"origin":65535,"arg":11,"ref":"rrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrr"}
{"seq":10,"frame":7,"at":1700000000000000001,"time":"2023-11-14T22:13:20.000000001Z","kind":"start_epoch","instrument":0,"arg":4}
`

func TestDump(t *testing.T) {
	o := testOptions(vfs.NewMem())
	w := mustOpen(t, o, 0, nil)
	ticks := make([]engine.Command, 6)
	for i := range ticks {
		ticks[i] = engine.Command{Seq: uint64(i + 1), At: 1, Kind: engine.Tick}
	}
	w.mustAppend(t, ticks, 6)
	w.mustAppend(t, goldenCommands(), 4)
	w.mustClose(t)
	var out bytes.Buffer
	if err := Dump(toolsFor(o), 7, 100, &out); err != nil {
		t.Fatal(err)
	}
	if out.String() != wantDump {
		t.Errorf("dump:\n%s\nwant\n%s", out.String(), wantDump)
	}
	for line := range strings.Lines(out.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("not JSON: %s", line)
		}
	}
	out.Reset()
	if err := Dump(toolsFor(o), 3, 8, &out); err != nil || strings.Count(out.String(), "\n") != 6 {
		t.Errorf("seq 3 to 8: %v\n%s", err, out.String())
	}
}

func TestDumpText(t *testing.T) {
	got := string(appendJSONText(nil, []byte("a\"b\\c\x00\x1f\x7f\xff")))
	if want := `"a\"b\\c\u0000\u001f\u007f\u00ff"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestBackup: a copy taken while commands arrive is a store of its own, and a restored
// one continues from there.
func TestBackup(t *testing.T) {
	fs := vfs.NewMem()
	o := testOptions(fs)
	o.SnapshotEvery, o.KeepSnapshots = 400, 2
	all := workload(t, 4000, 10)
	w := mustOpen(t, o, 0, nil)
	stop := runtest.Start(t, w.store.Run)
	w.mustAppend(t, all[:1500], 10)
	acked := w.store.Health().Durable
	copied := make(chan error, 1)
	go func() { copied <- w.store.Backup("/backup", nil) }()
	w.mustAppend(t, all[1500:], 10)
	if err := <-copied; err != nil {
		t.Fatal(err)
	}
	if err := w.store.Backup("/backup", nil); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("a second backup into the same folder: %v", err)
	}
	stop()
	w.mustClose(t)

	backup := toolsFor(o)
	backup.Dir = "/backup"
	rep, err := Verify(backup)
	if err != nil {
		t.Fatal(err)
	}
	if rep.Seq < acked || rep.StateHash != replayed(all[:rep.Seq]).State.Hash() {
		t.Errorf("backup holds seq %d, %d were acknowledged before it", rep.Seq, acked)
	}
	var bytesReported uint64
	backup.Progress = func(done, total uint64) error {
		bytesReported = max(bytesReported, done, total)
		return nil
	}
	if err := Restore(backup, "/restored"); err != nil {
		t.Fatal(err)
	}
	if bytesReported == 0 {
		t.Error("no progress")
	}
	if err := Restore(backup, "/restored"); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("restore into a folder in use: %v", err)
	}
	r := o
	r.Dir = "/restored"
	again := mustOpen(t, r, NewestSnapshot, nil)
	sameReplica(t, again.replica, replayed(all[:rep.Seq]))
	again.mustAppend(t, all[rep.Seq:], 50)
	again.mustClose(t)
	if err := BackupStopped(toolsFor(r), "/second"); err != nil {
		t.Fatal(err)
	}
	second := toolsFor(o)
	second.Dir = "/second"
	if rep, err := Verify(second); err != nil || rep.StateHash != replayed(all).State.Hash() {
		t.Errorf("backup of the stopped store: seq %d, %v", rep.Seq, err)
	}
}

// TestUnfinishedBackup: an interrupted copy is not a store.
func TestUnfinishedBackup(t *testing.T) {
	fs := vfs.NewMem()
	m, err := layout{fs: fs, dir: "/backup"}.beginCopy()
	if err != nil {
		t.Fatal(err)
	}
	if err := m.close(); err != nil {
		t.Fatal(err)
	}
	o := testOptions(fs)
	o.Dir = "/backup"
	if _, err := Open(o); !errors.Is(err, errUnfinished) {
		t.Errorf("open: %v", err)
	}
	if _, err := Verify(toolsFor(o)); !errors.Is(err, errUnfinished) {
		t.Errorf("verify: %v", err)
	}
}
