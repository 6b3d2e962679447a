package persist

import (
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"

	"blockdesk/engine"
	"blockdesk/engine/event"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/market"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// quiet is a logger that discards everything.
func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// testOptions are small and in memory.
func testOptions(fs vfs.FS) Options {
	return Options{
		Dir: "/journal", FS: fs, SnapshotEvery: 1 << 40, MemTableBytes: 256 << 10, SpareLogs: -1, Logger: quiet(),
		State: smallState, CloseWithin: time.Hour,
	}
}

// smallState keeps the books small, since tests make thousands.
var smallState = engine.StateOptions{MaxOrders: 4096}

// setup returns the first commands of a journal, not stamped: an epoch, two
// instruments, three participants.
func setup(t testing.TB) []engine.Command {
	commands := []engine.Command{{Kind: engine.StartEpoch, Arg: 1}}
	for i, symbol := range []string{"SLUSD/USDC", "92C/SLUSD"} {
		base, quote, _ := cutSymbol(symbol)
		c, err := engine.DefineInstrumentCommand(&market.Instrument{
			ID: market.InstrumentID(i), Symbol: symbol, Base: base, Quote: quote,
			PriceDecimals: 4, QtyDecimals: 2, Tick: 1, Lot: 1, MinQty: 1,
			MaxQty: 1_000_000, MaxPrice: 1_000_000, Source: market.Matched,
		})
		if err != nil {
			t.Fatal(err)
		}
		commands = append(commands, c)
	}
	for participant := market.ParticipantID(1); participant <= 3; participant++ {
		c, err := engine.SetRiskCommand(participant, engine.AllInstruments, engine.Limits{
			MaxQty: 1_000_000, MaxNotional: market.Uint128{Hi: 1}, MaxOpenOrders: 1 << 20,
		})
		if err != nil {
			t.Fatal(err)
		}
		commands = append(commands, c)
	}
	return commands
}

func cutSymbol(s string) (base, quote string, ok bool) {
	for i := range s {
		if s[i] == '/' {
			return s[:i], s[i+1:], true
		}
	}
	return s, "", false
}

// workload is a stamped flow: the setup, then orders and cancels.
func workload(t testing.TB, n int, seed uint64) []engine.Command {
	commands := append(setup(t), flowOf(n, 100, seed)...)
	for i := range commands {
		commands[i].Seq = uint64(i + 1)
		if commands[i].At == 0 {
			commands[i].At = 1_600_000_000_000_000_000
		}
	}
	return commands
}

// writer appends commands to a store as the engine would: it applies each to a
// replica of its own, which gives the digest of the events before each frame.
type writer struct {
	store   *Store
	replica *engine.Replica
}

func (w *writer) append(commands []engine.Command) error {
	prior := w.replica.Digest
	for i := range commands {
		w.replica.Apply(&commands[i], nil)
	}
	cut := len(commands) / 2
	return w.store.Append(prior, commands[:cut], commands[cut:])
}

// mustOpen opens and recovers.
func mustOpen(t testing.TB, o Options, floor uint64, visit func([]event.Event)) *writer {
	t.Helper()
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Recover(floor, visit)
	if err != nil {
		t.Fatal(errors.Join(err, s.release()))
	}
	return &writer{store: s, replica: r}
}

func (w *writer) mustAppend(t testing.TB, commands []engine.Command, frame int) {
	t.Helper()
	for len(commands) > 0 {
		n := min(frame, len(commands))
		if err := w.append(commands[:n]); err != nil {
			t.Fatal(err)
		}
		commands = commands[n:]
	}
}

func (w *writer) mustClose(t testing.TB) {
	t.Helper()
	if err := w.store.Close(); err != nil {
		t.Fatal(err)
	}
}

// replayed returns a replica of the commands from an undisturbed run.
func replayed(commands []engine.Command) *engine.Replica {
	r := engine.NewReplica(smallState)
	for i := range commands {
		r.Apply(&commands[i], nil)
	}
	return r
}

func sameReplica(t testing.TB, got, want *engine.Replica) {
	t.Helper()
	if got.State.Seq() != want.State.Seq() || got.Digest != want.Digest || got.State.Hash() != want.State.Hash() {
		t.Fatalf("replica at seq %d digest %016x hash %x, want seq %d digest %016x hash %x",
			got.State.Seq(), got.Digest, got.State.Hash(), want.State.Seq(), want.Digest, want.State.Hash())
	}
}

// TestRestart: what was appended is recovered, over several restarts,
func TestRestart(t *testing.T) {
	for _, mode := range []Mode{Sync, Interval} {
		fs := vfs.NewMem()
		o := testOptions(fs)
		o.Mode = mode
		all := workload(t, 3000, 1)
		for i, end := range []int{1000, 1001, 2000, 3000} {
			begin := []int{0, 1000, 1001, 2000}[i]
			var seen []event.Event
			floor := uint64(0)
			if i > 0 {
				floor = uint64(begin) - min(7, uint64(begin))
			}
			w := mustOpen(t, o, floor, func(e []event.Event) { seen = append(seen, e...) })
			sameReplica(t, w.replica, replayed(all[:begin]))
			for _, e := range seen {
				if e.Seq <= floor {
					t.Fatalf("visited seq %d at floor %d", e.Seq, floor)
				}
			}
			w.mustAppend(t, all[begin:end], 17)
			w.mustClose(t)
		}
		w := mustOpen(t, o, NewestSnapshot, nil)
		sameReplica(t, w.replica, replayed(all[:3000]))
		if list := w.store.snapshots.get(); len(list) != 3 || list[2].seq != 3000 {
			t.Errorf("snapshots: %+v", list)
		}
		w.mustClose(t)
	}
}

// TestRun: snapshots are taken and frames pruned while commands arrive.
func TestRun(t *testing.T) {
	o := testOptions(vfs.NewMem())
	o.SnapshotEvery = 500
	all := workload(t, 5000, 2)
	w := mustOpen(t, o, 0, nil)
	stop := runtest.Start(t, w.store.Run)
	w.mustAppend(t, all, 10)
	await.True(t, "the snapshot of seq 4500", func() bool { return w.store.Health().SnapshotSeq >= 4500 })
	stop()
	w.mustClose(t)
	w = mustOpen(t, o, NewestSnapshot, nil)
	sameReplica(t, w.replica, replayed(all))
	if w.store.begin.Next < 3000 {
		t.Errorf("journal begins at seq %d: not pruned", w.store.begin.Next)
	}
	if list := w.store.snapshots.get(); len(list) != 3 {
		t.Errorf("%d snapshots: %+v", len(list), list)
	}
	w.mustClose(t)
}

// nextTicks appends n commands without effect to a flow and returns them.
func nextTicks(all *[]engine.Command, n int) []engine.Command {
	last := (*all)[len(*all)-1]
	for i := range n {
		*all = append(*all, engine.Command{Seq: last.Seq + 1 + uint64(i), At: last.At, Kind: engine.Tick})
	}
	return (*all)[len(*all)-n:]
}

func TestOptions(t *testing.T) {
	if err := (&Options{Dir: "d"}).Validate(); err != nil {
		t.Errorf("defaults: %v", err)
	}
	for name, o := range map[string]Options{
		"no directory":   {},
		"mode":           {Dir: "d", Mode: 3},
		"interval":       {Dir: "d", Interval: MaxInterval + 1},
		"short interval": {Dir: "d", Interval: 1},
		"mark interval":  {Dir: "d", HighWaterMarkInterval: MaxInterval + 1},
		"keep":           {Dir: "d", KeepSnapshots: MaxKeepSnapshots + 1},
		"small memtable": {Dir: "d", MemTableBytes: MinMemTableBytes - 1},
		"large memtable": {Dir: "d", MemTableBytes: MaxMemTableBytes + 1},
		"spares":         {Dir: "d", SpareLogs: MaxSpareLogs + 1},
		"disk":           {Dir: "d", DiskLowPercent: 100},
		"disk, shed":     {Dir: "d", DiskShedPercent: -1},
		"reserve":        {Dir: "d", ReserveBytes: MaxReserveBytes + 1},
		"disk interval":  {Dir: "d", DiskEvery: -1},
	} {
		if err := o.Validate(); err == nil {
			t.Errorf("%s: accepted", name)
		}
		if _, err := Open(o); err == nil {
			t.Errorf("%s: opened", name)
		}
	}
}

// smallDisk is a disk whose free space the test sets.
type smallDisk struct {
	vfs.FS
	free atomic.Int64 // per cent
}

func (d *smallDisk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: uint64(d.free.Load()) << 30, TotalBytes: 100 << 30}, nil
}

