package cluster

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	"blockdesk/bench"
	enginebench "blockdesk/bench/engine"
	"blockdesk/bench/flow"
	"blockdesk/engine"
	"blockdesk/engine/marketdata"
	"blockdesk/feed"
	"blockdesk/market"
)

const (
	// lagRate is commands a second, each of which has an event or more.
	lagRate    = 10_000
	lagSeconds = 10
)

// measureLag measures how far a follower's view is behind its leader's at a fixed rate,
// open loop: the leader's journal syncs, its frames go over the embedded server,
// and both have a feed that makes the views which readers see.
func measureLag(ctx context.Context, b *clusterBench) (err error) {
	var ends bench.Closers
	defer func() { err = errors.Join(err, ends.Close()) }()
	mix, err := flow.NewMix(flow.MixOptions{Seed: 8, References: true})
	if err != nil {
		return err
	}
	instruments, setup, commands := mix.State().Instruments(), mix.Setup(), mix.Take(lagRate*lagSeconds)
	nats, end, err := startNATS(ctx, filepath.Join(b.o.Dir, "lag-nats"))
	if err != nil {
		return err
	}
	ends.Add(end)
	l, err := openLeader(filepath.Join(b.o.Dir, "lag-leader"), engine.Options{}, nil)
	if err != nil {
		return err
	}
	ends.Add(l.ends.Close)
	atLeader, err := watchViews(l.engine, instruments, l.replica.Market)
	if err != nil {
		return err
	}
	if err := l.run(ctx, setup, &nats, atLeader.run); err != nil {
		return err
	}
	f, err := joinLeader(ctx, nats)
	if err != nil {
		return err
	}
	ends.Add(func() error { return f.ends.Close() })
	atFollower, err := watchViews(f.engine, instruments, f.replica.Market)
	if err != nil {
		return err
	}
	if err := f.run(ctx, atFollower.run); err != nil {
		return err
	}
	gaps := f.follower.Stats().Gaps.Load() // of joining
	published := l.publisher.Stats()
	frames, bytes := published.Frames.Load(), published.Bytes.Load()
	if err := driveViews(ctx, l.engine, commands, atLeader, atFollower); err != nil {
		return err
	}
	judgeLag(b, atLeader, atFollower, f.follower.Stats().Gaps.Load()-gaps)
	frames, bytes = published.Frames.Load()-frames, published.Bytes.Load()-bytes
	b.report.Notes = append(b.report.Notes, fmt.Sprintf(
		"frames: %.0f bytes a command, with the frame's head, in the journal and to each follower; %.1f commands a frame at this rate",
		float64(bytes)/float64(len(commands)), float64(len(commands))/float64(max(frames, 1))))
	return nil
}

// viewWatch records when a feed's views show each command.
type viewWatch struct {
	run func(context.Context) error
	lap atomic.Pointer[viewLap]
}

// viewLap is the commands after base; at is when a view showed each, in ns since
// start, and shown how many are in it.
type viewLap struct {
	base  uint64
	start time.Time
	at    []int64
	shown atomic.Int64
}

// watchViews gives an engine that does not run yet a feed, and watches that.
func watchViews(e *engine.Engine, instruments []market.Instrument, data *marketdata.Data) (*viewWatch, error) {
	consumer := e.Consumer("feed")
	f, err := feed.New(feed.Options{Logger: bench.Quiet()}, instruments, data, e.Epoch())
	if err != nil {
		return nil, err
	}
	w := &viewWatch{run: func(ctx context.Context) error { return f.Run(ctx, consumer) }}
	f.Attach(w)
	return w, nil
}

// MarketUpdate implements marketdata.Sink, on the feed's goroutine. A command that
// changes no view is counted with the next one that does.
func (w *viewWatch) MarketUpdate(_, next *marketdata.View, _ []marketdata.Trade) {
	lap := w.lap.Load()
	if lap == nil || next.EngineSeq <= lap.base {
		return
	}
	now, shown := int64(time.Since(lap.start)), lap.shown.Load()
	for ; shown < int64(len(lap.at)) && uint64(shown) < next.EngineSeq-lap.base; shown++ {
		lap.at[shown] = now
	}
	lap.shown.Store(shown)
}

// begin starts a lap of n commands after base.
func (w *viewWatch) begin(base uint64, n int, start time.Time) {
	w.lap.Store(&viewLap{base: base, start: start, at: make([]int64, n)})
}

// driveViews sends the commands at lagRate and waits until both show as many.
func driveViews(ctx context.Context, e *engine.Engine, commands []engine.Command, atLeader, atFollower *viewWatch) error {
	start := time.Now().Add(50 * time.Millisecond)
	base := enginebench.Settled(e)
	for _, w := range []*viewWatch{atLeader, atFollower} {
		w.begin(base, len(commands), start)
	}
	err := bench.OpenLoop(ctx, start, len(commands), lagRate, func(i int) error {
		for {
			if err := e.Submit(&commands[i]); !errors.Is(err, engine.ErrFull) {
				return err
			}
		}
	})
	if err != nil {
		return err
	}
	if err := awaitDurable(ctx, e); err != nil {
		return err
	}
	// The last of them may change no view.
	return awaitSoon(ctx, "the last view", func() bool {
		mine, theirs := atLeader.lap.Load().shown.Load(), atFollower.lap.Load().shown.Load()
		return mine == theirs && len(commands)-int(mine) < lagUnshown
	})
}

// lagUnshown is more than the commands at the end that change no view.
const lagUnshown = 100

func judgeLag(b *clusterBench, atLeader, atFollower *viewWatch, gaps uint64) {
	name := fmt.Sprintf("view, %d/s: ", lagRate)
	mine := &bench.Series{Name: name + "due time to the leader's", Hist: bench.NewHistogram()}
	theirs := &bench.Series{Name: name + "due time to the follower's", Hist: bench.NewHistogram()}
	behind := &bench.Series{Name: name + "the leader's to the follower's", Hist: bench.NewHistogram()}
	leader, follower := atLeader.lap.Load(), atFollower.lap.Load()
	for i := range int(leader.shown.Load()) {
		due := int64(i) * int64(time.Second) / lagRate
		mine.Add(max(leader.at[i]-due, 1))
		theirs.Add(max(follower.at[i]-due, 1))
		behind.Add(max(follower.at[i]-leader.at[i], 1))
	}
	for _, s := range []*bench.Series{mine, theirs, behind} {
		s.Summary = bench.Summarize(s.Hist)
		b.report.Series = append(b.report.Series, s)
	}
	ms := func(ns int64) float64 { return float64(ns) / float64(time.Millisecond) }
	b.report.Ratios = append(b.report.Ratios,
		bench.Ratio{Name: "the follower's view behind the leader's, p50, ms", Value: ms(behind.Summary.P50), Goal: ms(int64(goalViewLag)), AtMost: true},
		bench.Ratio{Name: "the follower's view behind the leader's, p99, ms", Value: ms(behind.Summary.P99)},
		bench.Ratio{Name: "due time to the follower's view, p50, ms", Value: ms(theirs.Summary.P50), Goal: ms(int64(goalViewLag)), AtMost: true},
		bench.Ratio{Name: "due time to the follower's view / to the leader's, p50", Value: float64(theirs.Summary.P50) / float64(mine.Summary.P50)},
	)
	b.report.Notes = append(b.report.Notes, fmt.Sprintf(
		"view: open loop for %d s, from when a command was due; journal mode sync, frames over the embedded server, a feed on each side, all in this process; %d gaps; what changes no view counts with the next that does",
		lagSeconds, gaps))
}
