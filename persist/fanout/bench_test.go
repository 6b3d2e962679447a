package fanout

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"blockdesk/engine"
	"blockdesk/engine/event"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/persist"
)

// BenchmarkPublish measures the publisher's work for a live frame of 10 commands:
// reading it back, checking its chain, and passing it to the connection, in the
// publisher's own goroutine.
func BenchmarkPublish(b *testing.B) {
	r := newRig(b)
	l := r.lead(b, journalOptions(vfs.NewMem()), newFlow(b, 21))
	for range 500 {
		l.submit(b, 10)
		l.seq(b)
	}
	wire, err := dial(&r.o, "bench", &LinkStats{})
	if err != nil {
		b.Fatal(err)
	}
	defer wire.Close()
	await.True(b, "a connection", wire.IsConnected)
	p, err := NewPublisher(r.o, l.store, 1)
	if err != nil {
		b.Fatal(err)
	}
	var buf []byte
	frames := 0
	b.ReportAllocs()
	for b.Loop() {
		at := persist.Genesis()
		for more := true; more; {
			if more, err = p.publish(wire, &at, &buf); err != nil {
				b.Fatal(err)
			}
		}
		frames = int(p.stats.Frames.Load())
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(frames), "ns/frame")
	l.stop(b)
}

// BenchmarkLag is how long after its command's stamp an event is seen, by a
// consumer of a follower, over a server on loopback, at
// 10,000 commands a second for two seconds. The journal is in memory.
func BenchmarkLag(b *testing.B) {
	r := newRig(b)
	for b.Loop() {
		l := r.lead(b, journalOptions(vfs.NewMem()), newFlow(b, 22))
		f, err := NewFollower(r.o)
		if err != nil {
			b.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), runtest.HangTimeout)
		replica, err := f.Join(ctx)
		cancel()
		if err != nil {
			b.Fatal(err)
		}
		e, err := engine.Follow(engine.Options{}, replica)
		if err != nil {
			b.Fatal(err)
		}
		seen := &delays{}
		c := e.Consumer("reader")
		runs := []*running{
			start(func(ctx context.Context) error { return f.Run(ctx, e) }),
			start(e.Run),
			start(func(context.Context) error { return seen.read(c) }),
		}
		await.True(b, "readiness", func() bool { return f.Ready() == nil })
		const heartbeats, burst = 2000, 10
		tick := time.NewTicker(time.Millisecond)
		for range heartbeats {
			<-tick.C
			l.submit(b, burst)
		}
		tick.Stop()
		seq := l.seq(b)
		await.True(b, "the last command", func() bool { return f.Lag().Seq == seq })
		for _, run := range runs {
			if err := run.stop(b); err != nil {
				b.Fatal(err)
			}
		}
		l.stop(b)
		deleteStream(b, r)
		for name, q := range map[string]float64{"p50-µs": 0.5, "p99-µs": 0.99} {
			b.ReportMetric(float64(seen.at(q).Microseconds()), name)
		}
		b.ReportMetric(float64(f.stats.Gaps.Load()), "gaps")
	}
}

// delays are the ages of events when a consumer sees them.
type delays struct{ all []time.Duration }

func (d *delays) read(c *engine.Consumer) error {
	for {
		events, err := c.Next(context.Background())
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		now := time.Now().UnixNano()
		for i := range events {
			if events[i].Kind == event.Accepted {
				d.all = append(d.all, time.Duration(now-events[i].At))
			}
		}
		c.Release(len(events))
	}
}

func (d *delays) at(q float64) time.Duration {
	slices.Sort(d.all)
	return d.all[int(q*float64(len(d.all)-1))]
}
