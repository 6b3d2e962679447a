package cluster

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"blockdesk/bench"
	enginebench "blockdesk/bench/engine"
	"blockdesk/bench/flow"
	"blockdesk/bench/server"
	"blockdesk/engine"
	"blockdesk/fixgw/fixclient"
)

const (
	unitCommands = 1_000_000 // of each flow
	unitRounds   = 3
	unitSessions = 200 // FIX sessions
	unitIdle     = 5 * time.Second
)

// measureUnits measures the unit costs of docs/scale.md that no other part measures.
func measureUnits(ctx context.Context, b *clusterBench) error {
	return errors.Join(measureInstruments(ctx, b), measureSessions(ctx, b))
}

// measureInstruments compares the engine's work a command over one instrument with that
// over many, and measures the memory of each.
func measureInstruments(ctx context.Context, b *clusterBench) error {
	counts := []int{1, 100, 1000}
	flows := make([][2][]engine.Command, len(counts))
	for i, n := range counts {
		mix, err := flow.NewMix(flow.MixOptions{Seed: 10, Instruments: n})
		if err != nil {
			return err
		}
		flows[i] = [2][]engine.Command{mix.Setup(), mix.Take(unitCommands)}
	}
	rounds := make([][]*bench.Series, len(counts))
	for range unitRounds {
		for i, n := range counts {
			s, err := enginebench.TimeEngine(fmt.Sprintf("%d instruments", n), flows[i][0], flows[i][1])
			if err := errors.Join(ctx.Err(), err); err != nil {
				return err
			}
			rounds[i] = append(rounds[i], s)
		}
	}
	one := bench.MedianByCPU(rounds[0])
	for i, n := range counts {
		s := bench.MedianByCPU(rounds[i])
		b.report.Series = append(b.report.Series, s)
		if n > 1 {
			b.report.Ratios = append(b.report.Ratios, bench.Ratio{Name: fmt.Sprintf("CPU a command, %d instruments / 1", n), Value: float64(s.CPU) / float64(one.CPU)})
		}
	}
	setup := flows[len(counts)-1][0]
	before := bench.HeapInUse()
	replica := engine.NewReplica(benchState())
	for i := range setup {
		replica.Apply(&setup[i], nil)
	}
	b.report.Notes = append(b.report.Notes, fmt.Sprintf(
		"instruments: the mix of bench engine over all of them; a replica of %d instruments with %d orders takes %.1f KB an instrument",
		counts[len(counts)-1], len(setup), (bench.HeapInUse()-before)/1e3/float64(counts[len(counts)-1])))
	runtime.KeepAlive(replica)
	return nil
}

// measureSessions measures the memory and the idle CPU time of FIX sessions that are logged
// on to a server.
func measureSessions(ctx context.Context, b *clusterBench) (err error) {
	var ends bench.Closers
	defer func() { err = errors.Join(err, ends.Close()) }()
	dir := filepath.Join(b.o.Dir, "units")
	names := make([]string, unitSessions)
	for i := range names {
		names[i] = fmt.Sprintf("UNIT%d", i)
	}
	config, key, err := keyedConfig(dir, names)
	if err != nil {
		return err
	}
	srv, err := server.Start(ctx, b.o.Exe, dir, config)
	if err != nil {
		return err
	}
	ends.Add(srv.Stop)
	rest, err := quietCost(ctx, srv.PID())
	if err != nil {
		return err
	}
	for _, name := range names {
		c, err := fixclient.Dial(ctx, fixclient.Options{Addr: srv.Addresses.FIX, SenderCompID: name, TargetCompID: "BLOCKDESK", Key: key, HeartBtInt: fixclientHeartbeat})
		if err != nil {
			return err
		}
		ends.Add(bench.Running(ctx, func(ctx context.Context) error {
			return c.Run(ctx, func(*fixclient.Message) error { return nil })
		}))
	}
	busy, err := quietCost(ctx, srv.PID())
	if err != nil {
		return err
	}
	b.report.Notes = append(b.report.Notes, fmt.Sprintf(
		"FIX sessions: %d logged on, heartbeats every %d s: %.1f KB of the server's memory each, beside their configuration; %.0f µs of its CPU time a second each",
		unitSessions, fixclientHeartbeat, float64(busy.bytes-rest.bytes)/1e3/unitSessions, float64((busy.cpu-rest.cpu).Microseconds())/unitIdle.Seconds()/unitSessions))
	return nil
}

// fixclientHeartbeat is the heartbeat of an idle session, in seconds.
const fixclientHeartbeat = 10

// keyedConfig is a server's configuration whose participants, one for each CompID,
// sign their Logon with one key.
func keyedConfig(dir string, compIDs []string) (config string, key ed25519.PrivateKey, err error) {
	public, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		return "", nil, err
	}
	var text strings.Builder
	text.WriteString("participants:\n")
	for i, id := range compIDs {
		fmt.Fprintf(&text, "  - {name: %s, number: %d, comp_ids: [%s], ed25519: %q}\n", id, i+1, id, base64.StdEncoding.EncodeToString(public))
	}
	path := filepath.Join(dir, "participants.yaml")
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(path, []byte(text.String()), 0o600)); err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("fix: {participants_file: %q, messages_per_second: 1000000}\nhttp: {market_data_per_minute: 0}\n", path), key, nil
}

// idleUsage has the memory of an idle process, and its CPU time over unitIdle.
type idleUsage struct {
	bytes int64
	cpu   time.Duration
}

func quietCost(ctx context.Context, pid int) (q idleUsage, err error) {
	before, err := bench.CPUOf(pid)
	if err != nil {
		return q, err
	}
	select {
	case <-time.After(unitIdle):
	case <-ctx.Done():
		return q, ctx.Err()
	}
	after, err := bench.CPUOf(pid)
	if err != nil {
		return q, err
	}
	q.cpu = after - before
	q.bytes, err = bench.ResidentBytes(pid)
	return q, err
}
