package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"blockdesk/bench"
	"blockdesk/bench/flow"
	"blockdesk/bench/yardstick"
	"blockdesk/engine"
	"blockdesk/engine/event"
	"blockdesk/persist"
)

// Durable is the journal's benchmark.
type Durable struct {
	Dir    string        // where the journal and the yardstick's file live; required
	Window time.Duration // of each measurement; default 2 s
}

// frameSizes are the commands a frame that the goals are stated for.
var frameSizes = []struct {
	commands int
	goal     float64
}{{1, 0.8}, {10, 0.8}, {100, 0.6}, {1000, 0.45}}

// Run measures the journal against a plain prewritten file with checksum
// and fdatasync of the same frames, in turn, and the time from a command's due
// time to its durable event against one fdatasync.
func (o Durable) Run(ctx context.Context) (*bench.Report, error) {
	if o.Window == 0 {
		o.Window = 2 * time.Second
	}
	r := bench.NewReport("durable")
	mix, err := flow.NewMix(flow.MixOptions{Seed: 3, References: true})
	if err != nil {
		return nil, err
	}
	work := NewWorkload(mix, 2_000_000)
	for _, size := range frameSizes {
		if err := compareJournal(ctx, r, o, work, size.commands, size.goal); err != nil {
			return nil, err
		}
	}
	sync, err := bench.Fdatasyncs(ctx, r, o.Dir, o.Window, 0)
	if err != nil {
		return nil, err
	}
	paced, err := bench.Fdatasyncs(ctx, r, o.Dir, o.Window, pacedRate)
	if err != nil {
		return nil, err
	}
	for _, rate := range []struct {
		perSecond int
		goal      float64
	}{{5_000, 1.3}, {200_000, 2.0}} {
		s, err := durableRun(ctx, r, durableRunOptions{
			Dir: o.Dir, Rate: rate.perSecond, Window: 2 * o.Window, SnapshotEvery: 1 << 40,
			Name: fmt.Sprintf("command to durable event at %d/s", rate.perSecond),
		})
		if err != nil {
			return nil, err
		}
		r.Ratios = append(r.Ratios, bench.Ratio{
			Name:  fmt.Sprintf("command to durable event at %d/s, p50 / fdatasync in a tight loop", rate.perSecond),
			Value: float64(s.Summary.P50) / float64(sync.Summary.P50), Goal: rate.goal, AtMost: true,
		}, bench.Ratio{
			Name:  fmt.Sprintf("command to durable event at %d/s, p50 / fdatasync at %d/s", rate.perSecond, pacedRate),
			Value: float64(s.Summary.P50) / float64(paced.Summary.P50), Goal: rate.goal, AtMost: true,
		})
	}
	r.Notes = append(r.Notes, "yardstick: a file written over beforehand; each frame one CRC32C, one pwrite, one fdatasync of the same bytes; the two in turn, four times",
		"command to durable event: open loop, from Submit (which never blocks), matching and the egress ring included, journal mode sync; at 200,000/s the timer makes bursts")
	return r, nil
}

// Workload is commands and, before each, the digest of all events so far, which
// a journal's frames carry and its second engine checks.
type Workload struct {
	Setup    []engine.Command
	commands []engine.Command
	digests  []uint64
}

// NewWorkload takes n commands of a mix.
func NewWorkload(mix *flow.Mix, n int) *Workload {
	w := &Workload{Setup: mix.Setup(), commands: mix.Take(n), digests: make([]uint64, n)}
	replica := engine.NewReplica(engine.StateOptions{MaxOrders: 1 << 20})
	for i := range w.Setup {
		replica.Apply(&w.Setup[i], nil)
	}
	for i := range w.commands {
		w.digests[i] = replica.Digest
		replica.Apply(&w.commands[i], nil)
	}
	return w
}

// AppendTo appends command i as a frame of its own.
func (w *Workload) AppendTo(j engine.Journal) func(i int) error {
	return func(i int) error { return j.Append(w.digests[i], w.commands[i:i+1], nil) }
}

// OpenStore opens a journal that logs nothing.
func OpenStore(dir string, snapshotEvery uint64) (*persist.Store, error) {
	return persist.Open(persist.Options{
		Dir: dir, SnapshotEvery: snapshotEvery, Logger: bench.Quiet(), State: engine.StateOptions{MaxOrders: 1 << 20},
	})
}

func compareJournal(ctx context.Context, r *bench.Report, o Durable, work *Workload, perFrame int, goal float64) (err error) {
	dir, err := os.MkdirTemp(o.Dir, "journal")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	store, err := OpenStore(filepath.Join(dir, "pebble"), 1<<40)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if _, err := store.Recover(persist.NewestSnapshot, nil); err != nil {
		return err
	}
	file, err := yardstick.NewFile(filepath.Join(dir, "plain"), 256<<20)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := store.Append(0, work.Setup, nil); err != nil {
		return err
	}
	race := &journalRace{store: store, file: file, work: work, perFrame: perFrame}
	totals := [2]*bench.Series{}
	for round := range 8 {
		journal := round%2 == 0
		s, err := race.run(ctx, o.Window/4, journal)
		if err != nil {
			return err
		}
		if t := totals[round%2]; t == nil {
			totals[round%2] = s
		} else {
			t.Ops += s.Ops
			t.Elapsed += s.Elapsed
			t.CPU += s.CPU
			t.Allocs += s.Allocs
			t.GCs += s.GCs
		}
	}
	totals[0].Name = fmt.Sprintf("journal, %d a frame", perFrame)
	totals[1].Name = fmt.Sprintf("plain file, %d a frame", perFrame)
	r.Series = append(r.Series, totals[0], totals[1])
	r.Ratios = append(r.Ratios, bench.Ratio{
		Name:  fmt.Sprintf("journal / plain file, commands a second at %d a frame", perFrame),
		Value: totals[0].Rate() / totals[1].Rate(), Goal: goal,
	})
	return nil
}

