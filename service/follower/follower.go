// Package follower is a process that serves reads from a copy of its leader's state.
package follower

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"blockdesk/engine"
	"blockdesk/httpgw/admin"
	"blockdesk/persist"
	"blockdesk/persist/fanout"
	"blockdesk/service"
	"blockdesk/service/config"
	"blockdesk/service/metrics"
	"blockdesk/service/program"
	"blockdesk/service/standby"
	"blockdesk/service/systemd"
	"blockdesk/service/task"
)

// Follower is a process that only reads: it follows a leader's durable frames and
// serves the views of its own engine, between which and the leader's clients may move.
// Writes are sent to the leader. It has no key, asks no chain, and stores nothing that
// it could not fetch again except the numbers of its FIX sessions. Open, Run once,
// Close.
type Follower struct {
	cfg *config.Config
	log *slog.Logger

	follower *fanout.Follower
	pool     standby.Pool
	leaders  *leaderWatch
	fixStore *persist.KV
	service  atomic.Pointer[service.Service] // nil: it joins
	rejoins  atomic.Uint64
	program  program.Program
}

// Open opens the FIX store, binds the addresses, and has the configuration name what
// they are. Nothing is served yet. After an error nothing is open.
func Open(c *config.Config, log *slog.Logger) (*Follower, error) {
	f := &Follower{cfg: c, log: log}
	if err := f.open(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (f *Follower) open() error {
	options, err := f.cfg.FanoutOptions(f.log)
	if err != nil {
		return err
	}
	if f.follower, err = fanout.NewFollower(options); err != nil {
		return err
	}
	if f.program, err = program.Read(f.log); err != nil {
		return err
	}
	f.leaders = newLeaderWatch(f.cfg.Peers, f.log)
	if err := os.MkdirAll(f.cfg.DataDir, 0o700); err != nil {
		return err
	}
	if f.fixStore, err = persist.OpenKV(filepath.Join(f.cfg.DataDir, service.FIXFolder), nil, f.log); err != nil {
		return fmt.Errorf("fix store: %w", err)
	}
	return f.pool.BindAll(&f.cfg.Listen)
}

// Close closes the store and unbinds the addresses. After Run has returned, or without
// Run.
func (f *Follower) Close() error {
	err := f.pool.Close()
	if f.fixStore != nil {
		err = errors.Join(err, f.fixStore.Close())
	}
	return err
}

// Run follows and serves until ctx ends, and returns why it ended; nil if ctx has
// asked for it.
func (f *Follower) Run(ctx context.Context) error {
	storeCtx, stopStore := context.WithCancel(context.WithoutCancel(ctx))
	defer stopStore()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return task.Named("fix store", f.fixStore.Run(storeCtx)) })
	group.Go(func() error { return systemd.New(f.stats, f.log).Run(ctx) })
	group.Go(func() error { return f.leaders.Run(ctx) })
	group.Go(func() error {
		defer stopStore()
		return f.turns(ctx)
	})
	err := group.Wait()
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	return err
}

// stats are the engine's; zero while it joins.
func (f *Follower) stats() engine.Stats {
	if s := f.service.Load(); s != nil {
		return s.Stats()
	}
	return engine.Stats{}
}

// turns joins and serves by turns, until ctx ends: an engine cannot be moved under
// its readers, so what cannot go on begins anew.
func (f *Follower) turns(ctx context.Context) error {
	for {
		replica, err := f.join(ctx)
		if err == nil {
			err = f.stand(ctx, replica)
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, fanout.ErrBehind), errors.Is(err, fanout.ErrDiverged), errors.Is(err, fanout.ErrSnapshot), errors.Is(err, engine.ErrDiverged):
			f.rejoins.Add(1)
			f.log.Warn("begins anew", "error", err)
		default:
			return err
		}
	}
}

// join has the standby hold the addresses until the leader's newest snapshot is
// here.
func (f *Follower) join(ctx context.Context) (replica *engine.Replica, err error) {
	address := admin.Options{
		Addr: f.cfg.Listen.Admin, Listen: f.pool.Listen, Logger: f.log,
		Ready:      []admin.Check{{Name: "follower", Err: func() error { return errJoining }}},
		Collectors: append(metrics.Process(f.cfg.Durability.Mode), f.metrics()),
	}
	o := standby.Options{Config: f.cfg, Log: f.log, Pool: &f.pool, Leader: f.leaders.leader, Admin: address}
	err = standby.Serve(ctx, o, func(ctx context.Context) error {
		replica, err = f.follower.Join(ctx)
		return err
	})
	return replica, err
}

var errJoining = errors.New("joining: waits for a snapshot of the leader's")

// stand builds the service on a replica and runs it until ctx ends or the follower
// cannot go on.
func (f *Follower) stand(ctx context.Context, replica *engine.Replica) (err error) {
	began := time.Now()
	upstream := service.Upstream{Leader: f.leaders.leader, Run: f.follower.Run, Ready: f.follower.Ready, Metrics: f.metrics()}
	in, err := service.ReadInputs(f.cfg, nil, f.log)
	if err != nil {
		return err
	}
	s, err := service.OpenReplica(service.Options{Config: f.cfg, Log: f.log, Program: f.program, Inputs: in, Listen: f.pool.Listen}, upstream, replica, f.fixStore)
	if err != nil {
		return err
	}
	defer func() {
		f.service.Store(nil)
		err = errors.Join(err, s.Close())
	}()
	f.service.Store(s)
	f.log.Info("follows", "epoch", s.Epoch(), "seq", replica.State.Seq(), "ready_ms", time.Since(began).Milliseconds())
	return s.Run(ctx)
}

// metrics are the follower's.
func (f *Follower) metrics() prometheus.Collector {
	return metrics.Fanout(func() []fanout.Metric {
		return append(f.follower.Metrics(), fanout.Metric{
			Name: "follower_rejoins_total", Help: "Times that the follower has begun anew with a snapshot, since what came next was not to be had.",
			Value: float64(f.rejoins.Load()),
		})
	})
}
