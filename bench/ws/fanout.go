package ws

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"blockdesk/bench"
	"blockdesk/bench/clients"
	"blockdesk/feed"
)

const (
	// wsTicks is the number of ticks of one side before the other side's turn.
	wsTicks = 25
	// wsGap lets the clients go back to sleep between two ticks.
	wsGap = time.Millisecond
)

// fanout compares the feed with raw writes, tick by tick: CPU time a delivery,
// alone and in bursts, and the time from a tick to the last client. One shard is
// compared with one loop of writes, and one a core with as many loops at once, because
// concurrent writes cost the kernel more, for any writer.
func (b *wsBench) fanout(ctx context.Context) (err error) {
	var pairs []*fanPair
	defer func() {
		for _, p := range pairs {
			err = errors.Join(err, p.close())
		}
	}()
	for _, writers := range []int{1, runtime.GOMAXPROCS(0)} {
		if len(pairs) > 0 && writers == 1 {
			break // a machine of one core
		}
		p := &fanPair{b: b, writers: writers}
		pairs = append(pairs, p)
		if err := p.open(ctx); err != nil {
			return err
		}
	}
	for round := range b.o.Rounds + 1 {
		for _, p := range pairs {
			if err := p.round(ctx, round > 0); err != nil {
				return err
			}
		}
	}
	for _, p := range pairs {
		p.judge()
		if err := errors.Join(b.leave(p.group("feed")), b.leave(p.group("raw"))); err != nil {
			return err
		}
	}
	b.report.Ratios = append(b.report.Ratios, lastRatios(pairs[len(pairs)-1], pairs[0], goalLastP50, goalLastP99)...)
	b.report.Notes = append(b.report.Notes, fmt.Sprintf(
		"fan-out: %d clients in one epoll, updates of %d bytes with their header, one tick at a time, from its hand-over to the last client's read; %d turns of %d ticks each; a ratio is the median over the turns, a p99's of all; CPU is this process's; the goals of the time to the last client are for the feed as it comes against one loop",
		b.o.Clients, pairs[0].size, b.o.Rounds, wsTicks))
	return nil
}

func (b *wsBench) join(g clients.Group) error {
	if err := b.clients.Join(g); err != nil {
		return err
	}
	_, err := b.clients.Answer()
	return err
}

func (b *wsBench) leave(name string) error {
	if err := b.clients.Leave(name); err != nil {
		return err
	}
	_, err := b.clients.Answer()
	return err
}

// fanPair is a feed and its yardstick, with equally many writers.
type fanPair struct {
	b       *wsBench
	writers int
	feed    *wsFeed
	raw     *rawWriter
	size    int // bytes of an update
	// One message a tick, and wsBurst of them.
	ours, raws, oursBurst, rawsBurst fanVariant
}

// fanVariant is one way to send ticks.
type fanVariant struct {
	group string
	each  int // messages a tick
	tick  func() error

	first, last *bench.Series
	medians     []float64 // of each turn's times to the last client, in ns
	perOp       []float64 // CPU ns a delivery, of each turn
}

func (p *fanPair) group(side string) string { return fmt.Sprintf("%s %d", side, p.writers) }

func (p *fanPair) open(ctx context.Context) (err error) {
	if p.feed, err = startFeed(ctx, feed.Options{SendBuffer: wsSendBuffer, Shards: p.writers}); err != nil {
		return err
	}
	if err := p.b.join(p.feed.subscribers(p.group("feed"), p.b.o.Clients, false)); err != nil {
		return err
	}
	if p.raw, err = joinRaw(p.b.clients, p.group("raw"), p.b.o.Clients, wsSendBuffer); err != nil {
		return err
	}
	shards, loops := fmt.Sprintf("feed, %d shards", p.writers), fmt.Sprintf("write(2), %d loops", p.writers)
	p.ours = newFanVariant(p.group("feed"), shards, 1)
	p.oursBurst = newFanVariant(p.group("feed"), shards, wsBurst)
	p.raws = newFanVariant(p.group("raw"), loops, 1)
	p.rawsBurst = newFanVariant(p.group("raw"), loops, wsBurst)
	for _, v := range []*fanVariant{&p.ours, &p.oursBurst} {
		v.tick = func() error { p.feed.tick(v.each); return nil }
	}
	for _, v := range []*fanVariant{&p.raws, &p.rawsBurst} {
		v.tick = func() error { return p.raw.tick(p.writers) }
	}
	return nil
}

