package persist

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

func entryOptions(fs vfs.FS) EntryLogOptions {
	o := testOptions(fs)
	return EntryLogOptions{Dir: o.Dir, FS: fs, MemTableBytes: MinMemTableBytes, SpareLogs: -1, HighWaterMarkInterval: MinInterval, Logger: o.Logger}
}

// entryOf returns entry i of a generation: a deleted entry is written again with other
// content.
func entryOf(i uint64, generation int) []byte {
	return bytes.Repeat(fmt.Appendf(nil, "%d.%d ", i, generation), 1+int(i%40))
}

func appendEntries(l *EntryLog, first uint64, n, generation int) error {
	return l.Append(first, n, func(dst []byte, i int) []byte {
		return append(dst, entryOf(first+uint64(i), generation)...)
	})
}

func mustEntryLog(t testing.TB, o EntryLogOptions) *EntryLog {
	t.Helper()
	l, err := OpenEntryLog(o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func wantEntries(t testing.TB, l *EntryLog, first, last uint64, generation int) {
	t.Helper()
	if f, g := l.Bounds(); f != first || g != last {
		t.Fatalf("entries %d to %d, want %d to %d", f, g, first, last)
	}
	for i := first; i != 0 && i <= last; i++ {
		ok, err := l.Entry(i, func(v []byte) error {
			if !bytes.Equal(v, entryOf(i, generation)) {
				t.Errorf("entry %d is %q", i, v)
			}
			return nil
		})
		if err != nil || !ok {
			t.Fatalf("entry %d: there %v: %v", i, ok, err)
		}
	}
	if ok, err := l.Entry(last+1, func([]byte) error { return nil }); ok || err != nil {
		t.Fatalf("entry %d: there %v: %v", last+1, ok, err)
	}
}

// TestEntryLog: entries are appended, deleted at either end or all, and found again
// after a restart.
func TestEntryLog(t *testing.T) {
	o := entryOptions(vfs.NewMem())
	l := mustEntryLog(t, o)
	reopen := func() {
		t.Helper()
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		l = mustEntryLog(t, o)
	}
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	wantEntries(t, l, 0, 0, 1)
	do(appendEntries(l, 5, 200, 1))
	wantEntries(t, l, 5, 204, 1)
	do(l.DeleteRange(0, 50))
	reopen()
	wantEntries(t, l, 51, 204, 1)
	do(l.DeleteRange(101, 1000))
	do(appendEntries(l, 101, 0, 1))
	do(appendEntries(l, 101, 3, 1))
	reopen()
	wantEntries(t, l, 51, 103, 1)
	do(l.DeleteRange(51, 103))
	wantEntries(t, l, 0, 0, 1)
	do(l.DeleteRange(1, 10))
	do(appendEntries(l, 7000, 2, 2))
	do(l.SetRegister([]byte("vote"), []byte("n1")))
	reopen()
	wantEntries(t, l, 7000, 7001, 2)
	if v, ok, err := l.Register([]byte("vote")); err != nil || !ok || string(v) != "n1" {
		t.Errorf("register %q, there %v: %v", v, ok, err)
	}
	if _, ok, err := l.Register([]byte("term")); ok || err != nil {
		t.Errorf("a register that was never set: there %v: %v", ok, err)
	}
	do(l.Close())
}

func TestEntryLogLimits(t *testing.T) {
	l := mustEntryLog(t, entryOptions(vfs.NewMem()))
	if err := appendEntries(l, 10, 5, 1); err != nil {
		t.Fatal(err)
	}
	long := func(n int) func([]byte, int) []byte {
		return func(dst []byte, _ int) []byte { return append(dst, make([]byte, n)...) }
	}
	for name, err := range map[string]error{
		"a gap":                 appendEntries(l, 16, 1, 1),
		"again":                 appendEntries(l, 14, 1, 1),
		"0":                     appendEntries(l, 0, 1, 1),
		"too long":              l.Append(15, 1, long(MaxEntryBytes+1)),
		"the middle":            l.DeleteRange(11, 12),
		"a register's value":    l.SetRegister([]byte("x"), make([]byte, MaxRegisterBytes+1)),
		"the name of one":       l.SetRegister(make([]byte, MaxRegisterBytes+1), nil),
		"the longest, once not": errors.Join(l.SetRegister(make([]byte, MaxRegisterBytes), make([]byte, MaxRegisterBytes)), ErrEntryLimit),
	} {
		if !errors.Is(err, ErrEntryLimit) {
			t.Errorf("%s: %v", name, err)
		}
	}
	wantEntries(t, l, 10, 14, 1)
	if err := l.Failed(); err != nil {
		t.Error(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// TestEntryLogCutShort: Pebble opens a log without its end and reports nothing; the
// high-water mark detects it, be it entries that are missing or only a vote.
func TestEntryLogCutShort(t *testing.T) {
	for _, last := range []string{"entries", "vote", "truncation"} {
		mem := vfs.NewMem()
		o := entryOptions(mem)
		o.MemTableBytes = 1 << 20
		l := mustEntryLog(t, o)
		if err := appendEntries(l, 1, 50, 1); err != nil {
			t.Fatal(err)
		}
		before := logBytes(t, l)
		var err error
		switch last {
		case "entries":
			err = appendEntries(l, 51, 1, 1)
		case "vote":
			err = l.SetRegister([]byte("vote"), []byte("n2"))
		case "truncation":
			err = l.DeleteRange(40, 50)
		}
		if err != nil {
			t.Fatal(err)
		}
		// The process dies here: its files are what another finds.
		copied := vfs.NewMem()
		if _, err := vfs.Clone(mem, copied, o.Dir, o.Dir); err != nil {
			t.Fatal(err)
		}
		cutLog(t, copied, l.layout.logs(), before)
		o.FS = copied
		var damage *DamageError
		if _, err := OpenEntryLog(o); !errors.As(err, &damage) || !strings.Contains(err.Error(), "acknowledged") {
			t.Errorf("%s cut off: %v", last, err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// logBytes is how long the log file in use is.
func logBytes(t testing.TB, l *EntryLog) int64 {
	return int64(l.db.Metrics().WAL.Size)
}

// cutLog empties the newest log file after the first n bytes.
func cutLog(t testing.TB, fs vfs.FS, dir string, n int64) {
	t.Helper()
	names, err := fs.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	newest := ""
	for _, name := range names {
		if strings.HasSuffix(name, ".log") && name > newest {
			newest = name
		}
	}
	path := fs.PathJoin(dir, newest)
	data := readFile(t, fs, path)
	f, err := fs.Create(path, "test")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(data[:min(int(n), len(data))]); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// entryCrasher takes a clone before every writing operation and opens it.
type entryCrasher struct {
	t     *testing.T
	o     EntryLogOptions
	mem   *vfs.MemFS
	mu    sync.Mutex
	rng   *rand.Rand
	off   atomic.Bool
	state atomic.Pointer[entryState]
	taken atomic.Int64
}

// entryState is what the log must have after a crash: the state before the write under
// way, or the one after it.
type entryState struct{ before, after entryContent }

type entryContent struct {
	first, last uint64
	vote        byte
}

func (c *entryCrasher) MaybeError(op errorfs.Op) error {
	if op.Kind.ReadOrWrite() != errorfs.OpIsWrite || op.Kind == errorfs.OpFileClose || c.off.Load() {
		return nil
	}
	for _, percent := range []int{0, 50, 100} {
		c.mu.Lock()
		fs := c.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: c.rng})
		c.mu.Unlock()
		c.taken.Add(1)
		if err := c.check(fs, c.state.Load()); err != nil {
			c.t.Errorf("%d %% kept, before op %d on %s: %v", percent, op.Kind, op.Path, err)
			c.off.Store(true)
		}
	}
	return nil
}

func (c *entryCrasher) String() string { return "crash clones" }

func (c *entryCrasher) check(fs vfs.FS, want *entryState) error {
	o := c.o
	o.FS = fs
	l, err := OpenEntryLog(o)
	if err != nil {
		return err
	}
	vote, _, err := l.Register([]byte("vote"))
	got := entryContent{vote: append(vote, 0)[0]}
	got.first, got.last = l.Bounds()
	matches := func(w entryContent) bool {
		// Entries dropped at the front may be back.
		return got.last == w.last && got.vote == w.vote && (got.first <= w.first || w.last == 0)
	}
	if err == nil && !matches(want.before) && !matches(want.after) {
		err = fmt.Errorf("found %+v, want %+v or %+v", got, want.before, want.after)
	}
	return errors.Join(err, l.Close())
}

// TestEntryLogCrash dies before every write and sync of a random life.
func TestEntryLogCrash(t *testing.T) {
	mem := vfs.NewCrashableMem()
	c := &entryCrasher{t: t, o: entryOptions(nil), mem: mem, rng: rand.New(rand.NewPCG(1, 2))}
	c.off.Store(true)
	o := c.o
	o.FS = errorfs.Wrap(oneAtATime{FS: mem, mu: &c.mu}, c)
	l := mustEntryLog(t, o)
	rng := rand.New(rand.NewPCG(3, 4))
	at := entryContent{}
	write := func(next entryContent, do func() error) {
		c.state.Store(&entryState{before: at, after: next})
		c.off.Store(t.Failed())
		if err := do(); err != nil {
			t.Fatal(err)
		}
		at = next
		c.state.Store(&entryState{before: at, after: at})
	}
	for step := range 60 {
		next := at
		switch k := rng.IntN(10); {
		case k < 6 || at.last == 0:
			n := 1 + rng.IntN(5)
			first := at.last + 1
			next.last += uint64(n)
			next.first = max(1, at.first)
			write(next, func() error { return appendEntries(l, first, n, 1) })
		case k < 8:
			next.vote = byte('a' + step%26)
			write(next, func() error { return l.SetRegister([]byte("vote"), []byte{next.vote}) })
		case k < 9 && at.last > at.first+5:
			next.last -= uint64(1 + rng.IntN(4))
			write(next, func() error { return l.DeleteRange(next.last+1, at.last) })
		case at.last > at.first+5:
			next.first += 3
			write(next, func() error { return l.DeleteRange(at.first, next.first-1) })
		}
	}
	c.off.Store(true)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d crash points", c.taken.Load())
}

// TestEntryLogFails: the log does not use a disk again that has failed.
func TestEntryLogFails(t *testing.T) {
	var full atomic.Bool
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if full.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			return errors.New("no space left on device")
		}
		return nil
	}))
	l := mustEntryLog(t, entryOptions(fs))
	if err := appendEntries(l, 1, 3, 1); err != nil {
		t.Fatal(err)
	}
	full.Store(true)
	if err := appendEntries(l, 4, 1, 1); !errors.Is(err, ErrFailed) {
		t.Fatalf("on a full disk: %v", err)
	}
	full.Store(false)
	for name, err := range map[string]error{
		"append": appendEntries(l, 4, 1, 1), "register": l.SetRegister([]byte("vote"), nil), "drop": l.DeleteRange(3, 3), "drop first": l.DeleteRange(1, 1),
		"failed": l.Failed(),
	} {
		if !errors.Is(err, ErrFailed) {
			t.Errorf("%s after the failure: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Run(ctx); !errors.Is(err, ErrFailed) {
		t.Errorf("run: %v", err)
	}
	if err := l.Close(); !errors.Is(err, ErrFailed) {
		t.Errorf("close: %v", err)
	}
}
