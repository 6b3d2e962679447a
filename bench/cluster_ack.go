package bench

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"blockdesk/bench/flow"
	"blockdesk/bench/yardstick"
	"blockdesk/engine"
	"blockdesk/persist"
)

const (
	// ackRounds are acknowledgements of one command each.
	ackRounds = 4_000
	ackWarm   = 400
	// clusterResting keeps a mix's setup within one frame.
	clusterResting = 2_000
)

// ack measures the acknowledgement of one command by a majority of three nodes,
// and by a single node's journal, beside one fdatasync of 4 KB on the same disk,
// one after the other in turn.
func (b *clusterBench) ack(ctx context.Context) (err error) {
	var ends closers
	defer func() { err = errors.Join(err, ends.close()) }()
	mix, err := flow.NewMix(flow.MixOptions{Seed: 6, References: true, Resting: clusterResting})
	if err != nil {
		return err
	}
	work := digested(mix, ackWarm+ackRounds)
	file, err := yardstick.NewFile(filepath.Join(b.o.Dir, "ack-plain"), 64<<20)
	if err != nil {
		return err
	}
	ends.add(file.Close)
	store, err := quietStore(filepath.Join(b.o.Dir, "ack-single"), 1<<40)
	if err != nil {
		return err
	}
	ends.add(store.Close)
	if _, err := store.Recover(persist.NewestSnapshot, nil); err != nil {
		return err
	}
	g, err := startGroup(ctx, filepath.Join(b.o.Dir, "ack-quorum"))
	if err != nil {
		return err
	}
	ends.add(g.ends.close)
	page := make([]byte, 4092) // with its checksum 4 KB
	lanes := []*ackLane{
		{name: "one fdatasync of 4 KB", one: func(int) error { return file.Append(page) }},
		{name: "acknowledged by a single node's journal", one: work.appendTo(store)},
		{name: fmt.Sprintf("acknowledged by a majority of %d nodes", clusterNodes), one: work.appendTo(g.term)},
	}
	if err := errors.Join(store.Append(0, work.setup, nil), g.term.Append(0, work.setup, nil)); err != nil {
		return err
	}
	if err := ackInTurn(ctx, lanes); err != nil {
		return err
	}
	b.judgeAcks(lanes)
	return nil
}

// ackLane is one way to make a command durable.
type ackLane struct {
	name   string
	one    func(i int) error
	series *Series
}

// appendTo appends command i as a frame of its own.
func (w *workload) appendTo(j engine.Journal) func(i int) error {
	return func(i int) error { return j.Append(w.digests[i], w.commands[i:i+1], nil) }
}

// ackInTurn has each lane acknowledge each command, one lane after the other, so
// that all see the same moments of the disk.
func ackInTurn(ctx context.Context, lanes []*ackLane) error {
	for _, l := range lanes {
		l.series = &Series{Name: l.name, Hist: NewHistogram()}
	}
	for i := range ackWarm + ackRounds {
		for _, l := range lanes {
			start := time.Now()
			if err := errors.Join(ctx.Err(), l.one(i)); err != nil {
				return fmt.Errorf("%s: %w", l.name, err)
			}
			if i >= ackWarm {
				l.series.add(int64(time.Since(start)))
			}
		}
	}
	return nil
}

func (b *clusterBench) judgeAcks(lanes []*ackLane) {
	for _, l := range lanes {
		l.series.Summary = summarize(l.series.Hist)
		b.report.Series = append(b.report.Series, l.series)
	}
	one := float64(lanes[0].series.Summary.P50)
	b.report.Ratios = append(b.report.Ratios,
		Ratio{Name: "acknowledgement p50, majority / one fdatasync", Value: float64(lanes[2].series.Summary.P50) / one, Goal: goalQuorumAck, AtMost: true},
		Ratio{Name: "acknowledgement p50, single node / one fdatasync", Value: float64(lanes[1].series.Summary.P50) / one},
	)
	b.report.Notes = append(b.report.Notes, fmt.Sprintf(
		"acknowledgement: frames of one command, from the hand-over to the journal; fdatasync, single node and majority take turns command by command, %d times; the three nodes are in this process and write to the one disk",
		ackRounds))
}
