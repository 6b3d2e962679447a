package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"blockdesk/catalog"
	"blockdesk/desk"
	"blockdesk/engine"
	"blockdesk/feed"
	"blockdesk/feed/archive"
	"blockdesk/fixgw"
	"blockdesk/httpgw"
	"blockdesk/httpgw/admin"
	"blockdesk/httpgw/wire"
	"blockdesk/internal/sandbox"
	"blockdesk/market"
	"blockdesk/persist"
	"blockdesk/sdk"
	"blockdesk/service/config"
)

func serveCommand(s *settings) *cobra.Command {
	var demo, check, rebase bool
	var role string
	cmd := &cobra.Command{
		Use: "serve", Short: "Run the service", Args: cobra.NoArgs,
		Long: "Run the service until Ctrl-C or SIGTERM: REST, WebSocket, FIX and admin addresses over one\n" +
			"engine and its journal in the data folder, which it makes where there is none. At its start\n" +
			"it replays the journal, and says where it listens once it does; addresses.json in the data\n" +
			"folder has that too. Exit code 0 where it has stopped cleanly. It needs a participants file\n" +
			"(fix.participants_file), unless it only mirrors.\n\n" +
			"With --demo it has three participants with known passwords, a market maker and a taker that\n" +
			"trade with each other through the FIX gateway, and a local chain where Node 20 is there.",
		Example: "  blockdesk serve --demo\n" +
			"  blockdesk serve --config blockdesk.yaml --data data",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if role != "" {
				s.sets = append(s.sets, "role="+role)
			}
			cfg, err := s.load()
			if err != nil {
				return err
			}
			cfg.Demo = cfg.Demo || demo
			fillDemo(&cfg)
			if check {
				return s.checked(cmd.OutOrStdout(), &cfg)
			}
			if err := checkStart(&cfg); err != nil {
				return configError{err}
			}
			return serve(cmd.Context(), &cfg, rebase, s, cmd)
		},
	}
	cmd.Flags().StringVar(&role, "role", "", "all, node or follower: what this process is (default: as configured)")
	cmd.Flags().BoolVar(&demo, "demo", false, "demo participants and traders; loopback addresses only")
	cmd.Flags().BoolVar(&rebase, "rebase", false,
		"start although the journal and the FIX store or the desk's store do not fit, since one was lost or\n"+
			"restored alone. The journal counts: orders that it and the FIX store do not agree on are cancelled,\n"+
			"reports that only one has stay unsent, and answers to old idempotency keys may be gone")
	cmd.Flags().BoolVar(&check, "check", false, "validate the configuration and exit")
	return cmd
}

// service is everything that runs, joined.
type service struct {
	cfg          *config.Config
	log          *slog.Logger
	rebase       bool                           // where a store and the journal do not fit, the journal counts
	recovering   func(done, total uint64) error // is told how far the replay at the start is
	instruments  []market.Instrument
	set          *market.Instruments
	participants []fixgw.Participant // of the start
	// participantsBefore are in force where the file is refused now; nil: the start
	// fails then.
	participantsBefore []fixgw.Participant
	operators          []admin.Operator

	*ground
	// listenOn binds an address, or borrows one that is bound.
	listenOn   func(network, addr string) (net.Listener, error)
	clock      func() int64 // the engine's; nil: the machine's
	eng        *engine.Engine
	feed       *feed.Feed
	early      *fixgw.Early // sessions for fix; nil: it makes them
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
	participantsState fileState
	watch             *participantsWatch
	deskPlan          *deskPlan     // nil: the desk is not enabled
	chain             *sandbox.Node // the demo's own; nil: none runs
	chainNote         string        // why the demo's does not
	intake            intake
	backup            backupState
	program           program
	publication       *publication  // nil: nobody follows
	following         *followerNode // nil: this process leads
	followed          *followedEngine
	events            struct{ feed, fix, desk, history *engine.Consumer }

	// certificateEnds is when that of the FIX address does; zero: it speaks plain FIX.
	certificateEnds time.Time
}

