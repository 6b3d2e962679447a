package fanout

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"blockdesk/engine"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
)

// TestBehindForLong: a follower whose leader is away for longer than MaxBehind ends, and
// continues level with the leader after another Join.
func TestBehindForLong(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var ahead atomic.Int64
	l := r.lead(t, journalOptions(vfs.NewMem()), newFlow(t, 7))
	defer l.stop(t)
	l.submit(t, 100)
	o := r.o
	o.MaxBehind = time.Hour
	o.Clock = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	f, err := NewFollower(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), runtest.HangTimeout)
	defer cancel()
	level := func() (*engine.Replica, uint64) {
		t.Helper()
		replica, err := f.Join(ctx)
		if err != nil {
			t.Fatal(err)
		}
		durable := l.seq(t)
		if err := f.CatchUp(ctx, replica); err != nil {
			t.Fatal(err)
		}
		return replica, durable
	}
	replica, _ := level()
	run := start(func(ctx context.Context) error { return f.Run(ctx, &strict{replica}) })
	l.submit(t, 100)
	last := l.seq(t)
	await.True(t, "the follower to be level", func() bool { return f.Ready() == nil && f.Lag().Seq == last })

	// Its process stands still, again and again, while the leader goes on.
	await.True(t, "the end of Run", func() bool {
		ahead.Add(int64(2 * time.Hour))
		l.submit(t, 1)
		select {
		case <-run.done:
			return true
		default:
			return false
		}
	})
	if err := run.wait(t); !errors.Is(err, ErrBehind) {
		t.Fatalf("behind for two hours: %v", err)
	}
	again, durable := level()
	if seq := again.State.Seq(); seq < durable {
		t.Errorf("serves from seq %d, the leader had %d", seq, durable)
	}
}
