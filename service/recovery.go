package service

import (
	"context"
	"fmt"
	"time"

	"blockdesk/desk"
	"blockdesk/engine"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/feed/archive"
	"blockdesk/internal/clock"
	"blockdesk/market"
	"blockdesk/persist"
	"blockdesk/persist/projection"
	"blockdesk/service/demo"
	"blockdesk/settle/access"
)

// open recovers the state and connects the packages. Only the FIX address is bound.
func (s *Service) open(ctx context.Context) error {
	err := s.resolveInstruments()
	if err != nil {
		return err
	}
	if s.chain, s.chainNote, err = demo.StartChain(ctx, s.cfg, s.log); err != nil {
		return err
	}
	if s.o.Clock == nil {
		s.clock = clock.New(0)
		s.o.Clock = s.clock.Now
	}
	if s.eng, err = engine.Open(s.engineOptions()); err != nil {
		return err
	}
	s.events.fix = s.eng.Consumer("fix")
	s.events.feed, s.events.desk, s.events.history = s.feedEvents(), deskEvents(s.eng), historyEvents(s.eng)
	if err := s.connect(); err != nil {
		return err
	}
	replica, cancels, err := s.recover()
	if err != nil {
		return err
	}
	state := replica.State
	if s.clock != nil {
		s.clock.NotBefore(state.At())
		s.clockGuard = newClockGuard(s.clock, s.deskIfEnabled(), s.desk.View, s.log)
	}
	if s.setup, err = planSetup(&s.o, s.storage, state, s.desk.View(), s.instruments, cancels); err != nil {
		return err
	}
	if s.watch, err = newParticipantsWatch(&s.o, s.instruments, s.eng, s.fix, false); err != nil {
		return err
	}
	if err := s.eng.BeginEpoch(replica); err != nil {
		return err
	}
	s.feed.TrackOrders(state)
	if err := s.feed.Begin(replica.Market, s.eng.Epoch()); err != nil {
		return err
	}
	if s.settlement != nil {
		s.settlement.start(state, lostSince(state, s.o.Reconcile), s.cfg.ChainHosts())
	} else if n := unsettled(state.Desk()); n > 0 && s.cfg.RFQ.Enabled {
		s.log.Warn("claims cannot be settled because chain.rpc_urls is empty: set it", "claims", n)
	}
	if s.mirror, err = openMirror(s.cfg, s.instruments, s.eng, s.feed, state, s.storage.Mirror, s.log); err != nil {
		return fmt.Errorf("mirror: %w", err)
	}
	if s.prices, err = openPrices(s.cfg, s.desk, s.settlement, s.mirror, s.log); err != nil {
		return err
	}
	s.backups = newBackups(s.storage, s.cfg.DataDir, s.settlement != nil, s.durableCursor, s.log)
	s.storage.Journal.SetFloor(func() uint64 { return min(s.durableCursor(), s.backups.floor()) })
	s.publication, err = openPublication(s.cfg, s.log)
	return err
}

// The shortest time between two publications of the feed: while a client follows it, and
// while it only keeps the books that REST reads. Its goroutine runs beside the next order,
// which waits for a core where there are few.
const (
	feedGather      = 100 * time.Microsecond
	feedGatherAlone = time.Millisecond
)

// The consumers that no order waits for are woken only for what they need.

func (s *Service) feedEvents() *engine.Consumer {
	return s.eng.Consumer(feedConsumer).GatherBy(func() time.Duration {
		if s.feed.Followed() || s.fix.Followed() {
			return feedGather
		}
		return feedGatherAlone
	})
}

func deskEvents(e *engine.Engine) *engine.Consumer { return e.Consumer("desk").WakeFor(event.Desk) }

func historyEvents(e *engine.Engine) *engine.Consumer {
	return e.Consumer("history").WakeFor(event.Traded, event.AuctionTraded, event.MirrorTraded, event.InstrumentSet).Gather(10 * time.Millisecond)
}

