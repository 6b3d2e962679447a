package cluster

import (
	"context"
	"errors"

	"blockdesk/bench"
	enginebench "blockdesk/bench/engine"
	"blockdesk/engine"
	"blockdesk/persist"
	"blockdesk/persist/fanout"
)

// clusterLeader is an engine on a single node's journal, whose frames may be
// published.
type clusterLeader struct {
	engine    *engine.Engine
	replica   *engine.Replica // the engine's, once that runs
	store     *persist.Store
	publisher *fanout.Publisher // nil: nothing is published
	ends      bench.Closers
}

// openLeader opens a journal in dir and an engine on it. wrap, if not nil, wraps the
// journal.
func openLeader(dir string, o engine.Options, wrap func(engine.Journal) engine.Journal) (*clusterLeader, error) {
	store, err := enginebench.OpenStore(dir, 1<<40)
	if err != nil {
		return nil, err
	}
	l := &clusterLeader{store: store, ends: bench.Closers{store.Close}}
	if l.replica, err = store.Recover(persist.NewestSnapshot, nil); err != nil {
		return nil, errors.Join(err, l.ends.Close())
	}
	o.Journal = store
	if wrap != nil {
		o.Journal = wrap(store)
	}
	if l.engine, err = engine.New(o, l.replica); err != nil {
		return nil, errors.Join(err, l.ends.Close())
	}
	return l, nil
}

// run starts the engine, submits the setup, and publishes the frames if fan is not nil.
// readers run beside the engine and read its events to their end.
func (l *clusterLeader) run(ctx context.Context, setup []engine.Command, fan *fanout.Options, readers ...func(context.Context) error) error {
	l.ends.Add(bench.Running(ctx, l.store.Run))
	for _, read := range readers {
		l.ends.Add(bench.Running(ctx, read))
	}
	l.ends.Add(bench.Running(ctx, l.engine.Run))
	if fan != nil {
		var err error
		if l.publisher, err = fanout.NewPublisher(*fan, l.store, l.engine.Epoch()); err != nil {
			return err
		}
		l.ends.Add(bench.Running(ctx, l.publisher.Run))
	}
	return submitSetup(ctx, l.engine, setup)
}

// startNATS runs a server in this process and returns the options to reach it.
func startNATS(ctx context.Context, dir string) (o fanout.Options, end func() error, err error) {
	s, err := fanout.NewServer(fanout.ServerOptions{Dir: dir, Logger: bench.Quiet()})
	if err != nil {
		return o, nil, err
	}
	end = bench.Running(ctx, s.Run)
	url, err := s.URL(ctx)
	if err != nil {
		return o, nil, errors.Join(err, end())
	}
	return natsAt(url), end, nil
}

func natsAt(url string) fanout.Options {
	return fanout.Options{URLs: []string{url}, State: benchState(), Logger: bench.Quiet()}
}

// clusterFollower follows a leader.
type clusterFollower struct {
	follower *fanout.Follower
	engine   *engine.Engine
	replica  *engine.Replica
	ends     bench.Closers
}

// joinLeader fetches the leader's snapshot and prepares the follower's engine.
func joinLeader(ctx context.Context, o fanout.Options) (*clusterFollower, error) {
	f, err := fanout.NewFollower(o)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, clusterPatience)
	defer cancel()
	c := &clusterFollower{follower: f}
	if c.replica, err = f.Join(ctx); err != nil {
		return nil, err
	}
	c.engine, err = engine.Follow(engine.Options{}, c.replica)
	return c, err
}

// run follows the leader, with readers as in clusterLeader.run, and returns once the
// follower is in sync with its leader.
func (c *clusterFollower) run(ctx context.Context, readers ...func(context.Context) error) error {
	for _, read := range readers {
		c.ends.Add(bench.Running(ctx, read))
	}
	c.ends.Add(bench.Running(ctx, c.engine.Run))
	c.ends.Add(bench.Running(ctx, func(ctx context.Context) error { return c.follower.Run(ctx, c.engine) }))
	return awaitSoon(ctx, "a follower level with its leader", func() bool { return c.follower.Ready() == nil })
}
