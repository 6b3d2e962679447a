// Package engine measures the matching engine in this process: the time to apply a
// command, the time through both rings, long pauses while many orders end at once, the
// growth with instruments, participants and orders (Benchmark), the journal beside bare
// writes to the same disk (Durable), and the time to recover (Recovery).
//
// Commands come from package flow, so a run can be repeated. The yardstick is the bare
// order book of package yardstick on the same commands, in alternating rounds; the medians
// count. A run needs only a scratch folder, and for one part the recorded flow of the
// arena.
package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"blockdesk/bench"
	"blockdesk/bench/flow"
	"blockdesk/bench/yardstick"
	"blockdesk/engine"
	"blockdesk/engine/book"
	"blockdesk/engine/event"
	"blockdesk/market"
)

// Benchmark holds the options of the engine's benchmark.
type Benchmark struct {
	Commands int    // of each flow; default 2,000,000
	Rounds   int    // ours and the yardstick in turn; the medians count; default 5
	Arena    string // path of arena/normal.bin.zst; empty or absent leaves it out
	RingRate int    // commands a second through both rings; default 1,000,000
	// Parts to run, by name: flows, rings, pauses, scale; none = all.
	Parts []string
}

// Run measures State.Apply, with risk, self-trade prevention, events and
// their digest, against the bare ladder of yardstick on the same commands, in
// turn; then the time from Submit to the event over both rings in spin mode; then
// that time while 100,000 orders end at once; then many instruments, participants and orders.
func (o Benchmark) Run(ctx context.Context) (*bench.Report, error) {
	if o.Commands == 0 {
		o.Commands = 2_000_000
	}
	if o.Rounds == 0 {
		o.Rounds = 5
	}
	if o.RingRate == 0 {
		o.RingRate = 1_000_000
	}
	r := bench.NewReport("engine")
	return r, bench.RunParts(ctx, o.Parts, []bench.Part{
		{Name: "flows", Run: func(ctx context.Context) error { return o.flows(ctx, r) }},
		{Name: "rings", Run: func(ctx context.Context) error {
			return errors.Join(bareHandover(r), ringLatency(ctx, r, o.RingRate))
		}},
		{Name: "pauses", Run: func(ctx context.Context) error { return pauses(ctx, r) }},
		{Name: "scale", Run: func(ctx context.Context) error { return scale(ctx, r) }},
	})
}

// flows compares the engine with the bare ladder on each flow, the hardest first.
func (o Benchmark) flows(ctx context.Context, r *bench.Report) error {
	for path := flow.Paths; path > 0; path-- {
		mix, err := flow.NewMix(flow.MixOptions{Seed: 1, Path: path - 1})
		if err != nil {
			return err
		}
		name := "mix"
		if path-1 != flow.Still {
			name += " " + (path - 1).String()
		}
		if err := compareEngine(ctx, r, name, mix.Setup(), mix.Take(o.Commands), o.Rounds); err != nil {
			return err
		}
	}
	if _, err := os.Stat(o.Arena); err == nil {
		setup, commands, err := arenaCommands(o.Arena)
		if err != nil {
			return err
		}
		if err := compareEngine(ctx, r, "arena/normal", setup, commands, o.Rounds); err != nil {
			return err
		}
	} else {
		r.Notes = append(r.Notes, "arena/normal left out: its file is not here")
	}
	r.Notes = append(r.Notes,
		"mix: 48 % add, 42 % cancel, 10 % IOC, 500 ticks, 17,000 resting, 50 participants with all limits on, one instrument; the price stays, wanders, crashes or swings",
		"ours: State.Apply with risk, self-trade prevention, 64-byte events and their digest, no rings, no journal; yardstick: bare ladder, same commands, nothing else")
	return nil
}

// compareEngine times both on the same commands, a round each in turn, each
// round from a fresh book.
func compareEngine(ctx context.Context, r *bench.Report, name string, setup, commands []engine.Command, rounds int) error {
	orders, prices := extent(setup, commands)
	var ours, bare []*bench.Series
	for range rounds {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		s, err := TimeEngine(name, setup, commands)
		if err != nil {
			return err
		}
		ours = append(ours, s)
		ladder := yardstick.NewLadder(prices, orders)
		for i := range setup {
			applyBare(ladder, &setup[i])
		}
		s, err = bench.NewReport("").Measure(name+": bare ladder", int64(len(commands)), nil, func() error {
			for i := range commands {
				applyBare(ladder, &commands[i])
			}
			return nil
		})
		if err != nil {
			return err
		}
		bare = append(bare, s)
	}
	a, b := bench.MedianByCPU(ours), bench.MedianByCPU(bare)
	r.Series = append(r.Series, a, b)
	r.Ratios = append(r.Ratios,
		bench.Ratio{Name: name + ": engine / bare ladder, CPU a command", Value: float64(a.CPU) / float64(b.CPU), Goal: 2.0, AtMost: true},
		bench.Ratio{Name: name + ": engine commands/s where the yardstick does 30 M", Value: 30e6 * float64(b.CPU) / float64(a.CPU), Goal: 15e6},
		bench.Ratio{Name: name + ": allocations a command", Value: float64(a.Allocs) / float64(a.Ops), Goal: 0.0001, AtMost: true},
		bench.Ratio{Name: name + ": GC cycles", Value: float64(a.GCs)},
	)
	return nil
}

