package service

import (
	"context"
	"fmt"
	"time"

	"blockdesk/desk"
	"blockdesk/engine"
	"blockdesk/engine/rfq"
	"blockdesk/market"
	"blockdesk/persist"
	"blockdesk/persist/projection"
)

// open joins the packages and recovers the state. Nothing but FIX listens yet.
func (s *Service) open(ctx context.Context) error {
	if err := s.resolve(); err != nil {
		return err
	}
	if err := s.startChain(ctx); err != nil {
		return err
	}
	var err error
	if s.eng, err = engine.Open(s.engineOptions()); err != nil {
		return err
	}
	s.events.feed, s.events.fix, s.events.desk = s.eng.Consumer(feedConsumer), s.eng.Consumer("fix"), s.eng.Consumer("desk")
	s.events.history = s.eng.Consumer("history")
	if err := s.join(); err != nil {
		return err
	}
	replica, cancels, err := s.recover()
	if err != nil {
		return err
	}
	if err := s.plan(replica.State, cancels); err != nil {
		return err
	}
	if s.watch, err = s.newParticipantsWatch(); err != nil {
		return err
	}
	if err := s.eng.BeginEpoch(replica); err != nil {
		return err
	}
	if err := s.feed.Begin(replica.Market, s.eng.Epoch()); err != nil {
		return err
	}
	s.startSettlement(replica.State)
	if err := s.openMirror(replica.State); err != nil {
		return fmt.Errorf("mirror: %w", err)
	}
	s.storage.Journal.SetFloor(s.floor)
	return s.openFanout()
}

// plan compares the recovered state with the configuration: s.setup and s.deskPlan bring
// the one to the other, first the commands that reconciling the stores asks for.
func (s *Service) plan(state *engine.State, first []engine.Command) error {
	configured, err := s.reconcile(state)
	if err != nil {
		return err
	}
	changes := s.storage.Leading != nil && state.Seq() > 0 // of a group's state
	if n := len(configured); n > 0 && changes {
		s.log.Warn("this node's configuration changes the group's state: nodes that are configured differently do so at each change of the leader", "commands", n)
	}
	s.setup = append(first, configured...)
	if !s.cfg.RFQ.Enabled {
		s.operators, err = PlainOperators(s.cfg)
		return err
	}
	if s.deskPlan, err = s.planDesk(); err != nil {
		return err
	}
	s.operators = s.deskPlan.operators
	if n := len(s.deskPlan.requests); n > 0 && changes {
		s.log.Warn("this node's configuration changes the group's desk: nodes that are configured differently do so at each change of the leader",
			"first", s.deskPlan.requests[0].key, "requests", n)
	}
	return nil
}

// resolve turns the configuration into what the rooms take.
func (s *Service) resolve() error {
	var err error
	if s.instruments, err = s.cfg.MarketInstruments(); err != nil {
		return err
	}
	if s.set, err = market.NewInstruments(s.instruments); err != nil {
		return err
	}
	s.set = s.set.WithOtherShards(s.cfg.OtherShards())
	s.participantsState = ParticipantsFileStamp(&s.cfg.FIX) // before: a change while it is read is one
	s.participants, err = LoadParticipantsOr(s.cfg, s.participantsBefore, s.log)
	return err
}

// floor is the Seq from which on the journal is still needed: by the FIX gateway
// and the desk after a crash, or by a backup of their stores under way.
func (s *Service) floor() uint64 {
	return min(s.fix.DurableCursor(), s.desk.DurableCursor(), s.history.DurableCursor(), s.backup.floor())
}

// recover replays the journal and brings the stores that follow it into step with it.
// It returns the commands that must be the engine's first: cancels of the orders that
// the FIX store and the journal do not agree on.
func (s *Service) recover() (*engine.Replica, []engine.Command, error) {
	start := time.Now()
	replica, first, err := projection.Recover(s.storage.Journal, s.projections(), projection.Options{
		AllowReconcile: s.rebase, Interval: s.cfg.Durability.Mode == "interval", Hint: rebaseHint, Logger: s.log,
	})
	if err != nil {
		return nil, nil, err
	}
	s.log.Info("recovered", "seq", replica.State.Seq(), "epoch", replica.State.Epoch(),
		"fix_cursor", s.fix.Cursor(), "desk_cursor", s.desk.Cursor(), "elapsed_ms", time.Since(start).Milliseconds())
	return replica, first, nil
}