// journalRace gives the same frames to the journal and to the plain file.
type journalRace struct {
	store    *persist.Store
	file     *yardstick.File
	work     *Workload
	perFrame int
	next     [2]int // command of the journal's and the file's next frame
	encoded  []byte
}

// run appends frames for a window, or until a quarter of the commands is used.
func (j *journalRace) run(ctx context.Context, window time.Duration, journal bool) (*bench.Series, error) {
	which := 1
	if journal {
		which = 0
	}
	next := &j.next[which]
	from, limit := *next, *next+len(j.work.commands)/4-j.perFrame
	s, err := bench.NewReport("").Measure("", 0, nil, func() error {
		for end := time.Now().Add(window); *next < limit && time.Now().Before(end); *next += j.perFrame {
			if err := errors.Join(ctx.Err(), j.append(*next, journal)); err != nil {
				return err
			}
		}
		return nil
	})
	s.Ops = int64(*next - from)
	return s, err
}

func (j *journalRace) append(at int, journal bool) (err error) {
	batch := j.work.commands[at : at+j.perFrame]
	if journal {
		return j.store.Append(j.work.digests[at], batch, nil)
	}
	if j.encoded, err = persist.AppendFrame(j.encoded[:0], &persist.Frame{Epoch: 1}, batch, nil); err != nil {
		return err
	}
	return j.file.Append(j.encoded)
}

// pacedRate is how often the paced fdatasync is made: as the slower of the two
// command rates. A processor and a disk that sleep in between take longer than
// in a tight loop, for the yardstick as for the journal.
const pacedRate = 5_000

// durableLead is the time before the first command is due.
const durableLead = 50 * time.Millisecond

// durableRunOptions of one run of a real engine on a real journal.
type durableRunOptions struct {
	Dir, Name     string
	Rate          int // commands a second
	Window        time.Duration
	SnapshotEvery uint64
	// Referenced: every command has a client's id, and the engine may add commands of its own.
	Referenced bool
}

// durableRun sends commands at a fixed rate and takes the time from each one's
// Submit to its durable event.
func durableRun(ctx context.Context, r *bench.Report, o durableRunOptions) (_ *bench.Series, err error) {
	dir, err := os.MkdirTemp(o.Dir, "latency")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	store, err := OpenStore(filepath.Join(dir, "pebble"), o.SnapshotEvery)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	replica, err := store.Recover(persist.NewestSnapshot, nil)
	if err != nil {
		return nil, err
	}
	eng, err := engine.New(engine.Options{Journal: store, IngressSize: 1 << 16, EgressSize: 1 << 18}, replica)
	if err != nil {
		return nil, err
	}
	consumer := eng.Consumer("bench")
	run, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 2)
	go func() { ended <- store.Run(run) }()
	go func() { ended <- eng.Run(run) }()
	mix, err := flow.NewMix(flow.MixOptions{Seed: 4, References: true})
	if err != nil {
		return nil, err
	}
	for _, c := range mix.Setup() {
		for c.Kind != engine.StartEpoch && eng.Submit(&c) != nil {
			time.Sleep(time.Millisecond)
		}
	}
	total := int(o.Window.Seconds() * float64(o.Rate))
	s, err := driveDurable(run, r, eng, consumer, mix.Take(total), o)
	stop()
	return s, errors.Join(err, <-ended, <-ended)
}

// driveDurable sends the commands and follows their events. A command's time
// begins when it is first offered to the ring: Submit does not block, so a stall of the
// engine does not delay the sender, which would hide the stall.
func driveDurable(ctx context.Context, r *bench.Report, eng *engine.Engine, consumer *engine.Consumer, commands []engine.Command, o durableRunOptions) (*bench.Series, error) {
	base, total := Settled(eng), uint64(len(commands))
	hist := bench.NewHistogram()
	start := time.Now().Add(durableLead)
	sent := make([]int64, total)
	finished := make(chan error, 1)
	go func() {
		for last := base; last < base+total; {
			events, err := consumer.Next(ctx)
			if err != nil {
				finished <- err
				return
			}
			now := int64(time.Since(start))
			for i := range events {
				if o.Referenced && events[i].Kind == event.Reference {
					_ = hist.RecordValue(max(now-sent[last-base], 1))
					last++
				}
				for ; last < events[i].Seq && !o.Referenced; last++ {
					if last >= base {
						_ = hist.RecordValue(max(now-sent[last-base], 1))
					}
				}
			}
			consumer.Release(len(events))
		}
		finished <- nil
	}()
	s, err := r.Measure(o.Name, int64(total), hist, func() error {
		err := bench.OpenLoop(ctx, start, len(commands), o.Rate, func(i int) error {
			sent[i] = int64(time.Since(start))
			for {
				if err := eng.Submit(&commands[i]); !errors.Is(err, engine.ErrFull) {
					return err
				}
			}
		})
		if err != nil {
			return err
		}
		select {
		case err := <-finished:
			return err
		case <-time.After(time.Minute):
			return errors.New("not all commands became durable within a minute")
		}
	})
	s.Summary, s.Offered = bench.Summarize(hist), float64(o.Rate)
	s.Elapsed -= durableLead
	return s, err
}

// Settled waits until the engine has nothing under way and returns its Seq.
func Settled(eng *engine.Engine) uint64 {
	for {
		if st := eng.Stats(); st.Ingress == 0 && st.Durable == st.Seq && st.Seq > 0 {
			return st.Seq
		}
		time.Sleep(time.Millisecond)
	}
}