// TestDiskLevels: each level is reported when it begins and when it ends.
func TestDiskLevels(t *testing.T) {
	disk := &smallDisk{FS: vfs.NewMem()}
	disk.free.Store(20)
	reported := make(chan DiskLevel, 10)
	o := testOptions(disk)
	o.DiskEvery, o.DiskChanged = MinInterval, func(level DiskLevel) { reported <- level }
	w := mustOpen(t, o, 0, nil)
	stop := runtest.Start(t, w.store.Run)
	for _, step := range []struct {
		free  int64
		level DiskLevel
	}{{19, DiskShed}, {9, DiskLow}, {10, DiskShed}, {4, DiskCritical}, {5, DiskLow}, {0, DiskCritical}, {20, DiskOK}} {
		disk.free.Store(step.free)
		if level := <-reported; level != step.level {
			t.Errorf("%d %% free: %s, want %s", step.free, level, step.level)
		}
		if h := w.store.Health(); h.Disk != step.level || h.FreePercent != int(step.free) || h.Failed != nil {
			t.Errorf("%d %% free: health %+v", step.free, h)
		}
	}
	stop()
	if len(reported) != 0 {
		t.Error("DiskChanged was called without a change")
	}
	w.mustClose(t)
}

// TestReserve: the reserve is created where there is room, deleted when the disk is full,
// also by a start, and created again.
func TestReserve(t *testing.T) {
	disk := &smallDisk{FS: vfs.NewMem()}
	o := testOptions(disk)
	o.ReserveBytes = 1 << 30 // 1 % of the disk
	path := disk.PathJoin(o.Dir, reserveFile)
	exists := func() bool { _, err := disk.Stat(path); return err == nil }
	disk.free.Store(20) // 19 with the reserve
	w := mustOpen(t, o, 0, nil)
	for _, step := range []struct {
		free int64
		want bool
	}{{20, false}, {21, true}, {1, true}, {0, false}, {20, false}, {30, true}} {
		disk.free.Store(step.free)
		w.store.disk.check()
		if exists() != step.want {
			t.Errorf("%d %% free: the reserve exists: %t", step.free, !step.want)
		}
	}
	w.mustClose(t)
	for _, step := range []struct {
		free int64
		want bool
	}{{1, true}, {0, false}} {
		disk.free.Store(step.free)
		mustOpen(t, o, 0, nil).mustClose(t)
		if exists() != step.want {
			t.Errorf("a start with %d %% free: the reserve exists: %t", step.free, !step.want)
		}
	}
	disk.free.Store(50)
	w = mustOpen(t, o, 0, nil)
	w.store.disk.check()
	w.mustClose(t)
	o.ReserveBytes = 0
	mustOpen(t, o, 0, nil).mustClose(t)
	if exists() {
		t.Error("the reserve stays although none is configured")
	}
}

