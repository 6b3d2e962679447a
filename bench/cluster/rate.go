package cluster

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"blockdesk/bench"
	enginebench "blockdesk/bench/engine"
	"blockdesk/bench/flow"
	"blockdesk/engine"
	"blockdesk/persist"
)

const (
	rateRounds        = 5
	rateRoundCommands = 250_000 // commands
	// rateNap is how long the producer sleeps where the ring is full.
	rateNap = 20 * time.Microsecond
)

// measureRate measures commands a second through an engine whose journal is a majority of
// three nodes, in turn with one whose journal is a single node's: the same
// commands, from one producer that never waits, until all are durable.
func measureRate(ctx context.Context, b *clusterBench) (err error) {
	var ends bench.Closers
	defer func() { err = errors.Join(err, ends.Close()) }()
	mix, err := flow.NewMix(flow.MixOptions{Seed: 7, References: true})
	if err != nil {
		return err
	}
	setup, commands := mix.Setup(), mix.Take((rateRounds+1)*rateRoundCommands)
	g, err := startGroup(ctx, filepath.Join(b.o.Dir, "rate-quorum"))
	if err != nil {
		return err
	}
	ends.Add(g.ends.Close)
	store, err := enginebench.OpenStore(filepath.Join(b.o.Dir, "rate-single"), 1<<40)
	if err != nil {
		return err
	}
	ends.Add(store.Close)
	variants := []*rateVariant{
		{name: fmt.Sprintf("engine on a majority of %d nodes", clusterNodes), journal: g.term, recover: func() (*engine.Replica, error) { return g.term.Recover(^uint64(0), nil) }},
		{name: "engine on a single node's journal", journal: store, recover: func() (*engine.Replica, error) { return store.Recover(persist.NewestSnapshot, nil) }},
	}
	for _, v := range variants {
		end, err := v.open(ctx, setup)
		if err != nil {
			return fmt.Errorf("%s: %w", v.name, err)
		}
		ends.Add(end)
	}
	ends.Add(bench.Running(ctx, store.Run))
	for round := range rateRounds + 1 {
		for _, v := range variants {
			if err := v.measure(ctx, commands[round*rateRoundCommands:][:rateRoundCommands], round > 0); err != nil {
				return fmt.Errorf("%s: %w", v.name, err)
			}
		}
	}
	judgeRates(b, variants[0], variants[1])
	return nil
}

// rateVariant is an engine on one kind of journal.
type rateVariant struct {
	name    string
	journal engine.Journal
	recover func() (*engine.Replica, error)
	engine  *engine.Engine
	rounds  []*bench.Series
	rates   []float64 // commands a second, of each turn
}

// open starts the engine and gives it the setup.
func (v *rateVariant) open(ctx context.Context, setup []engine.Command) (end func() error, err error) {
	replica, err := v.recover()
	if err != nil {
		return nil, err
	}
	if v.engine, err = engine.New(engine.Options{Journal: v.journal}, replica); err != nil {
		return nil, err
	}
	end = bench.Running(ctx, v.engine.Run)
	return end, submitSetup(ctx, v.engine, setup)
}

// submitSetup gives an engine a mix's setup, but for the epoch, which is the
// engine's own business, and waits until it is durable.
func submitSetup(ctx context.Context, e *engine.Engine, setup []engine.Command) error {
	var commands []engine.Command
	for i := range setup {
		if setup[i].Kind != engine.StartEpoch {
			commands = append(commands, setup[i])
		}
	}
	return submitAll(ctx, e, commands)
}

// submitAll gives an engine commands as fast as it takes them, and waits until all
// are durable.
func submitAll(ctx context.Context, e *engine.Engine, commands []engine.Command) error {
	for i := range commands {
		for {
			err := e.Submit(&commands[i])
			if err == nil {
				break
			}
			if !errors.Is(err, engine.ErrFull) {
				return errors.Join(err, e.Stats().Failed)
			}
			time.Sleep(rateNap)
		}
	}
	return awaitDurable(ctx, e)
}

// awaitDurable waits until the engine has nothing under way.
func awaitDurable(ctx context.Context, e *engine.Engine) error {
	for end := time.Now().Add(clusterPatience); ; time.Sleep(rateNap) {
		st := e.Stats()
		switch {
		case st.Failed != nil:
			return st.Failed
		case st.Ingress == 0 && st.Durable == st.Seq:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case time.Now().After(end):
			return fmt.Errorf("seq %d is durable and %d applied after %v", st.Durable, st.Seq, clusterPatience)
		}
	}
}

func (v *rateVariant) measure(ctx context.Context, commands []engine.Command, counted bool) error {
	s, err := bench.NewReport("").Measure(v.name, int64(len(commands)), nil, func() error { return submitAll(ctx, v.engine, commands) })
	if err != nil {
		return err
	}
	if counted {
		v.rounds, v.rates = append(v.rounds, s), append(v.rates, s.Rate())
	}
	return nil
}

func judgeRates(b *clusterBench, majority, single *rateVariant) {
	for _, v := range []*rateVariant{majority, single} {
		total := &bench.Series{Name: v.name}
		for _, s := range v.rounds {
			total.Ops += s.Ops
			total.Elapsed += s.Elapsed
			total.CPU += s.CPU
			total.Allocs += s.Allocs
			total.Bytes += s.Bytes
			total.GCs += s.GCs
		}
		b.report.Series = append(b.report.Series, total)
	}
	b.report.Ratios = append(b.report.Ratios,
		bench.Ratio{Name: "commands a second through a majority, median of the turns", Value: bench.MedianOf(slices.Clone(majority.rates)), Goal: goalQuorumRate},
		bench.Ratio{Name: "commands a second, majority / single node, median of the turns", Value: bench.MedianRatio(majority.rates, single.rates)},
	)
	b.report.Notes = append(b.report.Notes, fmt.Sprintf(
		"rate: the mix of bench engine with a client's id on every command, %d turns of %d commands each, from one producer that never waits; the majority's three nodes apply every command a second time; no gateways and no consumers; CPU is of all nodes together",
		rateRounds, rateRoundCommands))
}