// serve runs what the configuration's role makes of this process, until ctx ends.
func serve(ctx context.Context, cfg *config.Config, rebase bool, from *settings, cmd *cobra.Command) (err error) {
	asJSON := from.json
	logger := newLogger(cfg.Log, cmd.ErrOrStderr())
	// Whoever has the participants read anew asks every node: one without a reader of
	// them, such as one that stands by, must not end by it.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	switch {
	case cfg.Role == config.RoleFollower:
		f := &followerNode{cfg: cfg, log: logger, asJSON: asJSON, out: cmd.OutOrStdout()}
		err = f.serve(ctx)
	case cfg.Clustered():
		m := &clusterNode{cfg: cfg, machine: from.machine, log: logger, asJSON: asJSON, out: cmd.OutOrStdout()}
		err = m.serve(ctx)
	default:
		told := (&settings{json: asJSON}).newBar(cmd.ErrOrStderr(), "replaying the journal", inCommands)
		err = serveAlone(ctx, cfg, rebase, asJSON, told, logger, cmd.OutOrStdout())
	}
	logger.Info("stopped", "clean", err == nil)
	return err
}

// serveAlone is the whole service on a journal of its own.
func serveAlone(ctx context.Context, cfg *config.Config, rebase, asJSON bool, told *bar, logger *slog.Logger, out io.Writer) (err error) {
	s := &service{cfg: cfg, log: logger, rebase: rebase, listenOn: net.Listen}
	defer func() { err = errors.Join(err, s.close()) }()
	if s.program, err = readProgram(logger); err != nil {
		return err
	}
	s.recovering = told.progress(ctx)
	s.ground, err = openGround(cfg.DataDir, s.journalOptions(), logger)
	if err == nil {
		err = s.open(ctx)
	}
	told.end()
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil // told to stop before it was up: nothing has happened yet
	}
	if err != nil {
		return err
	}
	if err := s.listen(); err != nil {
		return err
	}
	if err := s.announce(out, asJSON); err != nil {
		return err
	}
	stopChain := s.runChain()
	err = s.run(ctx, part{"systemd", newNotifier(s.eng.Stats, s.log).Run})
	return errors.Join(err, stopChain())
}

// run serves until ctx ends, beside what else is to run, and returns why it ended;
// nil where that is what ctx has asked for.
func (s *service) run(ctx context.Context, more ...part) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	stopStores := s.runStores(ctx, stop)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return named("engine", s.eng.Run(ctx)) })
	// A consumer whose reader has ended is closed, so that the engine does not
	// wait for it while it stops.
	group.Go(func() error {
		defer s.events.feed.Close()
		return named("feed", s.feed.Run(ctx, s.events.feed))
	})
	group.Go(func() error {
		defer s.events.desk.Close()
		return named("desk", s.desk.Run(ctx, s.events.desk))
	})
	group.Go(func() error {
		defer s.events.history.Close()
		return named("history", s.sitOut(ctx, "history", s.history.Run(ctx, s.events.history)))
	})
	s.runSettlement(ctx, group)
	// Told to stop while setting up is a clean stop: the next start sets up anew.
	if err := s.submitSetup(ctx); err != nil && ctx.Err() == nil {
		s.log.Error("setup failed", "error", err)
		group.Go(func() error { return named("setup", err) })
	}
	s.runMirror(ctx, group)
	group.Go(func() error {
		err := s.fix.Run(ctx, s.events.fix)
		s.events.fix.Close()
		return named("fix", s.sitOut(ctx, "fix", err))
	})
	for _, p := range append(more, part{"participants", s.watch.Run}, part{"http", s.http.Run}, part{"admin", s.admin.Run},
		part{"fan-out", s.publish}) {
		group.Go(func() error { return named(p.name, p.run(ctx)) })
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

// runDemo starts the demo's traders and its operator.
func (s *service) runDemo(ctx context.Context, group *errgroup.Group) {
	group.Go(func() error {
		return named("demo", runDemo(ctx, s.fix.Addr().String(), s.cfg.FIX.CompID, s.instruments, s.log))
	})
	if s.cfg.RFQ.Enabled {
		group.Go(func() error {
			return named("demo's operator", runDemoDesk(ctx, s.adminURL(), s.deskPlan.demoToken, s.deskPlan.wanted.pairs, s.log))
		})
	}
}

// sitOut waits for the end of ctx where a part has ended because its store has
// failed, as on a full disk: readers are served on, and the part's readiness
// check says what is wrong. It returns err.
func (s *service) sitOut(ctx context.Context, part string, err error) error {
	if errors.Is(err, persist.ErrFailed) && ctx.Err() == nil {
		s.log.Error("its store has failed: out of service until a restart", "part", part, "error", err)
		<-ctx.Done()
	}
	return err
}

// runStores keeps the journal and the stores of its followers until the function that it
// returns is called: they must outlive whoever writes to them. One that has failed
// stays, so that readers are served on; one that ends otherwise stops the service.
func (s *service) runStores(ctx context.Context, stop context.CancelCauseFunc) (end func() error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var stores errgroup.Group
	for _, p := range s.parts {
		stores.Go(func() error {
			err := named(p.name, s.sitOut(ctx, p.name, p.run(ctx)))
			stop(err)
			return err
		})
	}
	return func() error {
		cancel()
		return stores.Wait()
	}
}

func named(part string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return nil
	}
	return fmt.Errorf("%s: %w", part, err)
}

