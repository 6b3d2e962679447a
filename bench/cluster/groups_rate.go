package cluster

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"golang.org/x/sync/errgroup"

	"blockdesk/bench"
	"blockdesk/bench/flow"
	"blockdesk/engine"
)

// splitRoundCommands is a round's commands: all to one engine, or half of them to each of two.
const splitRoundCommands = 50_000

// splitVariant is the engines that share the commands of a turn, each with a producer.
type splitVariant struct {
	name     string
	engines  []*engine.Engine
	commands [][]engine.Command // of each engine
	total    *bench.Series
	rates    []float64 // commands a second, of each turn
	cpu      []float64 // ns a command, of each turn
}

// measureGroupRates measures commands a second through one engine of two instruments, in
// turn with two engines of one instrument each, whose commands are counted together.
// Both share this machine's cores and its disk, so the ratio is the cost of a second
// engine, not the gain of a second machine.
func measureGroupRates(ctx context.Context, b *clusterBench) (err error) {
	var ends bench.Closers
	defer func() { err = errors.Join(err, ends.Close()) }()
	one, two := &splitVariant{name: "one group of two instruments"}, &splitVariant{name: "two groups of one instrument, together"}
	const resting = 17_000
	for _, e := range []struct {
		variant *splitVariant
		mix     flow.MixOptions
		of      int // engines in its variant
	}{
		{one, flow.MixOptions{Seed: 11, References: true, Resting: resting, Instruments: 2}, 1},
		{two, flow.MixOptions{Seed: 12, References: true, Resting: resting / 2}, 2},
		{two, flow.MixOptions{Seed: 13, References: true, Resting: resting / 2}, 2},
	} {
		mix, err := flow.NewMix(e.mix)
		if err != nil {
			return err
		}
		setup := mix.Setup()
		e.variant.commands = append(e.variant.commands, mix.Take((b.o.Rounds+1)*splitRoundCommands/e.of))
		leader, err := openLeader(filepath.Join(b.o.Dir, fmt.Sprintf("split-%d", e.mix.Seed)), engine.Options{}, nil)
		if err != nil {
			return err
		}
		ends.Add(func() error { return leader.ends.Close() })
		if err := leader.run(ctx, setup, nil); err != nil {
			return err
		}
		e.variant.engines = append(e.variant.engines, leader.engine)
	}
	variants := []*splitVariant{one, two}
	for _, v := range variants {
		v.total = &bench.Series{Name: v.name}
	}
	for round := range b.o.Rounds + 1 {
		for i := range variants {
			v := variants[(i+round)%len(variants)]
			if err := v.measure(ctx, round); err != nil {
				return fmt.Errorf("%s: %w", v.name, err)
			}
		}
	}
	judgeSplit(b, one, two)
	return nil
}

// measure sends the round's commands; the first round is not counted.
func (v *splitVariant) measure(ctx context.Context, round int) error {
	s, err := bench.NewReport("").Measure(v.name, splitRoundCommands, nil, func() error {
		all, ctx := errgroup.WithContext(ctx)
		for i, e := range v.engines {
			each := splitRoundCommands / len(v.engines)
			commands := v.commands[i][round*each:][:each]
			all.Go(func() error { return submitAll(ctx, e, commands) })
		}
		return all.Wait()
	})
	if err != nil || round == 0 {
		return err
	}
	v.rates = append(v.rates, s.Rate())
	v.cpu = append(v.cpu, float64(s.CPU)/splitRoundCommands)
	v.total.Ops += s.Ops
	v.total.Elapsed += s.Elapsed
	v.total.CPU += s.CPU
	return nil
}

func judgeSplit(b *clusterBench, one, two *splitVariant) {
	b.report.Series = append(b.report.Series, one.total, two.total)
	b.report.Ratios = append(b.report.Ratios,
		bench.Ratio{Name: "commands a second, two groups together / one, median of the turns", Value: bench.MedianRatio(two.rates, one.rates)},
		bench.Ratio{Name: "CPU a command, two groups / one, median of the turns", Value: bench.MedianRatio(two.cpu, one.cpu)})
	for _, v := range []*splitVariant{one, two} {
		b.report.Notes = append(b.report.Notes, fmt.Sprintf("%s: %.0f commands a second, median of the turns (%.0f to %.0f)",
			v.name, bench.MedianOf(slices.Clone(v.rates)), slices.Min(v.rates), slices.Max(v.rates)))
	}
	b.report.Notes = append(b.report.Notes, fmt.Sprintf(
		"commands of groups: the mix with a client's id on every command, %d turns of %d, one producer an engine; engines, producers and journals share this machine's cores and its one disk, so it is what a second group costs, and says nothing of what a second machine gains; no gateways and no consumers",
		b.o.Rounds, splitRoundCommands))
}
