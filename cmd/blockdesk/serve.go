package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"blockdesk/engine"
	"blockdesk/engine/book"
	"blockdesk/engine/event"
	"blockdesk/feed"
	"blockdesk/fixgw"
	"blockdesk/httpgw"
	"blockdesk/market"
	"blockdesk/persist"
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
			if check {
				if _, err := cfg.participants(); err != nil {
					return err
				}
				_, err = fmt.Fprintln(cmd.OutOrStdout(), "configuration is valid")
				return err
			}
			return serve(cmd.Context(), &cfg, rebase, s.json, cmd)
		},
	}
	cmd.Flags().BoolVar(&demo, "demo", false, "demo participants and traders; loopback addresses only")
	cmd.Flags().BoolVar(&rebase, "rebase-fix", false,
		"start although the FIX store and the journal do not fit, since one was lost or restored alone:\n"+
			"orders that the two do not agree on are cancelled, and reports that only one has stay unsent")
	cmd.Flags().BoolVar(&check, "check", false, "validate the configuration and exit")
	return cmd
}

// service is everything that runs, joined.
type service struct {
	cfg          *Config
	log          *slog.Logger
	rebaseFIX    bool
	instruments  []market.Instrument
	set          *market.Instruments
	participants []fixgw.Participant

	store  *persist.Store
	kv     *persist.KV
	eng    *engine.Engine
	feed   *feed.Feed
	fix    *fixgw.Gateway
	http   *httpgw.Gateway
	admin  *httpgw.Admin
	setup  []engine.Command // brings the state up to the configuration
	intake intake
	events struct{ feed, fix *engine.Consumer }
}

func serve(ctx context.Context, cfg *Config, rebaseFIX, asJSON bool, cmd *cobra.Command) (err error) {
	logger := cfg.logger(cmd.ErrOrStderr())
	s := &service{cfg: cfg, log: logger, rebaseFIX: rebaseFIX}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.open(); err != nil {
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
	stopStores := s.runStores(ctx, stop)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return named("engine", s.eng.Run(ctx)) })
	// A consumer whose reader has ended is closed, so that the engine does not
	// wait for it while it stops.
	group.Go(func() error {
		defer s.events.feed.Close()
		return named("feed", s.feed.Run(ctx, s.events.feed))
	})
	// Told to stop while setting up is a clean stop: the next start sets up anew.
	if err := s.submitSetup(ctx); err != nil && ctx.Err() == nil {
		s.log.Error("setup failed", "error", err)
		group.Go(func() error { return named("setup", err) })
	}
	group.Go(func() error {
		defer s.events.fix.Close()
		return named("fix", s.fix.Run(ctx, s.events.fix))
	})
	group.Go(func() error { return named("http", s.http.Run(ctx)) })
	group.Go(func() error { return named("admin", s.admin.Run(ctx)) })
	if cfg.Demo {
		group.Go(func() error {
			return named("demo", runDemo(ctx, s.fix.Addr().String(), cfg.FIX.CompID, s.instruments, logger))
		})
	}
	err = group.Wait()
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	err = errors.Join(err, stopStores())
	logger.Info("stopped", "clean", err == nil)
	return err
}