// TestMaxBytes: snapshots are taken, and frames pruned, by their bytes too.
func TestMaxBytes(t *testing.T) {
	o := testOptions(vfs.NewMem())
	all := workload(t, 5000, 2)
	o.MaxBytes = 40 << 10
	w := mustOpen(t, o, 0, nil)
	stop := runtest.Start(t, w.store.Run)
	w.mustAppend(t, all, 10)
	var kept uint64
	await.True(t, "no more bytes than the bound, and a frame more of each span", func() bool {
		kept = 0
		err := w.store.Frames(max(1, w.store.firstSeq()), func(_ *Frame, encoded []byte) bool { kept += uint64(len(encoded)); return true })
		return err == nil && kept <= o.MaxBytes+4<<10
	})
	if newest := w.store.Health().SnapshotSeq; newest < 4000 {
		t.Errorf("the newest snapshot is of seq %d", newest)
	}
	stop()
	w.mustClose(t)
	w = mustOpen(t, o, NewestSnapshot, nil)
	sameReplica(t, w.replica, replayed(all))
	w.mustClose(t)
}

// firstSeq returns the Seq of the first frame.
func (s *Store) firstSeq() uint64 {
	s.pruneMu.Lock()
	defer s.pruneMu.Unlock()
	return s.begin.Next
}

// TestInterval: in mode Interval, the interval's sync makes written frames durable.
func TestInterval(t *testing.T) {
	mem := vfs.NewCrashableMem()
	o := testOptions(mem)
	o.Mode, o.Interval = Interval, MinInterval
	w := mustOpen(t, o, 0, nil)
	all := workload(t, 1000, 13)
	w.mustAppend(t, all[:500], 10)
	// Only the first frame, which begins the epoch, has been synced.
	if h := w.store.Health(); h.Durable != 10 || h.Appended != 500 || h.Interval != MinInterval {
		t.Errorf("before the beat: %+v", h)
	}
	stop := runtest.Start(t, w.store.Run)
	await.True(t, "seq 500 to be durable", func() bool { return w.store.Health().Durable >= 500 })
	o.FS = mem.CrashClone(vfs.CrashCloneCfg{})
	again := mustOpen(t, o, 0, nil)
	sameReplica(t, again.replica, replayed(all[:500]))
	again.mustClose(t)
	stop()
	w.mustClose(t)
}

