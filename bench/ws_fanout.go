package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
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
// bursts, and the time from a tick to the last client. One shard is held against
// one loop of writes, and one a core against as many loops at
// once: cores that write side by side cost the kernel more, whoever does it.
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
	var lanes []*lane
	for _, p := range pairs {
		lanes = append(lanes, p.lanes()...)
	}
	for round := range b.o.Rounds + 1 {
		for _, l := range lanes {
			if err := errors.Join(ctx.Err(), b.round(l, round > 0)); err != nil {
				return fmt.Errorf("%s: %w", l.name, err)
			}
		}
	}
	for _, l := range lanes {
		b.report.Series = append(b.report.Series, l.s)
	}
	for range 2 * b.o.Rounds {
		for _, p := range pairs {
			if err := p.turn(ctx); err != nil {
				return err
			}
		}
	}
	for i, p := range pairs {
		p.judge(lanes[i*fanLanes : (i+1)*fanLanes])
		if err := errors.Join(b.leave(p.group("feed")), b.leave(p.group("raw"))); err != nil {
			return err
		}
	}
	b.report.Ratios = append(b.report.Ratios, lastRatios(pairs[len(pairs)-1], pairs[0], goalLastP50, goalLastP99)...)
	b.report.Notes = append(b.report.Notes,
		fmt.Sprintf("fan-out: %d clients, updates of %d bytes with their header, rounds of %d; ratios are medians over %d rounds in turn; CPU is this process's, the clients' kernels hold what comes until the round's end",
			b.o.Clients, pairs[0].size, wsRound, b.o.Rounds),
		fmt.Sprintf("tick to last: one tick at a time, from its hand-over to the %d-th client's read; the clients wait in one epoll; feed and writes take turns of %d, the p50's ratio is the median over the turns; the goal is for the feed as it comes against one loop", b.o.Clients, wsTurn))
	return nil
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

// fanPair is a feed and its yardstick, with equally many writers.
type fanPair struct {
	b          *wsBench
	writers    int
	feed       *wsFeed
	raw        *rawWriter
	size       int // bytes of an update
	ours, raws fanTimes
}

// fanTimes are those of single ticks. turns has the median of each turn.
type fanTimes struct {
	first, last *Series
	turns       []float64
}

func newFanTimes(of string) fanTimes {
	return fanTimes{
		first: &Series{Name: "tick to first client, " + of, Hist: NewHistogram()},
		last:  &Series{Name: "tick to last client, " + of, Hist: NewHistogram()},
	}
}

func (p *fanPair) group(side string) string { return fmt.Sprintf("%s %d", side, p.writers) }

