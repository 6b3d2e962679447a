package fanout

import (
	"context"
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"blockdesk/engine"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
)

// TestCatchUp: a follower whose snapshot is old has all that came after it before anything
// reads it, and continues from there without a repetition.
func TestCatchUp(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	l := r.lead(t, journalOptions(vfs.NewMem()), newFlow(t, 7))
	defer l.stop(t)
	l.submit(t, 100)
	f, err := NewFollower(r.o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), runtest.HangTimeout)
	defer cancel()
	replica, err := f.Join(ctx)
	if err != nil {
		t.Fatal(err)
	}
	l.submit(t, 600)
	durable := l.seq(t)
	if err := f.CatchUp(ctx, replica); err != nil {
		t.Fatal(err)
	}
	if seq := replica.State.Seq(); seq < durable {
		t.Errorf("serves from seq %d, the leader had %d", seq, durable)
	}
	s := &strict{replica}
	run := start(func(ctx context.Context) error { return f.Run(ctx, s) })
	l.submit(t, 100)
	last := l.seq(t)
	await.True(t, "the last command", func() bool { return f.Lag().Seq == last })
	if err := run.stop(t); err != nil {
		t.Error(err)
	}
	if seq := replica.State.Seq(); seq != last {
		t.Errorf("at seq %d, the leader at %d", seq, last)
	}

	over, stop := context.WithCancel(ctx)
	stop()
	if err := f.CatchUp(over, replica); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
	other := engine.NewReplica(smallState)
	if err := (replicaApplier{other}).Apply(1, nil); !errors.Is(err, ErrDiverged) {
		t.Errorf("another history: %v", err)
	}
}
