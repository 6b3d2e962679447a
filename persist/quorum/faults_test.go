package quorum

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/hashicorp/raft"

	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/persist"
	"blockdesk/persist/journaltest"
)

// clusterRounds is the number of faults of a `go test`; BLOCKDESK_CLUSTER_ROUNDS sets
// another one, 200 for the full run.
func clusterRounds(t testing.TB) int {
	text := os.Getenv("BLOCKDESK_CLUSTER_ROUNDS")
	if text == "" {
		return 8
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("BLOCKDESK_CLUSTER_ROUNDS=%q: must be a number of rounds", text)
	}
	return n
}

// badDisk is a disk that can be made slow or full.
type badDisk struct {
	slow, full atomic.Bool
}

var errFull = errors.New("no space left on device")

func (d *badDisk) MaybeError(op errorfs.Op) error {
	if op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
		return nil
	}
	if d.full.Load() {
		return errFull
	}
	if d.slow.Load() && (op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData) {
		time.Sleep(20 * time.Millisecond) // sleep: the planted slow disk
	}
	return nil
}

func (d *badDisk) String() string { return "a bad disk" }

// service is what each node does while it leads: it appends the reference's commands
// from where the committed ones end, as clients do that retry what was not
// acknowledged.
type service struct {
	t   testing.TB
	ref *journaltest.Reference

	acked  atomic.Int64 // highest Seq acknowledged
	synced atomic.Int64 // highest Seq that the store was synced at
	terms  atomic.Int64

	mu     sync.Mutex
	gaps   []time.Duration
	killed time.Time // when the leader was; zero = it was not, or another has acknowledged since
}

// pace is the pause between two frames of the load, so that it outlasts the faults.
const pace = 3 * time.Millisecond

func (s *service) run(ctx context.Context, n *Node) {
	for {
		term, err := n.AwaitTerm(ctx)
		if err != nil {
			return
		}
		if err := s.lead(ctx, term); err != nil && !errors.Is(err, ErrDeposed) {
			s.t.Errorf("%s: %v", n.o.ID, err)
			return
		}
	}
}

func (s *service) lead(ctx context.Context, term *Term) error {
	r, err := term.Recover(^uint64(0), nil)
	if err != nil {
		return err
	}
	at := int(r.State.Seq())
	if acked := int(s.acked.Load()); at < acked {
		return fmt.Errorf("term %d begins at seq %d, but seq %d was acknowledged", term.Number, at, acked)
	}
	if !s.ref.Same(r) {
		return fmt.Errorf("term %d: seq %d: not the state of an undisturbed run", term.Number, at)
	}
	store := term.Store("gateway")
	value, ok, err := store.Get([]byte("cursor"))
	if err != nil {
		return err
	}
	if cursor := int(s.synced.Load()); ok {
		if got := int(binary.BigEndian.Uint64(value)); got > at || got < cursor {
			return fmt.Errorf("term %d: the store is at seq %d, synced at %d, the frames at %d", term.Number, got, cursor, at)
		}
	} else if cursor > 0 {
		return fmt.Errorf("term %d: the store is empty, synced at seq %d", term.Number, cursor)
	}
	s.terms.Add(1)
	w := &writer{term: term, replica: r}
	for n := 0; at < len(s.ref.Commands) && ctx.Err() == nil; n++ {
		next := min(at+1+n%7, len(s.ref.Commands))
		if err := w.append(s.ref.Commands[at:next]); err != nil {
			return err
		}
		at = next
		s.acknowledge(at)
		synced := n%5 == 0
		err := store.Commit(func(set func(key, value []byte), _ func(lo, hi []byte)) {
			set([]byte("cursor"), binary.BigEndian.AppendUint64(nil, uint64(at)))
		}, synced)
		if err != nil {
			return err
		}
		if synced {
			raise(&s.synced, at)
		}
		time.Sleep(pace) // sleep: the load's pace, so that the commands outlast the faults
	}
	select {
	case <-term.Done():
	case <-ctx.Done(): // a term that began after all were ended
	}
	return nil
}

func (s *service) acknowledge(at int) {
	raise(&s.acked, at)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.killed.IsZero() {
		s.gaps = append(s.gaps, time.Since(s.killed))
		s.killed = time.Time{}
	}
}

func (s *service) kills() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.killed = time.Now()
}

func raise(v *atomic.Int64, to int) {
	for {
		was := v.Load()
		if was >= int64(to) || v.CompareAndSwap(was, int64(to)) {
			return
		}
	}
}

