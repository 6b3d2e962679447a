package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"blockdesk/bench"
	"blockdesk/bench/flow"
	"blockdesk/engine"
	"blockdesk/engine/event"
	"blockdesk/market"
)

const (
	scaleCommands = 500_000
	// scaleBatch is how many commands are prefetched at a time, as the matcher does.
	scaleBatch = 8
	// goalManyNs is the goal of 1,000 instruments, in ns of CPU a command.
	goalManyNs = 80
	// goalIdleKB is the goal of an instrument without orders, in KB.
	goalIdleKB = 100
	// growOrders is how many orders the growing book takes.
	growOrders = 2_000_000
	// goalGrowth is the longest that a command may take beside the growth of its book, in µs.
	goalGrowth = 50
)

// scaleSizes are the mixes that scale measures.
var scaleSizes = []flow.MixOptions{
	{Instruments: 1},
	{Instruments: 1000},
	{Instruments: market.MaxInstruments},
	{Participants: engine.MaxParticipants},
	{Resting: 2_000_000, Ticks: 10_000},
	{Instruments: market.MaxInstruments, Participants: engine.MaxParticipants, Resting: 2_000_000},
}

// scale measures what a command costs, and an order and an instrument in memory, with many
// instruments, participants and orders; then how long the commands of a book take that grows.
func scale(ctx context.Context, r *bench.Report) error {
	for _, o := range scaleSizes {
		o.Seed = 10
		if err := errors.Join(ctx.Err(), scaleTo(r, o)); err != nil {
			return err
		}
	}
	idle, err := idleInstrument()
	if err != nil {
		return err
	}
	r.Ratios = append(r.Ratios, bench.Ratio{Name: "KB of memory an instrument without orders", Value: idle / 1e3, Goal: goalIdleKB, AtMost: true})
	r.Notes = append(r.Notes, fmt.Sprintf("scale: the mix over all instruments; batches of %d commands are prefetched together, as the matcher does with those that wait", scaleBatch))
	return growth(r)
}

func scaleTo(r *bench.Report, o flow.MixOptions) error {
	mix, err := flow.NewMix(o)
	if err != nil {
		return err
	}
	setup := mix.Setup()
	name := fmt.Sprintf("%d instruments, %d participants, %d resting", max(o.Instruments, 1), max(o.Participants, flow.DefaultParticipants), mix.Resting())
	commands := mix.Take(scaleCommands)
	// The mix is not used any more, so its memory is not the engine's.
	before := resident()
	state := engine.NewState(engine.StateOptions{MaxOrders: 1 << 22})
	sink, digest := ringSink(1<<12), uint64(0)
	for i := range setup {
		state.Apply(&setup[i], sink)
	}
	memory := resident() - before
	apply := func(list []engine.Command) {
		for i := range list {
			from := sink.Pos
			state.Apply(&list[i], sink)
			for p := from; p < sink.Pos; p++ {
				digest = event.Digest(digest, sink.At(p))
			}
		}
	}
	half := len(commands) / 2
	alone, err := r.Measure(name+", one by one", int64(half), nil, func() error { apply(commands[:half]); return nil })
	if err != nil {
		return err
	}
	together, err := r.Measure(name+", in batches", int64(half), nil, func() error {
		for rest := commands[half:]; len(rest) > 0; rest = rest[min(scaleBatch, len(rest)):] {
			list := rest[:min(scaleBatch, len(rest))]
			for i := range list {
				state.Prefetch(&list[i])
			}
			apply(list)
		}
		return nil
	})
	if digest == 0 {
		return errors.New("no events")
	}
	if o.Instruments == 1000 {
		r.Ratios = append(r.Ratios, bench.Ratio{Name: name + ", in batches: CPU ns a command", Value: float64(together.CPU) / float64(together.Ops), Goal: goalManyNs, AtMost: true})
	}
	r.Ratios = append(r.Ratios, bench.Ratio{Name: name + ": in batches / one by one", Value: float64(together.CPU) / float64(alone.CPU)})
	r.Notes = append(r.Notes, fmt.Sprintf("%s: %.0f MB of memory", name, memory/1e6))
	runtime.KeepAlive(state)
	return err
}

// resident returns this process's memory in RAM, without garbage.
func resident() float64 {
	for range 3 { // the first collection lets the next free more
		debug.FreeOSMemory()
		time.Sleep(50 * time.Millisecond)
	}
	n, err := bench.ResidentBytes(os.Getpid())
	if err != nil {
		return 0
	}
	return float64(n)
}

// idleInstrument returns the bytes of an instrument without orders.
func idleInstrument() (float64, error) {
	mix, err := flow.NewMix(flow.MixOptions{Instruments: 1000, Resting: 1})
	if err != nil {
		return 0, err
	}
	setup := mix.Setup()
	before := bench.HeapInUse()
	replica := engine.NewReplica(engine.StateOptions{})
	for i := range setup {
		replica.Apply(&setup[i], nil)
	}
	bytes := (bench.HeapInUse() - before) / 1000
	runtime.KeepAlive(replica)
	runtime.KeepAlive(mix)
	return bytes, nil
}

// growth measures the commands of one book that takes two million orders, from nothing on, in
// CPU time, because a busy machine stops any command for longer.
func growth(r *bench.Report) error {
	mix, err := flow.NewMix(flow.MixOptions{Resting: growOrders, Ticks: 10_000, Seed: 11})
	if err != nil {
		return err
	}
	setup := mix.Setup()
	state := engine.NewState(engine.StateOptions{MaxOrders: 1 << 22})
	sink, hist := ringSink(1<<12), bench.NewHistogram()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_, err = r.Measure(fmt.Sprintf("CPU time of a new order, in a book that grows to %d", growOrders), int64(len(setup)), hist, func() error {
		for i := range setup {
			from := bench.OwnThreadCPU()
			state.Apply(&setup[i], sink)
			if err := hist.RecordValue(max(int64(bench.OwnThreadCPU()-from), 1)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	r.Ratios = append(r.Ratios,
		bench.Ratio{
			Name:  "growth of a book: CPU µs of the tenth longest command",
			Value: float64(hist.ValueAtQuantile(100*(1-9/float64(len(setup))))) / 1e3, Goal: goalGrowth, AtMost: true,
		},
		bench.Ratio{Name: "growth of a book: CPU µs of the longest command", Value: float64(hist.Max()) / 1e3})
	return nil
}