// TimeEngine measures commands on a new state, without a ring or a journal.
func TimeEngine(name string, setup, commands []engine.Command) (*bench.Series, error) {
	state := engine.NewState(engine.StateOptions{MaxOrders: 1 << 20})
	sink := ringSink(1 << 12)
	digest := uint64(0)
	for i := range setup {
		state.Apply(&setup[i], sink)
	}
	return bench.NewReport("").Measure(name+": engine", int64(len(commands)), nil, func() error {
		for i := range commands {
			from := sink.Pos
			state.Apply(&commands[i], sink)
			for p := from; p < sink.Pos; p++ {
				digest = event.Digest(digest, sink.At(p))
			}
		}
		if digest == 0 {
			return errors.New("no events")
		}
		return nil
	})
}

// ringSink is a sink that overwrites its oldest events, as the egress ring does
// when its consumers keep up.
func ringSink(size int) *event.Sink {
	return &event.Sink{Buf: make([]event.Event, size), Limit: uint64(size), MakeRoom: func(s *event.Sink) { s.Limit = s.Pos + uint64(len(s.Buf)) }}
}

func applyBare(l *yardstick.Ladder, c *engine.Command) {
	o := &c.Order
	switch c.Kind {
	case engine.NewOrder:
		l.Add(uint64(o.ID), o.Side == market.Buy, int32(o.Price), int64(o.Qty), o.TIF == book.IOC)
	case engine.CancelOrder:
		l.Cancel(uint64(o.ID))
	case engine.AmendOrder:
		// Cancel and reinsert: what every amend of the recorded flow is.
		if buy, ok := l.Side(uint64(o.ID)); ok {
			l.Cancel(uint64(o.ID))
			l.Add(uint64(o.ID), buy, int32(o.Price), int64(o.Qty), false)
		}
	}
}

// extent returns how many orders at most rest at once and a power of two above
// every price.
func extent(lists ...[]engine.Command) (orders, prices int) {
	live, most, top := 0, 0, market.Price(1)
	for _, list := range lists {
		for i := range list {
			c := &list[i]
			switch c.Kind {
			case engine.NewOrder:
				live++
				top = max(top, c.Order.Price)
			case engine.AmendOrder:
				top = max(top, c.Order.Price)
			case engine.CancelOrder:
				live--
			}
			most = max(most, live)
		}
	}
	prices = 4096
	for prices <= int(top) {
		prices *= 2
	}
	return max(most, 1), prices
}

// arenaCommands turns the recorded flow into stamped commands: a participant a
// side, so that self-trade prevention checks every order and never acts.
func arenaCommands(path string) (setup, commands []engine.Command, err error) {
	records, err := flow.OpenArena(path)
	if err != nil {
		return nil, nil, err
	}
	in := market.Instrument{
		Symbol: "ARENA/USD", Base: "ARENA", Quote: "USD", PriceDecimals: 3, Tick: 5, Lot: 1,
		MinQty: 1, MaxQty: market.MaxQty, MaxPrice: market.MaxPrice, Source: market.Matched,
	}
	define, err := engine.DefineInstrumentCommand(&in)
	if err != nil {
		return nil, nil, err
	}
	setup = []engine.Command{{Kind: engine.StartEpoch, Arg: 1}, define}
	for _, side := range []market.Side{market.Buy, market.Sell} {
		limits, err := engine.SetRiskCommand(market.ParticipantID(side), 0, engine.Limits{
			MaxQty: market.MaxQty, MaxNotional: market.Uint128{Hi: 1 << 40}, MaxOpenOrders: 1 << 24, BandBps: engine.MaxBandBps,
		})
		if err != nil {
			return nil, nil, err
		}
		setup = append(setup, limits)
	}
	commands = make([]engine.Command, len(records))
	for i := range records {
		c := &commands[i]
		c.Order = records[i].Order()
		switch records[i].Kind {
		case flow.ArenaNew:
			c.Kind = engine.NewOrder
		case flow.ArenaCancel:
			c.Kind = engine.CancelOrder
		case flow.ArenaModify:
			c.Kind = engine.AmendOrder
		}
	}
	seq := uint64(0)
	for _, list := range [][]engine.Command{setup, commands} {
		for i := range list {
			seq++
			list[i].Seq, list[i].At = seq, int64(seq)
		}
	}
	return setup, commands, nil
}

