// Package service joins the packages of blockdesk into a running program: it opens the
// stores, replays the journal, brings the configuration into the engine's state, makes
// the gateways, and runs everything until its context ends.
//
// Open makes a service with a journal of its own or of a group's term; OpenReplica makes
// one that follows a leader's frames and answers reads. Packages below: config has the
// keys, cluster a node of a group, standby its addresses while another node leads,
// follower a process that follows a group, demo the demo's participants and chain, operator
// the client of the admin address.
package service

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"blockdesk/catalog"
	"blockdesk/desk"
	"blockdesk/engine"
	"blockdesk/feed"
	"blockdesk/feed/archive"
	"blockdesk/fixgw"
	"blockdesk/fixgw/participants"
	"blockdesk/fixgw/session"
	"blockdesk/httpgw"
	"blockdesk/httpgw/admin"
	"blockdesk/httpgw/wire"
	"blockdesk/internal/sandbox"
	"blockdesk/market"
	"blockdesk/persist"
	"blockdesk/sdk"
	"blockdesk/service/config"
	"blockdesk/service/demo"
	"blockdesk/service/operator"
	"blockdesk/service/program"
	"blockdesk/service/systemd"
	"blockdesk/service/task"
)

// Options are what a service is opened with.
type Options struct {
	Config  *config.Config
	Log     *slog.Logger
	Program program.Program
	// Storage is that of a leader's term; nil: Open opens the data folder.
	Storage *Storage
	// Listen binds the addresses; nil: net.Listen.
	Listen func(network, addr string) (net.Listener, error)
	// Clock is the engine's, in Unix nanoseconds; nil: the machine's.
	Clock func() int64
	// Sessions are the FIX sessions, if they were made ahead.
	Sessions *session.Prepared
	// Participants are in force if the participants file is refused now; nil: the
	// start fails then.
	Participants []participants.Participant
	// Reconcile starts a service whose stores do not fit its journal: the journal
	// counts.
	Reconcile bool
	// Replaying receives the progress of the replay at the start, in commands; an
	// error ends it. May be nil.
	Replaying func(done, total uint64) error
}

// Service is everything that runs, joined: Open or OpenReplica, then Run once, then
// Close, which may also come without Run. The other methods may be called from any
// goroutine between Open and Close.
type Service struct {
	cfg          *config.Config
	log          *slog.Logger
	rebase       bool                           // Options.Reconcile
	recovering   func(done, total uint64) error // Options.Replaying
	instruments  []market.Instrument
	set          *market.Instruments
	participants []participants.Participant // of the start
	// participantsBefore are Options.Participants.
	participantsBefore []participants.Participant
	operators          []admin.Operator

	storage    *Storage
	listenOn   func(network, addr string) (net.Listener, error)
	clock      func() int64 // the engine's; nil: the machine's
	eng        *engine.Engine
	feed       *feed.Feed
	early      *session.Prepared // sessions for fix; nil: it makes them
	fix        *fixgw.Gateway
	desk       *desk.Desk
	history    *archive.Archive
	settlement settlement
	mirror     chainMirror
	http       *httpgw.Gateway
	admin      *admin.Server
	setup      []engine.Command // brings the state up to the configuration
	// participantsState is of the file that participants are from; watch looks for
	// others.
	participantsState FileStamp
	watch             *participantsWatch
	deskPlan          *deskPlan     // nil: the desk is not enabled
	chain             *sandbox.Node // the demo's own; nil: none runs
	chainNote         string        // why the demo's chain does not run
	intake            intake
	backup            backupState
	program           program.Program
	publication       *publication // nil: nobody follows
	upstream          *Upstream    // nil: this process leads
	followed          *followedEngine
	events            struct{ feed, fix, desk, history *engine.Consumer }

	// certificateEnds is when that of the FIX address does; zero: it speaks plain FIX.
	certificateEnds time.Time
}

