package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"blockdesk/desk"
	"blockdesk/engine"
	"blockdesk/engine/book"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/feed"
	"blockdesk/feed/archive"
	"blockdesk/fixgw"
	"blockdesk/market"
	"blockdesk/persist"
	"blockdesk/persist/projection"
)

// open recovers the state and joins the rooms. Nothing listens yet.
func (s *service) open(ctx context.Context) error {
	if err := s.resolve(); err != nil {
		return err
	}
	if err := s.startDemoChain(ctx); err != nil {
		return err
	}
	door, views, err := s.openRooms()
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
	if n := len(s.setup); n > 0 && s.reign != nil && replica.State.Seq() > 0 {
		s.log.Warn("this node's configuration changes the group's state: nodes that are configured differently do so at each change of the leader", "commands", n)
	}
	s.setup = append(cancels, s.setup...)
	if s.cfg.RFQ.Enabled {
		if s.deskPlan, err = s.planDesk(); err != nil {
			return err
		}
		s.operators = s.deskPlan.operators
		if n := len(s.deskPlan.requests); n > 0 && s.reign != nil && replica.State.Seq() > 0 {
			s.log.Warn("this node's configuration changes the group's desk: nodes that are configured differently do so at each change of the leader",
				"first", s.deskPlan.requests[0].key, "requests", n)
		}
	} else if s.operators, err = plainOperators(s.cfg); err != nil {
		return err
	}
	if s.watch, err = s.newParticipantsWatch(); err != nil {
		return err
	}
	if s.eng, err = engine.New(s.engineOptions(), replica); err != nil {
		return err
	}
	door.eng.Store(s.eng)
	s.events.feed, s.events.fix, s.events.desk = s.eng.Consumer(feedConsumer), s.eng.Consumer("fix"), s.eng.Consumer("desk")
	door.fix = s.events.fix
	s.events.history = s.eng.Consumer("history")
	if err := s.openSettlement(replica.State); err != nil {
		return err
	}
	if s.feed, err = s.newFeed(replica.Market); err != nil {
		return err
	}
	views.feed = s.feed
	s.feed.Attach(s.fix)
	if err := s.openMirror(replica.State); err != nil {
		return fmt.Errorf("mirror: %w", err)
	}
	s.journal.SetFloor(s.floor)
	return s.openFanout()
}

// openRooms makes the rooms that have to exist before there is an engine: FIX, the
// desk and the history. What is behind the doors is joined later.
func (s *service) openRooms() (door *engineDoor, views *viewDoor, err error) {
	door, views = &engineDoor{}, &viewDoor{}
	offers := &offerDoor{}
	if err := s.openFIX(door, views, offers); err != nil {
		return nil, nil, err
	}
	s.desk, err = desk.New(desk.Options{Failed: door.failed, Viewed: views.ticketsChanged, Group: s.cfg.GroupNumber()}, door, s.deskStore)
	if err != nil {
		return nil, nil, err
	}
	offers.desk = s.desk
	if s.history, err = archive.New(archiveOptions(s.cfg.History), s.historyStore); err != nil {
		return nil, nil, fmt.Errorf("history store: %w", err)
	}
	return door, views, nil
}

