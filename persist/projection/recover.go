package projection

import (
	"errors"
	"fmt"
	"log/slog"
	"math"

	"blockdesk/engine"
	"blockdesk/engine/event"
)

// Errors.
var (
	// ErrPruned says that the journal has pruned events that a store has not seen.
	ErrPruned = errors.New("the journal does not reach back to where a consumer stopped")
	// ErrAhead says that a store has seen commands that the journal does not have.
	ErrAhead = errors.New("ahead of the journal")
	// ErrDiverged says that a store has not what the journal says that it has seen: it
	// was damaged, or belongs to another journal.
	ErrDiverged = errors.New("not the journal's")
	// ErrUnfinished says that a Reconcile was begun and has not reached its end.
	ErrUnfinished = errors.New("a reconciliation with the journal is not finished")
)

// Relation says how a store that is not behind its journal differs from it: see the
// package.
type Relation uint8

// The relations that a Reconcile ends.
const (
	Ahead Relation = iota + 1
	Lost
	Unfinished
)

// Journal is what Recover replays: persist.Store, or the term of a group's leader.
type Journal interface {
	// Recover returns a replica of everything in the journal and calls visit with
	// the events of each command whose Seq is above floor; math.MaxUint64 asks for
	// none. An error that wraps ErrPruned says that not all of them are left; visit
	// was not called then.
	Recover(floor uint64, visit func([]event.Event)) (*engine.Replica, error)
}

// Replayer is what a projection's owner has for Recover: archive.Archive, desk.Desk,
// fixgw.Gateway.
type Replayer interface {
	// Cursor is Store.Cursor.
	Cursor() uint64
	// Replay takes events that the store may not have seen, in their order: those
	// after Cursor, or from before it.
	Replay(events []event.Event) error
}

// Member is a projection of a service.
type Projection struct {
	Replayer
	Name string // what operators call the store: "the history"
	// Has is what the store has, as clients know it: "trades".
	Content string
	// Unreadable is what an error of Replay wraps where the content of the store is not
	// what the journal says; nil: every error ends Recover.
	Unreadable error
	// Diverged logs such an error, or the ErrDiverged of Start. Required where there
	// is one of the two.
	Diverged func(error)
	// Start ends the recovery of a store that is behind: it has seen the events of every
	// command that the state has. ErrDiverged and ErrUnfinished ask for Reconcile; after them
	// nothing has happened.
	Start func(*engine.State) error
	// Reconcile makes the store agree with the state, in place of Start, and returns
	// commands that must be the engine's first.
	Reconcile func(*engine.State, Relation) ([]engine.Command, error)
	// Lost returns why a lost store is not reconciled without consent; nil: it is.
	RefuseLost func(*engine.State) error
}

// Options of Recover.
type Options struct {
	// Rebase is the operator's consent that the journal counts wherever a store
	// does not fit it.
	AllowReconcile bool
	// Interval: the journal may lose its last commands in a crash, so a store may
	// be ahead of it.
	Interval bool
	// Hint says what an operator can do about a store that is ahead.
	Hint   string
	Logger *slog.Logger
}

// Recover replays the journal from as far back as the members need it, brings each of
// them into step with it, and returns the recovered replica and the commands that
// must be the engine's first, in the order of the members.
func Recover(j Journal, members []Projection, o Options) (*engine.Replica, []engine.Command, error) {
	r := recovery{o: o, members: members, lost: make([]bool, len(members))}
	replica, err := r.replay(j)
	if err != nil {
		return nil, nil, err
	}
	var first []engine.Command
	for i := range members {
		commands, err := r.recoverOne(&members[i], r.lost[i], replica.State)
		if err != nil {
			return nil, nil, err
		}
		first = append(first, commands...)
	}
	return replica, first, nil
}

type recovery struct {
	o       Options
	members []Projection
	lost    []bool // of each member: the journal's events do not lead on from its store
}

// replay recovers the state from as far back as the members need it. One that the
// journal does not reach back to is left out, and lost.
func (r *recovery) replay(j Journal) (*engine.Replica, error) {
	for {
		floor := r.floor()
		var failed error
		replica, err := j.Recover(floor, func(events []event.Event) {
			failed = errors.Join(failed, r.replayEvents(events))
		})
		if !errors.Is(err, ErrPruned) || floor == math.MaxUint64 {
			return replica, errors.Join(err, failed)
		}
		r.o.Logger.Warn("the journal does not reach back to where a store ends", "error", err)
		for i := range r.members {
			r.lost[i] = r.lost[i] || r.members[i].Cursor() == floor
		}
	}
}

// floor returns the lowest cursor of those that are not lost, math.MaxUint64 where all
// are.
func (r *recovery) floor() uint64 {
	floor := uint64(math.MaxUint64)
	for i := range r.members {
		if !r.lost[i] {
			floor = min(floor, r.members[i].Cursor())
		}
	}
	return floor
}

// feed gives events to all members that are not lost.
func (r *recovery) replayEvents(events []event.Event) error {
	var all error
	for i := range r.members {
		m := &r.members[i]
		if r.lost[i] {
			continue
		}
		err := m.Replay(events)
		if m.Unreadable != nil && errors.Is(err, m.Unreadable) {
			m.Diverged(err)
			r.lost[i], err = true, nil
		}
		all = errors.Join(all, err)
	}
	return all
}

// join brings one member into step with the recovered state.
func (r *recovery) recoverOne(m *Projection, lost bool, s *engine.State) ([]engine.Command, error) {
	relation := Lost
	switch {
	case lost:
	case m.Cursor() > s.Seq():
		relation = Ahead
	default:
		err := m.Start(s)
		switch {
		case errors.Is(err, ErrUnfinished):
			relation = Unfinished
		case errors.Is(err, ErrDiverged):
			m.Diverged(err)
		default:
			return nil, err
		}
	}
	if err := r.consent(m, relation, s); err != nil {
		return nil, err
	}
	return m.Reconcile(s, relation)
}

// consent returns why a store is not reconciled; nil: it may be.
func (r *recovery) consent(m *Projection, relation Relation, s *engine.State) error {
	switch {
	case r.o.AllowReconcile || relation == Unfinished:
		return nil
	case relation == Lost && m.RefuseLost != nil:
		return m.RefuseLost(s)
	case relation == Lost || r.o.Interval && s.Seq() > 0:
		return nil
	}
	return fmt.Errorf("%s has %s up to seq %d, the journal ends at seq %d: %s", m.Name, m.Content, m.Cursor(), s.Seq(), r.o.Hint)
}
