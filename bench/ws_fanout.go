package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"blockdesk/bench/crowd"
	"blockdesk/feed"
)

const (
	// wsRound is the messages of one round: as many as the kernel holds for a
	// client that does not read yet.
	wsRound = 50
	// wsTurn is the ticks that one side times before the other has its turn.
	wsTurn = 25
	// wsGap lets the crowd go back to sleep between two ticks.
	wsGap = time.Millisecond
)

// fanout compares the feed with raw writes: CPU time a delivery, alone and in
// bursts, and the time from a tick to the last client.
func (b *wsBench) fanout(ctx context.Context) (err error) {
	f := fanout{b: b}
	if f.feed, err = startFeed(ctx, feed.Options{SendBuffer: wsSendBuffer}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.feed.stop()) }()
	if err := b.join(f.feed.subscribers("feed", b.o.Clients, false)); err != nil {
		return err
	}
	if f.raw, err = joinRaw(b.crowd, "raw", b.o.Clients, wsSendBuffer); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.raw.close()) }()
	if err := errors.Join(f.cost(ctx), f.last(ctx)); err != nil {
		return err
	}
	return errors.Join(b.leave("feed"), b.leave("raw"))
}

func (b *wsBench) join(g crowd.Group) error {
	if err := b.crowd.Join(g); err != nil {
		return err
	}
	_, err := b.crowd.Answer()
	return err
}

func (b *wsBench) leave(name string) error {
	if err := b.crowd.Leave(name); err != nil {
		return err
	}
	_, err := b.crowd.Answer()
	return err
}

// fanout is the two sides of the comparison.
type fanout struct {
	b    *wsBench
	feed *wsFeed
	raw  *rawWriter
	size int // bytes of an update
}

// lane is one way to send a round of messages.
type lane struct {
	name  string
	group string
	run   func() error
	s     *Series
	perOp []float64
}

// cost takes the CPU time of rounds that the clients read only afterwards.
func (f *fanout) cost(ctx context.Context) error {
	lanes := []*lane{
		{name: "feed, one update a write", group: "feed", run: func() error { return f.updates(1) }},
		{name: "raw write(2) of as many bytes", group: "raw", run: func() error { return f.writes(1) }},
		{name: fmt.Sprintf("feed, bursts of %d updates", wsBurst), group: "feed", run: func() error { return f.updates(wsBurst) }},
		{name: fmt.Sprintf("raw write(2) of %d together", wsBurst), group: "raw", run: func() error { return f.writes(wsBurst) }},
	}
	for _, l := range lanes {
		l.s = &Series{Name: "CPU a delivery: " + l.name}
		f.b.report.Series = append(f.b.report.Series, l.s)
	}
	for round := range f.b.o.Rounds + 1 {
		for _, l := range lanes {
			if err := errors.Join(ctx.Err(), f.round(l, round > 0)); err != nil {
				return fmt.Errorf("%s: %w", l.name, err)
			}
		}
	}
	f.b.report.Ratios = append(f.b.report.Ratios,
		Ratio{Name: "CPU a delivery, feed / raw write(2)", Value: paired(lanes[0], lanes[1]), Goal: goalDelivery, AtMost: true},
		Ratio{Name: fmt.Sprintf("CPU a delivery in bursts of %d, feed / raw write(2) each", wsBurst), Value: paired(lanes[2], lanes[1]), Goal: goalBurst, AtMost: true},
		Ratio{Name: fmt.Sprintf("CPU a delivery, raw write(2) of %d together / each", wsBurst), Value: paired(lanes[3], lanes[1])},
	)
	f.b.report.Notes = append(f.b.report.Notes, fmt.Sprintf("fan-out: %d clients, updates of %d bytes with their header, rounds of %d; ratios are medians over %d rounds in turn; CPU is this process's, the clients' kernels hold what comes until the round's end",
		f.b.o.Clients, f.size, wsRound, f.b.o.Rounds))
	return nil
}