// openFIX binds the FIX address. What is behind the doors is joined later.
func (s *service) openFIX(door *engineDoor, views *viewDoor, offers *offerDoor) error {
	secure, err := s.cfg.FIX.ServerTLS()
	if err != nil {
		return err
	}
	if secure != nil {
		s.certificateEnds = secure.Certificates[0].Leaf.NotAfter
	}
	doors := fixgw.Doors{MarketData: views}
	if s.cfg.RFQ.Enabled {
		doors.Desk = offers
	}
	if s.cfg.Settles() && s.following == nil {
		doors.Settlement = fixSettlement{&s.settlement}
	}
	messages, err := openMessageLog(&s.cfg.FIX, s.log)
	if err != nil {
		return err
	}
	options := fixgw.Options{
		Address: s.cfg.Listen.FIX, Listen: s.listenOn, TLS: secure, CompID: s.cfg.FIX.CompID, Participants: s.participants,
		Dictionary: s.program.dictionary, MaxSessions: s.cfg.FIX.MaxSessions, Rate: s.cfg.FIX.MessagesPerSecond, MessageLog: messages,
		Early: s.early, Group: s.cfg.GroupNumber(), ReadOnly: s.fixReadOnly(), Logger: s.log,
	}
	if r := s.reign; r != nil {
		options.Deposed = func() (string, bool) { return leaderText(r.leader()), r.over() }
		options.Barrier = s.barrier(&s.events.fix, nil)
	}
	s.fix, err = fixgw.New(options, door, s.fixStore, doors, s.set)
	return err
}

// resolve turns the configuration into what the rooms take.
func (s *service) resolve() error {
	var err error
	if s.instruments, err = s.cfg.MarketInstruments(); err != nil {
		return err
	}
	if s.set, err = market.NewInstruments(s.instruments); err != nil {
		return err
	}
	s.set = s.set.WithElsewhere(s.cfg.OtherPlaces())
	s.participantsState = participantsFileState(&s.cfg.FIX) // before: a change while it is read is one
	s.participants, err = loadParticipantsOr(s.cfg, s.participantsBefore, s.log)
	return err
}

// floor is the Seq from which on the journal is still needed: by the FIX gateway
// and the desk after a crash, or by a backup of their stores under way.
func (s *service) floor() uint64 {
	return min(s.fix.DurableCursor(), s.desk.DurableCursor(), s.history.DurableCursor(), s.backup.floor())
}

// recover replays the journal; the FIX gateway and the desk see again what they
// had not taken in when the last run ended. Where journal and FIX store do not
// fit it returns the commands that must be the first ones.
func (s *service) recover() (*engine.Replica, []engine.Command, error) {
	start := time.Now()
	replica, lost, err := s.replay()
	if err != nil {
		return nil, nil, err
	}
	cancels, err := s.joinFIX(replica.State, lost.fix)
	if err != nil {
		return nil, nil, err
	}
	if err := s.joinDesk(replica.State, lost.desk); err != nil {
		return nil, nil, err
	}
	if err := s.joinHistory(replica.State, lost.history); err != nil {
		return nil, nil, err
	}
	s.log.Info("recovered", "seq", replica.State.Seq(), "epoch", replica.State.Epoch(),
		"fix_cursor", s.fix.Cursor(), "desk_cursor", s.desk.Cursor(), "elapsed_ms", time.Since(start).Milliseconds())
	return replica, cancels, nil
}

// lostStores names the stores that are further behind than the journal reaches
// back.
type lostStores struct{ fix, desk, history bool }

// replay recovers the state from as far back as the stores need it. A store that
// the journal does not reach back to is left out, and said to be lost.
func (s *service) replay() (replica *engine.Replica, lost lostStores, err error) {
	for {
		floor := persist.NewestSnapshot
		if !lost.fix {
			floor = min(floor, s.fix.Cursor())
		}
		if !lost.desk {
			floor = min(floor, s.desk.Cursor())
		}
		if !lost.history {
			floor = min(floor, s.history.Cursor())
		}
		var missed error
		replica, err = s.journal.Recover(floor, func(events []event.Event) {
			if !lost.fix {
				missed = errors.Join(missed, s.fix.Replay(events))
			}
			if !lost.desk {
				lost.desk = s.unreadable(s.desk.Replay(events), &missed)
			}
			if !lost.history {
				missed = errors.Join(missed, s.history.Replay(events))
			}
		})
		if !errors.Is(err, projection.ErrFloor) || lost.fix && lost.desk && lost.history {
			return replica, lost, errors.Join(err, missed)
		}
		s.log.Warn("the journal does not reach back to where a store ends", "error", err)
		lost.fix = lost.fix || s.fix.Cursor() == floor
		lost.desk = lost.desk || s.desk.Cursor() == floor
		lost.history = lost.history || s.history.Cursor() == floor
	}
}

