package fanout

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"blockdesk/engine"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/persist/journaltest"
	"blockdesk/persist/quorum"
)

// group is three nodes of which one leads and publishes.
type group struct {
	rig   *rig
	flow  *flow
	peers []quorum.Peer
	nodes map[string]*member
}

type member struct {
	o    quorum.Options
	node *quorum.Node
	run  *running
}

func newGroup(t *testing.T, r *rig, f *flow) *group {
	t.Helper()
	g := &group{rig: r, flow: f, nodes: map[string]*member{}}
	for i := range 3 {
		l, err := net.Listen("tcp", net.JoinHostPort(journaltest.Loopback(), "0"))
		if err != nil {
			t.Fatal(err)
		}
		g.peers = append(g.peers, quorum.Peer{ID: fmt.Sprintf("n%d", i+1), Address: l.Addr().String()})
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range g.peers {
		g.nodes[p.ID] = &member{o: quorum.Options{
			ID: p.ID, Dir: t.TempDir(), FS: vfs.NewMem(), Bind: p.Address, Peers: g.peers, MemTableBytes: 1 << 20, SpareLogs: -1,
			SnapshotEvery: 100, TrailingEntries: 200, Timeout: 500 * time.Millisecond, State: smallState, Logger: quiet(),
		}}
		g.start(t, p.ID)
	}
	return g
}

func (g *group) start(t *testing.T, id string) {
	t.Helper()
	m := g.nodes[id]
	var err error
	if m.node, err = quorum.Open(m.o); err != nil {
		t.Fatal(err)
	}
	m.run = start(m.node.Run)
}

func (g *group) stop(t *testing.T, id string) {
	t.Helper()
	m := g.nodes[id]
	if err := m.run.stop(t); err != nil {
		t.Errorf("%s: %v", id, err)
	}
	if err := m.node.Close(); err != nil {
		t.Errorf("%s: %v", id, err)
	}
	m.run = nil
}

// groupLeader is a leader of a group with its engine and publisher.
type groupLeader struct {
	id        string
	term      *quorum.Term
	engine    *engine.Engine
	replica   *engine.Replica
	publisher *Publisher
	serving   *running // the engine
	keeping   *running // the publisher
}

// lead waits for a term and publishes it.
func (g *group) lead(t *testing.T) *groupLeader {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), runtest.HangTimeout)
	defer cancel()
	won := make(chan *groupLeader, len(g.nodes))
	var waiting sync.WaitGroup
	for id, m := range g.nodes {
		if m.run == nil {
			continue
		}
		waiting.Go(func() {
			if term, err := m.node.AwaitTerm(ctx); err == nil {
				won <- &groupLeader{id: id, term: term}
				cancel()
			}
		})
	}
	waiting.Wait()
	if len(won) == 0 {
		t.Fatal("no node leads")
	}
	l := <-won
	var err error
	if l.replica, err = l.term.Recover(^uint64(0), nil); err != nil {
		t.Fatal(err)
	}
	if l.engine, err = engine.New(engine.Options{Journal: l.term}, l.replica); err != nil {
		t.Fatal(err)
	}
	if l.publisher, err = NewPublisher(g.rig.o, l.term, l.term.Number); err != nil {
		t.Fatal(err)
	}
	l.keeping, l.serving = start(l.publisher.RunWithRetry), start(l.engine.Run)
	return l
}

// submit submits commands until n more are durable, and reports whether they are; if
// not, the term is over.
func (g *group) submit(t *testing.T, l *groupLeader, n uint64) bool {
	t.Helper()
	target := l.engine.Stats().Durable + n
	hang, cancel := context.WithTimeout(t.Context(), runtest.HangTimeout)
	defer cancel()
	for l.engine.Stats().Durable < target {
		if l.term.Err() != nil {
			return false
		}
		if hang.Err() != nil {
			t.Fatalf("seq %d is never durable; %s", target, runtest.RerunCommand(t))
		}
		c := g.flow.next()
		if err := l.engine.Submit(&c); err != nil && !errors.Is(err, engine.ErrFull) && l.term.Err() == nil && l.engine.Stats().Failed == nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Microsecond) // sleep: the load's pace
	}
	return true
}

