package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"blockdesk/bench"
	"blockdesk/bench/flow"
	"blockdesk/engine"
	"blockdesk/persist"
)

// Recovery is the recovery benchmark.
type Recovery struct {
	Dir      string // where the journal lives; required
	Commands int    // default 2,000,000
	PerFrame int    // default 1,000
}

// Run writes a journal and measures how fast it is replayed into the state
// and its market data, and how long a running engine stands still while a
// snapshot of it is made.
func (o Recovery) Run(ctx context.Context) (_ *bench.Report, err error) {
	if o.Commands == 0 {
		o.Commands = 2_000_000
	}
	if o.PerFrame == 0 {
		o.PerFrame = 1000
	}
	r := bench.NewReport("recovery")
	dir := filepath.Join(o.Dir, "recovery")
	if err := writeJournal(ctx, dir, o); err != nil {
		return nil, err
	}
	var rep persist.Report
	s, err := r.Measure("replay, commands", int64(o.Commands), nil, func() error {
		var err error
		rep, err = persist.Replay(persist.ToolOptions{Dir: dir, Logger: bench.Quiet(), State: engine.StateOptions{MaxOrders: 1 << 20}}, persist.NewestSnapshot)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.Ops = int64(rep.Commands)
	r.Ratios = append(r.Ratios, bench.Ratio{Name: "commands replayed a second", Value: s.Rate(), Goal: 3e6})
	if err := snapshotPause(ctx, r, o.Dir); err != nil {
		return nil, err
	}
	r.Notes = append(r.Notes, fmt.Sprintf("replay: from the beginning of a journal of %d commands a frame, opening, checksums, event digests and market data included", o.PerFrame),
		"snapshot pause: command to durable event at 50,000/s, without and with snapshots every 20,000 commands; the engine's own thread takes no part in a snapshot")
	return r, nil
}

// writeJournal fills a journal from a running replica, so that the digests in
// its frames are the true ones.
func writeJournal(ctx context.Context, dir string, o Recovery) (err error) {
	store, err := persist.Open(persist.Options{Dir: dir, SnapshotEvery: 1 << 40, Logger: bench.Quiet(), State: engine.StateOptions{MaxOrders: 1 << 20}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	replica, err := store.Recover(persist.NewestSnapshot, nil)
	if err != nil {
		return err
	}
	mix, err := flow.NewMix(flow.MixOptions{Seed: 5, References: true})
	if err != nil {
		return err
	}
	write := func(list []engine.Command) error {
		if err := store.Append(replica.Digest, list, nil); err != nil {
			return err
		}
		for i := range list {
			replica.Apply(&list[i], nil)
		}
		return ctx.Err()
	}
	if err := write(mix.Setup()); err != nil {
		return err
	}
	for done := 0; done < o.Commands; done += o.PerFrame {
		if err := write(mix.Take(o.PerFrame)); err != nil {
			return err
		}
	}
	return nil
}

// snapshotPause compares the slowest commands of a run with frequent snapshots
// with those of a run without.
func snapshotPause(ctx context.Context, r *bench.Report, dir string) error {
	const rate = 50_000
	for _, c := range []struct {
		name  string
		every uint64
	}{{"without snapshots", 1 << 40}, {"with snapshots every 20,000", 20_000}} {
		_, err := durableRun(ctx, r, durableRunOptions{
			Dir: dir, Rate: rate, Window: 4 * time.Second, SnapshotEvery: c.every,
			Name: fmt.Sprintf("command to durable event at %d/s, %s", rate, c.name),
		})
		if err != nil {
			return err
		}
	}
	return nil
}