// unreadable reports whether the desk's store does not follow from what it says
// it has seen; another error of a replay goes to missed.
func (s *service) unreadable(err error, missed *error) bool {
	if errors.Is(err, desk.ErrLayout) {
		s.log.Warn("the desk's store does not fit the journal", "error", err)
		return true
	}
	*missed = errors.Join(*missed, err)
	return false
}

// joinFIX holds the FIX store against the recovered state.
func (s *service) joinFIX(state *engine.State, lost bool) ([]engine.Command, error) {
	cursor, seq := s.fix.Cursor(), state.Seq()
	if lost && !s.rebase {
		return nil, fmt.Errorf("the FIX store was lost or is older than the journal: %s", rebaseHint)
	}
	if !lost && cursor <= seq && !s.fix.Parted() {
		return nil, nil
	}
	if cursor > seq && !s.mayRebase(seq) {
		return nil, fmt.Errorf("the FIX store has reports up to seq %d, the journal ends at seq %d: %s", cursor, seq, rebaseHint)
	}
	cancels, err := s.fix.Rebase(seq, state.Epoch(), func(give func(market.InstrumentID, book.Resting)) {
		for _, in := range state.Instruments() {
			state.Orders(in.ID, func(r book.Resting) { give(in.ID, r) })
		}
	}, state.Desk().EachClaim)
	if err != nil {
		return nil, err
	}
	s.log.Warn("FIX store and journal did not fit: orders that they do not agree on are cancelled",
		"fix_cursor", cursor, "seq", seq, "cancelled_in_book", len(cancels))
	return cancels, nil
}

// joinDesk holds the desk's store against the recovered state. A desk that
// nothing was ever asked of has nothing to lose.
func (s *service) joinDesk(state *engine.State, lost bool) error {
	board, cursor, seq := state.Desk().Board(), s.desk.Cursor(), state.Seq()
	if !lost && cursor <= seq {
		err := s.desk.Start(board, seq)
		if !errors.Is(err, projection.ErrDiverged) {
			return err
		}
		s.log.Warn("the desk's store does not fit the journal", "error", err)
		lost = true
	}
	switch v := board.View(); {
	case lost && len(v.Tickets)+len(v.Pairs)+len(v.Operators) == 0:
		return s.desk.Rebase(board, seq)
	case lost && !s.rebase:
		return fmt.Errorf("the desk's store was lost or is older than the journal, or is damaged: %s; or %s", rebaseHint, deskHint)
	case !lost && !s.mayRebase(seq):
		return fmt.Errorf("the desk's store has answers up to seq %d, the journal ends at seq %d: %s", cursor, seq, rebaseHint)
	}
	s.log.Warn("desk's store and journal did not fit: answers to idempotency keys and claim histories may be gone",
		"desk_cursor", cursor, "seq", seq)
	return s.desk.Rebase(board, seq)
}

// joinHistory holds the archive against the recovered state. What it has lost
// nobody can bring back, and nobody's money hangs on it: it goes on with a hole.
func (s *service) joinHistory(state *engine.State, lost bool) error {
	cursor, seq := s.history.Cursor(), state.Seq()
	switch {
	case lost:
		s.log.Warn("the journal does not reach back to where the history ends: trades between are missing", "history_cursor", cursor, "seq", seq)
		return s.history.Skip(seq, state.At())
	case cursor <= seq:
		return s.history.Start(seq)
	case !s.mayRebase(seq):
		return fmt.Errorf("the history has trades up to seq %d, the journal ends at seq %d: %s", cursor, seq, rebaseHint)
	}
	s.log.Warn("history and journal did not fit: trades that only the history has are taken out", "history_cursor", cursor, "seq", seq)
	return s.history.Rebase(seq)
}

