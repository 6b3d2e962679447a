package persist

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"
)

// followEvery is how often the second engine looks for new frames.
const followEvery = 20 * time.Millisecond

// Run keeps the high-water mark on disk, syncs by interval, follows the journal
// for snapshots, prunes and watches the free space, until ctx ends. It must run
// for as long as Append is called, so its context must outlive the engine's.
// Recover comes before it. When the store fails Run stays, so that readers can
// be served on; it returns the failure when ctx ends.
func (s *Store) Run(ctx context.Context) error {
	if s.snapshotter == nil {
		return errors.New("journal: Recover must come before Run")
	}
	var g errgroup.Group
	g.Go(func() error { return s.syncWatermark(ctx) })
	g.Go(func() error { return every(ctx, followEvery, func() error { return s.runSnapshotter(ctx) }) })
	g.Go(func() error { return s.disk.Run(ctx) })
	if s.o.Mode == Interval {
		g.Go(func() error { return every(ctx, s.o.Interval, s.syncTail) })
	}
	<-ctx.Done()
	_ = g.Wait() // the fault has what they return
	return s.fault.err()
}

// runSnapshotter brings the second engine to the end of the journal.
func (s *Store) runSnapshotter(ctx context.Context) error {
	for {
		more, err := s.snapshotter.catchUp()
		if !more || err != nil {
			return s.failing(err)
		}
		select {
		case <-ctx.Done():
			return nil
		default:
		}
	}
}

// failing makes an error of the second engine a failure of the store: what the
// second engine cannot replay, no restart can.
func (s *Store) failing(err error) error {
	if err == nil {
		return s.fault.err()
	}
	return s.fault.set(err)
}

// every calls f at once and then with a pause of d, until ctx ends or f fails.
func every(ctx context.Context, d time.Duration, f func() error) error {
	t := time.NewTicker(d)
	defer t.Stop()
	for {
		if err := f(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
	}
}
