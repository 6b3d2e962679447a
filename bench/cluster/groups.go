package cluster

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"blockdesk/bench"
	"blockdesk/bench/server"
)

const (
	groupTrips  = 100 // requests of a turn with one in flight
	groupFlight = 32  // connections of a turn under load, one request in flight on each
	groupLoad   = 50  // requests on each of them
	// groupRest is how long the processes are idle for each round, so that their CPU
	// time without requests is measured.
	groupRest = 250 * time.Millisecond

	otherSymbol   = "92C/SLUSD"
	symbolsTarget = "/api/v1/market/symbols"
)

// groupDesk is server.DeskConfig with a second pair, so that each of two groups sells one.
const groupDesk = server.DeskConfig +
	`    - {symbol: 92C/SLUSD, base_mint: PLaceho1der92Cmintxxxxxxxxxxxxxxxxxxxxxxxxx, base_decimals: 6, rails: [USDC, SOL], price_source: operator, reference_price_usd: "0.1", corridor_bps: 1000, max_age_s: 3600, inventory: "1000000000"}
`

// measureGroups measures what it costs to split instruments over two groups, each a process
// with a single node's journal, beside one process that has all of them.
func measureGroups(ctx context.Context, b *clusterBench) error {
	return errors.Join(measureForwarding(ctx, b), measureGroupRates(ctx, b))
}

// splitRig is a service that is split into two groups, and one of the same instruments
// that is not. All processes are on one core and their clients on another, if there are
// two, so that the kernel's placement does not affect the figures.
type splitRig struct {
	whole, own, other    *server.Server // own has server.Symbol, other otherSymbol
	serverCore, loadCore int            // negative = any
	ends                 bench.Closers
}

func startSplit(ctx context.Context, b *clusterBench) (r *splitRig, err error) {
	r = &splitRig{}
	r.serverCore, r.loadCore, err = bench.TwoCores()
	if _, missing := bench.FindProgram("taskset"); missing != nil || err != nil {
		r.serverCore, r.loadCore = -1, -1
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.ends.Close())
		}
	}()
	dir := filepath.Join(b.o.Dir, "groups")
	config, err := server.RESTConfig(dir, server.OpenLimits)
	if err != nil {
		return nil, err
	}
	config = strings.Replace(config, server.DeskConfig, groupDesk, 1)
	if r.whole, err = server.StartOn(ctx, r.serverCore, b.o.Exe, filepath.Join(dir, "whole"), config); err != nil {
		return nil, err
	}
	r.ends.Add(r.whole.Stop)
	groups, err := server.StartSplit(ctx, r.serverCore, b.o.Exe, dir, config, [][]string{{server.Symbol}, {otherSymbol}})
	if err != nil {
		return nil, err
	}
	r.own, r.other = groups[0], groups[1]
	r.ends.Add(r.own.Stop)
	r.ends.Add(r.other.Stop)
	return r, r.fill(ctx, b.o.Tickets)
}

// fill gives both services the same order book of one instrument and the same
// tickets of both, and waits until all three processes list all of them.
func (r *splitRig) fill(ctx context.Context, tickets int) error {
	const levels = 100
	second := server.Visitor + (tickets+server.TicketsEach-1)/server.TicketsEach
	err := errors.Join(
		server.FillBook(ctx, r.whole.Addresses.FIX, levels), server.FillBook(ctx, r.own.Addresses.FIX, levels),
		server.OfferTickets(r.whole, server.Symbol, tickets, server.Visitor), server.OfferTickets(r.own, server.Symbol, tickets, server.Visitor),
		server.OfferTickets(r.whole, otherSymbol, tickets, second), server.OfferTickets(r.other, otherSymbol, tickets, server.Visitor),
	)
	for _, s := range []*server.Server{r.whole, r.own, r.other} {
		if err == nil {
			err = server.AwaitTickets(s.Addresses.Base, 2*tickets)
		}
	}
	return err
}