// mayRebase reports whether a store that is ahead of the journal may give way: in
// mode interval a crash leaves it so.
func (s *service) mayRebase(seq uint64) bool {
	return s.rebase || seq > 0 && s.cfg.Durability.Mode == "interval"
}

// deskHint is for a desk's store that cannot be used: all that is in it comes
// from the journal.
const deskHint = "delete its folder: what the journal still has of it is made again"

const rebaseHint = "restore all of the data folder from one backup, or start once with --rebase"

// journalOptions are those of a single node's journal.
func (s *service) journalOptions() persist.Options {
	mode := persist.Sync
	if s.cfg.Durability.Mode == "interval" {
		mode = persist.Interval
		s.log.Warn("durability mode interval: a crash may lose the last commands", "at_most_ms", s.cfg.Durability.IntervalMS)
	}
	return persist.Options{
		Mode: mode, Interval: s.cfg.Interval(),
		SnapshotEvery: s.cfg.Journal.SnapshotEvery, KeepSnapshots: s.cfg.Journal.KeepSnapshots,
		State: s.cfg.StateOptions(), Logger: s.log, DiskLow: s.diskLow, Recovering: s.recovering,
	}
}

// drainTimeout is how long the engine waits for a consumer when it stops. All
// in all a stop takes 5 s at most.
const drainTimeout = 2 * time.Second

func (s *service) engineOptions() engine.Options {
	wait := engine.Park
	if s.cfg.Engine.Wait == "spin" {
		wait = engine.Spin
	}
	return engine.Options{
		Journal: s.journal, IngressSize: s.cfg.Engine.IngressSize, EgressSize: s.cfg.Engine.EgressSize,
		MaxOrders: s.cfg.Engine.MaxOrders, MaxBatch: s.cfg.Engine.MaxBatch, Wait: wait,
		DrainTimeout: drainTimeout, ReadyJournal: s.cfg.Durability.Mode == "interval", Clock: s.clock,
	}
}

// engineDoor, viewDoor and offerDoor stand in for what is built after the FIX
// gateway and the desk, which have to exist before the journal is replayed.
type engineDoor struct {
	eng atomic.Pointer[engine.Engine]
	fix *engine.Consumer // the gateway's
}

func (d *engineDoor) Submit(c *engine.Command) error      { return d.eng.Load().Submit(c) }
func (d *engineDoor) Place(c *engine.Command) error       { return d.eng.Load().Place(c) }
func (d *engineDoor) Turn(step func())                    { d.eng.Load().Turn(d.fix, step) }
func (d *engineDoor) SubmitAll(cs []engine.Command) error { return d.eng.Load().SubmitAll(cs) }
func (d *engineDoor) NextOrderID() market.OrderID         { return d.eng.Load().OrderIDs().Next() }

// failed is why the engine is read-only for good.
func (d *engineDoor) failed() error { return d.eng.Load().Stats().Failed }

type viewDoor struct{ feed *feed.Feed }

func (d *viewDoor) View(in market.InstrumentID) *engine.View { return d.feed.View(in) }

// ticketsChanged tells the feed of the desk's new view. The one that the desk
// starts with comes before there is a feed, which looks for itself when it runs.
func (d *viewDoor) ticketsChanged() {
	if d.feed != nil {
		d.feed.TicketsChanged()
	}
}

// tickets is what the feed's channel tickets says: what the REST gateway does,
// which listens before the feed runs. Nil where no desk is enabled.
func (s *service) tickets() feed.Tickets {
	if !s.cfg.RFQ.Enabled {
		return nil
	}
	return func(each func(market.InstrumentID, market.TicketID, []byte)) (uint64, int64) {
		return s.http.Tickets(each)
	}
}

type offerDoor struct{ desk *desk.Desk }

func (d *offerDoor) View() *rfq.View { return d.desk.View() }
