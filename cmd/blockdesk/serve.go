package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"blockdesk/engine"
	"blockdesk/feed"
	"blockdesk/feed/archive"
	"blockdesk/fixgw"
	"blockdesk/httpgw"
	"blockdesk/httpgw/desk"
	"blockdesk/internal/sandbox"
	"blockdesk/market"
	"blockdesk/persist"
	"blockdesk/sdk"
)

func serveCommand(s *settings) *cobra.Command {
	var demo, check, rebase bool
	cmd := &cobra.Command{
		Use: "serve", Short: "Run the service", Args: cobra.NoArgs,
		Long: "Run the service: REST, WebSocket, FIX and admin addresses over one engine and its journal.\n" +
			"With --demo it has three participants with known passwords, and a market maker and a\n" +
			"taker trade with each other through the FIX gateway.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := s.load()
			if err != nil {
				return err
			}
			cfg.Demo = cfg.Demo || demo
			cfg.fillDemo()
			if err := cfg.checkSettlement(); err != nil {
				return err
			}
			if check {
				if _, err := cfg.participants(); err != nil {
					return err
				}
				if _, err := cfg.FIX.tls(); err != nil {
					return err
				}
				_, err = fmt.Fprintln(cmd.OutOrStdout(), "configuration is valid")
				return err
			}
			return serve(cmd.Context(), &cfg, rebase, s.json, cmd)
		},
	}
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
	cfg          *Config
	log          *slog.Logger
	rebase       bool // where a store and the journal do not fit, the journal counts
	instruments  []market.Instrument
	set          *market.Instruments
	participants []fixgw.Participant // of the start
	operators    []httpgw.Operator

	store        *persist.Store
	fixStore     *persist.KV
	deskStore    *persist.KV
	settleStore  *persist.KV
	historyStore *persist.KV
	mirrorStore  *persist.KV
	eng          *engine.Engine
	feed         *feed.Feed
	fix          *fixgw.Gateway
	desk         *desk.Desk
	history      *archive.Archive
	settlement   settlement
	mirror       chainMirror
	http         *httpgw.Gateway
	admin        *httpgw.Admin
	setup        []engine.Command // brings the state up to the configuration
	// participantsState is of the file that participants are from; watch looks for
	// others.
	participantsState fileState
	watch             *participantsWatch
	deskPlan          *deskPlan     // nil: the desk is not enabled
	chain             *sandbox.Node // the demo's own; nil: none runs
	chainNote         string        // why the demo's does not
	intake            intake
	backup            backupState
	events            struct{ feed, fix, desk, history *engine.Consumer }
}

func serve(ctx context.Context, cfg *Config, rebase, asJSON bool, cmd *cobra.Command) (err error) {
	logger := cfg.logger(cmd.ErrOrStderr())
	s := &service{cfg: cfg, log: logger, rebase: rebase}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.open(ctx); err != nil {
		return err
	}
	if err := s.listen(); err != nil {
		return err
	}
	if err := s.announce(cmd.OutOrStdout(), asJSON); err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	stopChain := s.runChain()
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
	group.Go(func() error { return named("participants", s.watch.Run(ctx)) })
	group.Go(func() error { return named("http", s.http.Run(ctx)) })
	group.Go(func() error { return named("admin", s.admin.Run(ctx)) })
	if cfg.Demo {
		s.runDemo(ctx, group)
	}
	err = group.Wait()
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	err = errors.Join(err, stopStores(), stopChain())
	logger.Info("stopped", "clean", err == nil)
	return err
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
	run := func(name string, work func(context.Context) error) {
		stores.Go(func() error {
			err := named(name, s.sitOut(ctx, name, work(ctx)))
			stop(err)
			return err
		})
	}
	run("journal", s.store.Run)
	run("fix store", s.fixStore.Run)
	run("desk store", s.deskStore.Run)
	run("settlement store", s.settleStore.Run)
	run("history store", s.historyStore.Run)
	run("mirror store", s.mirrorStore.Run)
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
	proxies, err := s.cfg.trustedProxies()
	if err != nil {
		return err
	}
	specification, err := sdk.Files.ReadFile(sdk.Specification)
	if err != nil {
		return err
	}
	limits := &s.cfg.HTTP
	s.http, err = httpgw.New(httpgw.Options{
		Base: s.cfg.Listen.Base, API: s.cfg.Listen.API, WS: s.cfg.Listen.WS,
		URLs: httpgw.URLs{
			Base: s.cfg.URLs.Base, API: s.cfg.URLs.API, WS: s.cfg.URLs.WS, Mirror: s.cfg.URLs.Mirror, Native: s.cfg.URLs.Native,
		},
		Instruments: s.set, Specification: specification, Downloads: sdk.Files, DemoChain: s.demoChain(), TrustedProxies: proxies, Logger: s.log,
		Description: httpgw.Description{Operator: s.cfg.Operator.Name, Contacts: s.cfg.Operator.Contacts, GitHub: s.cfg.Operator.GitHub},
		Market:      rate(limits.MarketDataPerMinute, limits.MarketDataBurst),
		Partner:     rate(limits.PartnerPerMinute, limits.PartnerBurst),
		RFQWrite:    rate(limits.RFQWritesPerMinute, limits.RFQWritesBurst),
		Handshake:   rate(limits.HandshakePerMinute, max(1, limits.HandshakePerMinute)),
		DvP:         window(limits.DvPPerMinute),
		NoLimits: limits.MarketDataPerMinute == 0 && limits.PartnerPerMinute == 0 && limits.RFQWritesPerMinute == 0 &&
			limits.HandshakePerMinute == 0 && limits.DvPPerMinute == 0,
	}, s.feed, s.doors())
	if err != nil {
		return err
	}
	s.admin, err = httpgw.NewAdmin(s.adminOptions())
	return err
}

// doors are what the REST gateway finds behind its routes. Where no chain is
// configured there is no settlement: claims answer that the chain is not reached.
func (s *service) doors() httpgw.Doors {
	d := httpgw.Doors{
		WebSocket: s.feed.Handler, Stream: s.feed.Stream, WebSocketHealth: func() any { return s.feed.Health() }, History: s.history,
		Signatures: s.signatures(), Facts: s.publishedFacts().now,
	}
	if s.cfg.RFQ.Enabled {
		d.Desk, d.Handshake = s.desk, handshakeDoor{s.settlement.access}
	}
	if door := s.settleDoor(); door != nil {
		d.Settlement, d.DvP, d.ChainHealth = door, door, door.health
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
	return &settleDoor{&s.settlement, s.desk}
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
	if s.store != nil {
		errs = append(errs, s.store.Close())
	}
	if s.settlement.chain != nil {
		s.settlement.chain.Close()
	}
	if s.mirror.chain != nil {
		s.mirror.chain.Close()
	}
	for _, kv := range []*persist.KV{s.fixStore, s.deskStore, s.settleStore, s.historyStore, s.mirrorStore} {
		if kv != nil {
			errs = append(errs, kv.Close())
		}
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