// measureForwarding measures a read, a quote and two lists, in turn: at the group that has
// them, forwarded by the other group's gateway, and at the process without groups.
func measureForwarding(ctx context.Context, b *clusterBench) (err error) {
	r, err := startSplit(ctx, b)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.ends.Close()) }()
	if err := measureAtRest(ctx, b, r); err != nil {
		return err
	}
	depth, _, err := server.DepthOf(r.own.Addresses.Base, server.DepthBytes)
	if err != nil {
		return err
	}
	quotes := make(map[*server.Server]string)
	for _, s := range []*server.Server{r.whole, r.own} {
		order, tranche, err := server.FirstOffer(s.Addresses.Base)
		if err != nil {
			return err
		}
		quotes[s] = fmt.Sprintf(`{"order_id":%q,"tranche_id":%q,"fill_usd":"1000","rail":"USDC"}`, order, tranche)
	}
	whole, home, both := []*server.Server{r.whole}, []*server.Server{r.own}, []*server.Server{r.own, r.other}
	for _, kind := range []groupKind{
		{"depth", []*groupVariant{
			{name: "without groups", asked: r.whole, working: whole, request: server.GetText(depth)},
			{name: "own instrument", asked: r.own, working: home, request: server.GetText(depth)},
			{name: "forwarded", asked: r.other, working: both, request: server.GetText(depth)},
		}},
		{"quote", []*groupVariant{
			{name: "without groups", asked: r.whole, working: whole, request: server.PostText(server.QuoteTarget, quotes[r.whole])},
			{name: "own ticket", asked: r.own, working: home, request: server.PostText(server.QuoteTarget, quotes[r.own])},
			{name: "forwarded", asked: r.other, working: both, request: server.PostText(server.QuoteTarget, quotes[r.own])},
		}},
		{"tickets, gzip", []*groupVariant{
			{name: "without groups", asked: r.whole, working: whole, request: server.GetText(server.TicketsTarget, "Accept-Encoding: gzip")},
			{name: "merged", asked: r.own, working: home, request: server.GetText(server.TicketsTarget, "Accept-Encoding: gzip")},
		}},
		{"symbols", []*groupVariant{
			{name: "without groups", asked: r.whole, working: whole, request: server.GetText(symbolsTarget)},
			{name: "merged", asked: r.own, working: home, request: server.GetText(symbolsTarget)},
		}},
	} {
		if err := kind.compare(ctx, b, r.loadCore); err != nil {
			return fmt.Errorf("%s: %w", kind.name, err)
		}
	}
	cores := "all processes share one core, their clients have another"
	if r.loadCore < 0 {
		cores = "processes and clients run on any core"
	}
	b.report.Notes = append(b.report.Notes, fmt.Sprintf(
		"groups: three processes of the program, limits at work and durability interval; the variants of a kind take turns, %d of %d requests one in flight and of %d on each of %d connections; CPU is of the process that is asked, and of both where one forwards; %s; %d tickets of each pair",
		b.o.Rounds, groupTrips, groupLoad, groupFlight, cores, b.o.Tickets))
	return nil
}

// measureAtRest measures the CPU time of the processes without requests: groups poll each
// other's desks and facts.
func measureAtRest(ctx context.Context, b *clusterBench, r *splitRig) error {
	all := []*server.Server{r.whole, r.own, r.other}
	before, err := cpuOfEach(all)
	if err != nil {
		return err
	}
	rest := time.Duration(b.o.Rounds) * groupRest
	select {
	case <-time.After(rest):
	case <-ctx.Done():
		return ctx.Err()
	}
	after, err := cpuOfEach(all)
	if err != nil {
		return err
	}
	took := func(i int) float64 { return float64((after[i] - before[i]).Microseconds()) / 1e3 / rest.Seconds() }
	b.report.Notes = append(b.report.Notes, fmt.Sprintf(
		"groups at rest: %.1f and %.1f ms of CPU a second, %.1f without groups, each in its own process, over %v", took(1), took(2), took(0), rest))
	return nil
}

func cpuOfEach(servers []*server.Server) (list []time.Duration, err error) {
	for _, s := range servers {
		cpu, err := bench.CPUOf(s.PID())
		if err != nil {
			return nil, err
		}
		list = append(list, cpu)
	}
	return list, nil
}

// groupKind is one kind of request. Each of its variants is compared with those before
// it.
type groupKind struct {
	name     string
	variants []*groupVariant
}

// groupVariant sends one kind of request to one process.
type groupVariant struct {
	name    string
	asked   *server.Server
	working []*server.Server // whose CPU time counts
	request []byte
	core    int // of its clients

	single, loaded *bench.Series
	cpu            []float64 // ns a request under load, of each turn
}