// runStores keeps the journal and the FIX store until the function that it
// returns is called: they must outlive whoever writes to them. A store that ends
// before stops the service.
func (s *service) runStores(ctx context.Context, stop context.CancelCauseFunc) (end func() error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var stores errgroup.Group
	run := func(name string, work func(context.Context) error) {
		stores.Go(func() error {
			err := named(name, work(ctx))
			stop(err)
			return err
		})
	}
	run("journal", s.store.Run)
	run("fix store", s.kv.Run)
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

// open recovers the state and joins the rooms. Nothing listens yet.
func (s *service) open() error {
	var err error
	if s.instruments, err = s.cfg.instruments(); err != nil {
		return err
	}
	if s.set, err = market.NewInstruments(s.instruments); err != nil {
		return err
	}
	if s.participants, err = s.cfg.participants(); err != nil {
		return err
	}
	if err := os.MkdirAll(s.cfg.DataDir, 0o700); err != nil {
		return err
	}
	if s.kv, err = persist.OpenKV(filepath.Join(s.cfg.DataDir, "fix"), nil, s.log); err != nil {
		return fmt.Errorf("fix store: %w", err)
	}
	if s.store, err = persist.Open(s.storeOptions()); err != nil {
		return err
	}
	proxies, err := s.cfg.trustedProxies()
	if err != nil {
		return err
	}
	door := &engineDoor{}
	views := &viewDoor{}
	s.fix, err = fixgw.New(fixgw.Options{
		Address: s.cfg.Listen.FIX, CompID: s.cfg.FIX.CompID, Participants: s.participants,
		MaxSessions: s.cfg.FIX.MaxSessions, Rate: s.cfg.FIX.MessagesPerSecond, Logger: s.log,
	}, door, s.kv, views, s.set)
	if err != nil {
		return err
	}
	replica, cancels, err := s.recover()
	if err != nil {
		return err
	}
	if s.setup, err = s.reconcile(replica.State); err != nil {
		return err
	}
	s.setup = append(cancels, s.setup...)
	if s.eng, err = engine.New(s.engineOptions(), replica); err != nil {
		return err
	}
	door.eng = s.eng
	s.events.feed, s.events.fix = s.eng.Consumer("feed"), s.eng.Consumer("fix")
	s.feed, err = feed.New(feed.Options{
		MaxConnections: s.cfg.Feed.MaxConnections, MaxPerIP: s.cfg.Feed.ConnectionsPerIP,
		ClientIP: httpgw.ClientIP(proxies, ""), Logger: s.log,
	}, s.instruments, replica.Market, s.eng.Epoch())
	if err != nil {
		return err
	}
	views.feed = s.feed
	s.feed.Attach(s.fix)
	s.store.SetFloor(s.fix.DurableCursor)
	return nil
}

// recover replays the journal; the FIX gateway sees again what it had not
// reported when the last run ended. Where the two do not fit it returns the
// commands that must be the first ones.
func (s *service) recover() (*engine.Replica, []engine.Command, error) {
	start := time.Now()
	cursor := s.fix.Cursor()
	var missed error
	replica, err := s.store.Recover(cursor, func(events []event.Event) {
		missed = errors.Join(missed, s.fix.Replay(events))
	})
	pruned := errors.Is(err, persist.ErrFloor)
	if pruned && s.rebaseFIX {
		replica, err = s.store.Recover(persist.NewestSnapshot, nil)
	}
	if err := errors.Join(err, missed); err != nil {
		if pruned {
			err = fmt.Errorf("the FIX store was lost or is older than the journal (%w): %s", err, rebaseHint)
		}
		return nil, nil, err
	}
	var cancels []engine.Command
	if seq := replica.State.Seq(); pruned || cursor > seq || s.fix.Parted() {
		if cursor > seq && !s.rebaseFIX && (seq == 0 || s.cfg.Durability.Mode != "interval") {
			return nil, nil, fmt.Errorf("the FIX store has reports up to seq %d, the journal ends at seq %d: %s", cursor, seq, rebaseHint)
		}
		if cancels, err = s.rebase(replica.State); err != nil {
			return nil, nil, err
		}
		s.log.Warn("FIX store and journal did not fit: orders that they do not agree on are cancelled",
			"fix_cursor", cursor, "seq", seq, "cancelled_in_book", len(cancels))
	}
	s.log.Info("recovered", "seq", replica.State.Seq(), "epoch", replica.State.Epoch(),
		"fix_cursor", s.fix.Cursor(), "elapsed_ms", time.Since(start).Milliseconds())
	return replica, cancels, nil
}

const rebaseHint = "restore both from one backup, or start once with --rebase-fix"

func (s *service) rebase(state *engine.State) ([]engine.Command, error) {
	return s.fix.Rebase(state.Seq(), state.Epoch(), func(give func(market.InstrumentID, book.Resting)) {
		for _, in := range state.Instruments() {
			state.Orders(in.ID, func(r book.Resting) { give(in.ID, r) })
		}
	})
}

func (s *service) storeOptions() persist.Options {
	mode := persist.Sync
	if s.cfg.Durability.Mode == "interval" {
		mode = persist.Interval
		s.log.Warn("durability mode interval: a crash may lose the last commands", "at_most_ms", s.cfg.Durability.IntervalMS)
	}
	return persist.Options{
		Dir: filepath.Join(s.cfg.DataDir, "journal"), Mode: mode, Interval: s.cfg.interval(),
		SnapshotEvery: s.cfg.Journal.SnapshotEvery, KeepSnapshots: s.cfg.Journal.KeepSnapshots,
		State: s.cfg.stateOptions(), Logger: s.log, DiskLow: s.diskLow,
	}
}

// intake is what the disk allows, once the setup is in: that has to come in on a
// full disk too, or nobody could cancel after a restart.
type intake struct {
	mu        sync.Mutex
	low, open bool
}

// diskLow lets only cancels in while the disk is nearly full.
func (s *service) diskLow(low bool) {
	s.intake.mu.Lock()
	defer s.intake.mu.Unlock()
	s.intake.low = low
	s.setIntake()
}

// openIntake says that the setup is in.
func (s *service) openIntake() {
	s.intake.mu.Lock()
	defer s.intake.mu.Unlock()
	s.intake.open = true
	s.setIntake()
}

func (s *service) setIntake() {
	switch {
	case !s.intake.open:
	case s.intake.low:
		s.eng.SetIntake(engine.IntakeCancels)
	default:
		s.eng.SetIntake(engine.IntakeAll)
	}
}

// drainTimeout is how long the engine waits for a consumer when it stops. All
// in all a stop takes 5 s at most.
const drainTimeout = 2 * time.Second

func (c *Config) stateOptions() engine.StateOptions {
	return engine.StateOptions{Naive: c.Engine.Book == "naive", MaxOrders: c.Engine.MaxOrders}
}

func (s *service) engineOptions() engine.Options {
	wait := engine.Park
	if s.cfg.Engine.Wait == "spin" {
		wait = engine.Spin
	}
	return engine.Options{
		Journal: s.store, IngressSize: s.cfg.Engine.IngressSize, EgressSize: s.cfg.Engine.EgressSize,
		MaxOrders: s.cfg.Engine.MaxOrders, MaxBatch: s.cfg.Engine.MaxBatch, Wait: wait,
		DrainTimeout: drainTimeout,
	}
}

// reconcile returns the commands that bring the recovered state up to the
// configuration. Configuration is journaled like everything else, so that a
// replay needs nothing but the journal.
func (s *service) reconcile(state *engine.State) ([]engine.Command, error) {
	known := state.Instruments()
	if len(known) > len(s.instruments) {
		return nil, fmt.Errorf("the journal has instrument %s, the configuration does not: instruments may be added at the end, not taken away",
			known[len(s.instruments)].Symbol)
	}
	var out []engine.Command
	for i := range s.instruments {
		in := &s.instruments[i]
		if i < len(known) {
			if err := engine.CheckRedefinition(&known[i], in); err != nil {
				return nil, fmt.Errorf("instrument %s: the journal has another: %w", in.Symbol, err)
			}
			if known[i] == *in {
				continue
			}
		}
		c, err := engine.DefineInstrumentCommand(in)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	for i := range s.participants {
		p := &s.participants[i]
		for j := range s.instruments {
			limits, err := s.cfg.limits(p, &s.instruments[j])
			if err != nil {
				return nil, fmt.Errorf("participant %s on %s: %w", p.Name, s.instruments[j].Symbol, err)
			}
			if now, known := state.Limits(p.Number, s.instruments[j].ID); known && now == limits {
				continue
			}
			c, err := engine.SetRiskCommand(p.Number, s.instruments[j].ID, limits)
			if err != nil {
				return nil, fmt.Errorf("participant %s on %s: %w", p.Name, s.instruments[j].Symbol, err)
			}
			out = append(out, c)
		}
	}
	return out, nil
}

// submitSetup sends the reconciling commands. They are first in the ring,
// because the doors open after it has returned. Nobody follows the gateway's
// events yet, so it gives them to the gateway itself when the rings are full.
func (s *service) submitSetup(ctx context.Context) error {
	for i := range s.setup {
		err := s.eng.Submit(&s.setup[i])
		for ; errors.Is(err, engine.ErrFull); err = s.eng.Submit(&s.setup[i]) {
			if events := s.events.fix.Poll(); len(events) > 0 {
				if err := s.fix.Replay(events); err != nil {
					return err
				}
				s.events.fix.Release(len(events))
				continue
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Millisecond):
			}
		}
		if err != nil {
			return err
		}
	}
	s.openIntake()
	return nil
}

// listen binds the addresses, so that a taken port is an error at once.
func (s *service) listen() error {
	proxies, err := s.cfg.trustedProxies()
	if err != nil {
		return err
	}
	s.http, err = httpgw.New(httpgw.Options{
		Base: s.cfg.Listen.Base, API: s.cfg.Listen.API, WS: s.cfg.Listen.WS,
		URLs:        httpgw.URLs{Base: s.cfg.URLs.Base, API: s.cfg.URLs.API, WS: s.cfg.URLs.WS},
		Instruments: s.set, TrustedProxies: proxies, Logger: s.log,
		Description: httpgw.Description{Operator: s.cfg.Operator.Name, Contacts: s.cfg.Operator.Contacts, GitHub: s.cfg.Operator.GitHub},
		Market:      s.cfg.HTTP.rate(), NoLimits: s.cfg.HTTP.MarketDataPerMinute == 0,
	}, s.feed, httpgw.Doors{WebSocket: s.feed.Handler, WebSocketHealth: func() any { return s.feed.Health() }})
	if err != nil {
		return err
	}
	s.admin, err = httpgw.NewAdmin(s.adminOptions())
	return err
}

func (s *service) close() error {
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
	if s.kv != nil {
		errs = append(errs, s.kv.Close())
	}
	return errors.Join(errs...)
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// engineDoor and viewDoor stand in for what is built after the FIX gateway,
// which has to exist before the journal is replayed.
type engineDoor struct{ eng *engine.Engine }

func (d *engineDoor) Submit(c *engine.Command) error { return d.eng.Submit(c) }
func (d *engineDoor) NextOrderID() market.OrderID    { return d.eng.OrderIDs().Next() }

type viewDoor struct{ feed *feed.Feed }

func (d *viewDoor) View(in market.InstrumentID) *engine.View { return d.feed.View(in) }
