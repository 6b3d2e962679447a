package persist

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"blockdesk/engine"
	"blockdesk/engine/event"
)

// TestEngine: a running engine on a store, stopped and started several times
// under load, is the engine that was never stopped.
func TestEngine(t *testing.T) {
	for _, mode := range []Mode{Sync, Interval} {
		o := testOptions(vfs.NewMem())
		o.Mode, o.SnapshotEvery = mode, 700
		commands := append(setup(t), flowOf(6000, 100, 21)...)
		var seen uint64 // digest of what the consumer was given
		at := 0
		for _, end := range []int{1000, 3500, len(commands)} {
			w := mustOpen(t, o, NewestSnapshot, nil)
			if w.replica.Digest != seen {
				t.Fatalf("%v: recovered digest %016x, the consumer saw %016x", mode, w.replica.Digest, seen)
			}
			at = runEngine(t, w, commands[at:end], &seen) + at
			w.mustClose(t)
		}
		rep, err := Verify(toolsFor(o))
		if err != nil || rep.Seq < uint64(len(commands)) || rep.Digest != seen {
			t.Errorf("%v: seq %d, digest %016x, consumer %016x: %v", mode, rep.Seq, rep.Digest, seen, err)
		}
	}
}

// runEngine submits commands to an engine on the store, lets it drain, and adds what a
// consumer sees to digest. It returns the number of commands.
func runEngine(t *testing.T, w *writer, commands []engine.Command, digest *uint64) int {
	t.Helper()
	now := w.replica.State.At()
	e, err := engine.New(engine.Options{
		Journal: w.store, Clock: func() int64 { return atomic.AddInt64(&now, 1) },
	}, w.replica)
	if err != nil {
		t.Fatal(err)
	}
	consumer := e.Consumer("test")
	stored, stopStore := context.WithCancel(t.Context())
	running, stopEngine := context.WithCancel(t.Context())
	results := make(chan error, 3)
	go func() { results <- w.store.Run(stored) }()
	go func() { results <- e.Run(running) }()
	go func() {
		for {
			events, err := consumer.Next(context.Background())
			if errors.Is(err, io.EOF) {
				results <- nil
				return
			} else if err != nil {
				results <- err
				return
			}
			for i := range events {
				*digest = event.Digest(*digest, &events[i])
			}
			consumer.Release(len(events))
		}
	}()
	for i := range commands {
		for {
			err := e.Submit(&commands[i])
			if err == nil {
				break
			} else if !errors.Is(err, engine.ErrFull) {
				t.Fatal(err)
			}
		}
	}
	stopEngine()
	errs := []error{<-results, <-results}
	stopStore()
	if err := errors.Join(append(errs, <-results)...); err != nil {
		t.Fatal(err)
	}
	return len(commands)
}
