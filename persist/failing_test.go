package persist

import (
	"context"
	"log/slog"
	"path"
	"runtime/metrics"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"blockdesk/internal/await"
)

// The operations that a failing disk refuses.
var (
	failCreate = []errorfs.OpKind{errorfs.OpCreate, errorfs.OpReuseForWrite}
	failWrite  = []errorfs.OpKind{errorfs.OpFileWrite, errorfs.OpFileWriteAt, errorfs.OpFilePreallocate}
	failSync   = []errorfs.OpKind{errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo}
	failRemove = []errorfs.OpKind{errorfs.OpRemove, errorfs.OpRename}
	failRead   = []errorfs.OpKind{errorfs.OpOpen, errorfs.OpFileRead, errorfs.OpFileReadAt}
)

// failing is a disk where some operations on some files fail while on is set.
type failing struct {
	files string // pattern of their base names
	below string // what their paths begin with
	ops   []errorfs.OpKind
	err   error
	after <-chan struct{} // if set, they are slow: they fail when it is closed
	on    atomic.Bool
	hits  atomic.Int64
}

func (f *failing) wrap(fs vfs.FS) vfs.FS { return errorfs.Wrap(fs, f) }

func (f *failing) String() string { return "failing disk" }

func (f *failing) MaybeError(op errorfs.Op) error {
	if !f.on.Load() {
		return nil
	}
	if ok, err := path.Match(f.files, path.Base(op.Path)); !ok || err != nil || !strings.HasPrefix(op.Path, f.below) {
		return err
	}
	for _, kind := range f.ops {
		if op.Kind != kind {
			continue
		}
		f.hits.Add(1)
		if f.after != nil {
			<-f.after
		}
		return f.err
	}
	return nil
}

// within runs a call that must return, and ends the test if it does not.
func within[T any](t testing.TB, what string, call func() T) T {
	t.Helper()
	done := make(chan T, 1)
	go func() { done <- call() }()
	return await.Receive(t, what, done)
}

// rests checks that Pebble does not retry without end: each try of Pebble is a
// goroutine.
func rests(t testing.TB) {
	t.Helper()
	const window, most = 200 * time.Millisecond, 60
	sample := []metrics.Sample{{Name: "/sched/goroutines-created:goroutines"}}
	metrics.Read(sample)
	before := sample[0].Value.Uint64()
	time.Sleep(window) // sleep: counts what spins in a while; a slow machine only counts less of it
	metrics.Read(sample)
	if n := sample[0].Value.Uint64() - before; n > most {
		t.Errorf("%d goroutines begun in %v: something spins", n, window)
	}
}

// stallLog is a logger that reports when Pebble begins to stall writes.
type stallLog struct {
	slog.Handler
	once    sync.Once
	stalled chan struct{}
}

func newStallLog() *stallLog {
	return &stallLog{Handler: slog.DiscardHandler, stalled: make(chan struct{})}
}

func (s *stallLog) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

func (s *stallLog) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "pebble stalls writes" {
		s.once.Do(func() { close(s.stalled) })
	}
	return nil
}
