package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"blockdesk/engine"
	"blockdesk/feed"
	"blockdesk/httpgw"
	"blockdesk/httpgw/admin"
	"blockdesk/httpgw/wire"
	"blockdesk/persist"
	"blockdesk/persist/fanout"
	"blockdesk/service/config"
)

// followerNode is a process that only reads: it follows a leader's durable frames
// and serves what they make of its own engine's views, of which clients may move
// between here and the leader. Whatever is a write is sent to the leader. It has no
// key, speaks to no chain and keeps nothing that it could not fetch again, but the
// numbers of its FIX sessions.
type followerNode struct {
	cfg    *config.Config
	log    *slog.Logger
	asJSON bool
	out    io.Writer

	follower *fanout.Follower
	lent     lender
	leaders  *leaderWatch
	fixStore *persist.KV
	service  atomic.Pointer[service] // nil: it joins
	rejoins  atomic.Uint64
	program  program
}

// viewsFolder is where a follower's stores are made anew at each join.
const viewsFolder = "views"

// serve follows and serves until ctx ends.
func (f *followerNode) serve(ctx context.Context) (err error) {
	options, err := f.cfg.FanoutOptions(f.log)
	if err != nil {
		return err
	}
	if f.follower, err = fanout.NewFollower(options); err != nil {
		return err
	}
	if f.program, err = readProgram(f.log); err != nil {
		return err
	}
	f.leaders = newLeaderWatch(f.cfg.Peers, f.log)
	if err := os.MkdirAll(f.cfg.DataDir, 0o700); err != nil {
		return err
	}
	if f.fixStore, err = persist.OpenKV(filepath.Join(f.cfg.DataDir, fixFolder), nil, f.log); err != nil {
		return fmt.Errorf("fix store: %w", err)
	}
	defer func() { err = errors.Join(err, f.lent.close(), f.fixStore.Close()) }()
	if err := f.lent.bindAll(&f.cfg.Listen); err != nil {
		return err
	}
	if err := announceLent(f.cfg, f.out, f.asJSON, "a follower", "reads only, once it has joined"); err != nil {
		return err
	}
	storeCtx, stopStore := context.WithCancel(context.WithoutCancel(ctx))
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return named("fix store", f.fixStore.Run(storeCtx)) })
	group.Go(func() error { return newNotifier(f.stats, f.log).Run(ctx) })
	group.Go(func() error { return f.leaders.Run(ctx) })
	group.Go(func() error {
		defer stopStore()
		return f.turns(ctx)
	})
	err = group.Wait()
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	return err
}

// stats are the engine's; zero while it joins.
func (f *followerNode) stats() engine.Stats {
	if s := f.service.Load(); s != nil {
		return s.eng.Stats()
	}
	return engine.Stats{}
}

// turns joins and serves by turns, until ctx ends: an engine cannot be moved under
// its readers, so what cannot go on begins anew.
func (f *followerNode) turns(ctx context.Context) error {
	for {
		replica, err := f.join(ctx)
		if err == nil {
			err = f.stand(ctx, replica)
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, fanout.ErrBehind), errors.Is(err, fanout.ErrForked), errors.Is(err, fanout.ErrSnapshot), errors.Is(err, engine.ErrDiverged):
			f.rejoins.Add(1)
			f.log.Warn("begins anew", "error", err)
		default:
			return err
		}
	}
}

// join has the standby hold the addresses until the leader's newest snapshot is
// here.
func (f *followerNode) join(ctx context.Context) (replica *engine.Replica, err error) {
	o := admin.Options{
		Addr: f.cfg.Listen.Admin, Listen: f.lent.listen, Logger: f.log,
		Ready:      []admin.Check{{Name: "follower", Err: func() error { return errJoining }}},
		Collectors: append(processFigures(f.cfg), f.figures()),
	}
	s := &standby{cfg: f.cfg, log: f.log, listen: f.lent.listen, leader: f.leaders.leader, admin: o}
	err = s.while(ctx, func(ctx context.Context) error {
		replica, err = f.follower.Join(ctx)
		return err
	})
	return replica, err
}

var errJoining = errors.New("joining: waits for a snapshot of the leader's")

// stand builds the service on a replica and runs it until ctx ends or the follower
// cannot go on.
func (f *followerNode) stand(ctx context.Context, replica *engine.Replica) (err error) {
	began := time.Now()
	s := &service{cfg: f.cfg, log: f.log, listenOn: f.lent.listen, following: f, program: f.program}
	defer func() {
		f.service.Store(nil)
		err = errors.Join(err, s.close())
	}()
	if s.ground, err = f.openViews(); err != nil {
		return err
	}
	if err := s.openFollowing(replica); err != nil {
		return err
	}
	if err := s.listen(); err != nil {
		return err
	}
	f.service.Store(s)
	f.log.Info("follows", "epoch", s.eng.Epoch(), "seq", replica.State.Seq(), "ready_ms", time.Since(began).Milliseconds())
	return s.runFollowing(ctx)
}

// openViews makes the stores of one turn, empty: what they have follows from what
// is joined.
func (f *followerNode) openViews() (*ground, error) {
	dir := filepath.Join(f.cfg.DataDir, viewsFolder)
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	g := &ground{fixStore: f.fixStore, notes: folderNotes(f.cfg.DataDir), close: func() error { return nil }}
	for _, s := range []storeOf{{deskFolder, "desk store", &g.deskStore}, {historyFolder, "history store", &g.historyStore}} {
		store, err := persist.OpenKV(filepath.Join(dir, s.folder), nil, f.log)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", s.name, err), g.close())
		}
		before := g.close
		g.close = func() error { return errors.Join(before(), store.Close()) }
		g.parts = append(g.parts, part{s.name, store.Run})
		*s.into = store
	}
	return g, nil
}

