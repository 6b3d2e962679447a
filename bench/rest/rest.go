// Package rest measures reads and quotes over REST, and the rate limits at full speed.
//
// The yardstick is nginx, which serves the same bytes as static files. Each server runs on
// one core and wrk on another, and the CPU time a request is compared in alternating
// rounds of a second. The reads go through the whole gateway: limiter, ETag, compression
// and metrics. The second part sends as fast as it can against the default limits, and
// checks that the service refuses the surplus and that its memory stays bounded. nginx,
// wrk, taskset and two cores are required.
package rest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/valyala/fasthttp"

	"blockdesk/bench"
	"blockdesk/bench/server"
)

// Benchmark holds the options of the REST benchmark.
type Benchmark struct {
	Exe     string // the program; required
	Dir     string // scratch folder; required
	Seconds int    // of load on each server for each kind of read; default 5
	Flood   int    // seconds at full speed against the default limits; 0 = 60
}

// restRead is one kind of read, asked of our server and of nginx.
type restRead struct {
	name    string
	target  string   // of our server: path and query
	file    string   // nginx's, with the same bytes
	headers []string // of both
	packed  bool     // accepts gzip
	etag    bool     // sends each server's own ETag, and expects 304
	conns   int      // of wrk
	goal    float64  // at most this CPU time, as a ratio to nginx
}

// Run measures reads through the whole gateway (limiter, ETag, metrics) beside
// nginx serving the same bytes as static files, in CPU time a request: each
// server on one core, wrk on another.
func (o Benchmark) Run(ctx context.Context) (_ *bench.Report, err error) {
	if o.Seconds == 0 {
		o.Seconds = 5
	}
	if o.Flood == 0 {
		o.Flood = 60
	}
	serverCore, loadCore, err := bench.TwoCores()
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"nginx", "wrk", "taskset"} {
		if _, err := bench.FindProgram(name); err != nil {
			return nil, err
		}
	}
	r := bench.NewReport("rest")
	b := &restBench{o: o, r: r, serverCore: serverCore, loadCore: loadCore}
	for _, part := range []func(context.Context) error{b.reads, b.flood} {
		if err := part(ctx); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// restBench is one run of the REST benchmark.
type restBench struct {
	o                    Benchmark
	r                    *bench.Report
	serverCore, loadCore int
	ours                 *server.Server
	nginx                *staticServer
}

// startOurs runs the service on its core with a configuration's http section.
func (b *restBench) startOurs(ctx context.Context, name, http string) (srv *server.Server, stop func() error, err error) {
	dir := filepath.Join(b.o.Dir, name)
	config, err := server.RESTConfig(dir, http)
	if err != nil {
		return nil, nil, err
	}
	srv, err = server.StartOn(ctx, b.serverCore, b.o.Exe, dir, config)
	if err != nil {
		return nil, nil, err
	}
	return srv, func() error { return errors.Join(srv.Stop(), os.RemoveAll(dir)) }, nil
}

// reads compares every kind of read with nginx, and quotes with reads.
func (b *restBench) reads(ctx context.Context) (err error) {
	ours, stop, err := b.startOurs(ctx, "rest", server.OpenLimits)
	if err != nil {
		return err
	}
	b.ours = ours
	defer func() { err = errors.Join(err, stop()) }()
	if err := errors.Join(server.FillBook(ctx, ours.Addresses.FIX, 100), server.PostTickets(ours, server.FullBook)); err != nil {
		return err
	}
	depth, files, err := b.files()
	if err != nil {
		return err
	}
	b.nginx, err = startStatic(ctx, filepath.Join(b.o.Dir, "nginx"), b.serverCore, files)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.nginx.stop()) }()
	gzip := []string{"Accept-Encoding: gzip"}
	for _, read := range []restRead{
		{name: "depth, whole", target: depth, file: "depth.json", conns: wrkConns, goal: 1.15},
		{name: "depth, 304", target: depth, file: "depth.json", etag: true, conns: wrkConns, goal: 1.0},
		{name: "RFQ book, whole", target: server.TicketsTarget, file: "tickets.json", conns: wrkConnsBook, goal: 1.15},
		{name: "RFQ book, gzip", target: server.TicketsTarget, file: "tickets.json", headers: gzip, packed: true, conns: wrkConns, goal: 1.15},
		{name: "RFQ book, 304", target: server.TicketsTarget, file: "tickets.json", headers: gzip, packed: true, etag: true, conns: wrkConns, goal: 1.0},
	} {
		if err := b.compare(ctx, read); err != nil {
			return fmt.Errorf("%s: %w", read.name, err)
		}
	}
	return b.quotes(ctx, depth)
}

