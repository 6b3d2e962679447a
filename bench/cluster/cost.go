package cluster

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"blockdesk/bench"
	"blockdesk/bench/flow"
	"blockdesk/engine"
	"blockdesk/persist/fanout"
)

const (
	// costBurst commands arrive at once, costBursts times a second: the matcher wakes
	// once a burst, so that its CPU time is matching and hardly any waking.
	costBurst         = 1_000
	costBursts        = 100
	costRoundCommands = costBurst * costBursts / 2 // commands
	costRounds        = 20
)

// costVariant is a leader with its followers. The first variant publishes nothing; the
// last repeats the one before it: the difference between two equal variants is noise, and
// no smaller difference means anything.
type costVariant struct {
	name      string
	publishes bool
	followers int

	engine             *engine.Engine
	matcher, journaler pinned
	child              *followers
	commands           []engine.Command

	// CPU ns a command, of each turn.
	matching, journaling, process, following []float64
	total                                    *bench.Series
}

// measureCost measures the CPU time a command of the engine's own thread, the matcher's,
// without followers and with some, in turn. Each variant has a leader of its own in
// this process; its NATS server and its followers are a child.
func measureCost(ctx context.Context, b *clusterBench) (err error) {
	var ends bench.Closers
	defer func() { err = errors.Join(err, ends.Close()) }()
	variants := []*costVariant{
		{name: "nothing published"},
		{name: "no follower", publishes: true},
		{name: "1 follower", publishes: true, followers: 1},
		{name: "4 followers", publishes: true, followers: 4},
		{name: "no follower, again", publishes: true},
	}
	for i, v := range variants {
		end, err := v.open(ctx, b.o.Exe, filepath.Join(b.o.Dir, fmt.Sprintf("cost-%d", i)))
		if err != nil {
			return fmt.Errorf("%s: %w", v.name, err)
		}
		ends.Add(end)
	}
	for round := range costRounds + 1 {
		for i := range variants {
			v := variants[(i+round)%len(variants)] // none is always behind the same
			if err := v.measure(ctx, round); err != nil {
				return fmt.Errorf("%s: %w", v.name, err)
			}
		}
	}
	judgeCost(b, variants)
	return nil
}

// open starts the variant's leader, and the child that follows it.
func (v *costVariant) open(ctx context.Context, exe, dir string) (end func() error, err error) {
	var ends bench.Closers
	defer func() {
		if err != nil {
			err = errors.Join(err, ends.Close())
		}
	}()
	v.total = &bench.Series{Name: "engine's thread, " + v.name}
	mix, err := flow.NewMix(flow.MixOptions{Seed: 9, References: true})
	if err != nil {
		return nil, err
	}
	setup := mix.Setup()
	v.commands = mix.Take((costRounds + 1) * costRoundCommands)
	// Only the matcher calls the clock, because nothing here expires, and only the
	// journaler calls Append: each pins its goroutine there.
	clock := func() int64 { v.matcher.pin(); return time.Now().UnixNano() }
	leader, err := openLeader(filepath.Join(dir, "journal"), engine.Options{Clock: clock}, func(j engine.Journal) engine.Journal {
		return &pinnedJournal{Journal: j, thread: &v.journaler}
	})
	if err != nil {
		return nil, err
	}
	v.engine = leader.engine
	ends.Add(func() error { return leader.ends.Close() })
	var nats *fanout.Options
	if v.publishes {
		if v.child, err = startFollowers(ctx, exe, dir, v.followers); err != nil {
			return nil, err
		}
		ends.Add(v.child.stop)
		o := natsAt(v.child.url)
		nats = &o
	}
	if err := leader.run(ctx, setup, nats); err != nil {
		return nil, err
	}
	if v.child != nil {
		err = v.child.awaitInSync()
	}
	return ends.Close, err
}

// pinned is a goroutine that keeps its thread, so that the kernel counts its CPU
// time. Each of its wake-ups costs more then, in all variants alike.
type pinned struct{ tid atomic.Int64 }

// pin binds the calling goroutine to its thread, the first time.
func (p *pinned) pin() {
	if p.tid.Load() == 0 {
		runtime.LockOSThread()
		p.tid.Store(int64(unix.Gettid()))
	}
}