// progress is submit on the current leader or the next ones, until one has succeeded.
func (g *group) progress(t *testing.T, l *groupLeader, n uint64) *groupLeader {
	t.Helper()
	for !g.submit(t, l, n) {
		l.end(t)
		l = g.lead(t)
	}
	return l
}

// end removes a former leader.
func (l *groupLeader) end(t *testing.T) {
	t.Helper()
	if err := l.keeping.stop(t); err != nil {
		t.Errorf("a publisher ends with %v", err)
	}
	_ = l.serving.stop(t) // its journal has failed
}

// rest waits until the engine is idle and returns its last command, unless the term is
// over.
func (l *groupLeader) rest(t *testing.T) (seq uint64, ok bool) {
	t.Helper()
	await.True(t, "the engine to rest", func() bool {
		s := l.engine.Stats()
		seq, ok = s.Durable, s.Ingress == 0 && s.Durable == s.Seq
		return ok || l.term.Err() != nil
	})
	return seq, ok
}

// TestGroup: under load, leaders die, hand over, and publish after they were deposed. A
// follower continues with all of it, without a new snapshot, and has what the last
// leader has; so does one that joins.
func TestGroup(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	g := newGroup(t, r, newFlow(t, 9))
	defer func() {
		for id, m := range g.nodes {
			if m.run != nil {
				g.stop(t, id)
			}
		}
	}()
	l := g.progress(t, g.lead(t), 50) // the instruments are there
	early := follow(t, r.o)
	terms := 0
	var late *reader
	for round := range 9 {
		if g.submit(t, l, 40) && round%3 != 2 {
			early.reaches(t, l.engine.Stats().Durable)
		}
		old, node := l, g.nodes[l.id].node
		switch round % 3 {
		case 0: // it dies
			g.stop(t, old.id)
			old.end(t)
		case 1: // it hands over, and publishes on beside the next one
			_ = node.Transfer() // it may be deposed before
		case 2: // the same, with frames under way
			load := start(func(context.Context) error { g.submit(t, old, 10_000); return nil })
			await.True(t, "the transfer", func() bool { _ = node.Transfer(); return old.term.Err() != nil })
			if err := load.wait(t); err != nil {
				t.Error(err)
			}
		}
		l = g.lead(t)
		if l.term.Number < old.term.Number { // equal, where the transfer failed
			t.Fatalf("term %d after %d", l.term.Number, old.term.Number)
		}
		terms++
		g.submit(t, l, 40)
		if round%3 == 0 {
			g.start(t, old.id)
		} else {
			old.end(t)
		}
		if round == 4 {
			for l.term.Health().SnapshotSeq == 0 {
				l = g.progress(t, l, 20)
			}
			late = follow(t, r.o)
		}
	}
	var seq uint64
	for rested := false; !rested; {
		l = g.progress(t, l, 100)
		seq, rested = l.rest(t)
	}
	early.reaches(t, seq)
	late.reaches(t, seq)
	await.True(t, "a follower that is ready", func() bool { return early.follower.Ready() == nil })
	if lag := early.follower.Lag(); lag.Commands != 0 || lag.Term != l.term.Number {
		t.Errorf("lag %+v in term %d", lag, l.term.Number)
	}
	await.True(t, "the whole journal in the stream", func() bool { return l.publisher.Stats().StreamSeq.Load() == seq })
	if err := errors.Join(l.keeping.stop(t), l.serving.stop(t)); err != nil {
		t.Error(err)
	}
	for _, reader := range []*reader{early, late} {
		reader.sameAs(t, &leader{replica: l.replica})
		s := reader.follower.Stats()
		t.Logf("%d terms, seq %d: %d frames, %d gaps, %d refilled, %d of a leader of the past, %d snapshots", terms, seq,
			s.Frames.Load(), s.Gaps.Load(), s.Refilled.Load(), s.Stale.Load(), s.Snapshots.Load())
		if s.Damaged.Load() != 0 {
			t.Errorf("damaged %d", s.Damaged.Load())
		}
	}
	if late.follower.Stats().Snapshots.Load() != 1 {
		t.Error("a late follower has no snapshot of a term")
	}
}
