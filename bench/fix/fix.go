// Package fix measures the time and the CPU time from an order to its execution report
// over FIX, with one order in flight and with many, and the time of a logon.
//
// The service runs as its users run it, in a process of its own, once in mode interval and
// once in mode sync. The yardsticks of package echo run beside it and get the same bytes
// from the same client in alternating rounds. They check and store nothing, whereas the
// service validates, matches, journals and stores, so the goals are multiples of the
// yardsticks' figures.
package fix

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"blockdesk/bench"
	"blockdesk/bench/echo"
	"blockdesk/bench/server"
	"blockdesk/fixgw/fixclient"
)

// Goals of the FIX benchmark.
const (
	goalRoundTrip  = 1.7 // × raw TCP, interval
	goalSync       = 1.3 // × (round trip in interval + one fdatasync)
	goalDefault    = 10  // × the throughput of quickfix as it comes
	goalGuarded    = 1   // × that of a guarded one
	goalOrderCPU   = 25 * time.Microsecond
	goalLogon      = 50 * time.Millisecond
	fixWindow      = 256 // requests in flight of the throughput measurement
	fixUncounted   = 1_000
	fixRounds      = 5
	fixLogons      = 200
	fixSyncs       = 500
	fixSyncPayload = 4 << 10 // bytes
)

// Benchmark measures FIX on a running server.
type Benchmark struct {
	Exe    string // the program; required
	Dir    string // scratch folder; required
	Orders int    // round trips; default 20,000
}

// Run measures order to execution report through the gateway of a running server,
// in modes interval and sync, beside a TCP echo of the same bytes and bare
// quickfix acceptors that echo them; and the logon. One client for all.
func (o Benchmark) Run(ctx context.Context) (*bench.Report, error) {
	if o.Orders == 0 {
		o.Orders = 20_000
	}
	r := bench.NewReport("fix")
	f := fixBench{report: r, options: o}
	if err := errors.Join(f.run(ctx), f.ends.Close()); err != nil {
		return nil, err
	}
	r.Notes = append(r.Notes,
		"one in flight: limit order, then its cancel, in turn; each server is a process of its own and shares the machine's cores with the client",
		fmt.Sprintf("throughput: one session, %d requests in flight, as many as were answered in one write; CPU is the server's", fixWindow),
		"the quickfix echoes check nothing, keep nothing on disk and answer with the message itself; ours validates, checks risk, matches, journals, reports and stores")
	return r, nil
}

// fixBench is the servers side by side.
type fixBench struct {
	report   *bench.Report
	options  Benchmark
	variants []*fixVariant
	ends     bench.Closers
}

// fixVariant is one server and its measurements.
type fixVariant struct {
	name      string
	wire      *wire
	pid       int
	trip, run *bench.Series
}

func (f *fixBench) run(ctx context.Context) error {
	for _, kind := range []string{echo.TCP, echo.Default, echo.Guarded} {
		if err := f.startEcho(ctx, kind); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	for _, mode := range []string{"interval", "sync"} {
		if err := f.startOurs(ctx, mode); err != nil {
			return fmt.Errorf("mode %s: %w", mode, err)
		}
	}
	if err := f.measure(ctx); err != nil {
		return err
	}
	sync, err := f.syncs()
	if err != nil {
		return err
	}
	f.judge(sync)
	return f.logons(ctx)
}

// startEcho runs an echo as a child of its own.
func (f *fixBench) startEcho(ctx context.Context, kind string) error {
	cmd := exec.CommandContext(ctx, f.options.Exe, "bench", "echo", kind)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	f.ends.Add(func() error {
		killed := cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
		return killed
	})
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return err
	}
	logon, target := "98=0\x01108=30\x01141=Y\x01", echo.CompID
	if kind == echo.TCP {
		logon = ""
	}
	return f.add(kind+" echo", strings.TrimSpace(addr), cmd.Process.Pid, target, logon)
}

func (f *fixBench) startOurs(ctx context.Context, mode string) error {
	srv, stop, err := server.StartBook(ctx, f.options.Exe, f.options.Dir, "fix-"+mode, mode)
	if err != nil {
		return err
	}
	f.ends.Add(stop)
	logon := "98=0\x01108=30\x01141=Y\x01553=" + echo.Client + "\x01554=" + server.Password + "\x01"
	return f.add("ours, "+mode, srv.Addresses.FIX, srv.PID(), "BLOCKDESK", logon)
}

func (f *fixBench) add(name, addr string, pid int, target, logon string) error {
	w, err := dialWire(addr, echo.Client, target, logon)
	if err != nil {
		return err
	}
	f.ends.Add(w.close)
	f.variants = append(f.variants, &fixVariant{name: name, wire: w, pid: pid})
	return nil
}

// measure lets the servers take turns, so that none has the machine's quiet
// moments to itself.
func (f *fixBench) measure(ctx context.Context) error {
	for _, v := range f.variants {
		v.trip = &bench.Series{Name: "one in flight, " + v.name, Hist: bench.NewHistogram()}
		v.run = &bench.Series{Name: fmt.Sprintf("%d in flight, %s", fixWindow, v.name)}
		f.report.Series = append(f.report.Series, v.trip, v.run)
	}
	for range fixRounds {
		for _, v := range f.variants {
			if err := errors.Join(ctx.Err(), v.measureRound(max(f.options.Orders/fixRounds, 1))); err != nil {
				return fmt.Errorf("%s: %w", v.name, err)
			}
		}
	}
	for _, v := range f.variants {
		v.trip.Summary = bench.Summarize(v.trip.Hist)
	}
	return nil
}

