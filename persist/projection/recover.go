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
	// ErrPruned says that the journal has pruned events that a store needs.
	ErrPruned = errors.New("the journal no longer has the events after the store's cursor")
	// ErrAhead says that a store has commands that the journal does not have.
	ErrAhead = errors.New("the store is ahead of the journal")
	// ErrDiverged says that the content of a store contradicts the journal: the store
	// is damaged, or belongs to another journal.
	ErrDiverged = errors.New("the store contradicts the journal")
	// ErrUnfinished says that a Reconcile was interrupted.
	ErrUnfinished = errors.New("a reconciliation with the journal is not finished")
)

// Relation says how a store that needs a Reconcile differs from its journal. The
// package documentation defines the values.
type Relation uint8

const (
	Ahead Relation = iota + 1
	Lost
	Unfinished
)

// Journal is what Recover replays: persist.Store or quorum.Term.
type Journal interface {
	// Recover returns a replica of everything in the journal and calls visit with
	// the events of each command whose Seq is above floor; math.MaxUint64 asks for
	// none. If some of them were pruned, the error wraps ErrPruned and visit was not
	// called.
	Recover(floor uint64, visit func([]event.Event)) (*engine.Replica, error)
}

// Replayer is the owner of a projection as Recover sees it: archive.Archive, desk.Desk,
// fixgw.Gateway.
type Replayer interface {
	// Cursor is Store.Cursor.
	Cursor() uint64
	// Replay applies events in their order. They begin at Cursor or before it.
	Replay(events []event.Event) error
}

// Projection is one store of a service, with the functions that recover it.
type Projection struct {
	Replayer
	Name    string // what operators call the store: "the history"
	Content string // what the store has, as clients know it: "trades"
	// Unreadable, if set, marks errors of Replay (errors.Is) that mean that the
	// content of the store contradicts the journal. Other errors end Recover.
	Unreadable error
	// Diverged logs such an error, or the ErrDiverged of Start. Required if Unreadable
	// is set or Start returns ErrDiverged.
	Diverged func(error)
	// Start ends the recovery of a store that has been given all events of the state.
	// After ErrDiverged and ErrUnfinished, which change nothing, Recover calls
	// Reconcile instead.
	Start func(*engine.State) error
	// Reconcile makes the store agree with the state and returns commands that the
	// engine must run first.
	Reconcile func(*engine.State, Relation) ([]engine.Command, error)
	// RefuseLost, if set, returns why a lost store may not be reconciled without
	// consent, or nil if it may.
	RefuseLost func(*engine.State) error
}

// Options of Recover.
type Options struct {
	// AllowReconcile is the operator's consent (--reconcile) to make every store agree
	// with the journal.
	AllowReconcile bool
	// Interval: the journal may lose its last commands in a crash, so a store may
	// be ahead of it.
	Interval bool
	// Hint says what an operator can do about a store that is ahead.
	Hint   string
	Logger *slog.Logger
}

// Recover replays the journal from the lowest cursor of the projections, starts or
// reconciles each of them, and returns the recovered replica and the commands that the
// engine must run first, in the order of the projections.
func Recover(j Journal, projections []Projection, o Options) (*engine.Replica, []engine.Command, error) {
	r := recovery{o: o, projections: projections, lost: make([]bool, len(projections))}
	replica, err := r.replay(j)
	if err != nil {
		return nil, nil, err
	}
	var first []engine.Command
	for i := range projections {
		commands, err := r.finish(&projections[i], r.lost[i], replica.State)
		if err != nil {
			return nil, nil, err
		}
		first = append(first, commands...)
	}
	return replica, first, nil
}

type recovery struct {
	o           Options
	projections []Projection
	lost        []bool // by projection: the journal cannot bring its store up to date
}

// replay recovers the replica and replays the events after the lowest cursor. A store
// whose events were pruned is lost and left out.
func (r *recovery) replay(j Journal) (*engine.Replica, error) {
	for {
		floor := r.floor()
		var failed error
		replica, err := j.Recover(floor, func(events []event.Event) {
			failed = errors.Join(failed, r.apply(events))
		})
		if !errors.Is(err, ErrPruned) || floor == math.MaxUint64 {
			return replica, errors.Join(err, failed)
		}
		r.o.Logger.Warn("store needs events that the journal has pruned", "store_seq", floor, "error", err)
		for i := range r.projections {
			r.lost[i] = r.lost[i] || r.projections[i].Cursor() == floor
		}
	}
}

// floor returns the lowest cursor of the stores that are not lost, math.MaxUint64 if
// all are.
func (r *recovery) floor() uint64 {
	floor := uint64(math.MaxUint64)
	for i := range r.projections {
		if !r.lost[i] {
			floor = min(floor, r.projections[i].Cursor())
		}
	}
	return floor
}

// apply passes events to all projections that are not lost.
func (r *recovery) apply(events []event.Event) error {
	var all error
	for i := range r.projections {
		p := &r.projections[i]
		if r.lost[i] {
			continue
		}
		err := p.Replay(events)
		if p.Unreadable != nil && errors.Is(err, p.Unreadable) {
			p.Diverged(err)
			r.lost[i], err = true, nil
		}
		all = errors.Join(all, err)
	}
	return all
}

// finish starts one projection on the recovered state, or reconciles it.
func (r *recovery) finish(p *Projection, lost bool, s *engine.State) ([]engine.Command, error) {
	relation := Lost
	switch {
	case lost:
	case p.Cursor() > s.Seq():
		relation = Ahead
	default:
		err := p.Start(s)
		switch {
		case errors.Is(err, ErrUnfinished):
			relation = Unfinished
		case errors.Is(err, ErrDiverged):
			p.Diverged(err)
		default:
			return nil, err
		}
	}
	if err := r.refuse(p, relation, s); err != nil {
		return nil, err
	}
	return p.Reconcile(s, relation)
}

// refuse returns why a store may not be reconciled, or nil if it may.
func (r *recovery) refuse(p *Projection, relation Relation, s *engine.State) error {
	switch {
	case r.o.AllowReconcile || relation == Unfinished:
		return nil
	case relation == Lost && p.RefuseLost != nil:
		return p.RefuseLost(s)
	case relation == Lost || r.o.Interval && s.Seq() > 0:
		return nil
	}
	return fmt.Errorf("%s has %s up to seq %d, the journal ends at seq %d: %s", p.Name, p.Content, p.Cursor(), s.Seq(), r.o.Hint)
}