func newFanVariant(group, of string, each int) fanVariant {
	if each > 1 {
		of = fmt.Sprintf("%s, %d together", of, each)
	}
	return fanVariant{
		group: group, each: each,
		first: &bench.Series{Name: "tick to first client, " + of, Hist: bench.NewHistogram()},
		last:  &bench.Series{Name: "tick to last client, " + of, Hist: bench.NewHistogram()},
	}
}

func (p *fanPair) close() (err error) {
	if p.feed != nil {
		err = p.feed.stop()
	}
	if p.raw != nil {
		err = errors.Join(err, p.raw.close())
	}
	return err
}

// round gives each variant a turn.
func (p *fanPair) round(ctx context.Context, counted bool) error {
	for _, v := range []*fanVariant{&p.ours, &p.raws, &p.oursBurst, &p.rawsBurst} {
		before := p.feed.Stats()
		if p.size > 0 {
			p.raw.load(v.each, p.size)
		}
		if err := p.b.timeTicks(ctx, v, counted); err != nil {
			return fmt.Errorf("%s: %w", v.last.Name, err)
		}
		if p.size == 0 { // the first turn is the feed's
			p.size = p.feed.size(before)
		}
	}
	return nil
}

// timeTicks times ticks, one at a time.
func (b *wsBench) timeTicks(ctx context.Context, v *fanVariant, counted bool) error {
	times := make([]float64, 0, wsTicks)
	cpu := bench.ProcessCPU()
	for range wsTicks {
		first, last, err := b.tick(ctx, v)
		if err != nil {
			return err
		}
		times = append(times, float64(last))
		if counted {
			v.first.Add(first)
			v.last.Add(last)
		}
	}
	if counted {
		cpu = bench.ProcessCPU() - cpu
		v.last.CPU += cpu
		v.perOp = append(v.perOp, float64(cpu)/float64(wsTicks*v.each*b.o.Clients))
		v.medians = append(v.medians, bench.MedianOf(times))
	}
	return nil
}

// tick times one tick to the first and to the last client. The clients have had time
// to fall asleep before it.
func (b *wsBench) tick(ctx context.Context, v *fanVariant) (first, last int64, err error) {
	if err := b.clients.Await(v.group, v.each); err != nil {
		return 0, 0, err
	}
	time.Sleep(wsGap)
	start := clients.Now()
	if err := errors.Join(ctx.Err(), v.tick()); err != nil {
		return 0, 0, err
	}
	a, err := b.clients.Answer()
	if err != nil {
		return 0, 0, err
	}
	return a.First - start, a.Last - start, nil
}

// judge adds the results of a pair to the report.
func (p *fanPair) judge() {
	for _, v := range []*fanVariant{&p.ours, &p.raws, &p.oursBurst, &p.rawsBurst} {
		for _, s := range []*bench.Series{v.first, v.last} {
			s.Summary = bench.Summarize(s.Hist)
			p.b.report.Series = append(p.b.report.Series, s)
		}
	}
	with := fmt.Sprintf(", %d shards / %d loops of write(2)", p.writers, p.writers)
	p.b.report.Ratios = append(p.b.report.Ratios,
		bench.Ratio{Name: "CPU a delivery" + with, Value: bench.MedianRatio(p.ours.perOp, p.raws.perOp), Goal: goalDelivery, AtMost: true},
		bench.Ratio{Name: fmt.Sprintf("CPU a delivery in bursts of %d", wsBurst) + with + " one by one", Value: bench.MedianRatio(p.oursBurst.perOp, p.raws.perOp), Goal: goalBurst, AtMost: true},
		bench.Ratio{Name: fmt.Sprintf("the same, write(2) of %d together / one by one", wsBurst), Value: bench.MedianRatio(p.rawsBurst.perOp, p.raws.perOp)},
	)
	p.b.report.Ratios = append(p.b.report.Ratios, lastRatios(p, p, 0, 0)...)
}

// lastRatios compares the times to the last client of one pair's feed with those
// of another's raw writes. A goal of 0 is none.
func lastRatios(ours, raws *fanPair, goal50, goal99 float64) []bench.Ratio {
	with := fmt.Sprintf(", %d shards / %d loops of write(2)", ours.writers, raws.writers)
	p99 := func(v *fanVariant) float64 { return float64(v.last.Summary.P99) }
	return []bench.Ratio{
		{Name: "tick to last client p50" + with, Value: bench.MedianRatio(ours.ours.medians, raws.raws.medians), Goal: goal50, AtMost: true},
		{Name: "tick to last client p99" + with, Value: p99(&ours.ours) / p99(&raws.raws), Goal: goal99, AtMost: true},
	}
}