// progress waits until more is acknowledged.
func (s *service) progress(t testing.TB, commands int) {
	t.Helper()
	target := s.acked.Load() + int64(commands)
	if target > int64(len(s.ref.Commands)) {
		t.Fatalf("the %d commands are used up: what follows would be no load", len(s.ref.Commands))
	}
	await.True(t, fmt.Sprintf("seq %d to be acknowledged", target), func() bool { return t.Failed() || s.acked.Load() >= target })
	if t.Failed() {
		t.FailNow()
	}
}

// TestTermOnFullDisk: a follower whose disk is full learns of a new term and cannot write
// it. It leaves the group with that error, the program goes on, and so do the others.
func TestTermOnFullDisk(t *testing.T) {
	t.Parallel()
	disks := map[string]*badDisk{"n1": {}, "n2": {}, "n3": {}}
	c := newCluster(t, 3, func(o *Options) { o.FS = errorfs.Wrap(o.FS, disks[o.ID]) })
	id, term := c.lead()
	var followers []string
	for other := range c.members {
		if other != id {
			followers = append(followers, other)
		}
	}
	follower, next := followers[0], c.members[followers[1]]
	node := c.members[follower].node
	await.True(t, "the followers to be ready", func() bool { return node.Ready() == nil && next.node.Ready() == nil })
	disks[follower].full.Store(true)
	term.end(ErrStopped)
	r, err := c.members[id].node.running()
	if err != nil {
		t.Fatal(err)
	}
	await.True(t, "another leader", func() bool {
		_ = r.LeadershipTransferToServer(raft.ServerID(next.o.ID), raft.ServerAddress(next.o.Bind)).Error() // the new role says whether it worked
		return next.node.Status().Role == Leader
	})
	<-node.broken
	if err := c.stop(follower); !errors.Is(err, persist.ErrFailed) {
		t.Errorf("a node that could not write a term ended with %v", err)
	}
	disks[follower].full.Store(false)
	c.start(follower)
	await.True(t, "it to be ready again", func() bool { return c.members[follower].node.Ready() == nil })
}

// TestFaults: under load, one fault after the other. Nothing acknowledged is lost,
// nothing is applied twice, no former leader acknowledges anything, no store is ahead
// of the frames, and in the end all nodes are equal.
func TestFaults(t *testing.T) {
	t.Parallel()
	rounds := clusterRounds(t)
	seed := runtest.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	s := &service{t: t, ref: journaltest.NewReference(journaltest.Commands(1000+500*rounds, seed))}
	disks := map[string]*badDisk{"n1": {}, "n2": {}, "n3": {}}
	c := newServingCluster(t, 3, s.run, func(o *Options) {
		o.SnapshotEvery, o.TrailingEntries, o.TailEvents, o.Timeout = 200, 50, MinTailEvents, quick
		o.FS = errorfs.Wrap(o.FS, disks[o.ID])
	})
	faults := []func(id string){
		func(id string) { s.kills(); c.kill(id, 0); c.start(id) },
		func(id string) { s.kills(); c.kill(id, 50); s.progress(t, 40); c.start(id) },
		func(id string) { s.kills(); c.isolate(id, true); s.progress(t, 40); c.isolate(id, false) },
		func(id string) {
			if err := c.stop(id); err != nil {
				t.Error(err)
			}
			s.progress(t, 40)
			c.start(id)
		},
		func(id string) { disks[id].slow.Store(true); s.progress(t, 40); disks[id].slow.Store(false) },
		func(id string) { // it leaves, and comes back when there is room
			disks[id].full.Store(true)
			<-c.members[id].node.broken
			s.progress(t, 40)
			if err := c.stop(id); err == nil {
				t.Error("a node on a full disk ended without an error")
			}
			disks[id].full.Store(false)
			c.start(id)
		},
		func(string) { _ = c.leading().Transfer() }, // it may be deposed before
	}
	for round := range rounds {
		s.progress(t, 20)
		id := c.leading().o.ID
		if rng.IntN(3) == 0 {
			id = fmt.Sprintf("n%d", 1+rng.IntN(3))
		}
		faults[(round+int(seed%7))%len(faults)](id)
		if t.Failed() {
			t.Fatalf("round %d at %s", round, id)
		}
	}
	s.progress(t, 50)
	c.halt()
	if seq := c.agree(s.ref); int64(seq) < s.acked.Load() {
		t.Errorf("seq %d, acknowledged %d", seq, s.acked.Load())
	}
	slices.Sort(s.gaps)
	t.Logf("%d rounds, %d terms, seq %d acknowledged; without a leader: %v", rounds, s.terms.Load(), s.acked.Load(), s.gaps)
}