// pinnedJournal locks the goroutine that appends to its thread, so that the thread can be measured.
type pinnedJournal struct {
	engine.Journal
	thread *pinned
}

func (j *pinnedJournal) Append(prior uint64, a, b []engine.Command) error {
	j.thread.pin()
	return j.Journal.Append(prior, a, b)
}

// costClocks are CPU times; a turn's are the differences between two readings.
type costClocks struct{ matcher, journaler, process, child time.Duration }

func (v *costVariant) clocks() (c costClocks, err error) {
	errs := make([]error, 3)
	c.matcher, errs[0] = bench.ThreadCPU(int(v.matcher.tid.Load()))
	c.journaler, errs[1] = bench.ThreadCPU(int(v.journaler.tid.Load()))
	c.process = bench.ProcessCPU()
	if v.child != nil {
		c.child, errs[2] = bench.CPUOf(v.child.cmd.Process.Pid)
	}
	return c, errors.Join(errs...)
}

// measure sends the round's commands; the first round is not counted.
func (v *costVariant) measure(ctx context.Context, round int) error {
	commands := v.commands[round*costRoundCommands:][:costRoundCommands]
	before, err := v.clocks()
	if err != nil {
		return err
	}
	start := time.Now()
	err = bench.OpenLoop(ctx, start, len(commands)/costBurst, costBursts, func(i int) error {
		return submitAll(ctx, v.engine, commands[i*costBurst:][:costBurst])
	})
	if err != nil {
		return err
	}
	elapsed := time.Since(start)
	time.Sleep(costSettle) // followers apply the last frames
	after, err := v.clocks()
	if err != nil || round == 0 {
		return err
	}
	each := func(from, to time.Duration) float64 { return float64(to-from) / float64(len(commands)) }
	v.matching = append(v.matching, each(before.matcher, after.matcher))
	v.journaling = append(v.journaling, each(before.journaler, after.journaler))
	v.process = append(v.process, each(before.process, after.process))
	v.following = append(v.following, each(before.child, after.child))
	v.total.Ops += int64(len(commands))
	v.total.Elapsed += elapsed
	v.total.CPU += after.matcher - before.matcher
	return nil
}

// costSettle is how long followers have for what is under way when a turn ends.
const costSettle = 20 * time.Millisecond

func judgeCost(b *clusterBench, variants []*costVariant) {
	bare := bothMeans(variants[1].matching, variants[len(variants)-1].matching)
	for _, v := range variants {
		b.report.Series = append(b.report.Series, v.total)
		b.report.Notes = append(b.report.Notes, fmt.Sprintf(
			"%s: CPU ns a command, median of the turns: engine's thread %.0f (%.0f to %.0f), journaler %.0f, the leader's whole process %.0f, NATS server and followers %.0f",
			v.name, bench.MedianOf(slices.Clone(v.matching)), slices.Min(v.matching), slices.Max(v.matching),
			bench.MedianOf(slices.Clone(v.journaling)), bench.MedianOf(slices.Clone(v.process)), bench.MedianOf(slices.Clone(v.following))))
		q := bench.Ratio{Name: "engine's thread, CPU a command: " + v.name + " / mean of both without", Value: bench.MedianRatio(v.matching, bare)}
		if v.followers > 0 {
			q.Goal, q.AtMost = goalFollowed, true
		}
		b.report.Ratios = append(b.report.Ratios, q)
	}
	b.report.Notes = append(b.report.Notes, fmt.Sprintf(
		"cost: %d commands at once %d times a second, %d turns of %d commands a variant; what both variants without a follower differ by is the spread; the matcher and the journaler keep a thread of their own here, whose CPU time the kernel counts, which makes waking them dearer; the whole process has the client in it",
		costBurst, costBursts, costRounds, costRoundCommands))
}

// bothMeans is the mean of a and b, turn by turn.
func bothMeans(a, b []float64) []float64 {
	list := make([]float64, min(len(a), len(b)))
	for i := range list {
		list[i] = (a[i] + b[i]) / 2
	}
	return list
}
