package projection_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"blockdesk/engine"
	"blockdesk/engine/event"
	"blockdesk/persist/projection"
)

// fakeJournal has one event a command, those after begin; older ones are pruned.
type fakeJournal struct{ begin, end uint64 }

func (j fakeJournal) Recover(floor uint64, visit func([]event.Event)) (*engine.Replica, error) {
	if floor < j.begin {
		return nil, fmt.Errorf("%w: seq %d", projection.ErrPruned, floor)
	}
	replica := engine.NewReplica(engine.StateOptions{})
	for seq := uint64(1); seq <= j.end; seq++ {
		replica.Apply(&engine.Command{Seq: seq, At: int64(seq), Kind: engine.Tick}, nil)
		if seq > floor {
			visit([]event.Event{{Seq: seq}})
		}
	}
	return replica, nil
}

// prunedJournal can be recovered from nowhere.
type prunedJournal struct{}

func (prunedJournal) Recover(uint64, func([]event.Event)) (*engine.Replica, error) {
	return nil, projection.ErrPruned
}

// fakeProjection records the Seqs that it is given.
type fakeProjection struct {
	cursor      uint64
	seen        []uint64 // by Replay
	replayErr   error
	startErr    error
	diverged    error
	did         string // Start, or the relation that Reconcile ended
	permitsLost bool
}

func (f *fakeProjection) Cursor() uint64 { return f.cursor }

func (f *fakeProjection) Replay(events []event.Event) error {
	for i := range events {
		f.seen = append(f.seen, events[i].Seq)
	}
	return f.replayErr
}

var (
	errUnreadable = errors.New("cannot be read")
	errRefused    = errors.New("lost")
	errStore      = errors.New("the disk is gone")
)

func (f *fakeProjection) projection(name string) projection.Projection {
	m := projection.Projection{
		Replayer: f, Name: name, Content: "things", Unreadable: errUnreadable,
		Diverged: func(err error) { f.diverged = err },
		Start: func(*engine.State) error {
			if f.startErr == nil {
				f.did = "start"
			}
			return f.startErr
		},
		Reconcile: func(s *engine.State, r projection.Relation) ([]engine.Command, error) {
			f.did = map[projection.Relation]string{
				projection.Ahead: "ahead", projection.Lost: "lost", projection.Unfinished: "unfinished",
			}[r]
			return []engine.Command{{Kind: engine.Tick, At: int64(s.Seq())}}, nil
		},
	}
	if !f.permitsLost {
		m.RefuseLost = func(*engine.State) error { return errRefused }
	}
	return m
}