// Open recovers the state, joins the packages, and binds the addresses, so that a
// taken port is an error at once. After an error nothing is open.
func Open(ctx context.Context, o Options) (*Service, error) {
	s := newService(o)
	if err := s.openAll(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func newService(o Options) *Service {
	s := &Service{
		cfg: o.Config, log: o.Log, program: o.Program, storage: o.Storage, listenOn: o.Listen, clock: o.Clock, early: o.Sessions,
		participantsBefore: o.Participants, rebase: o.Reconcile, recovering: o.Replaying,
	}
	if s.listenOn == nil {
		s.listenOn = net.Listen
	}
	return s
}

func (s *Service) openAll(ctx context.Context) (err error) {
	if s.storage == nil {
		if s.storage, err = openStorage(s.cfg.DataDir, s.journalOptions(), s.log); err != nil {
			return err
		}
	}
	if err := s.open(ctx); err != nil {
		return err
	}
	return s.listen()
}

// Run serves until ctx ends, and returns why it ended; nil if ctx has asked for it.
func (s *Service) Run(ctx context.Context) error {
	if s.upstream != nil {
		return s.runReplica(ctx)
	}
	stopChain := s.runChain()
	return errors.Join(s.run(ctx), stopChain())
}

func (s *Service) run(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	stopStores := s.runStores(ctx, stop)
	group, ctx := errgroup.WithContext(ctx)
	// A consumer whose reader has ended is closed, so that the engine does not
	// wait for it while it stops.
	task.Go(ctx, group, task.Task{Name: "engine", Run: s.eng.Run}, task.Task{Name: "feed", Run: s.runFeed},
		task.Task{Name: "desk", Run: s.runDesk}, task.Task{Name: "history", Run: s.runHistory})
	s.runSettlement(ctx, group)
	// An end of ctx while setting up is a clean stop: the next start sets up anew.
	if err := s.submitSetup(ctx); err != nil && ctx.Err() == nil {
		s.log.Error("setup failed", "error", err)
		group.Go(func() error { return task.Named("setup", err) })
	}
	s.runMirror(ctx, group)
	task.Go(ctx, group, task.Task{Name: "fix", Run: s.runFIX}, task.Task{Name: "participants", Run: s.watch.Run},
		task.Task{Name: "http", Run: s.http.Run}, task.Task{Name: "admin", Run: s.admin.Run}, task.Task{Name: "fan-out", Run: s.publish})
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
	return s.sitOut(ctx, "history", s.history.Run(ctx, s.events.history))
}

func (s *Service) runFIX(ctx context.Context) error {
	err := s.fix.Run(ctx, s.events.fix)
	s.events.fix.Close()
	return s.sitOut(ctx, "fix", err)
}

// runDemo starts the demo's traders and its operator.
func (s *Service) runDemo(ctx context.Context, group *errgroup.Group) {
	task.Go(ctx, group, task.Task{Name: "demo", Run: func(ctx context.Context) error {
		return demo.Trade(ctx, s.fix.Addr().String(), s.cfg.FIX.CompID, s.instruments, s.log)
	}})
	if s.cfg.RFQ.Enabled {
		task.Go(ctx, group, task.Task{Name: "demo's operator", Run: func(ctx context.Context) error {
			return demo.Operate(ctx, s.adminURL(), s.deskPlan.demoToken, s.deskPlan.wanted.pairs, s.log)
		}})
	}
}

// startChain starts the local chain of a demo.
func (s *Service) startChain(ctx context.Context) (err error) {
	s.chain, s.chainNote, err = demo.StartChain(ctx, s.cfg, s.log)
	return err
}

// runChain follows the demo's local chain until the function that it returns is
// called, which stops the chain: that comes last, and saves its state. If the chain
// ends by itself the service goes on.
func (s *Service) runChain() (stop func() error) {
	if s.chain == nil {
		return func() error { return nil }
	}
	ctx, cancel := context.WithCancel(context.Background())
	var follow errgroup.Group
	follow.Go(func() error {
		if err := s.chain.Run(ctx); err != nil {
			s.log.Error("no claims until the service is started again", "error", err)
		}
		return nil
	})
	return func() error {
		cancel()
		err := follow.Wait()
		s.chain = nil
		return err
	}
}

// Addresses returns where the service listens.
func (s *Service) Addresses() operator.Addresses {
	urls := s.http.URLs()
	a := operator.Addresses{Base: urls.Base, API: urls.API, WS: urls.WS, FIX: s.fix.Addr().String(), Admin: s.adminURL(), PID: os.Getpid()}
	if s.chain != nil {
		a.Chain = s.chain.URL()
	}
	return a
}

// ChainNote returns why the demo's local chain does not run; empty if it does, or if
// there is nothing to run.
func (s *Service) ChainNote() string { return s.chainNote }

// Participants returns those that were in force at the start.
func (s *Service) Participants() []participants.Participant { return s.participants }

// Epoch returns the engine's.
func (s *Service) Epoch() uint64 { return s.eng.Epoch() }

// Stats returns the engine's.
func (s *Service) Stats() engine.Stats { return s.eng.Stats() }

// sitOut returns err, at once or, if a part has ended because its store has failed, as
// on a full disk, at the end of ctx: readers are served on, and the part's readiness
// check says what is wrong.
func (s *Service) sitOut(ctx context.Context, part string, err error) error {
	if errors.Is(err, persist.ErrFailed) && ctx.Err() == nil {
		s.log.Error("its store has failed: out of service until a restart", "part", part, "error", err)
		<-ctx.Done()
	}
	return err
}

// runStores runs the journal and the stores until the function that it returns is
// called, because they must outlive their writers. A store that has failed does not
// end the service, so that readers are served on; one that ends otherwise does.
func (s *Service) runStores(ctx context.Context, stop context.CancelCauseFunc) (end func() error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var stores errgroup.Group
	for _, p := range s.storage.parts {
		stores.Go(func() error {
			err := task.Named(p.Name, s.sitOut(ctx, p.Name, p.Run(ctx)))
			stop(err)
			return err
		})
	}
	return func() error {
		cancel()
		return stores.Wait()
	}
}

// listen binds the addresses, so that a taken port is an error at once.
func (s *Service) listen() error {
	proxies, err := s.cfg.ProxyPrefixes()
	if err != nil {
		return err
	}
	specification, err := sdk.Files.ReadFile(sdk.Specification)
	if err != nil {
		return err
	}
	groups, err := gatewayGroups(s.cfg)
	if err != nil {
		return err
	}
	limits := &s.cfg.HTTP
	options := httpgw.Options{
		Base: s.cfg.Listen.Base, API: s.cfg.Listen.API, WS: s.cfg.Listen.WS, Listen: s.listenOn,
		URLs: catalog.URLs{
			Base: s.cfg.URLs.Base, API: s.cfg.URLs.API, WS: s.cfg.URLs.WS, Mirror: s.cfg.URLs.Mirror, Native: s.cfg.URLs.Native,
		},
		Instruments: s.set, Shards: groups, Specification: specification, Downloads: s.program.Downloads, DemoChain: s.demoChain(), TrustedProxies: proxies, Logger: s.log,
		Description: wire.Description{Operator: s.cfg.Operator.Name, Contacts: s.cfg.Operator.Contacts, GitHub: s.cfg.Operator.GitHub},
		Market:      rate(limits.MarketDataPerMinute, limits.MarketDataBurst),
		Partner:     rate(limits.PartnerPerMinute, limits.PartnerBurst),
		RFQWrite:    rate(limits.RFQWritesPerMinute, limits.RFQWritesBurst),
		Handshake:   rate(limits.HandshakePerMinute, max(1, limits.HandshakePerMinute)),
		DvP:         window(limits.DvPPerMinute),
		Leadership:  s.leadershipFor(s.events.desk, s.desk.AwaitView), RedirectTargets: s.cfg.NodeURLs(),
		NoLimits: limits.MarketDataPerMinute == 0 && limits.PartnerPerMinute == 0 && limits.RFQWritesPerMinute == 0 &&
			limits.HandshakePerMinute == 0 && limits.DvPPerMinute == 0,
	}
	if s.storage.Leading != nil {
		options.ShutdownTimeout = deposedGrace
	}
	if s.http, err = httpgw.New(options, s.feed, s.dependencies()); err != nil {
		return err
	}
	of := s.adminOptions
	if s.upstream != nil {
		of = s.replicaAdmin
	}
	s.admin, err = admin.New(of())
	return err
}

// dependencies returns what the REST gateway finds behind its routes. If no chain is
// configured there is no settlement, and claims answer that the chain is not reached.
func (s *Service) dependencies() httpgw.Dependencies {
	d := httpgw.Dependencies{
		History: s.history, Signatures: s.signatures(), Facts: s.publishedFacts().Facts,
	}
	if s.upstream != nil {
		d.History = replicaHistory{s.history}
	}
	if s.cfg.Role != config.RoleNode {
		d.WebSocket, d.Stream, d.WebSocketHealth = s.feed.Handler, s.feed.Stream, func() any { return s.feed.Health() }
	}
	if s.cfg.RFQ.Enabled {
		d.Desk = s.desk
		if s.upstream == nil {
			d.Handshake = s.settlement.access
		}
	}
	if core := s.settleGateway(); core != nil {
		d.Settlement, d.Cosigner, d.ChainHealth = core, core, s.settlement.health
	}
	return d
}

// demoChain returns the URL of the local chain that runs for this demo; empty if none
// does. Pages for people fund their sandbox wallet there.
func (s *Service) demoChain() string {
	if s.chain == nil {
		return ""
	}
	return s.chain.URL()
}

// settleGateway returns settlement as gateways use it; nil if there is none.
func (s *Service) settleGateway() *settleGateway {
	if s.settlement.core == nil {
		return nil
	}
	return &settleGateway{s.settlement.core, &s.settlement}
}

// Close closes what is open. After Run has returned, or without Run.
func (s *Service) Close() error {
	s.backup.wait()
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
	if s.settlement.chain != nil {
		s.settlement.chain.Close()
	}
	if s.mirror.chain != nil {
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