func (p *fanPair) open(ctx context.Context) (err error) {
	p.ours = newFanTimes(fmt.Sprintf("feed, %d shards", p.writers))
	p.raws = newFanTimes(fmt.Sprintf("%d loops of writes", p.writers))
	if p.feed, err = startFeed(ctx, feed.Options{SendBuffer: wsSendBuffer, Shards: p.writers}); err != nil {
		return err
	}
	if err := p.b.join(p.feed.subscribers(p.group("feed"), p.b.o.Clients, false)); err != nil {
		return err
	}
	p.raw, err = joinRaw(p.b.crowd, p.group("raw"), p.b.o.Clients, wsSendBuffer)
	return err
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

// lane is one way to send a round of messages.
type lane struct {
	name  string
	group string
	ops   int64
	run   func() error
	s     *Series
	perOp []float64
}

// fanLanes is the number of a pair's lanes.
const fanLanes = 4

func (p *fanPair) lanes() []*lane {
	list := []*lane{
		{name: fmt.Sprintf("feed, %d shards, one update a write", p.writers), group: "feed", run: func() error { return p.updates(1) }},
		{name: fmt.Sprintf("%d loops of write(2) of as many bytes", p.writers), group: "raw", run: func() error { return p.writes(1) }},
		{name: fmt.Sprintf("feed, %d shards, bursts of %d updates", p.writers, wsBurst), group: "feed", run: func() error { return p.updates(wsBurst) }},
		{name: fmt.Sprintf("%d loops of write(2) of %d together", p.writers, wsBurst), group: "raw", run: func() error { return p.writes(wsBurst) }},
	}
	for _, l := range list {
		l.group = p.group(l.group)
		l.ops = int64(wsRound * p.b.o.Clients)
		l.s = &Series{Name: "CPU a delivery: " + l.name}
	}
	return list
}

// round sends one round, takes its cost unless it is the warm-up, and has the
// clients read it.
func (b *wsBench) round(l *lane, counted bool) error {
	if err := l.take(counted); err != nil {
		return err
	}
	if err := b.crowd.Await(l.group, wsRound); err != nil {
		return err
	}
	_, err := b.crowd.Answer()
	return err
}

// take runs a lane once and adds what it took, if it counts.
func (l *lane) take(counted bool) error {
	var m0, m1 runtime.MemStats
	runtime.ReadMemStats(&m0)
	start, before := time.Now(), processCPU()
	if err := l.run(); err != nil || !counted {
		return err
	}
	cpu := processCPU() - before
	l.s.Elapsed += time.Since(start)
	runtime.ReadMemStats(&m1)
	l.s.CPU += cpu
	l.s.Ops += l.ops
	l.s.Allocs += m1.Mallocs - m0.Mallocs
	l.s.Bytes += m1.TotalAlloc - m0.TotalAlloc
	l.s.GCs += m1.NumGC - m0.NumGC
	l.perOp = append(l.perOp, float64(cpu)/float64(l.ops))
	return nil
}

// updates sends a round through the feed, burst updates at a time.
func (p *fanPair) updates(burst int) error {
	before := p.feed.Stats()
	sent := before.MessagesOut
	for range wsRound / burst {
		p.feed.tick(burst)
		sent += uint64(burst * p.b.o.Clients)
		if err := p.feed.sent(sent); err != nil {
			return err
		}
	}
	after := p.feed.Stats()
	p.size = int((after.BytesOut - before.BytesOut) / (after.MessagesOut - before.MessagesOut))
	return nil
}

// writes sends as many bytes by raw writes.
func (p *fanPair) writes(burst int) error {
	p.raw.load(burst, p.size)
	for range wsRound / burst {
		if err := p.raw.tick(p.writers); err != nil {
			return err
		}
	}
	return nil
}

// paired is the median of a in units of b, round by round.
func paired(a, b []float64) float64 {
	list := make([]float64, min(len(a), len(b)))
	for i := range list {
		list[i] = a[i] / b[i]
	}
	return middle(list)
}

// turn times single ticks, one at a time, until the last client has read each:
// some of the feed, then some of the raw writes.
func (p *fanPair) turn(ctx context.Context) error {
	p.raw.load(1, p.size)
	for _, side := range []struct {
		group string
		tick  func() error
		*fanTimes
	}{
		{p.group("feed"), func() error { p.feed.tick(1); return nil }, &p.ours},
		{p.group("raw"), func() error { return p.raw.tick(p.writers) }, &p.raws},
	} {
		cpu, turn := processCPU(), make([]float64, 0, wsTurn)
		for range wsTurn {
			first, last, err := p.b.tick(ctx, side.group, side.tick)
			if err != nil {
				return fmt.Errorf("%s: %w", side.group, err)
			}
			_ = side.first.Hist.RecordValue(first)
			_ = side.last.Hist.RecordValue(last)
			side.first.Ops++
			side.last.Ops++
			side.last.Elapsed += time.Duration(last)
			side.first.Elapsed += time.Duration(first)
			turn = append(turn, float64(last))
		}
		side.turns = append(side.turns, middle(turn))
		side.last.CPU += processCPU() - cpu
	}
	return nil
}

// tick times one tick to the first and to the last client. The crowd has had time
// to fall asleep before it.
func (b *wsBench) tick(ctx context.Context, group string, tick func() error) (first, last int64, err error) {
	if err := b.crowd.Await(group, 1); err != nil {
		return 0, 0, err
	}
	time.Sleep(wsGap)
	start := crowd.Now()
	if err := errors.Join(ctx.Err(), tick()); err != nil {
		return 0, 0, err
	}
	a, err := b.crowd.Answer()
	if err != nil {
		return 0, 0, err
	}
	return a.First - start, a.Last - start, nil
}

// judge adds a pair's ratios to the report.
func (p *fanPair) judge(lanes []*lane) {
	for _, s := range []*Series{p.ours.first, p.raws.first, p.ours.last, p.raws.last} {
		s.Summary = summarize(s.Hist)
		p.b.report.Series = append(p.b.report.Series, s)
	}
	with := fmt.Sprintf(", %d shards / %d loops of write(2)", p.writers, p.writers)
	p.b.report.Ratios = append(p.b.report.Ratios,
		Ratio{Name: "CPU a delivery" + with, Value: paired(lanes[0].perOp, lanes[1].perOp), Goal: goalDelivery, AtMost: true},
		Ratio{Name: fmt.Sprintf("CPU a delivery in bursts of %d", wsBurst) + with + " one by one", Value: paired(lanes[2].perOp, lanes[1].perOp), Goal: goalBurst, AtMost: true},
		Ratio{Name: fmt.Sprintf("the same, %d together / one by one", wsBurst), Value: paired(lanes[3].perOp, lanes[1].perOp)},
	)
	p.b.report.Ratios = append(p.b.report.Ratios, lastRatios(p, p, 0, 0)...)
}

// lastRatios compares the times to the last client of one pair's feed with those
// of another's raw writes. A goal of 0 is none.
func lastRatios(ours, raws *fanPair, goal50, goal99 float64) []Ratio {
	with := fmt.Sprintf(", %d shards / %d loops of write(2)", ours.writers, raws.writers)
	p99 := func(s *Series) float64 { return float64(s.Summary.P99) }
	return []Ratio{
		{Name: "tick to last client p50" + with, Value: paired(ours.ours.turns, raws.raws.turns), Goal: goal50, AtMost: true},
		{Name: "tick to last client p99" + with, Value: p99(ours.ours.last) / p99(raws.raws.last), Goal: goal99, AtMost: true},
	}
}
