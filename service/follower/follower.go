// Package follower runs a read-only process: it applies a leader's durable frames to an
// engine of its own and serves its views. Clients can move between it and the leader, to
// which writes are redirected. It has no key, uses no chain, and all its data can be
// fetched again, except the sequence numbers of its FIX sessions.
//
// It joins from a snapshot of the leader, then follows the frames. If it is too far behind,
// or if its frames are not in the leader's history, it drops the engine and the views and
// joins again. Until it has joined, a standby holds its addresses.
package follower

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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

// Follower is a read-only process: Open, Run once, Close.
type Follower struct {
	cfg *config.Config
	log *slog.Logger

	follower *fanout.Follower
	pool     standby.Pool
	leaders  *leaderWatch
	fixStore *persist.KV
	service  atomic.Pointer[service.Service] // nil: it is joining
	rejoins  atomic.Uint64
	program  program.Program
}

// Open opens the FIX store and binds the addresses; it sets the configuration to the bound
// addresses. Nothing is served yet. After an error nothing is open.
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
	if err := persist.MakeDir(nil, f.cfg.DataDir, 0o700); err != nil {
		return err
	}
	if f.fixStore, err = persist.OpenKV(filepath.Join(f.cfg.DataDir, service.FIXFolder), nil, f.log); err != nil {
		return fmt.Errorf("fix store: %w", err)
	}
	return f.pool.BindAll(&f.cfg.Listen)
}

// Close closes the store and unbinds the addresses. Call it after Run has returned, or
// without Run.
func (f *Follower) Close() error {
	err := f.pool.Close()
	if f.fixStore != nil {
		err = errors.Join(err, f.fixStore.Close())
	}
	return err
}

// Run serves until ctx ends, and returns nil then, or until it fails.
func (f *Follower) Run(ctx context.Context) error {
	storeCtx, stopStore := context.WithCancel(context.WithoutCancel(ctx))
	defer stopStore()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return task.Named("fix store", f.fixStore.Run(storeCtx)) })
	group.Go(func() error { return systemd.New(f.stats, f.log).Run(ctx) })
	group.Go(func() error { return f.leaders.Run(ctx) })
	group.Go(func() error {
		defer stopStore()
		return f.alternate(ctx)
	})
	err := group.Wait()
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	return err
}

// stats returns the stats of the engine; zero while the follower joins.
func (f *Follower) stats() engine.Stats {
	if s := f.service.Load(); s != nil {
		return s.Stats()
	}
	return engine.Stats{}
}

// alternate joins and serves in turn, until ctx ends. A follower that cannot continue, such
// as one that is too far behind, joins again with a new engine and new views.
func (f *Follower) alternate(ctx context.Context) error {
	for {
		replica, err := f.join(ctx)
		if err == nil {
			err = f.serve(ctx, replica)
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, fanout.ErrBehind), errors.Is(err, fanout.ErrDiverged), errors.Is(err, fanout.ErrSnapshot), errors.Is(err, engine.ErrDiverged):
			f.rejoins.Add(1)
			f.log.Warn("follower lost the stream: rejoining from a snapshot", "error", err)
		default:
			return err
		}
	}
}

// join runs the standby until the leader's newest snapshot has arrived and everything since
// is applied to it, so that no client sees a past state.
func (f *Follower) join(ctx context.Context) (replica *engine.Replica, err error) {
	address := admin.Options{
		Addr: f.cfg.Listen.Admin, Listen: f.pool.Listen, Logger: f.log,
		Ready:      []admin.Check{{Name: "follower", Err: func() error { return errJoining }}},
		Collectors: append(metrics.Process(f.cfg.Durability.Mode), f.metrics()),
	}
	o := standby.Options{Config: f.cfg, Log: f.log, Pool: &f.pool, Leader: f.leaders.leader, Admin: address}
	err = standby.Serve(ctx, o, func(ctx context.Context) error {
		if replica, err = f.follower.Join(ctx); err != nil {
			return err
		}
		return f.follower.CatchUp(ctx, replica)
	})
	return replica, err
}

var errJoining = errors.New("joining: waiting for a snapshot of the leader, or applying what came after it")

// serve opens the service on a replica and runs it until ctx ends or the follower cannot
// continue.
func (f *Follower) serve(ctx context.Context, replica *engine.Replica) (err error) {
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
	f.log.Info("following the leader", "epoch", s.Epoch(), "seq", replica.State.Seq(), "ready_ms", time.Since(began).Milliseconds())
	return s.Run(ctx)
}

// metrics returns the follower's metrics.
func (f *Follower) metrics() prometheus.Collector {
	return metrics.Fanout(func() []fanout.Metric {
		return append(f.follower.Metrics(), fanout.Metric{
			Name: "follower_rejoins_total", Help: "Times it joined again with a snapshot.",
			Value: float64(f.rejoins.Load()),
		})
	})
}
