package desk

import (
	"context"
	"log/slog"
	"testing"

	"blockdesk/engine"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/persist"
	"blockdesk/persist/kv"
	"blockdesk/persist/kv/kvtest"
)

// benched returns a rig without a journal, whose store is Pebble or nothing.
func benched(b *testing.B, pebble bool) *rig {
	r := newRig(b)
	r.journal, r.store = nil, forgetful{kvtest.New()}
	if pebble {
		kv, err := persist.OpenKV(b.TempDir(), nil, slog.New(slog.DiscardHandler))
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { kv.Close() })
		r.store = kv
	}
	return r.start()
}

// forgetful keeps no log.
type forgetful struct{ *kvtest.Memory }

func (s forgetful) Commit(fill kv.Fill, _ bool) error {
	fill(func(_, _ []byte) {}, func(_, _ []byte) {})
	return nil
}

// BenchmarkDo is one request after the other through an engine without a journal:
// what the desk, the rings and their goroutines cost.
func BenchmarkDo(b *testing.B) {
	for _, c := range []struct {
		name   string
		pebble bool
		make   func(r *rig, ticket *rfq.Ticket) func(i int) rfq.Request
	}{
		{"quote/memory", false, quotes},
		{"claim/memory", false, claims},
		{"claim/pebble", true, claims},
		{"keyed/pebble", true, keyedClaims},
		{"replayed/pebble", true, replays},
	} {
		b.Run(c.name, func(b *testing.B) {
			r := benched(b, c.pebble)
			request := c.make(r, r.open(1_000_000_000))
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if res, err := r.Do(request(i)); err != nil || res.Reason != 0 {
					b.Fatalf("%+v, %v", res, err)
				}
				i++
			}
			b.StopTimer()
			r.finish()
		})
	}
}

func quotes(r *rig, t *rfq.Ticket) func(int) rfq.Request {
	req := quote(t.ID)
	return func(int) rfq.Request {
		r.clock.Add(2e6)
		return req
	}
}

// claims takes a claim every 2 ms of the desk's time, so that as many expire.
func claims(r *rig, t *rfq.Ticket) func(int) rfq.Request {
	req := take(t.ID, 1)
	return func(int) rfq.Request {
		r.clock.Add(2e6)
		return req
	}
}

func keyedClaims(r *rig, t *rfq.Ticket) func(int) rfq.Request {
	bare := claims(r, t)
	return func(i int) rfq.Request { return keyed(bare(i), uint32(i+1), 1) }
}

func replays(r *rig, t *rfq.Ticket) func(int) rfq.Request {
	r.must(keyed(take(t.ID, 1), 1, 1))
	return func(int) rfq.Request { return keyed(take(t.ID, 1), 1, 1) }
}

// BenchmarkDoParallel is many callers at once: what a batch saves.
func BenchmarkDoParallel(b *testing.B) {
	for _, pebble := range []bool{false, true} {
		name := "memory"
		if pebble {
			name = "pebble"
		}
		b.Run(name, func(b *testing.B) {
			r := benched(b, pebble)
			ticket := r.open(1_000_000_000)
			b.ReportAllocs()
			b.SetParallelism(32)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					r.clock.Add(2e6)
					if res, err := r.Do(take(ticket.ID, 1)); err != nil || res.Reason != 0 {
						b.Errorf("%+v, %v", res, err)
						return
					}
				}
			})
			b.StopTimer()
			r.finish()
		})
	}
}

// BenchmarkEngineAlone is the floor under BenchmarkDo: the same commands, and a
// reader that wakes the caller, without a desk.
func BenchmarkEngineAlone(b *testing.B) {
	r := newRig(b)
	r.journal = nil
	r.recover()
	c := r.eng.Consumer("floor")
	seen := make(chan struct{}, 1)
	ctx, stop := context.WithCancel(context.Background())
	r.engRan = make(chan error, 1)
	go func() { r.engRan <- r.eng.Run(ctx) }()
	go func() {
		defer close(seen)
		for {
			events, err := c.Next(context.Background())
			if err != nil {
				return
			}
			desk := false
			for i := range events {
				desk = desk || events[i].Kind == event.Desk
			}
			c.Release(len(events))
			if desk {
				seen <- struct{}{}
			}
		}
	}()
	req := quote(1)
	req.RequestID = 1
	commands, err := engine.DeskCommands(nil, req)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := r.eng.SubmitAll(commands); err != nil {
			b.Fatal(err)
		}
		<-seen
	}
	b.StopTimer()
	stop()
	<-r.engRan
	for range seen {
	}
}