// files are our pages, for nginx to serve.
func (b *restBench) files() (depth string, files map[string][]byte, err error) {
	base := b.ours.Addresses.Base
	depth, body, err := server.DepthOf(base, server.DepthBytes)
	if err != nil {
		return "", nil, err
	}
	_, tickets, err := server.Fetch(base+server.TicketsTarget, nil, fasthttp.StatusOK)
	if err != nil {
		return "", nil, err
	}
	_, packed, err := server.Fetch(base+server.TicketsTarget, []string{"Accept-Encoding: gzip"}, fasthttp.StatusOK)
	if err != nil {
		return "", nil, err
	}
	b.r.Notes = append(b.r.Notes, fmt.Sprintf("depth %d bytes, RFQ book of %d tickets %d bytes, gzip %d; %d connections (%d for the whole book), one request in flight on each; CPU is the server process's, user and system; ratios are of medians over the quieter half of %d rounds in turn, the table's figures of all rounds",
		len(body), server.FullBook, len(tickets), len(packed), wrkConns, wrkConnsBook, b.o.Seconds))
	return depth, map[string][]byte{"depth.json": body, "tickets.json": tickets, "tickets.json.gz": packed}, nil
}

// restSide is one server's part of a comparison.
type restSide struct {
	name   string
	pid    int
	load   wrkLoad
	read   restRead
	series *bench.Series
	rounds []restFigure
}

// restFigure is the result of one round.
type restFigure struct {
	perOp  float64 // CPU nanoseconds a request
	others float64 // cores that were busy with other processes
}

// perOp returns the median CPU time a request of the quieter half of the rounds, because
// other processes on the same cores evict the caches, which slows the servers unequally.
func (s *restSide) perOp() (median, others float64) {
	slices.SortFunc(s.rounds, func(a, b restFigure) int { return cmp.Compare(a.others, b.others) })
	quiet := s.rounds[:(len(s.rounds)+1)/2]
	list := make([]float64, len(quiet))
	for i := range quiet {
		list[i] = quiet[i].perOp
	}
	return bench.MedianOf(list), quiet[len(quiet)-1].others
}

// compare measures the servers in turn, a second each, and records the ratio of their
// CPU times a request. A first second of each is warm-up.
func (b *restBench) compare(ctx context.Context, read restRead) error {
	sides := []*restSide{
		{name: "blockdesk", pid: b.ours.PID(), load: wrkLoad{url: b.ours.Addresses.Base + read.target}},
		{name: "nginx", pid: b.nginx.cmd.Process.Pid, load: wrkLoad{url: b.nginx.url + "/" + read.file}},
		{name: "nginx with open_file_cache", pid: b.nginx.cmd.Process.Pid, load: wrkLoad{url: b.nginx.cached + "/" + read.file}},
	}
	if err := prepare(sides, read); err != nil {
		return err
	}
	for round := range b.o.Seconds + 1 {
		for _, side := range sides {
			if err := side.run(ctx, b, round > 0); err != nil {
				return err
			}
		}
	}
	ours, others := sides[0].perOp()
	for i, side := range sides {
		b.r.Series = append(b.r.Series, side.series)
		if i == 0 {
			continue
		}
		theirs, busy := side.perOp()
		others = max(others, busy)
		q := bench.Ratio{Name: fmt.Sprintf("%s: CPU a request / %s", read.name, side.name), Value: ours / theirs, AtMost: true}
		if i == 1 {
			q.Goal = read.goal // the other one is for comparison
		}
		b.r.Ratios = append(b.r.Ratios, q)
	}
	b.r.Notes = append(b.r.Notes, fmt.Sprintf("%s: other processes kept up to %.2f cores busy in the rounds that count", read.name, others))
	return nil
}