// round sends one round, takes its cost unless it is the warm-up, and has the
// clients read it.
func (f *fanout) round(l *lane, counted bool) error {
	start, before := time.Now(), processCPU()
	if err := l.run(); err != nil {
		return err
	}
	if counted {
		took := processCPU() - before
		ops := int64(wsRound * f.b.o.Clients)
		l.s.CPU += took
		l.s.Elapsed += time.Since(start)
		l.s.Ops += ops
		l.perOp = append(l.perOp, float64(took)/float64(ops))
	}
	if err := f.b.crowd.Await(l.group, wsRound); err != nil {
		return err
	}
	_, err := f.b.crowd.Answer()
	return err
}

// updates sends a round through the feed, burst updates at a time.
func (f *fanout) updates(burst int) error {
	before := f.feed.Stats()
	sent := before.MessagesOut
	for range wsRound / burst {
		f.feed.tick(burst)
		sent += uint64(burst * f.b.o.Clients)
		if err := f.feed.sent(sent); err != nil {
			return err
		}
	}
	after := f.feed.Stats()
	f.size = int((after.BytesOut - before.BytesOut) / (after.MessagesOut - before.MessagesOut))
	return nil
}

// writes sends as many bytes by raw writes.
func (f *fanout) writes(burst int) error {
	f.raw.load(burst, f.size)
	for range wsRound / burst {
		if err := f.raw.tick(); err != nil {
			return err
		}
	}
	return nil
}

// paired is the median of what a costs in units of b, round by round.
func paired(a, b *lane) float64 {
	list := make([]float64, min(len(a.perOp), len(b.perOp)))
	for i := range list {
		list[i] = a.perOp[i] / b.perOp[i]
	}
	return middle(list)
}

// last times single ticks, one at a time, until the last client has read it.
func (f *fanout) last(ctx context.Context) error {
	f.raw.load(1, f.size)
	sides := []struct {
		group string
		tick  func() error
		s     *Series
	}{
		{"feed", func() error { f.feed.tick(1); return nil }, &Series{Name: "tick to last client, feed", Hist: NewHistogram()}},
		{"raw", f.raw.tick, &Series{Name: "tick to last client, raw writes", Hist: NewHistogram()}},
	}
	for _, side := range sides {
		f.b.report.Series = append(f.b.report.Series, side.s)
	}
	for range 2 * f.b.o.Rounds {
		for _, side := range sides {
			for range wsTurn {
				took, err := f.one(ctx, side.group, side.tick)
				if err != nil {
					return fmt.Errorf("%s: %w", side.group, err)
				}
				_ = side.s.Hist.RecordValue(took)
				side.s.Ops++
				side.s.Elapsed += time.Duration(took)
			}
		}
	}
	for _, side := range sides {
		side.s.Summary = summarize(side.s.Hist)
	}
	ours, theirs := sides[0].s.Summary, sides[1].s.Summary
	f.b.report.Ratios = append(f.b.report.Ratios,
		Ratio{Name: "tick to last client p50, feed / raw writes", Value: float64(ours.P50) / float64(theirs.P50), Goal: goalLastP50, AtMost: true},
		Ratio{Name: "tick to last client p99, feed / raw writes", Value: float64(ours.P99) / float64(theirs.P99), Goal: goalLastP99, AtMost: true},
	)
	f.b.report.Notes = append(f.b.report.Notes, fmt.Sprintf("tick to last: one tick at a time, from its hand-over to the %d-th client's read; the clients wait in one epoll", f.b.o.Clients))
	return nil
}

// one times one tick. The crowd has had time to fall asleep before it.
func (f *fanout) one(ctx context.Context, group string, tick func() error) (int64, error) {
	if err := f.b.crowd.Await(group, 1); err != nil {
		return 0, err
	}
	time.Sleep(wsGap)
	start := crowd.Now()
	if err := errors.Join(ctx.Err(), tick()); err != nil {
		return 0, err
	}
	a, err := f.b.crowd.Answer()
	if err != nil {
		return 0, err
	}
	return a.Last - start, nil
}
