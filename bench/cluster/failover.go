package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"time"

	"blockdesk/bench"
	"blockdesk/bench/server"
)

const (
	// failoverUncounted orders are acknowledged before a leader is killed.
	failoverUncounted = 50
	// maxKillDelay bounds the random delay of a kill.
	maxKillDelay = 200 * time.Millisecond
	// failoverRest is the least time that a node has run when the leader is killed: the
	// FIX sessions that a process makes at its start sleep for up to a second.
	failoverRest = 1200 * time.Millisecond
)

// measureFailover kills the leader of three processes of the program, again and again,
// and measures the time from SIGKILL until a client that sends orders without end gets
// the next acknowledgement, including its logon at the new leader.
func measureFailover(ctx context.Context, b *clusterBench) (err error) {
	var ends bench.Closers
	defer func() { err = errors.Join(err, ends.Close()) }()
	dir := filepath.Join(b.o.Dir, "failover")
	config, key, err := keyedConfig(dir, []string{proberID})
	if err != nil {
		return err
	}
	config += "log: {level: info, format: json}\ndurability: {mode: quorum}\n"
	g, err := server.StartGroup(ctx, b.o.Exe, dir, config, clusterNodes, 0)
	if err != nil {
		return err
	}
	ends.Add(g.Kill)
	p := &prober{key: key, calm: &bench.Series{Name: "order to acknowledgement, between the kills", Hist: bench.NewHistogram()}}
	for _, s := range g {
		p.addrs = append(p.addrs, s.Addresses.FIX)
	}
	ordering := bench.Running(ctx, p.run)
	ends.Add(ordering)
	split := newFailoverSplit()
	for round := range b.o.Failovers {
		if err := failoverRound(ctx, g, p, split); err != nil {
			return fmt.Errorf("round %d: %w", round+1, err)
		}
	}
	if err := ordering(); err != nil {
		return err
	}
	judgeFailovers(b, split, p.calm)
	return nil
}

// failoverRound kills the leader, waits for the next acknowledgement, and brings
// the node back.
func failoverRound(ctx context.Context, g server.Group, p *prober, split *failoverSplit) error {
	time.Sleep(failoverRest)
	_, from := p.seen()
	var before probe
	err := awaitSoon(ctx, "acknowledgements before the kill", func() (enough bool) {
		last, acked := p.seen()
		before = last
		return acked >= from+failoverUncounted
	})
	if err != nil {
		return err
	}
	time.Sleep(rand.N(maxKillDelay))
	var victim *server.Server
	for _, s := range g {
		if s.Addresses.FIX == before.addr {
			victim = s
		}
	}
	killed := time.Now()
	if err := victim.Kill(); err != nil {
		return err
	}
	var after probe
	err = awaitSoon(ctx, "an acknowledgement after the kill", func() bool {
		after, _ = p.seen()
		return after.addr != before.addr
	})
	if err != nil {
		return err
	}
	for _, s := range g {
		if s.Addresses.FIX == after.addr {
			split.add(killed, s.Log(), after)
		}
	}
	return victim.Restart(ctx)
}

// loggedAt returns the times between two others at which a node has logged a message.
func loggedAt(log, message string, from, to time.Time) (at []time.Time) {
	for line := range strings.Lines(log) {
		var record struct {
			Time time.Time
			Msg  string
		}
		if json.Unmarshal([]byte(line), &record) == nil && record.Msg == message && record.Time.After(from) && record.Time.Before(to) {
			at = append(at, record.Time)
		}
	}
	return at
}

// failoverSplit splits the time of the failovers into phases.
type failoverSplit struct {
	elected, built, taken, ordered, whole *bench.Series
	again                                 int // number of failovers whose new leader had won and lost an earlier term since the kill
}

func newFailoverSplit() *failoverSplit {
	series := func(name string) *bench.Series {
		return &bench.Series{Name: "failover: " + name, Hist: bench.NewHistogram()}
	}
	return &failoverSplit{
		elected: series("SIGKILL to the term that serves"),
		built:   series("term to the service on it"),
		taken:   series("service to the client's logon"),
		ordered: series("logon to its order's acknowledgement"),
		whole:   series("SIGKILL to the next acknowledged order"),
	}
}

// add adds one failover; log is that of the node that leads now.
func (f *failoverSplit) add(killed time.Time, log string, after probe) {
	f.whole.Add(int64(after.answer.Sub(killed)))
	f.ordered.Add(max(int64(after.answer.Sub(after.logon)), 1))
	elections, services := loggedAt(log, "this node became the leader", killed, after.logon), loggedAt(log, "serving as leader", killed, after.logon)
	if len(elections) == 0 || len(services) == 0 {
		return
	}
	if len(elections) > 1 {
		f.again++
	}
	elected, built := elections[len(elections)-1], services[len(services)-1]
	f.elected.Add(max(int64(elected.Sub(killed)), 1))
	f.built.Add(max(int64(built.Sub(elected)), 1))
	f.taken.Add(max(int64(after.logon.Sub(built)), 1))
}

func judgeFailovers(b *clusterBench, f *failoverSplit, calm *bench.Series) {
	for _, s := range []*bench.Series{calm, f.elected, f.built, f.taken, f.ordered, f.whole} {
		s.Summary = bench.Summarize(s.Hist)
		b.report.Series = append(b.report.Series, s)
	}
	ms := func(ns int64) float64 { return float64(ns) / float64(time.Millisecond) }
	b.report.Ratios = append(b.report.Ratios,
		bench.Ratio{Name: "failover p50, ms", Value: ms(f.whole.Summary.P50), Goal: ms(int64(goalFailoverP50)), AtMost: true},
		bench.Ratio{Name: "failover p99, ms", Value: ms(f.whole.Summary.P99), Goal: ms(int64(goalFailoverP99)), AtMost: true},
	)
	b.report.Notes = append(b.report.Notes, fmt.Sprintf(
		"failover: three processes of the program on this machine, timeouts as they come; a FIX client with one order in flight, which tries one node after the other when its connection is lost and goes on with its numbers; %d kills of the leader, which is back before the next; after %d of them the node that served had led and lost a term before",
		f.whole.Ops, f.again))
}
