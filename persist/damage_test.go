package persist

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"blockdesk/engine"
	"blockdesk/internal/runtest"
)

// allFiles lists every file below dir but the locks, which are empty.
func allFiles(t testing.TB, fs vfs.FS, dir string) []string {
	t.Helper()
	names, err := fs.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	slices.Sort(names)
	for _, name := range names {
		path := fs.PathJoin(dir, name)
		info, err := fs.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.IsDir() {
			files = append(files, allFiles(t, fs, path)...)
		} else if name != "LOCK" {
			files = append(files, path)
		}
	}
	return files
}

func readFile(t testing.TB, fs vfs.FS, path string) []byte {
	t.Helper()
	f, err := fs.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(f)
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	return data
}

func writeFile(t testing.TB, fs vfs.FS, path string, data []byte) {
	t.Helper()
	f, err := fs.Create(path, "test")
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// damagedStore is a store to damage: the content of its disk, and the commands that it
// must have.
type damagedStore struct {
	name string
	mem  *vfs.MemFS
	o    Options
	want *engine.Replica
}

// storesToDamage returns stores in all states that a disk can have.
func storesToDamage(t testing.TB) []damagedStore {
	all := workload(t, 4000, 5)
	want := replayed(all)
	build := func(name string, frame int, killed bool, change func(*Options)) damagedStore {
		mem := vfs.NewCrashableMem()
		o := testOptions(mem)
		change(&o)
		w := mustOpen(t, o, 0, nil)
		half := len(all) / 2
		w.mustAppend(t, all[:half], frame)
		if o.SnapshotEvery < 1<<40 {
			if err := w.store.snapshotter.catchUpToEnd(); err != nil {
				t.Fatal(err)
			}
		}
		w.mustClose(t)
		w = mustOpen(t, o, NewestSnapshot, nil)
		w.mustAppend(t, all[half:], frame)
		d := damagedStore{name: name, o: o, want: want}
		if killed {
			d.mem = mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
			w.mustClose(t)
			return d
		}
		w.mustClose(t)
		d.mem = mem.CrashClone(vfs.CrashCloneCfg{})
		return d
	}
	return []damagedStore{
		build("killed, all in the log", 20, true, func(o *Options) { o.MemTableBytes = 16 << 20 }),
		build("killed, big frames", 300, true, func(o *Options) { o.MemTableBytes = 16 << 20 }),
		build("killed, in tables", 20, true, func(o *Options) { o.MemTableBytes = MinMemTableBytes }),
		build("killed, pruned", 20, true, func(o *Options) {
			o.MemTableBytes, o.SnapshotEvery, o.KeepSnapshots = MinMemTableBytes, 500, 2
		}),
		build("closed", 20, false, func(o *Options) {}),
		build("closed, pruned, spare logs", 20, false, func(o *Options) {
			o.MemTableBytes, o.SnapshotEvery, o.KeepSnapshots, o.SpareLogs = MinMemTableBytes, 500, 1, 1
		}),
	}
}

// contents returns the content of every file below dir.
func contents(t testing.TB, fs vfs.FS, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, path := range allFiles(t, fs, dir) {
		all[path] = string(readFile(t, fs, path))
	}
	return all
}

// verdict opens a damaged store: seen says that it was refused with an error that names
// the place and the remedy, and has left every byte as it was; otherwise the store must have
// everything.
func (d *damagedStore) verdict(t testing.TB, fs vfs.FS) (seen bool, err error) {
	o := d.o
	o.FS = fs
	before := contents(t, fs, o.Dir)
	s, err := Open(o)
	if err != nil && !maps.Equal(before, contents(t, fs, o.Dir)) {
		return false, fmt.Errorf("refused, and has changed files: %w", err)
	}
	var r *engine.Replica
	if err == nil {
		r, err = s.Recover(NewestSnapshot, nil)
		if err != nil {
			err = errors.Join(err, s.release())
		}
	}
	if err != nil {
		var damage *DamageError
		if !errors.As(err, &damage) {
			return false, fmt.Errorf("refused, but not as damage: %w", err)
		}
		text := err.Error()
		if !strings.Contains(text, o.Dir) || !strings.Contains(text, "blockdesk restore") || damage.Where == "" {
			return false, fmt.Errorf("refused, but does not say where or what to do: %w", err)
		}
		return true, nil
	}
	if r.State.Seq() != d.want.State.Seq() || r.Digest != d.want.Digest || r.State.Hash() != d.want.State.Hash() {
		return false, errors.Join(fmt.Errorf("SILENT LOSS: seq %d, %d were acknowledged", r.State.Seq(), d.want.State.Seq()), s.release())
	}
	return false, s.Close()
}

// damages are what can happen to a file.
var damages = []struct {
	name  string
	tries int // a random place each
	do    func(rng *rand.Rand, data []byte) []byte
}{
	{"a flipped bit", 12, func(rng *rand.Rand, data []byte) []byte {
		data[rng.IntN(len(data))] ^= 1 << rng.IntN(8)
		return data
	}},
	{"a zeroed block", 6, func(rng *rand.Rand, data []byte) []byte {
		at := rng.IntN(len(data)) &^ 4095
		clear(data[at:min(len(data), at+4096)])
		return data
	}},
	{"a zeroed sector", 6, func(rng *rand.Rand, data []byte) []byte {
		at := rng.IntN(len(data)) &^ 511
		clear(data[at:min(len(data), at+512)])
		return data
	}},
	{"cut short", 4, func(rng *rand.Rand, data []byte) []byte { return data[:rng.IntN(len(data))] }},
	{"cut to half", 1, func(_ *rand.Rand, data []byte) []byte { return data[:len(data)/2] }},
	{"emptied", 1, func(*rand.Rand, []byte) []byte { return nil }},
}

// TestDamage: damage to any one file of a store is detected or harmless. Nothing
// acknowledged is lost silently.
func TestDamage(t *testing.T) {
	runtest.SkipUnderRace(t, "it reopens thousands of stores, each on one goroutine, which faster tests do too")
	for _, d := range storesToDamage(t) {
		t.Run(d.name, func(t *testing.T) {
			if _, err := d.verdict(t, d.mem.CrashClone(vfs.CrashCloneCfg{})); err != nil {
				t.Fatalf("undamaged: %v", err)
			}
			rng := rand.New(rand.NewPCG(11, 12))
			seen, harmless := 0, 0
			try := func(what, path string, fs vfs.FS) {
				refused, err := d.verdict(t, fs)
				if err != nil {
					t.Errorf("%s: %s: %v", path, what, err)
				}
				if refused {
					seen++
				} else {
					harmless++
				}
			}
			for _, path := range allFiles(t, d.mem, d.o.Dir) {
				fs := d.mem.CrashClone(vfs.CrashCloneCfg{})
				if err := fs.Remove(path); err != nil {
					t.Fatal(err)
				}
				try("missing", path, fs)
				data := readFile(t, d.mem, path)
				for _, damage := range damages {
					for range damage.tries {
						if len(data) == 0 {
							continue
						}
						fs := d.mem.CrashClone(vfs.CrashCloneCfg{})
						writeFile(t, fs, path, damage.do(rng, slices.Clone(data)))
						try(damage.name, path, fs)
					}
				}
			}
			t.Logf("%d damages seen, %d without consequence", seen, harmless)
			if seen == 0 {
				t.Error("nothing was seen")
			}
		})
	}
}

// TestLogCutShort cuts the log at every frame: each cut is detected.
func TestLogCutShort(t *testing.T) {
	d := storesToDamage(t)[0]
	var log string
	for _, path := range allFiles(t, d.mem, d.o.Dir) {
		if strings.HasSuffix(path, ".log") && (log == "" || len(readFile(t, d.mem, path)) > len(readFile(t, d.mem, log))) {
			log = path
		}
	}
	data := readFile(t, d.mem, log)
	for n := len(data) - 1; n > 0; n -= 997 {
		fs := d.mem.CrashClone(vfs.CrashCloneCfg{})
		writeFile(t, fs, log, data[:n])
		if seen, err := d.verdict(t, fs); err != nil || !seen {
			t.Fatalf("cut to %d of %d bytes: seen %v, %v", n, len(data), seen, err)
		}
	}
}

// TestMarkBugIsCaught: a store that does not write its high-water mark loses the end of
// a cut log silently, so TestLogCutShort proves something.
func TestMarkBugIsCaught(t *testing.T) {
	mem := vfs.NewCrashableMem()
	o := testOptions(mem)
	all := workload(t, 500, 6)
	w := mustOpen(t, o, 0, nil)
	for len(all) > 10 {
		err := w.plant(all[:10], func(s *Store, f *Frame, after position) error {
			s.tail = after
			return s.commit(f, true) // and no acknowledge
		})
		if err != nil {
			t.Fatal(err)
		}
		all = all[10:]
	}
	d := damagedStore{o: o, want: w.replica, mem: mem.CrashClone(vfs.CrashCloneCfg{})}
	if err := w.store.release(); err != nil {
		t.Fatal(err)
	}
	for _, path := range allFiles(t, d.mem, o.Dir) {
		if data := readFile(t, d.mem, path); strings.HasSuffix(path, ".log") && len(data) > 1000 {
			writeFile(t, d.mem, path, data[:len(data)-300])
		}
	}
	if seen, err := d.verdict(t, d.mem); seen || err == nil || !strings.Contains(err.Error(), "SILENT LOSS") {
		t.Fatalf("a journal without a mark: seen %v, %v", seen, err)
	}
}
