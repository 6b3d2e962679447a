package ws

import (
	"context"
	"errors"
	"fmt"
	"runtime/metrics"
	"time"

	"blockdesk/bench"
	"blockdesk/bench/clients"
	"blockdesk/feed"
)

const (
	// wsFill ticks of wsBurst updates are more than the kernel holds for a client
	// that does not read.
	wsFill = 20
	// wsDeliveries is the number of updates a second to all healthy clients together.
	wsDeliveries = 50_000
	// wsCloseWithin is how long a stalled client has to read the reason of its close.
	wsCloseWithin = 20 * time.Second
	// wsStalledRounds is the runs of each kind.
	wsStalledRounds = 3
	// wsPending bounds what the feed keeps for a connection: its default.
	wsPending = 128 << 10
)

// errNotClosed means that a stalled client was not closed with its reason.
var errNotClosed = errors.New("stalled clients were not closed with SLOW_CONSUMER")

// stalled compares the latency of the same number of healthy clients without and with a
// tenth of clients that do not read, and measures the memory of the latter.
func (b *wsBench) stalled(ctx context.Context) error {
	for _, conns := range []int{b.o.Clients, b.o.Many} {
		stalled := conns / 10
		healthy := conns - stalled
		without := &bench.Series{Name: fmt.Sprintf("update to each of %d clients", healthy)}
		with := &bench.Series{Name: fmt.Sprintf("update to each of %d clients, %d more stalled", healthy, stalled)}
		var ratios, memory []float64
		for range min(wsStalledRounds, b.o.Rounds) {
			quiet, err := b.loaded(ctx, without, healthy, 0)
			if err != nil {
				return err
			}
			busy, err := b.loaded(ctx, with, healthy, stalled)
			if err != nil {
				return err
			}
			ratios = append(ratios, float64(busy.latency.P99)/float64(quiet.latency.P99))
			memory = append(memory, (busy.heap-quiet.heap)/float64(stalled))
		}
		b.report.Series = append(b.report.Series, without, with)
		b.report.Ratios = append(b.report.Ratios,
			bench.Ratio{Name: fmt.Sprintf("p99 of %d healthy clients, %d more stalled / none", healthy, stalled), Value: bench.MedianOf(ratios), Goal: goalStalled, AtMost: true},
			bench.Ratio{Name: fmt.Sprintf("bytes of heap more a stalled client, of %d", stalled), Value: bench.MedianOf(memory), Goal: wsPending, AtMost: true},
		)
	}
	b.report.Notes = append(b.report.Notes, fmt.Sprintf("stalled: %d deliveries a second, open loop, for %v; stalled clients do not read from the start, block after %d updates, and are all closed after %v (SLOW_CONSUMER, 4008); the table has the last of %d runs in turn, the ratio is the runs' median",
		wsDeliveries, b.o.Hold, wsFill*wsBurst, b.o.Hold/2, min(wsStalledRounds, b.o.Rounds)))
	return nil
}

// wsLoaded is the result of one run.
type wsLoaded struct {
	latency *clients.Answer
	heap    float64 // the most, in bytes
}

// loaded is one run: clients that read, and some that never do until they are
// closed.
func (b *wsBench) loaded(ctx context.Context, s *bench.Series, healthy, stalled int) (_ *wsLoaded, err error) {
	// The feed finds the stalled clients within the run, so that the run includes the cost.
	f, err := startFeed(ctx, feed.Options{SlowAfter: b.o.Hold / 2, CloseWithin: wsCloseWithin, SendBuffer: 8 << 10, MaxPending: wsPending})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.stop()) }()
	if stalled > 0 {
		g := f.subscribers("stalled", stalled, false)
		g.ReceiveBuffer = 4 << 10
		if err := b.join(g); err != nil {
			return nil, err
		}
	}
	if err := b.join(f.subscribers("healthy", healthy, false)); err != nil {
		return nil, err
	}
	for range wsFill {
		f.tick(wsBurst)
		if err := b.clients.Await("healthy", wsBurst); err != nil {
			return nil, err
		}
		if _, err := b.clients.Answer(); err != nil {
			return nil, err
		}
	}
	result, err := b.load(ctx, f, s, healthy)
	if err != nil {
		return nil, err
	}
	if stalled > 0 {
		if err := b.awaitCloseReasons(f, stalled); err != nil {
			return nil, err
		}
	}
	return result, b.leave("healthy")
}

// load sends updates at their times and measures their latencies.
func (b *wsBench) load(ctx context.Context, f *wsFeed, s *bench.Series, healthy int) (*wsLoaded, error) {
	perSecond := wsDeliveries / healthy
	ticks := int(b.o.Hold.Seconds() * float64(perSecond))
	const ahead = 20 * time.Millisecond // for the clients to begin
	start := time.Now().Add(ahead)
	if err := b.clients.Follow("healthy", clients.Schedule{
		Ticks: ticks, Each: 1, Start: clients.Now() + int64(ahead), Every: time.Second / time.Duration(perSecond),
	}); err != nil {
		return nil, err
	}
	result := &wsLoaded{}
	cpu := bench.ProcessCPU()
	err := bench.OpenLoop(ctx, start, ticks, perSecond, func(int) error {
		f.tick(1)
		result.heap = max(result.heap, heapNow())
		return nil
	})
	if err != nil {
		return nil, err
	}
	if result.latency, err = b.clients.Answer(); err != nil {
		return nil, err
	}
	a := result.latency
	s.CPU += bench.ProcessCPU() - cpu
	s.Elapsed += time.Since(start)
	s.Ops += a.Count
	s.Summary = &bench.Summary{P50: a.P50, P90: a.P90, P99: a.P99, P999: a.P999, Max: a.Max}
	return result, nil
}

// awaitCloseReasons checks that each stalled client has been cut off and, once it reads,
// gets the reason.
func (b *wsBench) awaitCloseReasons(f *wsFeed, stalled int) error {
	deadline := time.Now().Add(wsCloseWithin)
	for f.Stats().SlowConsumers < uint64(stalled) {
		if time.Now().After(deadline) {
			return fmt.Errorf("%w: %d of %d closed", errNotClosed, f.Stats().SlowConsumers, stalled)
		}
		time.Sleep(10 * time.Millisecond)
	}
	const reason = "SLOW_CONSUMER"
	tail := append([]byte{0x88, 2 + byte(len(reason)), feed.CloseSlowConsumer >> 8, feed.CloseSlowConsumer & 0xff}, reason...)
	if err := b.clients.End("stalled", tail); err != nil {
		return err
	}
	a, err := b.clients.Answer()
	if err != nil {
		return err
	}
	if a.Ended != stalled {
		return fmt.Errorf("%w: %d of %d", errNotClosed, a.Ended, stalled)
	}
	return b.leave("stalled")
}

// heapNow returns the heap's size, garbage included, without stopping the world.
func heapNow() float64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return float64(sample[0].Value.Uint64())
}