// TestRecover: a store is started, reconciled or refused, for every way in which it can
// differ from a journal that has the events 11 to 20.
func TestRecover(t *testing.T) {
	t.Parallel()
	const ahead = "a has things up to seq 21, the journal ends at seq 20: do this"
	for name, c := range map[string]struct {
		f        fakeProjection
		o        projection.Options
		did, err string
		from     uint64 // the first Seq that is replayed; 0: none is
		behind   bool   // a warning says that the journal does not reach back
		diverged bool
	}{
		"at the journal's end":     {f: fakeProjection{cursor: 20}, did: "start"},
		"behind":                   {f: fakeProjection{cursor: 15}, did: "start", from: 16},
		"at the first event":       {f: fakeProjection{cursor: 10}, did: "start", from: 11},
		"too far behind":           {f: fakeProjection{cursor: 9}, err: "lost", behind: true},
		"too far, with consent":    {f: fakeProjection{cursor: 9}, o: projection.Options{AllowReconcile: true}, did: "lost", behind: true},
		"too far, in interval":     {f: fakeProjection{cursor: 9}, o: projection.Options{Interval: true}, err: "lost", behind: true},
		"too far, nothing to lose": {f: fakeProjection{cursor: 9, permitsLost: true}, did: "lost", behind: true},
		"new":                      {f: fakeProjection{permitsLost: true}, did: "lost", behind: true},
		"ahead":                    {f: fakeProjection{cursor: 21}, err: ahead},
		"ahead, with consent":      {f: fakeProjection{cursor: 21}, o: projection.Options{AllowReconcile: true}, did: "ahead"},
		"ahead, in interval":       {f: fakeProjection{cursor: 21}, o: projection.Options{Interval: true}, did: "ahead"},
		"ahead, may be lost":       {f: fakeProjection{cursor: 21, permitsLost: true}, err: ahead},
		"diverged":                 {f: fakeProjection{cursor: 20, startErr: projection.ErrDiverged}, err: "lost", diverged: true},
		"diverged, with consent":   {f: fakeProjection{cursor: 20, startErr: projection.ErrDiverged}, o: projection.Options{AllowReconcile: true}, did: "lost", diverged: true},
		"unreadable":               {f: fakeProjection{cursor: 18, replayErr: errUnreadable}, err: "lost", from: 19, diverged: true},
		"unreadable, permitted":    {f: fakeProjection{cursor: 18, replayErr: errUnreadable, permitsLost: true}, did: "lost", from: 19, diverged: true},
		"unfinished":               {f: fakeProjection{cursor: 15, startErr: projection.ErrUnfinished}, did: "unfinished", from: 16},
		"unfinished and ahead":     {f: fakeProjection{cursor: 21, startErr: projection.ErrUnfinished}, err: ahead},
		"the store fails":          {f: fakeProjection{cursor: 18, replayErr: errStore}, err: errStore.Error(), from: 19},
		"the store fails at last":  {f: fakeProjection{cursor: 18, startErr: errStore}, err: errStore.Error(), from: 19},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := c.f
			var logs bytes.Buffer
			c.o.Hint, c.o.Logger = "do this", slog.New(slog.NewTextHandler(&logs, nil))
			replica, first, err := projection.Recover(fakeJournal{10, 20}, []projection.Projection{f.projection("a")}, c.o)
			if (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Fatalf("got error %v, want %q", err, c.err)
			}
			if f.did != c.did {
				t.Errorf("did %q, want %q", f.did, c.did)
			}
			if err == nil && (replica.State.Seq() != 20 || len(first) != 0 != (c.did != "start")) {
				t.Errorf("seq %d, %d commands", replica.State.Seq(), len(first))
			}
			var want []uint64
			for seq := c.from; seq != 0 && seq <= 20; seq++ {
				if want = append(want, seq); errors.Is(f.replayErr, errUnreadable) {
					break // a store that cannot be read gets no further events
				}
			}
			if !slices.Equal(f.seen, want) {
				t.Errorf("replayed %d, want %d", f.seen, want)
			}
			if c.behind != strings.Contains(logs.String(), "store needs events that the journal has pruned") {
				t.Errorf("logged %q", &logs)
			}
			if c.diverged != (f.diverged != nil) {
				t.Errorf("diverged by %v", f.diverged)
			}
		})
	}
}

// TestRecoverAll: the journal is replayed from the lowest cursor that it reaches back
// to, and each projection is judged by itself.
func TestRecoverAll(t *testing.T) {
	t.Parallel()
	list := []*fakeProjection{{cursor: 3, permitsLost: true}, {cursor: 12}, {cursor: 21}, {cursor: 7, permitsLost: true}, {cursor: 15}}
	var projections []projection.Projection
	for i, f := range list {
		projections = append(projections, f.projection(fmt.Sprint(i)))
	}
	_, first, err := projection.Recover(fakeJournal{10, 20}, projections, projection.Options{Interval: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil || len(first) != 3 {
		t.Fatalf("%d commands, %v", len(first), err)
	}
	for i, want := range []string{"lost", "start", "ahead", "lost", "start"} {
		f := list[i]
		if f.did != want || len(f.seen) != map[bool]int{true: 0, false: 8}[want == "lost"] {
			t.Errorf("projection %d: did %q, replayed %d", i, f.did, f.seen)
		}
	}
}

// TestRecoverNothing: Recover returns a replica without events and projections; it
// fails if the journal cannot be recovered; a store ahead of an empty journal is
// refused even in mode interval.
func TestRecoverNothing(t *testing.T) {
	t.Parallel()
	o := projection.Options{Interval: true, Logger: slog.New(slog.DiscardHandler)}
	if replica, first, err := projection.Recover(fakeJournal{}, nil, o); err != nil || len(first) != 0 || replica.State.Seq() != 0 {
		t.Errorf("got %v", err)
	}
	f := &fakeProjection{cursor: 4, permitsLost: true}
	if _, _, err := projection.Recover(prunedJournal{}, []projection.Projection{f.projection("a")}, o); !errors.Is(err, projection.ErrPruned) || f.did != "" {
		t.Errorf("did %q, %v", f.did, err)
	}
	if _, _, err := projection.Recover(fakeJournal{}, []projection.Projection{f.projection("a")}, o); err == nil || f.did != "" {
		t.Errorf("did %q, %v", f.did, err)
	}
}