// listen binds the addresses, so that a taken port is an error at once.
func (s *service) listen() error {
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
		Instruments: s.set, Groups: groups, Specification: specification, Downloads: s.program.downloads, DemoChain: s.demoChain(), TrustedProxies: proxies, Logger: s.log,
		Description: wire.Description{Operator: s.cfg.Operator.Name, Contacts: s.cfg.Operator.Contacts, GitHub: s.cfg.Operator.GitHub},
		Market:      rate(limits.MarketDataPerMinute, limits.MarketDataBurst),
		Partner:     rate(limits.PartnerPerMinute, limits.PartnerBurst),
		RFQWrite:    rate(limits.RFQWritesPerMinute, limits.RFQWritesBurst),
		Handshake:   rate(limits.HandshakePerMinute, max(1, limits.HandshakePerMinute)),
		DvP:         window(limits.DvPPerMinute),
		ReadOnly:    s.readOnly(), Elsewhere: s.cfg.NodeURLs(),
		NoLimits: limits.MarketDataPerMinute == 0 && limits.PartnerPerMinute == 0 && limits.RFQWritesPerMinute == 0 &&
			limits.HandshakePerMinute == 0 && limits.DvPPerMinute == 0,
	}
	if s.reign != nil {
		options.Deposed, options.Barrier, options.ShutdownTimeout = s.reign.deposed, s.barrier(&s.events.desk, s.desk.Shown), deposedGrace
	}
	if s.http, err = httpgw.New(options, s.feed, s.doors()); err != nil {
		return err
	}
	of := s.adminOptions
	if s.following != nil {
		of = s.followingAdmin
	}
	s.admin, err = admin.New(of())
	return err
}

// doors are what the REST gateway finds behind its routes. Where no chain is
// configured there is no settlement: claims answer that the chain is not reached.
func (s *service) doors() httpgw.Dependencies {
	d := httpgw.Dependencies{
		History: s.history, Signatures: s.signatures(), Facts: s.publishedFacts().Facts,
	}
	if s.following != nil {
		d.History = followedHistory{s.history}
	}
	if s.cfg.Role != config.RoleNode {
		d.WebSocket, d.Stream, d.WebSocketHealth = s.feed.Handler, s.feed.Stream, func() any { return s.feed.Health() }
	}
	if s.cfg.RFQ.Enabled {
		d.Desk = s.desk
		if s.following == nil {
			d.Handshake = s.settlement.access
		}
	}
	if door := s.settleDoor(); door != nil {
		d.Settlement, d.DvP, d.ChainHealth = door, door, s.settlement.health
	}
	return d
}

// demoChain is the URL of the local chain that runs for this demo, empty where
// none does. Pages for people fund their sandbox wallet there.
func (s *service) demoChain() string {
	if s.chain == nil {
		return ""
	}
	return s.chain.URL()
}

// settleDoor is the way to settlement; nil where there is none.
func (s *service) settleDoor() *settleDoor {
	if s.settlement.core == nil {
		return nil
	}
	return &settleDoor{s.settlement.core, &s.settlement}
}

func (s *service) close() error {
	s.backup.wait()
	var errs []error
	if s.http != nil {
		errs = append(errs, ignoreClosed(s.http.Close()))
	}
	if s.admin != nil {
		errs = append(errs, ignoreClosed(s.admin.Close()))
	}
	if s.fix != nil {
		errs = append(errs, ignoreClosed(s.fix.Close()))
	}
	if s.settlement.chain != nil {
		s.settlement.chain.Close()
	}
	if s.mirror.chain != nil {
		s.mirror.chain.Close()
	}
	if s.ground != nil {
		errs = append(errs, s.ground.close())
	}
	if s.chain != nil {
		errs = append(errs, s.chain.Stop())
	}
	return errors.Join(errs...)
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
