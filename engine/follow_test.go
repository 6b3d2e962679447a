package engine

import (
	"context"
	"errors"
	"sort"
	"testing"
	"time"

	"blockdesk/engine/event"
	"blockdesk/internal/await"
)

// journaled runs an engine over a flow in two epochs and returns its journal and its events.
func journaled(t *testing.T, f *flow) (*slowJournal, []event.Event) {
	t.Helper()
	j := &slowJournal{delay: 50 * time.Microsecond}
	var all []event.Event
	r := NewReplica(StateOptions{})
	for epoch := range 2 {
		e, err := New(Options{Journal: j, MaxBatch: 7}, r)
		if err != nil {
			t.Fatal(err)
		}
		run := &running{Engine: e, replica: r, err: make(chan error, 1)}
		events := collect(e.Consumer("reader"))
		run.start(t)
		for range 1_500 {
			c := f.next()
			run.mustSubmit(t, c)
		}
		if err := run.finish(t); err != nil {
			t.Fatalf("epoch %d: %v", epoch+1, err)
		}
		all = append(all, <-events...)
	}
	return j, all
}

// eachFrame calls give with each frame of the journal, starting at command number from.
func (j *slowJournal) eachFrame(from int, give func(prior uint64, commands []Command) error) error {
	var starts []int
	for at := range j.priors {
		if at >= from {
			starts = append(starts, at)
		}
	}
	sort.Ints(starts)
	for i, at := range starts {
		end := len(j.commands)
		if i+1 < len(starts) {
			end = starts[i+1]
		}
		if err := give(j.priors[at], j.commands[at:end]); err != nil {
			return err
		}
	}
	return nil
}