// compare takes the variants in turn. A first turn of each is warm-up.
func (k *groupKind) compare(ctx context.Context, b *clusterBench, core int) error {
	for _, v := range k.variants {
		v.single = &bench.Series{Name: k.name + ", " + v.name + ", one in flight", Hist: bench.NewHistogram()}
		v.core = core
		v.loaded = &bench.Series{Name: fmt.Sprintf("%s, %s, %d in flight", k.name, v.name, groupFlight)}
	}
	for round := range b.o.Rounds + 1 {
		for i := range k.variants {
			v := k.variants[(i+round)%len(k.variants)] // none is always behind the same
			if err := v.measure(ctx, round > 0); err != nil {
				return fmt.Errorf("%s: %w", v.name, err)
			}
		}
	}
	k.judge(b.report)
	return nil
}

// dial opens groupFlight connections. Each turn has its own: the service answers 408 on
// one that waits for its first request while the other variants are measured.
func (v *groupVariant) dial() (lines []*server.Line, ends bench.Closers, err error) {
	for range groupFlight {
		one, err := server.DialLine(strings.TrimPrefix(v.asked.Addresses.Base, "http://"))
		if err != nil {
			return nil, ends, err
		}
		ends.Add(one.Socket.Close)
		lines = append(lines, one)
	}
	return lines, ends, nil
}

// measure sends requests with one in flight, to measure the latency, and with many in
// flight, to measure the CPU time of each.
func (v *groupVariant) measure(ctx context.Context, counted bool) (err error) {
	single, loaded := v.single, v.loaded
	if !counted {
		single, loaded = &bench.Series{Hist: bench.NewHistogram()}, &bench.Series{}
	}
	lines, ends, err := v.dial()
	defer func() { err = errors.Join(err, ends.Close()) }()
	if err != nil {
		return err
	}
	if err := v.askAll(lines); err != nil { // the first answer costs more
		return err
	}
	if err := v.take(single, groupTrips, func() error {
		return bench.OnCore(v.core, func() error { return lines[0].Trips(ctx, v.request, groupTrips, single.Hist) })
	}); err != nil {
		return err
	}
	before := loaded.CPU
	if err := v.take(loaded, groupFlight*groupLoad, func() error {
		return bench.OnCore(v.core, func() error { return v.flood(ctx, lines) })
	}); err != nil {
		return err
	}
	if counted {
		v.cpu = append(v.cpu, float64(loaded.CPU-before)/(groupFlight*groupLoad))
	}
	return nil
}

// flood sends requests on all connections at once, again and again, from one thread,
// because with a thread a connection the server would wait for the clients.
func (v *groupVariant) flood(ctx context.Context, lines []*server.Line) error {
	for range groupLoad {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := v.askAll(lines); err != nil {
			return err
		}
	}
	return nil
}

// askAll sends one request on each connection, then reads the answers.
func (v *groupVariant) askAll(lines []*server.Line) error {
	for _, one := range lines {
		if _, err := one.Socket.Write(v.request); err != nil {
			return err
		}
	}
	for _, one := range lines {
		if err := one.Answer(); err != nil {
			return err
		}
	}
	return nil
}

// take adds the time of n requests to a series.
func (v *groupVariant) take(s *bench.Series, n int64, send func() error) error {
	before, err := cpuOfEach(v.working)
	if err != nil {
		return err
	}
	start := time.Now()
	if err := send(); err != nil {
		return err
	}
	s.Elapsed += time.Since(start)
	after, err := cpuOfEach(v.working)
	if err != nil {
		return err
	}
	for i := range after {
		s.CPU += after[i] - before[i]
	}
	s.Ops += n
	return nil
}

func (k *groupKind) judge(r *bench.Report) {
	for _, v := range k.variants {
		v.single.Summary = bench.Summarize(v.single.Hist)
		r.Series = append(r.Series, v.single, v.loaded)
		r.Notes = append(r.Notes, fmt.Sprintf("%s, %s: CPU µs a request under load, median of the turns %.1f (%.1f to %.1f)",
			k.name, v.name, bench.MedianOf(slices.Clone(v.cpu))/1e3, slices.Min(v.cpu)/1e3, slices.Max(v.cpu)/1e3))
	}
	for i, v := range k.variants {
		for _, base := range k.variants[:i] {
			names := fmt.Sprintf("%s: %s / %s", k.name, v.name, base.name)
			r.Ratios = append(r.Ratios,
				bench.Ratio{Name: names + ", p50", Value: float64(v.single.Summary.P50) / float64(base.single.Summary.P50)},
				bench.Ratio{Name: names + ", CPU under load", Value: bench.MedianRatio(v.cpu, base.cpu)})
		}
	}
}
