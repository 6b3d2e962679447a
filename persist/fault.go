package persist

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// ErrFailed is wrapped by every error after the store has failed. It is final: only a
// restart, which reads the disk again, can end it.
var ErrFailed = errors.New("the journal has failed: read-only until a restart")

// fault latches the first failure of a store. A failed write or sync may have lost any
// part of what the kernel held, and a retry can succeed for data that is gone. So
// nothing is retried: the first failure is kept and every later write is refused. Safe
// for concurrent use.
type fault struct {
	first atomic.Pointer[error]
	log   *slog.Logger
}

// latch keeps err if it is the first failure, and reports whether it is.
func (f *fault) latch(err error) bool {
	first := f.first.CompareAndSwap(nil, &err)
	if first {
		f.log.Error("journal failed: read-only from now on", "error", err)
	}
	return first
}

func (f *fault) latched() bool { return f.first.Load() != nil }

// set latches err and returns the first failure.
func (f *fault) set(err error) error {
	f.latch(err)
	return f.err()
}

// err returns nil while the store works, else an error that wraps ErrFailed and the
// cause.
func (f *fault) err() error {
	if p := f.first.Load(); p != nil {
		return fmt.Errorf("%w: %w", ErrFailed, *p)
	}
	return nil
}

// catch turns a panic of Pebble into a failure. Pebble panics with its commit lock held
// when a write to the log fails, so after a catch no call that writes or closes may be
// made; poisoned records that.
func (f *fault) catch(poisoned *atomic.Bool, err *error) {
	if r := recover(); r != nil {
		poisoned.Store(true)
		*err = f.set(fmt.Errorf("pebble panicked: %v", r))
	}
}

// pebbleLogger writes Pebble's log to slog. Pebble calls Fatalf where it expects the
// process to end; if the call returns, it continues as if nothing had happened, and
// Apply returns nil. So every writer checks the fault after each call.
type pebbleLogger struct{ fault *fault }

func (l pebbleLogger) Infof(format string, args ...any) {
	if l.fault.log.Enabled(context.Background(), slog.LevelDebug) {
		l.fault.log.Debug("pebble", "says", fmt.Sprintf(format, args...))
	}
}

func (l pebbleLogger) Errorf(format string, args ...any) {
	l.fault.log.Warn("pebble", "says", fmt.Sprintf(format, args...))
}

func (l pebbleLogger) Fatalf(format string, args ...any) {
	l.fault.latch(fmt.Errorf("pebble: "+format, args...))
}

// retryPause slows Pebble down, because Pebble retries some work without pause and
// without end, such as the statistics of a table that it cannot read. It is short,
// because Pebble may hold its lock.
const retryPause = 10 * time.Millisecond

// events makes every error of Pebble's background work a failure: a table that it
// cannot read means a broken disk, even if no other reader needs that table soon.
// Cancelled compactions are not errors.
func (l pebbleLogger) events() *pebble.EventListener {
	return &pebble.EventListener{
		BackgroundError: func(err error) {
			if !l.fault.latch(fmt.Errorf("pebble failed in the background: %w", err)) {
				time.Sleep(retryPause)
			}
		},
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			l.fault.latch(fmt.Errorf("corruption in %s: %w", info.Path, info.Details))
		},
		WriteStallBegin: func(info pebble.WriteStallBeginInfo) {
			l.fault.log.Warn("pebble stalls writes", "reason", info.Reason)
		},
	}
}