// openFollowing joins the rooms of a process that only reads.
func (s *service) openFollowing(replica *engine.Replica) error {
	if err := s.resolve(); err != nil {
		return err
	}
	if err := agree(replica.State.Instruments(), s.instruments); err != nil {
		return err
	}
	door, views, err := s.openRooms()
	if err != nil {
		return err
	}
	state := replica.State
	if err := errors.Join(s.desk.Reconcile(state.Desk().Board(), state.Seq()), s.history.Skip(state.Seq(), state.At())); err != nil {
		return err
	}
	if s.eng, err = engine.Follow(s.engineOptions(), replica); err != nil {
		return err
	}
	s.followed = &followedEngine{eng: s.eng, own: s.instruments, log: s.log}
	door.eng.Store(s.eng)
	s.events.feed, s.events.desk, s.events.history = s.eng.Consumer(feedConsumer), s.eng.Consumer("desk"), s.eng.Consumer("history")
	if s.feed, err = s.newFeed(replica.Market); err != nil {
		return err
	}
	views.feed = s.feed
	s.feed.Attach(s.fix)
	s.watch, err = s.newParticipantsWatch()
	return err
}

// newFeed makes the feed of a service on the market data at its engine's first
// event.
func (s *service) newFeed(data feed.Book) (*feed.Feed, error) {
	proxies, err := s.cfg.ProxyPrefixes()
	if err != nil {
		return nil, err
	}
	return feed.New(feed.Options{
		MaxConnections: s.cfg.Feed.MaxConnections, MaxPerIP: s.cfg.Feed.ConnectionsPerIP,
		Tickets: s.tickets(), ClientIP: wire.ClientIP(proxies, ""), Elsewhere: s.cfg.OtherPlaces(), Logger: s.log,
	}, s.instruments, data, s.eng.Epoch())
}

// readOnly is who leads, for gateways of a process that only reads; nil where this
// one leads.
func (s *service) readOnly() func() httpgw.Leader {
	if s.following == nil {
		return nil
	}
	return s.following.leaders.leader
}

// fixReadOnly is readOnly as the FIX gateway says it.
func (s *service) fixReadOnly() func() string {
	if s.following == nil {
		return nil
	}
	return func() string { return leaderText(s.following.leaders.leader()) }
}

// runFollowing serves until ctx ends or the leader cannot be followed any more.
func (s *service) runFollowing(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	stopStores := s.runStores(ctx, stop)
	group, ctx := errgroup.WithContext(ctx)
	for _, p := range []part{
		{"engine", s.eng.Run},
		{"follower", func(ctx context.Context) error { return s.following.follower.Run(ctx, s.followed) }},
		{"feed", func(ctx context.Context) error {
			defer s.events.feed.Close()
			return s.feed.Run(ctx, s.events.feed)
		}},
		{"desk", func(ctx context.Context) error {
			defer s.events.desk.Close()
			return s.desk.Run(ctx, s.events.desk)
		}},
		{"history", func(ctx context.Context) error {
			defer s.events.history.Close()
			return s.sitOut(ctx, "history", s.history.Run(ctx, s.events.history))
		}},
		// Reports of orders and fills are the leader's to send.
		{"fix", func(ctx context.Context) error { return s.sitOut(ctx, "fix", s.fix.Run(ctx, nil)) }},
		{"participants", s.watch.Run},
		{"http", s.http.Run},
		{"admin", s.admin.Run},
	} {
		group.Go(func() error { return named(p.name, p.run(ctx)) })
	}
	err := group.Wait()
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	return errors.Join(err, stopStores())
}

// followingAdmin is the admin address of a follower.
func (s *service) followingAdmin() admin.Options {
	f := s.following
	return admin.Options{
		Addr: s.cfg.Listen.Admin, Listen: s.listenOn, Logger: s.log,
		Ready: []admin.Check{
			{Name: "follower", Err: f.follower.Ready},
			{Name: "instruments", Err: s.followed.agrees},
			{Name: "engine", Err: func() error { return s.eng.Stats().Failed }},
			{Name: "fix_store", Err: s.fixStore.Failed},
			{Name: "desk_store", Err: s.deskStore.Failed},
			{Name: "history_store", Err: s.historyStore.Failed},
			{Name: "feed", Err: s.feedReady},
		},
		Desk: admin.DeskSources{Stats: s.desk.Stats, View: s.desk.View, Instruments: s.set, Now: func() int64 { return time.Now().UnixNano() }},
		Collectors: append(append(processFigures(s.cfg), f.figures(), engineFigures(s.eng.Stats), consumerLags(s.eng.Stats),
			feedFigures(s.feed.Stats), historyFigures(s.history.Stats), fixFigures(s.fix.Stats)), s.http.Collectors()...),
	}
}

// figures are the follower's metrics.
func (f *followerNode) figures() fanoutFigures {
	return fanoutFigures{func() []fanout.Metric {
		return append(f.follower.Metrics(), fanout.Metric{
			Name: "follower_rejoins_total", Help: "Times that the follower has begun anew with a snapshot, since what came next was not to be had.",
			Value: float64(f.rejoins.Load()),
		})
	}}
}
