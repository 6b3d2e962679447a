package cluster

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"blockdesk/bench"
	enginebench "blockdesk/bench/engine"
	"blockdesk/bench/flow"
	"blockdesk/bench/yardstick"
	"blockdesk/persist"
)

const (
	// ackRounds are acknowledgements of one command each.
	ackRounds    = 4_000
	ackUncounted = 400
	// clusterResting keeps a mix's setup within one frame.
	clusterResting = 2_000
)

// measureAck measures the acknowledgement of one command by a majority of three nodes,
// and by a single node's journal, beside one fdatasync of 4 KB on the same disk,
// one after the other in turn.
func measureAck(ctx context.Context, b *clusterBench) (err error) {
	var ends bench.Closers
	defer func() { err = errors.Join(err, ends.Close()) }()
	mix, err := flow.NewMix(flow.MixOptions{Seed: 6, References: true, Resting: clusterResting})
	if err != nil {
		return err
	}
	work := enginebench.NewWorkload(mix, ackUncounted+ackRounds)
	file, err := yardstick.NewFile(filepath.Join(b.o.Dir, "ack-plain"), 64<<20)
	if err != nil {
		return err
	}
	ends.Add(file.Close)
	store, err := enginebench.OpenStore(filepath.Join(b.o.Dir, "ack-single"), 1<<40)
	if err != nil {
		return err
	}
	ends.Add(store.Close)
	if _, err := store.Recover(persist.NewestSnapshot, nil); err != nil {
		return err
	}
	g, err := startGroup(ctx, filepath.Join(b.o.Dir, "ack-quorum"))
	if err != nil {
		return err
	}
	ends.Add(g.ends.Close)
	page := make([]byte, 4092) // with its checksum 4 KB
	variants := []*ackVariant{
		{name: "one fdatasync of 4 KB", one: func(int) error { return file.Append(page) }},
		{name: "acknowledged by a single node's journal", one: work.AppendTo(store)},
		{name: fmt.Sprintf("acknowledged by a majority of %d nodes", clusterNodes), one: work.AppendTo(g.term)},
	}
	if err := errors.Join(store.Append(0, work.Setup, nil), g.term.Append(0, work.Setup, nil)); err != nil {
		return err
	}
	if err := ackAlternately(ctx, variants); err != nil {
		return err
	}
	judgeAcks(b, variants)
	return nil
}

// ackVariant is one way to make a command durable.
type ackVariant struct {
	name   string
	one    func(i int) error
	series *bench.Series
}

// ackAlternately makes each variant acknowledge each command, one variant after the other, so that
// all variants meet the same state of the disk.
func ackAlternately(ctx context.Context, variants []*ackVariant) error {
	for _, v := range variants {
		v.series = &bench.Series{Name: v.name, Hist: bench.NewHistogram()}
	}
	for i := range ackUncounted + ackRounds {
		for _, v := range variants {
			start := time.Now()
			if err := errors.Join(ctx.Err(), v.one(i)); err != nil {
				return fmt.Errorf("%s: %w", v.name, err)
			}
			if i >= ackUncounted {
				v.series.Add(int64(time.Since(start)))
			}
		}
	}
	return nil
}

func judgeAcks(b *clusterBench, variants []*ackVariant) {
	for _, v := range variants {
		v.series.Summary = bench.Summarize(v.series.Hist)
		b.report.Series = append(b.report.Series, v.series)
	}
	one := float64(variants[0].series.Summary.P50)
	b.report.Ratios = append(b.report.Ratios,
		bench.Ratio{Name: "acknowledgement p50, majority / one fdatasync", Value: float64(variants[2].series.Summary.P50) / one, Goal: goalQuorumAck, AtMost: true},
		bench.Ratio{Name: "acknowledgement p50, single node / one fdatasync", Value: float64(variants[1].series.Summary.P50) / one},
	)
	b.report.Notes = append(b.report.Notes, fmt.Sprintf(
		"acknowledgement: frames of one command, from the hand-over to the journal; fdatasync, single node and majority take turns command by command, %d times; the three nodes are in this process and write to the one disk",
		ackRounds))
}
