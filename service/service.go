// Package service connects the packages of blockdesk into a running program: it opens the
// stores, replays the journal, applies the configuration to the engine's state, binds the
// gateways, and runs everything until its context ends.
//
// Check reads and checks the files of a start. Open makes a service with a journal of its
// own or of a leader's term; OpenReplica makes one that applies a leader's frames and
// answers reads. A part that some configurations lack is a value of its own: settlement,
// chainMirror, publication. The others are setup, admission, backups and
// participantsWatch.
//
// Invariants: the stores outlive their writers; the setup is submitted before a gateway
// runs; a failed store does not end the service. Packages below: config has the keys,
// cluster runs a node of a group, follower a read-only process, standby holds their
// addresses meanwhile, demo has the demo, operator is the client of the admin address.
package service

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"blockdesk/desk"
	"blockdesk/engine"
	"blockdesk/feed"
	"blockdesk/feed/archive"
	"blockdesk/fixgw"
	"blockdesk/fixgw/messagelog"
	"blockdesk/httpgw"
	"blockdesk/httpgw/admin"
	"blockdesk/internal/clock"
	"blockdesk/market"
	"blockdesk/persist"
	"blockdesk/service/config"
	"blockdesk/service/demo"
	"blockdesk/service/operator"
	"blockdesk/service/systemd"
	"blockdesk/service/task"
	"blockdesk/settle/access"
)

// Service is a running blockdesk: Open or OpenReplica, then Run once, then Close, with
// or without Run. The other methods are safe for concurrent use between Open and Close.
type Service struct {
	o           Options
	cfg         *config.Config
	log         *slog.Logger
	instruments []market.Instrument
	set         *market.Instruments

	storage     *Storage
	eng         *engine.Engine
	events      struct{ feed, fix, desk, history *engine.Consumer }
	feed        *feed.Feed
	desk        *desk.Desk
	history     *archive.Archive
	messages    *messagelog.Log // nil: none is kept
	fix         *fixgw.Gateway
	http        *httpgw.Gateway
	admin       *admin.Server
	setup       *setup
	watch       *participantsWatch
	admission   admission
	backups     *backups
	tokens      *access.Access // nil: the desk is not enabled, or a replica
	settlement  *settlement    // nil: no chain is configured
	mirror      *chainMirror   // nil: no markets are mirrored
	clock       *clock.Clock   // the engine's; nil: Options.Clock, or a replica
	clockGuard  *clockGuard    // nil: there is no clock
	prices      *priceFeed     // nil: no asset has a rule of prices
	publication *publication   // nil: no followers
	chain       *demo.Chain    // the demo's own; nil: none runs
	chainNote   string         // why the demo's chain does not run
	upstream    *Upstream      // nil: this process leads
	replica     *replicaEngine // nil: this process leads
}

