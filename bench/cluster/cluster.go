// Package cluster measures what it costs to outgrow one machine: a raft group of three
// nodes, followers that replicate it over NATS, and instruments that are split over
// several groups. It measures the time to an acknowledgement, the rate of commands, how
// far a follower is behind, the time without a leader after a kill, and the memory and CPU
// time of an instrument and of a FIX session, on which docs/scale.md is based.
//
// Each figure has a yardstick in the same run: one fdatasync on the same disk, or a single
// node. All nodes share one machine and one disk, so the figures are of the software and
// not of a network. No wait is longer than clusterPatience.
package cluster

import (
	"cmp"
	"context"
	"errors"
	"time"

	"blockdesk/bench"
)

// Goals of the cluster's benchmark.
const (
	goalQuorumAck   = 5       // × one fdatasync on the disk that all nodes share
	goalQuorumRate  = 200_000 // commands a second
	goalViewLag     = 5 * time.Millisecond
	goalFollowed    = 1.05 // × the engine thread's CPU time without followers: nothing that the spread does not cover
	goalFailoverP50 = 400 * time.Millisecond
	goalFailoverP99 = time.Second
)

const (
	clusterNodes            = 3
	clusterDefaultFailovers = 100
	clusterDefaultRounds    = 20
	clusterDefaultTickets   = 500
	// clusterPatience bounds the wait for anything that must come.
	clusterPatience = time.Minute
)

// Benchmark holds the options of the cluster's benchmark.
type Benchmark struct {
	Exe string // the program; required
	Dir string // scratch folder on the disk to measure; required
	// Failovers is how often the leader is killed; default 100.
	Failovers int
	// Rounds that the variants of the groups take in turn; default 20.
	Rounds int
	// Tickets of each of the two pairs that the groups sell; default 500.
	Tickets int
	// Parts to run, by name; none = all.
	Parts []string
}

// clusterBench is one run.
type clusterBench struct {
	o      Benchmark
	report *bench.Report
}

// Run measures what outgrowing one machine costs: the acknowledgement of a
// majority of three nodes beside one fdatasync on the same disk; commands a second
// through them beside the journal of a single node; how far a follower's view is
// behind its leader's; what followers cost the leader's engine; how long nothing is
// acknowledged after the leader was killed; what it costs to split instruments over
// two groups; and what instruments and FIX sessions cost, which docs/scale.md counts
// with. All nodes, groups and followers share this machine and its disk.
func (o Benchmark) Run(ctx context.Context) (*bench.Report, error) {
	o.Failovers = cmp.Or(o.Failovers, clusterDefaultFailovers)
	o.Rounds = cmp.Or(o.Rounds, clusterDefaultRounds)
	o.Tickets = cmp.Or(o.Tickets, clusterDefaultTickets)
	b := &clusterBench{o: o, report: bench.NewReport("cluster")}
	of := func(measure func(context.Context, *clusterBench) error) func(context.Context) error {
		return func(ctx context.Context) error { return measure(ctx, b) }
	}
	return b.report, bench.RunParts(ctx, b.o.Parts, []bench.Part{
		{Name: "ack", Run: of(measureAck)},
		{Name: "rate", Run: of(measureRate)},
		{Name: "lag", Run: of(measureLag)},
		{Name: "cost", Run: of(measureCost)},
		{Name: "failover", Run: of(measureFailover)},
		{Name: "groups", Run: of(measureGroups)},
		{Name: "units", Run: of(measureUnits)},
		{Name: "storage", Run: of(measureStorage)},
	})
}

// awaitSoon waits until cond holds, for clusterPatience at most.
func awaitSoon(ctx context.Context, what string, cond func() bool) error {
	for end := time.Now().Add(clusterPatience); !cond(); time.Sleep(time.Millisecond) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if time.Now().After(end) {
			return errors.New("never came: " + what)
		}
	}
	return nil
}
