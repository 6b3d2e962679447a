package fanout

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
)

// deleteStream deletes the stream once the publisher has created it.
func deleteStream(t testing.TB, r *rig) {
	t.Helper()
	c, err := nats.Connect(r.o.URLs[0])
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	js, err := jetstream.New(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), runtest.HangTimeout)
	defer cancel()
	if err := js.DeleteStream(ctx, r.o.stream()); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Fatal(err)
	}
}

// TestFaults: under load, the follower's wire is slow, is cut and dies, the server is
// killed and comes back with and without its stream, the stream is deleted, and
// followers come and go: all followers at the end equal the leader.
func TestFaults(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	l := r.lead(t, journalOptions(vfs.NewMem()), newFlow(t, 8))
	wire := newProxy(t, r.address())
	far := r.o
	far.URLs = []string{wire.url()}
	near, away := follow(t, r.o), follow(t, far)
	load := start(func(ctx context.Context) error {
		for ctx.Err() == nil {
			l.submit(t, 10)
			time.Sleep(time.Millisecond) // sleep: the load's pace
		}
		return nil
	})
	// progress waits until both have what the leader has now.
	progress := func() {
		t.Helper()
		seq := l.engine.Stats().Durable + 1
		near.reaches(t, seq)
		away.reaches(t, seq)
	}
	progress()
	for name, fault := range map[string]func(){
		"cut":  wire.cut,
		"slow": func() { wire.delay.Store(int64(2 * time.Millisecond)) },
		"dead": func() {
			wire.dead.Store(true)
			wire.cut()
			near.reaches(t, l.engine.Stats().Durable+200)
			wire.dead.Store(false)
		},
		"stream deleted": func() {
			deleteStream(t, r)
			wire.cut()
		},
		"server restarts": func() {
			if err := r.server.stop(t); err != nil {
				t.Error(err)
			}
			r.up(t)
		},
		"server lost": func() {
			if err := r.server.stop(t); err != nil {
				t.Error(err)
			}
			if err := os.RemoveAll(r.so.Dir); err != nil {
				t.Error(err)
			}
			r.up(t)
		},
		"follower restarts": func() {
			away.stop(t)
			away = follow(t, far)
		},
	} {
		t.Log(name)
		fault()
		progress()
		wire.delay.Store(0)
	}
	if err := load.stop(t); err != nil {
		t.Fatal(err)
	}
	seq := l.seq(t)
	near.reaches(t, seq)
	away.reaches(t, seq)
	await.True(t, "the whole journal in the stream", func() bool { return l.publisher.Stats().StreamSeq.Load() == seq })
	l.stop(t)
	near.sameAs(t, l)
	away.sameAs(t, l)
	if s := near.follower.Stats(); s.Gaps.Load() == 0 || s.Refilled.Load() == 0 || s.Damaged.Load() != 0 {
		t.Errorf("gaps %d, refilled %d, damaged %d", s.Gaps.Load(), s.Refilled.Load(), s.Damaged.Load())
	}
	if s := l.publisher.Stats(); s.Fills.Load() < 2 || s.LiveSeq.Load() != seq {
		t.Errorf("fills %d, live up to seq %d of %d", s.Fills.Load(), s.LiveSeq.Load(), seq)
	}
}
