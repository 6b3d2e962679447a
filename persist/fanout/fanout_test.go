package fanout

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"blockdesk/internal/await"
)

// TestFollowers: followers that join an empty leader, from a snapshot, or in the middle
// see what the leader sees, and continue through its restart.
func TestFollowers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o, f := journalOptions(vfs.NewMem()), newFlow(t, 1)
	l := r.lead(t, o, f)
	early := follow(t, r.o)
	l.submit(t, 3000)
	late := follow(t, r.o) // the stream alone
	l.submit(t, 1000)
	seq := l.seq(t)
	early.reaches(t, seq)
	late.reaches(t, seq)
	await.True(t, "a follower that is ready", func() bool { return early.follower.Ready() == nil })
	if lag := early.follower.Lag(); lag.Commands != 0 || lag.Term != 1 || lag.Seq != seq {
		t.Errorf("lag %+v at seq %d", lag, seq)
	}
	l.stop(t) // takes a snapshot
	l = r.lead(t, o, f)
	joined := follow(t, r.o)
	if joined.replica.State.Seq() == 0 || joined.follower.Stats().Snapshots.Load() != 1 {
		t.Errorf("joined at seq %d without a snapshot", joined.replica.State.Seq())
	}
	l.submit(t, 2000)
	seq = l.seq(t)
	for _, reader := range []*reader{early, late, joined} {
		reader.reaches(t, seq)
	}
	if lag := early.follower.Lag(); lag.Term != 2 {
		t.Errorf("after the leader's restart: %+v", lag)
	}
	l.stop(t)
	for _, reader := range []*reader{early, late, joined} {
		reader.sameAs(t, l)
		if s := reader.follower.Stats(); s.Damaged.Load()+s.Foreign.Load()+s.Stale.Load()+s.Overflows.Load() != 0 {
			t.Errorf("damaged %d, foreign %d, stale %d, dropped %d", s.Damaged.Load(), s.Foreign.Load(), s.Stale.Load(), s.Overflows.Load())
		}
	}
}