// projections are the stores that follow the journal.
func (s *Service) projections() []projection.Projection {
	return []projection.Projection{
		{
			Replayer: s.fix, Name: "the FIX store", Content: "reports", Start: s.fix.Start, Reconcile: s.reconcileFIX,
			RefuseLost: func(*engine.State) error {
				return fmt.Errorf("the FIX store was lost or is older than the journal: %s", rebaseHint)
			},
		},
		{
			Replayer: s.desk, Name: "the desk's store", Content: "answers", Unreadable: desk.ErrLayout,
			Diverged:  func(err error) { s.log.Warn("the desk's store does not fit the journal", "error", err) },
			Start:     func(state *engine.State) error { return s.desk.Start(state.Desk().ReadModel(), state.Seq()) },
			Reconcile: s.reconcileDesk,
			RefuseLost: func(state *engine.State) error {
				if isUnused(state.Desk()) {
					return nil
				}
				return fmt.Errorf("the desk's store was lost or is older than the journal, or is damaged: %s; or %s", rebaseHint, deskHint)
			},
		},
		{
			Replayer: s.history, Name: "the history", Content: "trades", Reconcile: s.reconcileHistory,
			Start: func(state *engine.State) error { return s.history.Start(state.Seq()) },
		},
	}
}

func (s *Service) reconcileFIX(state *engine.State, _ projection.Relation) ([]engine.Command, error) {
	cursor := s.fix.Cursor()
	cancels, err := s.fix.Reconcile(state)
	if err != nil {
		return nil, err
	}
	s.log.Warn("FIX store and journal did not fit: orders that they do not agree on are cancelled",
		"fix_cursor", cursor, "seq", state.Seq(), "cancelled_in_book", len(cancels))
	return cancels, nil
}

func (s *Service) reconcileDesk(state *engine.State, r projection.Relation) ([]engine.Command, error) {
	if r == projection.Ahead || !isUnused(state.Desk()) {
		s.log.Warn("desk's store and journal did not fit: answers to idempotency keys and claim histories may be gone",
			"desk_cursor", s.desk.Cursor(), "seq", state.Seq())
	}
	return nil, s.desk.Reconcile(state.Desk().ReadModel(), state.Seq())
}

// isUnused reports whether nothing was ever asked of a desk: then its store has
// nothing to lose.
func isUnused(m *rfq.Machine) bool {
	v := m.ReadModel().View()
	return len(v.Tickets)+len(v.Pairs)+len(v.Operators) == 0
}

// reconcileHistory lets a history that was lost go on with a hole: no money depends on
// it, and nothing is left to fill it from.
func (s *Service) reconcileHistory(state *engine.State, r projection.Relation) ([]engine.Command, error) {
	cursor, seq := s.history.Cursor(), state.Seq()
	if r == projection.Lost {
		s.log.Warn("the journal does not reach back to where the history ends: trades between are missing", "history_cursor", cursor, "seq", seq)
		return nil, s.history.Skip(seq, state.At())
	}
	s.log.Warn("history and journal did not fit: trades that only the history has are taken out", "history_cursor", cursor, "seq", seq)
	return nil, s.history.Reconcile(seq)
}

// deskHint is for a desk's store that cannot be used: all that is in it comes
// from the journal.
const deskHint = "delete its folder: what the journal still has of it is made again"

const rebaseHint = "restore all of the data folder from one backup, or start once with --rebase"

// journalOptions are those of a single node's journal.
func (s *Service) journalOptions() persist.Options {
	mode := persist.Sync
	if s.cfg.Durability.Mode == "interval" {
		mode = persist.Interval
		s.log.Warn("durability mode interval: a crash may lose the last commands", "at_most_ms", s.cfg.Durability.IntervalMS)
	}
	return persist.Options{
		Mode: mode, Interval: s.cfg.Interval(),
		SnapshotEvery: s.cfg.Journal.SnapshotEvery, KeepSnapshots: s.cfg.Journal.KeepSnapshots,
		State: s.cfg.StateOptions(), Logger: s.log, DiskLow: s.DiskLow, Progress: s.recovering,
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
		DrainTimeout: drainTimeout, InlineJournal: s.cfg.Durability.Mode == "interval", Clock: s.clock,
	}
}
