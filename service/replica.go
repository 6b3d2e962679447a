package service

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"blockdesk/engine"
	"blockdesk/httpgw/admin"
	"blockdesk/service/metrics"
	"blockdesk/service/task"
)

// OpenReplica opens a service that only reads, on a replica of the leader's state, and
// binds the addresses. fix outlives the service; its other stores are recreated in the
// data folder. After an error nothing is open.
func OpenReplica(o Options, upstream Upstream, replica *engine.Replica, fix Store) (*Service, error) {
	s := newService(o)
	s.upstream = &upstream
	var err error
	if s.storage, err = openViews(s.cfg.DataDir, fix, s.log); err == nil {
		err = s.openReplica(replica)
	}
	if err == nil {
		err = s.listen()
	}
	if err == nil {
		s.admin, err = admin.New(s.replicaAdmin())
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Service) openReplica(replica *engine.Replica) error {
	if err := s.resolveInstruments(); err != nil {
		return err
	}
	var err error
	if s.eng, err = engine.Follow(s.engineOptions(), replica); err != nil {
		return err
	}
	s.replica = &replicaEngine{eng: s.eng, own: s.instruments, log: s.log}
	if err := s.replica.compare(replica.State.Instruments()); err != nil {
		return err
	}
	s.events.feed, s.events.desk, s.events.history = s.feedEvents(), deskEvents(s.eng), historyEvents(s.eng)
	if err := s.connect(); err != nil {
		return err
	}
	state := replica.State
	s.history.Know(len(state.Instruments()))
	if err := errors.Join(s.desk.Reconcile(state.Desk().ReadModel(), state.Seq()), s.history.Skip(state.Seq(), state.At())); err != nil {
		return err
	}
	s.feed.TrackOrders(state)
	if err := s.feed.Begin(replica.Market, s.eng.Epoch()); err != nil {
		return err
	}
	s.watch, err = newParticipantsWatch(&s.o, s.instruments, s.eng, s.fix, true)
	return err
}

// runReplica serves until ctx ends or the replica cannot follow the leader.
func (s *Service) runReplica(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	stopStores := s.runStores(ctx, stop)
	group, ctx := errgroup.WithContext(ctx)
	task.Go(ctx, group,
		task.Task{Name: "engine", Run: s.eng.Run},
		task.Task{Name: "follower", Run: func(ctx context.Context) error { return s.upstream.Run(ctx, s.replica) }},
		task.Task{Name: "feed", Run: s.runFeed}, task.Task{Name: "desk", Run: s.runDesk}, task.Task{Name: "history", Run: s.runHistory},
		// The leader sends the reports of orders and fills.
		task.Task{Name: "fix", Run: func(ctx context.Context) error { return awaitEndIfFailed(ctx, s.log, "fix", s.fix.Run(ctx, nil)) }},
		task.Task{Name: "participants", Run: s.watch.Run}, task.Task{Name: "http", Run: s.http.Run}, task.Task{Name: "admin", Run: s.admin.Run},
	)
	err := group.Wait()
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	return errors.Join(err, stopStores())
}

// replicaAdmin returns the options of a replica's admin address.
func (s *Service) replicaAdmin() admin.Options {
	return admin.Options{
		Addr: s.cfg.Listen.Admin, Listen: s.o.Listen, Logger: s.log,
		Ready: []admin.Check{
			{Name: "follower", Err: s.upstream.Ready},
			{Name: "instruments", Err: s.replica.complete},
			{Name: "engine", Err: func() error { return s.eng.Stats().Failed }},
			{Name: "fix_store", Err: s.storage.FIX.Failed},
			{Name: "desk_store", Err: s.storage.Desk.Failed},
			{Name: "history_store", Err: s.storage.History.Failed},
			{Name: "feed", Err: s.feedReady},
		},
		Desk: admin.DeskSources{Stats: s.desk.Stats, View: s.desk.View, Instruments: s.set, Now: func() int64 { return time.Now().UnixNano() }},
		Collectors: append(append(metrics.Process(s.cfg.Durability.Mode), s.upstream.Metrics, metrics.Engine(s.eng.Stats), metrics.ConsumerLags(s.eng.Stats),
			metrics.Feed(s.feed.Stats), metrics.History(s.history.Stats), metrics.FIX(s.fix.Stats)), s.http.Collectors()...),
	}
}