// prepare requests each page once: all bodies must be equal, except for the time in
// the RFQ book, which moves every 10 s.
func prepare(sides []*restSide, read restRead) error {
	var first []byte
	for i, side := range sides {
		side.series = &bench.Series{Name: read.name + ", " + side.name}
		side.read = read
		_, body, err := server.Fetch(side.load.url, read.headers, fasthttp.StatusOK)
		if err != nil {
			return err
		}
		if read.packed {
			if body, err = fasthttp.AppendGunzipBytes(nil, body); err != nil {
				return err
			}
		}
		body = timeOfBook.ReplaceAll(body, nil)
		if i == 0 {
			first = bytes.Clone(body)
		} else if !bytes.Equal(body, first) {
			return fmt.Errorf("%s sends %d other bytes than our %d", side.name, len(body), len(first))
		}
	}
	return nil
}

var timeOfBook = regexp.MustCompile(`"ts":"[^"]*"`)

// run puts one second of load on one side. It repeats the second if the page has changed
// meanwhile, because a conditional read then got the whole page, and if a busy machine
// left wrk no time.
func (s *restSide) run(ctx context.Context, b *restBench, counted bool) error {
	const tries = 5
	for range tries {
		etag, err := s.condition()
		if err != nil {
			return err
		}
		round, err := s.measure(ctx, b)
		if err != nil {
			return err
		}
		if now, err := s.condition(); err != nil {
			return err
		} else if now != etag || round.Requests < int64(s.read.conns) {
			continue
		}
		if counted {
			s.series.Ops += round.Requests
			s.series.Elapsed += round.elapsed()
			s.series.CPU += round.server
			s.rounds = append(s.rounds, restFigure{
				perOp: float64(round.server) / float64(round.Requests), others: float64(round.others) / float64(round.elapsed()),
			})
		}
		return nil
	}
	return fmt.Errorf("%s: the page changed, or wrk got no answers, in each of %d rounds", s.name, tries)
}

// restRound is the result of one second of load.
type restRound struct {
	*wrkResult
	server, others time.Duration // CPU time
}

func (s *restSide) measure(ctx context.Context, b *restBench) (*restRound, error) {
	allBefore, err := bench.MachineCPU()
	if err != nil {
		return nil, err
	}
	before, err := bench.CPUOf(s.pid)
	if err != nil {
		return nil, err
	}
	w, err := runWrk(ctx, b.o.Dir, b.loadCore, s.load)
	if err != nil {
		return nil, err
	}
	after, err := bench.CPUOf(s.pid)
	if err != nil {
		return nil, err
	}
	all, err := bench.MachineCPU()
	if err != nil {
		return nil, err
	}
	if w.broken() > 0 || w.Over399 > 0 {
		return nil, fmt.Errorf("%s: %d requests without an answer, %d refused", s.name, w.broken(), w.Over399)
	}
	took := after - before
	return &restRound{w, took, max(all-allBefore-took-w.cpu, 0)}, nil
}

// condition sets the headers of the load and returns the page's ETag where the
// read is conditional: then the server must answer it by 304.
func (s *restSide) condition() (etag string, err error) {
	s.load.seconds, s.load.conns, s.load.headers = 1, s.read.conns, s.read.headers
	if !s.read.etag {
		return "", nil
	}
	if etag, _, err = server.Fetch(s.load.url, s.read.headers, fasthttp.StatusOK); err != nil {
		return "", err
	}
	s.load.headers = append(slices.Clone(s.read.headers), "If-None-Match: "+etag)
	_, _, err = server.Fetch(s.load.url, s.load.headers, fasthttp.StatusNotModified)
	return etag, err
}