// connect makes the packages that use the engine. Those that follow the journal must
// exist before it is replayed. FIX comes last, because it uses the others.
func (s *Service) connect() (err error) {
	if s.feed, err = s.newFeed(); err != nil {
		return err
	}
	failed := func() error { return s.eng.Stats().Failed }
	s.desk, err = desk.New(desk.Options{
		Failed: failed, OnView: s.feed.TicketsChanged, OnSales: s.publishSales, Group: s.cfg.GroupNumber(), Format1: s.storage.Format1,
	}, s.eng, s.storage.Desk)
	if err != nil {
		return err
	}
	const day = 24 * time.Hour
	keep := archive.Options{
		KeepTrades: time.Duration(s.cfg.History.TradesDays) * day, KeepMinutes: time.Duration(s.cfg.History.MinutesDays) * day,
		MaxTradeBytes: uint64(s.cfg.History.MaxMiB) << 20,
	}
	if s.history, err = archive.New(keep, s.storage.History); err != nil {
		return fmt.Errorf("history store: %w", err)
	}
	if err := s.connectSettlement(); err != nil {
		return err
	}
	if err := s.listenFIX(); err != nil {
		return err
	}
	s.feed.Attach(s.fix)
	return nil
}

// publishSales makes the feed publish new sales of the desk.
func (s *Service) publishSales(all []desk.Sale) {
	for i := range all {
		s.feed.SalesChanged(all[i].Claim.Terms.Instrument)
	}
}

// connectSettlement opens the access tokens, which exist without a chain too, and
// settlement. A replica settles nothing.
func (s *Service) connectSettlement() (err error) {
	if !s.cfg.RFQ.Enabled || s.upstream != nil {
		return nil
	}
	if s.tokens, err = access.Open(access.Options{IssueWindow: s.cfg.TokenWindow()}, s.storage.Settlement); err != nil {
		return fmt.Errorf("settlement store: %w", err)
	}
	if !s.cfg.Settles() {
		return nil
	}
	signer := s.o.Inputs.signer
	if signer == nil {
		if signer, err = openSigner(&s.cfg.Settle); err != nil {
			return err
		}
	}
	s.settlement, err = openSettlement(s.cfg, signer, s.desk, s.eng, s.storage.Settlement, s.tokens, s.o.Clock, s.log)
	return err
}

// deskIfEnabled returns the desk; nil if it is not enabled.
func (s *Service) deskIfEnabled() requester {
	if !s.cfg.RFQ.Enabled {
		return nil
	}
	return s.desk
}

// resolveInstruments makes the instruments of the configuration.
func (s *Service) resolveInstruments() (err error) {
	if s.instruments, err = s.cfg.MarketInstruments(); err != nil {
		return err
	}
	if s.set, err = market.NewInstruments(s.instruments); err != nil {
		return err
	}
	s.set = s.set.WithOtherShards(s.cfg.OtherShards())
	return nil
}

// durableCursor returns the Seq from which on the stores need the journal after a crash.
func (s *Service) durableCursor() uint64 {
	return min(s.fix.DurableCursor(), s.desk.DurableCursor(), s.history.DurableCursor())
}

// recover replays the journal and the stores that follow it. It returns the commands
// that must be the engine's first: cancels of the orders on which the FIX store and the
// journal disagree.
func (s *Service) recover() (*engine.Replica, []engine.Command, error) {
	start := time.Now()
	replica, first, err := projection.Recover(s.storage.Journal, s.projections(), projection.Options{
		AllowReconcile: s.o.Reconcile, Interval: s.cfg.Durability.Mode == "interval", Hint: reconcileHint, Logger: s.log,
	})
	if err != nil {
		return nil, nil, err
	}
	s.log.Info("state recovered from the journal", "seq", replica.State.Seq(), "epoch", replica.State.Epoch(),
		"fix_cursor", s.fix.Cursor(), "desk_cursor", s.desk.Cursor(), "elapsed_ms", time.Since(start).Milliseconds())
	return replica, first, nil
}

// projections are the stores that follow the journal.
func (s *Service) projections() []projection.Projection {
	return []projection.Projection{
		{
			Replayer: s.fix, Name: "the FIX store", Content: "reports", Start: s.fix.Start, Reconcile: s.reconcileFIX,
			RefuseLost: func(*engine.State) error {
				return fmt.Errorf("the FIX store was lost or is older than the journal: %s", reconcileHint)
			},
		},
		{
			Replayer: s.desk, Name: "the desk's store", Content: "answers", Unreadable: desk.ErrLayout,
			Diverged:  func(err error) { s.log.Warn("desk store does not match the journal", "error", err) },
			Start:     func(state *engine.State) error { return s.desk.Start(state.Desk().ReadModel(), state.Seq()) },
			Reconcile: s.reconcileDesk,
			RefuseLost: func(state *engine.State) error {
				if isUnused(state.Desk()) {
					return nil
				}
				return fmt.Errorf("the desk's store was lost or is older than the journal, or is damaged: %s; or %s", reconcileHint, deskHint)
			},
		},
		{
			Replayer: s.history, Name: "the history", Content: "trades", Reconcile: s.reconcileHistory,
			Start: func(state *engine.State) error {
				s.history.Know(len(state.Instruments()))
				return s.history.Start(state.Seq())
			},
		},
	}
}