// TestIntervalSurvivesTheProcess: in mode Interval, the death of the process loses nothing
// that was acknowledged, at whatever moment of the interval, in either mode afterwards.
func TestIntervalSurvivesTheProcess(t *testing.T) {
	all := workload(t, 1000, 17)
	for _, then := range []Mode{Interval, Sync} {
		mem := vfs.NewCrashableMem()
		o := testOptions(mem)
		o.Mode, o.Interval = Interval, MaxInterval
		w := mustOpen(t, o, 0, nil)
		for at := 0; at+100 <= len(all); at += 100 {
			w.mustAppend(t, all[at:at+100], 10)
			killed := o
			killed.Mode = then
			killed.FS = mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
			again := mustOpen(t, killed, 0, nil)
			sameReplica(t, again.replica, replayed(all[:at+100]))
			again.mustClose(t)
			again = mustOpen(t, killed, 0, nil) // the frames were adopted once
			sameReplica(t, again.replica, replayed(all[:at+100]))
			again.mustClose(t)
			if at%300 == 0 {
				if err := w.store.syncTail(); err != nil {
					t.Fatal(err)
				}
			}
		}
		w.mustClose(t)
		for _, path := range w.store.layout.unsynced() {
			if _, err := mem.Stat(path); err == nil {
				t.Errorf("%s is there after Close", path)
			}
		}
	}
}

// TestIntervalKeepsEpochs: a crash in mode Interval never loses an epoch that was seen,
// so the next run has another epoch and its ids are unique.
func TestIntervalKeepsEpochs(t *testing.T) {
	mem := vfs.NewCrashableMem()
	o := testOptions(mem)
	o.Mode = Interval
	all := workload(t, 50, 15)
	w := mustOpen(t, o, 0, nil)
	w.mustAppend(t, all, 10)
	for epoch := uint64(1); epoch < 5; epoch++ {
		if got := w.replica.State.Epoch(); got != epoch {
			t.Fatalf("epoch %d, want %d", got, epoch)
		}
		o.FS = mem.CrashClone(vfs.CrashCloneCfg{})
		mem = o.FS.(*vfs.MemFS)
		w.mustClose(t)
		w = mustOpen(t, o, 0, nil)
		if got := w.replica.State.Epoch(); got != epoch {
			t.Fatalf("after the crash epoch %d, want %d", got, epoch)
		}
		next := []engine.Command{{Kind: engine.StartEpoch, Arg: epoch + 1}, {Kind: engine.Tick}, {Kind: engine.Tick}}
		for i := range next {
			next[i].Seq, next[i].At = w.replica.State.Seq()+1+uint64(i), w.replica.State.At()+1
		}
		w.mustAppend(t, next, 1)
	}
	w.mustClose(t)
}

// TestAppendRefuses: commands that do not follow the journal's end are a fault
// of the caller: they are not written, and the store fails.
func TestAppendRefuses(t *testing.T) {
	all := workload(t, 100, 14)
	for name, change := range map[string]func([]engine.Command){
		"a gap":        func(c []engine.Command) { c[0].Seq++ },
		"again":        func(c []engine.Command) { c[0].Seq-- },
		"falling time": func(c []engine.Command) { c[0].At = -1 },
	} {
		o := testOptions(vfs.NewMem())
		w := mustOpen(t, o, 0, nil)
		w.mustAppend(t, all[:50], 10)
		bad := append([]engine.Command(nil), all[50:51]...)
		change(bad)
		if err := w.store.Append(0, bad, nil); !errors.Is(err, ErrFailed) {
			t.Errorf("%s: %v", name, err)
		}
		if err := w.store.Close(); !errors.Is(err, ErrFailed) {
			t.Errorf("%s: close: %v", name, err)
		}
		w = mustOpen(t, o, 0, nil)
		sameReplica(t, w.replica, replayed(all[:50]))
		w.mustClose(t)
	}
}

// TestAppendAllocates bounds the allocations of one Append.
func TestAppendAllocates(t *testing.T) {
	w := mustOpen(t, testOptions(vfs.NewMem()), 0, nil)
	all := workload(t, 5000, 15)
	w.mustAppend(t, all[:1000], 10)
	at := 1000
	got := testing.AllocsPerRun(100, func() {
		if err := w.store.Append(0, all[at:at+10], nil); err != nil {
			t.Fatal(err)
		}
		at += 10
	})
	if got > 4 {
		t.Errorf("%v allocations a frame", got)
	}
	if err := w.store.release(); err != nil {
		t.Fatal(err)
	}
}