// Open recovers the state, connects the packages, and binds the addresses, so that a
// taken port is an error at once. After an error nothing is open.
func Open(ctx context.Context, o Options) (*Service, error) {
	s := newService(o)
	if err := s.openAll(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func newService(o Options) *Service {
	if o.Listen == nil {
		o.Listen = net.Listen
	}
	return &Service{o: o, cfg: o.Config, log: o.Log, storage: o.Storage}
}

func (s *Service) openAll(ctx context.Context) (err error) {
	if s.storage == nil {
		if err := writeDemoHistory(ctx, s); err != nil {
			return err
		}
		if s.storage, err = openStorage(s.cfg.DataDir, s.journalOptions(), s.log); err != nil {
			return err
		}
	}
	if err := s.open(ctx); err != nil {
		return err
	}
	if err := s.listen(); err != nil {
		return err
	}
	s.admin, err = admin.New(s.adminOptions())
	return err
}

// Run serves until ctx ends, and returns nil then, or until a task fails.
func (s *Service) Run(ctx context.Context) error {
	if s.upstream != nil {
		return s.runReplica(ctx)
	}
	stopChain := runChain(s.chain, s.log)
	err := errors.Join(s.run(ctx), stopChain())
	s.chain = nil // stopped
	return err
}

func (s *Service) run(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	stopStores := s.runStores(ctx, stop)
	group, ctx := errgroup.WithContext(ctx)
	// Each task closes its consumer, so that a stopping engine does not wait for it.
	task.Go(ctx, group, task.Task{Name: "engine", Run: s.eng.Run}, task.Task{Name: "feed", Run: s.runFeed},
		task.Task{Name: "desk", Run: s.runDesk}, task.Task{Name: "history", Run: s.runHistory})
	if s.tokens != nil {
		task.Go(ctx, group, task.Task{Name: "tokens", Run: func(ctx context.Context) error {
			return awaitEndIfFailed(ctx, s.log, "tokens", s.tokens.Run(ctx))
		}})
	}
	if s.settlement != nil {
		s.settlement.run(ctx, group)
	}
	// If ctx ends during the setup the service stops cleanly: the next start repeats it.
	if err := s.setup.submit(ctx, s.eng, s.desk, s.followFIX); err != nil && ctx.Err() == nil {
		s.log.Error("setup failed", "error", err)
		group.Go(func() error { return task.Named("setup", err) })
	} else if err == nil {
		s.admission.open(s.eng)
	}
	if s.clockGuard != nil {
		s.clockGuard.run(ctx, group)
	}
	if s.mirror != nil {
		s.mirror.run(ctx, group)
	}
	if s.prices != nil {
		s.prices.run(ctx, group)
	}
	if s.publication != nil {
		task.Go(ctx, group, task.Task{Name: "fan-out", Run: func(ctx context.Context) error {
			return s.publication.serve(ctx, s.storage.Journal, s.term(), s.log)
		}})
	}
	task.Go(ctx, group, task.Task{Name: "fix", Run: s.runFIX}, task.Task{Name: "participants", Run: s.watch.Run},
		task.Task{Name: "http", Run: s.http.Run}, task.Task{Name: "admin", Run: s.admin.Run})
	if s.storage.Leading == nil {
		task.Go(ctx, group, task.Task{Name: "systemd", Run: systemd.New(s.eng.Stats, s.log).Run})
	}
	if s.cfg.Demo {
		s.runDemo(ctx, group)
	}
	err := group.Wait()
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	return errors.Join(err, stopStores())
}

func (s *Service) runFeed(ctx context.Context) error {
	defer s.events.feed.Close()
	return s.feed.Run(ctx, s.events.feed)
}

func (s *Service) runDesk(ctx context.Context) error {
	defer s.events.desk.Close()
	return s.desk.Run(ctx, s.events.desk)
}

func (s *Service) runHistory(ctx context.Context) error {
	defer s.events.history.Close()
	return awaitEndIfFailed(ctx, s.log, "history", s.history.Run(ctx, s.events.history))
}

func (s *Service) runFIX(ctx context.Context) error {
	err := s.fix.Run(ctx, s.events.fix)
	s.events.fix.Close()
	return awaitEndIfFailed(ctx, s.log, "fix", err)
}

// followFIX passes waiting events to the FIX gateway, or waits a moment if there are
// none: the gateway does not run during the setup, and the rings must not fill.
func (s *Service) followFIX(ctx context.Context) error {
	if events := s.events.fix.Poll(); len(events) > 0 {
		if err := s.fix.Replay(events); err != nil {
			return err
		}
		s.events.fix.Release(len(events))
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Millisecond):
		return nil
	}
}

// runDemo starts the demo's traders, its operator, and what moves its chain's markets.
func (s *Service) runDemo(ctx context.Context, group *errgroup.Group) {
	task.Go(ctx, group, task.Task{Name: "demo", Run: func(ctx context.Context) error {
		return demo.Trade(ctx, s.fix.Addr().String(), s.cfg.FIX.CompID, s.instruments, s.log)
	}})
	if s.chain != nil {
		for name, run := range s.chain.Tasks() {
			task.Go(ctx, group, task.Task{Name: name, Run: run})
		}
	}
	if s.cfg.RFQ.Enabled {
		task.Go(ctx, group, task.Task{Name: "demo's operator", Run: func(ctx context.Context) error {
			return demo.Operate(ctx, s.adminURL(), s.setup.demoToken, s.setup.desk.wanted.pairs, s.log)
		}})
	}
}

// runChain runs the demo's local chain, if there is one, until the returned function is
// called: the chain must stop last, and saves its state then. If the chain ends earlier
// the service continues.
func runChain(chain *demo.Chain, log *slog.Logger) (stop func() error) {
	if chain == nil {
		return func() error { return nil }
	}
	ctx, cancel := context.WithCancel(context.Background())
	var run errgroup.Group
	run.Go(func() error {
		if err := chain.Run(ctx); err != nil {
			log.Error("local chain ended: no claims until a restart", "error", err)
		}
		return nil
	})
	return func() error {
		cancel()
		return run.Wait()
	}
}

// term returns a number that is higher than that of every earlier service on any node:
// the group's term, or the epoch of a single node, which its journal may not have yet.
func (s *Service) term() uint64 {
	if s.storage.Term > 0 {
		return s.storage.Term
	}
	return s.eng.Epoch()
}

// Addresses returns the addresses of the service.
func (s *Service) Addresses() operator.Addresses {
	urls := s.http.URLs()
	a := operator.Addresses{Base: urls.Base, API: urls.API, WS: urls.WS, FIX: s.fix.Addr().String(), Admin: s.adminURL(), PID: os.Getpid()}
	if s.chain != nil {
		a.Chain = s.chain.URL()
	}
	return a
}

// ChainNote returns why the demo's local chain does not run; empty if it runs or is not
// wanted.
func (s *Service) ChainNote() string { return s.chainNote }

// Epoch returns the epoch of the engine.
func (s *Service) Epoch() uint64 { return s.eng.Epoch() }

// Stats returns the stats of the engine.
func (s *Service) Stats() engine.Stats { return s.eng.Stats() }

// runStores runs the journal and the stores until the returned function is called,
// because they must outlive their writers. A failed store does not end the service, so
// that readers are served; any other end of a store does.
func (s *Service) runStores(ctx context.Context, stop context.CancelCauseFunc) (end func() error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var stores errgroup.Group
	for _, p := range s.storage.tasks {
		stores.Go(func() error {
			err := task.Named(p.Name, awaitEndIfFailed(ctx, s.log, p.Name, p.Run(ctx)))
			stop(err)
			return err
		})
	}
	return func() error {
		cancel()
		return stores.Wait()
	}
}

// DiskChanged applies a level of free disk space. Any goroutine, from Open on.
func (s *Service) DiskChanged(level persist.DiskLevel) {
	s.history.Shed(level >= persist.DiskShed)
	s.admission.diskLow(level >= persist.DiskLow)
	s.messages.Pause(level >= persist.DiskCritical)
	s.backups.refuse(level >= persist.DiskCritical)
}

// Close closes what is open. Call it after Run has returned, or without Run.
func (s *Service) Close() error {
	if s.backups != nil {
		s.backups.wait()
	}
	var errs []error
	if s.http != nil {
		errs = append(errs, task.IgnoreClosed(s.http.Close()))
	}
	if s.admin != nil {
		errs = append(errs, task.IgnoreClosed(s.admin.Close()))
	}
	if s.fix != nil {
		errs = append(errs, task.IgnoreClosed(s.fix.Close()))
	}
	if s.settlement != nil {
		s.settlement.chain.Close()
	}
	if s.mirror != nil {
		s.mirror.chain.Close()
	}
	if s.storage != nil {
		errs = append(errs, s.storage.close())
	}
	if s.chain != nil {
		errs = append(errs, s.chain.Stop())
	}
	return errors.Join(errs...)
}