// measureRound adds n round trips and n pipelined requests to the measurements.
func (v *fixVariant) measureRound(n int) error {
	for range fixUncounted {
		if err := v.wire.one(); err != nil {
			return err
		}
	}
	err := v.time(v.trip, n, func() error {
		for range n {
			start := time.Now()
			if err := v.wire.one(); err != nil {
				return err
			}
			_ = v.trip.Hist.RecordValue(int64(time.Since(start)))
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := v.wire.pipeline(fixUncounted, fixWindow); err != nil {
		return err
	}
	return v.time(v.run, n, func() error { return v.wire.pipeline(n, fixWindow) })
}

// time adds n requests, their time and the server's CPU to s.
func (v *fixVariant) time(s *bench.Series, n int, run func() error) error {
	v.wire.tick()
	before, err := bench.CPUOf(v.pid)
	if err != nil {
		return err
	}
	start := time.Now()
	if err := run(); err != nil {
		return err
	}
	s.Elapsed += time.Since(start)
	after, err := bench.CPUOf(v.pid)
	s.CPU += after - before
	s.Ops += int64(n)
	return err
}

// syncs measures one fdatasync of what a frame and its record take, in the
// scratch folder.
func (f *fixBench) syncs() (*bench.Series, error) {
	file, err := os.Create(filepath.Join(f.options.Dir, "fdatasync"))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	page := make([]byte, fixSyncPayload)
	for range fixSyncs {
		if _, err := file.Write(page); err != nil {
			return nil, err
		}
	}
	if err := file.Sync(); err != nil {
		return nil, err
	}
	hist := bench.NewHistogram()
	return f.report.Measure("fdatasync of 4 KiB, prewritten", fixSyncs, hist, func() error {
		for i := range int64(fixSyncs) {
			start := time.Now()
			if _, err := file.WriteAt(page, i*fixSyncPayload); err != nil {
				return err
			}
			if err := syscall.Fdatasync(int(file.Fd())); err != nil {
				return err
			}
			_ = hist.RecordValue(int64(time.Since(start)))
		}
		return nil
	})
}

// judge adds the ratios and their goals to the report.
func (f *fixBench) judge(sync *bench.Series) {
	tcp, plain, guarded, interval, synced := f.variants[0], f.variants[1], f.variants[2], f.variants[3], f.variants[4]
	p50 := func(s *bench.Series) float64 { return float64(s.Summary.P50) }
	f.report.Ratios = append(f.report.Ratios,
		bench.Ratio{Name: "round trip p50, interval / raw TCP", Value: p50(interval.trip) / p50(tcp.trip), Goal: goalRoundTrip, AtMost: true},
		bench.Ratio{Name: "round trip p50, guarded quickfix / raw TCP", Value: p50(guarded.trip) / p50(tcp.trip)},
		bench.Ratio{Name: "round trip p50, sync / (interval + fdatasync)", Value: p50(synced.trip) / (p50(interval.trip) + p50(sync)), Goal: goalSync, AtMost: true},
		bench.Ratio{Name: "throughput, interval / quickfix as it comes", Value: interval.run.Rate() / plain.run.Rate(), Goal: goalDefault},
		bench.Ratio{Name: "throughput, interval / guarded quickfix", Value: interval.run.Rate() / guarded.run.Rate(), Goal: goalGuarded},
		bench.Ratio{Name: "CPU a request, interval, in flight: µs / 25", Value: float64(interval.run.CPU) / float64(interval.run.Ops) / float64(goalOrderCPU), Goal: 1, AtMost: true},
	)
}

// logons measures the whole of a new connection and its logon, by password and by
// signature.
func (f *fixBench) logons(ctx context.Context) (err error) {
	dir := filepath.Join(f.options.Dir, "fix-logons")
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return err
	}
	config, err := server.Config(dir, "interval", "PASS")
	if err != nil {
		return err
	}
	path := filepath.Join(dir, "participants.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text = fmt.Appendf(text, "  - {name: SIGN, number: 2, comp_ids: [SIGN], ed25519: %q}\n", base64.StdEncoding.EncodeToString(public))
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return err
	}
	srv, err := server.Start(ctx, f.options.Exe, dir, config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, srv.Stop(), os.RemoveAll(dir)) }()
	for _, v := range []struct {
		name, compID string
		key          ed25519.PrivateKey
	}{{"password (argon2id)", "PASS", nil}, {"Ed25519", "SIGN", private}} {
		o := server.Session(srv.Addresses.FIX, v.compID)
		if v.key != nil {
			o.Password, o.Key = "", v.key
		}
		hist := bench.NewHistogram()
		s, err := f.report.Measure("connection and logon, "+v.name, fixLogons, hist, func() error { return logonTimes(ctx, o, hist.RecordValue) })
		if err != nil {
			return err
		}
		f.report.Ratios = append(f.report.Ratios, bench.Ratio{
			Name: "logon p99, " + v.name + ": ms / 50", Value: float64(s.Summary.P99) / float64(goalLogon), Goal: 1, AtMost: true,
		})
	}
	return nil
}

// logonTimes logs on and out repeatedly. A session is free again only after the server has
// closed its connection; the wait for that is not counted.
func logonTimes(ctx context.Context, o fixclient.Options, record func(int64) error) error {
	for range fixLogons {
		start := time.Now()
		c, err := fixclient.Dial(ctx, o)
		if err != nil {
			return err
		}
		_ = record(int64(time.Since(start)))
		if err := c.Send("5", nil); err != nil {
			return err
		}
		// Run ends when the server has answered and closed.
		if err := c.Run(ctx, func(*fixclient.Message) error { return nil }); err != nil && !errors.Is(err, fixclient.ErrLogout) && !errors.Is(err, net.ErrClosed) {
			return err
		}
		if err := c.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			return err
		}
		time.Sleep(logonPause)
	}
	return nil
}

// logonPause is longer than a session needs to be free again.
const logonPause = 20 * time.Millisecond
