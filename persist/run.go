package persist

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"
)

// catchUpEvery is the interval at which the snapshotter looks for new frames.
const catchUpEvery = 20 * time.Millisecond

// Run syncs the high-water mark, syncs frames in mode Interval, takes snapshots, prunes
// and watches the free space, until ctx ends. It must run as long as Append is called,
// so its context must outlive the engine's. Call Recover first. After a failure Run
// continues, because readers still use the store; it returns the failure when ctx ends.
func (s *Store) Run(ctx context.Context) error {
	if s.snapshotter == nil {
		return errors.New("journal: Run was called before Recover")
	}
	var g errgroup.Group
	g.Go(func() error { return s.syncHighWaterMark(ctx) })
	g.Go(func() error { return every(ctx, catchUpEvery, func() error { return s.runSnapshotter(ctx) }) })
	g.Go(func() error { return s.disk.Run(ctx) })
	if s.o.Mode == Interval {
		g.Go(func() error { return every(ctx, s.o.Interval, s.syncTail) })
	}
	<-ctx.Done()
	_ = g.Wait() // s.fault keeps their errors
	return s.fault.err()
}

// runSnapshotter applies all durable frames and takes the snapshots that are due. An
// error is a failure of the store, because a restart would have to replay the same frame.
func (s *Store) runSnapshotter(ctx context.Context) error {
	for {
		more, err := s.snapshotter.catchUp()
		if err != nil {
			return s.fault.set(err)
		}
		if !more || ctx.Err() != nil {
			return s.fault.err()
		}
	}
}