// TestFollow: a follower publishes the events of its leader, across epochs, from the
// beginning and from the middle of an epoch, and ends with the same state, on both books.
func TestFollow(t *testing.T) {
	for name, newFlow := range map[string]func(uint64) *flow{"orders": newFlow, "desk": newDeskFlow, "mirror": newMirrorFlow} {
		t.Run(name, func(t *testing.T) {
			j, want := journaled(t, newFlow(11))
			truth, err := j.replay(StateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			middle := len(j.commands) / 3
			for j.priors[middle] == 0 {
				middle++
			}
			for _, from := range []int{0, middle} {
				for _, o := range []StateOptions{{}, {Naive: true}} {
					testFollow(t, j, from, o, truth, want)
				}
			}
		})
	}
}

func testFollow(t *testing.T, j *slowJournal, from int, o StateOptions, truth *Replica, want []event.Event) {
	t.Helper()
	r := NewReplica(o)
	for i := range from {
		r.Apply(&j.commands[i], nil)
	}
	r, err := RestoreReplica(r.AppendSnapshot(nil), o)
	if err != nil {
		t.Fatal(err)
	}
	skip := sort.Search(len(want), func(i int) bool { return want[i].Seq > uint64(from) })
	e, err := Follow(Options{EgressSize: 64}, r) // smaller than many a frame's events
	if err != nil {
		t.Fatal(err)
	}
	run := &running{Engine: e, replica: r, err: make(chan error, 1)}
	events := collect(e.Consumer("reader"))
	run.start(t)
	if err := j.eachFrame(from, e.Apply); err != nil {
		t.Fatal(err)
	}
	digest, seq := e.Digest()
	stats := e.Stats()
	if seq != uint64(len(j.commands)) || stats.Seq != seq || stats.Durable < seq || stats.Ingress != 0 || digest != truth.Digest {
		t.Errorf("at seq %d, digest %016x, want %d and %016x; stats %+v", seq, digest, len(j.commands), truth.Digest, stats)
	}
	if err := run.finish(t); err != nil {
		t.Fatal(err)
	}
	sameEvents(t, <-events, want[skip:])
	if r.Digest != truth.Digest || r.State.Hash() != truth.State.Hash() {
		t.Error("another state than the leader's")
	}
	if err := e.Apply(digest, []Command{{Seq: seq + 1}}); !errors.Is(err, ErrStopped) {
		t.Errorf("Apply after the end: %v", err)
	}
}

// TestFollowRefuses: frames that do not continue the history are refused, and stop replication.
func TestFollowRefuses(t *testing.T) {
	j, _ := journaled(t, newFlow(3))
	frame := func(n int) (prior uint64, commands []Command) {
		_ = j.eachFrame(0, func(p uint64, cs []Command) error {
			if n--; n == 0 {
				prior, commands = p, cs
			}
			return nil
		})
		return prior, commands
	}
	first, begin := frame(1)
	second, next := frame(2)
	later := j.commands[len(begin)+1:] // a frame is of any length, up to an epoch's commands
	for name, c := range map[string]struct {
		prior    uint64
		commands []Command
		want     error
	}{
		"a gap":               {second, later[:1], ErrOutOfSequence},
		"twice":               {first, begin, ErrOutOfSequence},
		"an incomplete frame": {second, append(append([]Command(nil), next...), begin[0]), ErrOutOfSequence},
		"other history":       {second + 1, next, ErrDiverged},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := Follow(Options{}, NewReplica(StateOptions{}))
			if err != nil {
				t.Fatal(err)
			}
			run := &running{Engine: e, err: make(chan error, 1)}
			run.start(t)
			if err := e.Apply(first, begin); err != nil {
				t.Fatal(err)
			}
			c1 := Command{Kind: Tick}
			for _, err := range []error{e.Submit(&c1), e.SubmitAll([]Command{c1}), e.Enqueue(&c1)} {
				if !errors.Is(err, ErrReadOnly) {
					t.Errorf("a command of its own: %v", err)
				}
			}
			e.RunInline(nil, nil)
			if err := e.Apply(c.prior, c.commands); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if err := e.Apply(second, next); !errors.Is(err, c.want) {
				t.Errorf("after that: %v, want %v", err, c.want)
			}
			if s := e.Stats(); s.Seq != uint64(len(begin)) || !errors.Is(s.Failed, c.want) {
				t.Errorf("stats %+v", s)
			}
			if err := run.finish(t); !errors.Is(err, c.want) {
				t.Errorf("Run: %v", err)
			}
		})
	}
	e := newEngine(t, Options{})
	if err := e.Apply(0, begin); !errors.Is(err, ErrNotFollower) {
		t.Errorf("Apply on a leader: %v", err)
	}
	if digest, seq := e.Digest(); digest != 0 || seq != 0 {
		t.Errorf("a leader's digest %016x, seq %d", digest, seq)
	}
	if _, err := Follow(Options{EgressSize: 3}, NewReplica(StateOptions{})); err == nil {
		t.Error("a ring of three is made")
	}
}

// TestFollowDrainTimeout: a stalled consumer blocks Apply until Run ends, and no longer.
func TestFollowDrainTimeout(t *testing.T) {
	j, _ := journaled(t, newFlow(5))
	e, err := Follow(Options{EgressSize: 16, DrainTimeout: 20 * time.Millisecond}, NewReplica(StateOptions{}))
	if err != nil {
		t.Fatal(err)
	}
	run := &running{Engine: e, err: make(chan error, 1)}
	slow := e.Consumer("slow")
	run.start(t)
	applied := make(chan error, 1)
	go func() { applied <- j.eachFrame(0, e.Apply) }()
	await.True(t, "a full ring", func() bool { return e.Stats().Egress == 16 })
	seen := len(slow.Poll())
	if err := run.finish(t); !errors.Is(err, ErrDrainTimeout) {
		t.Errorf("Run: %v", err)
	}
	if err := <-applied; !errors.Is(err, ErrStopped) {
		t.Errorf("Apply: %v", err)
	}
	n, err := drain(slow, 0, func(*event.Event) error { return nil })
	if n < seen || err != nil {
		t.Errorf("%d events of %d after the end: %v", n, seen, err)
	}
	if _, err := slow.Next(context.Background()); err == nil {
		t.Error("events after the end")
	}
}