// bareHandover measures what one cache line costs to go from one spinning goroutine
// to another: the command to event path has two such hops in it.
func bareHandover(r *bench.Report) error {
	const rounds = 1_000_000
	var ping, pong struct {
		_ [64]byte
		n atomic.Int64
		_ [64]byte
	}
	go func() {
		for i := int64(1); i <= rounds; i++ {
			for ping.n.Load() < i {
			}
			pong.n.Store(i)
		}
	}()
	s, err := r.Measure("bare hop between two spinning goroutines", 2*rounds, nil, func() error {
		for i := int64(1); i <= rounds; i++ {
			ping.n.Store(i)
			for pong.n.Load() < i {
			}
		}
		return nil
	})
	r.Notes = append(r.Notes, fmt.Sprintf("a bare hop took %.0f ns in this run; command to event has two, a clock read a batch and one at the consumer", s.PerOp()))
	return err
}

// ringLatency sends commands on a schedule and measures, at the consumer, the time since
// each was due.
func ringLatency(ctx context.Context, r *bench.Report, rate int) error {
	const uncounted, counted = 200_000, 2_000_000
	mix, err := flow.NewMix(flow.MixOptions{Seed: 2})
	if err != nil {
		return err
	}
	setup := mix.Setup()
	commands := mix.Take(uncounted + counted)
	replica := engine.NewReplica(engine.StateOptions{MaxOrders: 1 << 20})
	eng, err := engine.New(engine.Options{Wait: engine.Spin, IngressSize: 1 << 16, EgressSize: 1 << 20}, replica)
	if err != nil {
		return err
	}
	consumer := eng.Consumer("bench")
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	running := make(chan error, 1)
	go func() { running <- eng.Run(ctx) }()
	// The engine submits a StartEpoch of its own.
	for i := range setup {
		if setup[i].Kind != engine.StartEpoch {
			for eng.Submit(&setup[i]) != nil {
				time.Sleep(time.Millisecond)
			}
		}
	}
	s, err := driveRings(r, eng, consumer, commands, uncounted, rate)
	if err != nil {
		return err
	}
	s.Offered = float64(rate)
	r.Ratios = append(r.Ratios, bench.Ratio{Name: "command to event p50, ns", Value: float64(s.Summary.P50), Goal: 400, AtMost: true})
	stop()
	return <-running
}

// driveRings sends the commands on schedule and measures the time to their events; the
// first warm ones are not counted. One goroutine produces and consumes: with the
// matcher's, two goroutines spin, which is as many as two cores can run.
func driveRings(r *bench.Report, eng *engine.Engine, consumer *engine.Consumer, commands []engine.Command, uncounted, rate int) (*bench.Series, error) {
	base := Settled(eng)
	for events := consumer.Poll(); len(events) > 0; events = consumer.Poll() {
		consumer.Release(len(events))
	}
	hist, total := bench.NewHistogram(), len(commands)
	last, start := base, time.Now().Add(10*time.Millisecond)
	due := func(i int) int64 { return int64(i) * int64(time.Second) / int64(rate) }
	take := func() {
		events := consumer.Poll()
		if len(events) == 0 {
			return
		}
		now := int64(time.Since(start))
		for i := range events {
			if events[i].Seq > last {
				last = events[i].Seq
				if n := int(last - base - 1); n >= uncounted && n < total {
					_ = hist.RecordValue(max(now-due(n), 1))
				}
			}
		}
		consumer.Release(len(events))
	}
	s, err := r.Measure(fmt.Sprintf("command to event over both rings at %d/s, spin", rate), int64(total), hist, func() error {
		for i := range commands {
			for at := due(i); int64(time.Since(start)) < at; {
				take()
			}
			for eng.Submit(&commands[i]) != nil {
				take()
			}
		}
		for deadline := time.Now().Add(time.Minute); last < base+uint64(total); take() {
			if time.Now().After(deadline) {
				return errors.New("ring benchmark: not all commands came out")
			}
		}
		return nil
	})
	s.Summary = bench.Summarize(hist)
	return s, err
}