func (s *Service) reconcileFIX(state *engine.State, _ projection.Relation) ([]engine.Command, error) {
	cursor := s.fix.Cursor()
	cancels, err := s.fix.Reconcile(state)
	if err != nil {
		return nil, err
	}
	s.log.Warn("FIX store and journal diverged: orders on which they disagree are cancelled",
		"fix_cursor", cursor, "seq", state.Seq(), "cancelled_in_book", len(cancels))
	return cancels, nil
}

func (s *Service) reconcileDesk(state *engine.State, r projection.Relation) ([]engine.Command, error) {
	if r == projection.Ahead || !isUnused(state.Desk()) {
		s.log.Warn("desk store and journal diverged: answers to idempotency keys and claim histories may be lost",
			"desk_cursor", s.desk.Cursor(), "seq", state.Seq())
	}
	return nil, s.desk.Reconcile(state.Desk().ReadModel(), state.Seq())
}

// isUnused reports whether a desk has had no request: its store is empty then.
func isUnused(m *rfq.Machine) bool {
	v := m.ReadModel().View()
	return len(v.Tickets)+len(v.Pairs)+len(v.Operators) == 0
}

// reconcileHistory continues a lost history with a gap: trade history is not financial
// state, and the journal no longer has the trades.
func (s *Service) reconcileHistory(state *engine.State, r projection.Relation) ([]engine.Command, error) {
	cursor, seq := s.history.Cursor(), state.Seq()
	s.history.Know(len(state.Instruments()))
	if r == projection.Lost {
		s.log.Warn("trade history lost: continuing with a gap", "history_cursor", cursor, "seq", seq)
		return nil, s.history.Skip(seq, state.At())
	}
	s.log.Warn("trade history is ahead of the journal: truncating", "history_cursor", cursor, "seq", seq)
	return nil, s.history.Reconcile(seq)
}

// deskHint: the desk's store is derived from the journal.
const deskHint = "delete its folder: it is rebuilt from what the journal still has"

const reconcileHint = "restore all of the data folder from one backup, or start once with --reconcile"

// journalOptions are those of a single node's journal.
func (s *Service) journalOptions() persist.Options {
	mode := persist.Sync
	if s.cfg.Durability.Mode == "interval" {
		mode = persist.Interval
		s.log.Warn("durability mode interval: a power failure may lose the last commands", "at_most_ms", s.cfg.Durability.IntervalMS)
	}
	return persist.Options{
		FS: s.o.FS, Mode: mode, Interval: s.cfg.Interval(),
		SnapshotEvery: s.cfg.Journal.SnapshotEvery, KeepSnapshots: s.cfg.Journal.KeepSnapshots,
		MaxBytes: uint64(s.cfg.Journal.MaxMiB) << 20, ReserveBytes: uint64(s.cfg.Journal.DiskReserveMiB) << 20,
		DiskShedPercent: s.cfg.Journal.DiskShedPercent, DiskLowPercent: s.cfg.Journal.DiskLowPercent,
		DiskCriticalPercent: s.cfg.Journal.DiskCriticalPercent, DiskChanged: s.DiskChanged,
		State: s.cfg.StateOptions(), Logger: s.log, Progress: s.o.Replaying,
	}
}

// drainTimeout is how long the engine waits for a consumer when it stops. All
// in all a stop takes 5 s at most.
const drainTimeout = 2 * time.Second

func (s *Service) engineOptions() engine.Options {
	wait := engine.Park
	if s.cfg.Engine.Wait == "spin" {
		wait = engine.Spin
	}
	return engine.Options{
		Journal: s.storage.Journal, IngressSize: s.cfg.Engine.IngressSize, EgressSize: s.cfg.Engine.EgressSize,
		MaxOrders: s.cfg.Engine.MaxOrders, MaxBatch: s.cfg.Engine.MaxBatch, Wait: wait,
		DrainTimeout: drainTimeout, InlineJournal: s.cfg.Durability.Mode != "quorum", Clock: s.o.Clock, Format1: s.storage.Format1,
	}
}
