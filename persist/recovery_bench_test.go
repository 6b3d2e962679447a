package persist

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"blockdesk/engine"
)

// recoveryCommands is the number of commands that the recovery is measured with.
const recoveryCommands = 1_000_000

// BenchmarkRecovery measures a start after a kill: Open, which reads and checks
// every frame, and Recover, which replays all of them, from tables and from the
// log. "replay" counts Recover alone.
func BenchmarkRecovery(b *testing.B) {
	for _, size := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("%d", size), func(b *testing.B) {
			o := Options{Dir: benchDir(b), Logger: quiet(), Mode: Interval, SnapshotEvery: 1 << 40, SpareLogs: -1}
			writeForRecovery(b, o, size)
			var opened, replayed time.Duration
			for b.Loop() {
				start := time.Now()
				s, err := Open(o)
				if err != nil {
					b.Fatal(err)
				}
				opened += time.Since(start)
				start = time.Now()
				r, err := s.Recover(0, nil)
				if err != nil {
					b.Fatal(err)
				}
				replayed += time.Since(start)
				if r.State.Seq() != recoveryCommands {
					b.Fatalf("recovered seq %d", r.State.Seq())
				}
				if err := s.release(); err != nil {
					b.Fatal(err)
				}
			}
			n := float64(b.N) * recoveryCommands
			b.ReportMetric(n/replayed.Seconds(), "replay/s")
			b.ReportMetric(n/(opened+replayed).Seconds(), "commands/s")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func writeForRecovery(b *testing.B, o Options, size int) {
	commands := workload(b, recoveryCommands-len(setup(b)), 1)
	w := mustOpen(b, o, 0, nil)
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- w.store.syncHighWaterMark(ctx) }()
	w.mustAppend(b, commands, size)
	cancel()
	if err := errors.Join(<-done, w.store.syncTail(), w.store.release()); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkApply measures the engine's part of a replay.
func BenchmarkApply(b *testing.B) {
	commands := workload(b, recoveryCommands-len(setup(b)), 1)
	for b.Loop() {
		r := engine.NewReplica(engine.StateOptions{})
		for i := range commands {
			r.Apply(&commands[i], nil)
		}
	}
	b.ReportMetric(float64(b.N)*recoveryCommands/b.Elapsed().Seconds(), "commands/s")
}
