package main

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"blockdesk/bench"
	"blockdesk/bench/clients"
	clusterbench "blockdesk/bench/cluster"
	"blockdesk/bench/echo"
	enginebench "blockdesk/bench/engine"
	"blockdesk/bench/fix"
	"blockdesk/bench/replay"
	"blockdesk/bench/rest"
	"blockdesk/bench/settle"
	"blockdesk/bench/sybil"
	"blockdesk/bench/ws"
	"blockdesk/persist"
	"blockdesk/service"
	"blockdesk/service/config"
	"blockdesk/service/demo"
)

// benchFlags are the flags of the benchmarks.
type benchFlags struct {
	html, dir, testdata string
	all                 *[]*bench.Report // of bench all, for its page; nil: each has its own
	clients, many       int
	rounds, orders      int
	failovers           int
	parts               []string
	seconds, flood      int
	trades              int
	attack              time.Duration
	addresses, keys     int
	lines               bool // JSON lines: several reports
}

func benchCommand(s *settings) *cobra.Command {
	var f benchFlags
	cmd := groupCommand(cobra.Command{
		Use: "bench", Short: "Measure: engine, durable, fix, ws, rest, settle, sybil, recovery, cluster, all, play",
		Long: "Measure on this machine. Each benchmark prints percentiles, CPU time and allocations per operation,\n" +
			"and the ratios to its baseline from the same run. Gateways are measured on a server that is\n" +
			"started as a child process. Each benchmark takes minutes and two cores, and removes its scratch\n" +
			"folder. bench/RESULTS.md has results.",
		Example: "  blockdesk bench engine\n  blockdesk bench fix --orders 5000 --json",
	})
	flags := cmd.PersistentFlags()
	flags.StringVar(&f.html, "html", "", "also write a page with plots and tables to this file, beside the figures that it had")
	flags.StringVar(&f.dir, "dir", "", "scratch folder on the disk to measure (default a temporary one)")
	flags.StringVar(&f.testdata, "testdata", os.Getenv("BLOCKDESK_TESTDATA"), "folder of the recorded inputs")
	flags.IntVar(&f.clients, "clients", 1000, "clients of the fan-out of bench ws")
	flags.IntVar(&f.many, "many", 5000, "clients whose memory bench ws measures, and of its larger run with stalled ones")
	flags.IntVar(&f.rounds, "rounds", 20, "rounds in turn of bench ws's feed and raw writes, and of bench cluster's groups")
	flags.StringSliceVar(&f.parts, "part", nil, "parts of bench engine: flows, rings, pauses, scale; of bench ws: encode, fanout, idle, stalled, order; of bench cluster: ack, rate, lag, cost, failover, groups, units, storage (default all)")
	flags.IntVar(&f.orders, "orders", 20_000, "orders of bench fix")
	flags.IntVar(&f.seconds, "seconds", 5, "seconds of load on each server for each kind of read of bench rest")
	flags.IntVar(&f.flood, "flood", 60, "seconds at full speed against the default limits of bench rest")
	flags.IntVar(&f.trades, "trades", 6_000, "whole settlements of bench settle")
	flags.DurationVar(&f.attack, "attack", 10*time.Minute, "how long bench sybil attacks")
	flags.IntVar(&f.addresses, "addresses", 1000, "client addresses of bench sybil: 1 to 60,000 of 127.0.0.0/8")
	flags.IntVar(&f.keys, "keys", 10_000, "fresh wallets of bench sybil")
	flags.IntVar(&f.failovers, "failovers", 100, "how often bench cluster kills the leader")
	for _, b := range benchmarks() {
		cmd.AddCommand(&cobra.Command{
			Use: b.name, Short: b.short, Args: cobra.NoArgs,
			Long: b.short + ".\n\n" +
				"Flags of other benchmarks are ignored. See blockdesk bench --help.",
			Example: "  blockdesk bench " + b.name + " --html " + b.name + ".html",
			RunE: func(cmd *cobra.Command, _ []string) error {
				for _, part := range f.parts {
					if !slices.Contains(benchParts(), part) {
						return usagef("--part %s: want some of %s", part, strings.Join(benchParts(), ", "))
					}
				}
				exe, err := os.Executable()
				if err != nil {
					return err
				}
				return f.inScratch(func(dir string) error {
					var r *bench.Report
					before := bench.ReadHost()
					err := s.newBar(cmd.ErrOrStderr(), "bench "+b.name, inTime).run(func() (err error) {
						r, err = b.make(&f, exe, dir).Run(cmd.Context())
						return err
					})
					if err != nil {
						return err
					}
					r.Hosts = []bench.Host{before, bench.ReadHost()}
					return f.publish(cmd.OutOrStdout(), s.json, r)
				})
			},
		})
	}
	cmd.AddCommand(benchAllCommand(cmd, s, &f), playCommand(s, &f), echoCommand(), clientsCommand(), followersCommand())
	return cmd
}

// benchParts returns the names of the parts of all benchmarks that have parts.
func benchParts() []string {
	return []string{
		"flows", "rings", "pauses", "scale", // engine
		"encode", "fanout", "idle", "stalled", "order", // ws
		"ack", "rate", "lag", "cost", "failover", "groups", "units", "storage", // cluster
	}
}

// benchmark is a command that runs a benchmark.
type benchmark struct {
	name, short string
	// make returns the benchmark with the options of the flags; it starts exe and writes
	// into dir.
	make func(f *benchFlags, exe, dir string) bench.Benchmark
}

func benchmarks() []benchmark {
	return []benchmark{
		{"engine", "The engine alone against a bare ladder; both rings; pauses; many orders and instruments", func(f *benchFlags, _, _ string) bench.Benchmark {
			return enginebench.Benchmark{Arena: f.recorded("arena", "normal.bin.zst"), Parts: f.parts}
		}},
		{"durable", "The journal against a plain file; command to durable event", func(_ *benchFlags, _, dir string) bench.Benchmark {
			return enginebench.Durable{Dir: dir}
		}},
		{"recovery", "Replaying a journal; what a snapshot costs the engine", func(_ *benchFlags, _, dir string) bench.Benchmark {
			return enginebench.Recovery{Dir: dir}
		}},
		{"fix", "Order to execution report over FIX", func(f *benchFlags, exe, dir string) bench.Benchmark {
			return fix.Benchmark{Exe: exe, Dir: dir, Orders: f.orders}
		}},
		{"ws", "The feed against raw writes; idle and stalled clients; order to update", func(f *benchFlags, exe, dir string) bench.Benchmark {
			return ws.Benchmark{Exe: exe, Dir: dir, Clients: f.clients, Many: f.many, Rounds: f.rounds, Parts: f.parts}
		}},
		{"rest", "REST reads against nginx, quotes, and full speed against the limits (needs nginx and wrk)", func(f *benchFlags, exe, dir string) bench.Benchmark {
			return rest.Benchmark{Exe: exe, Dir: dir, Seconds: f.seconds, Flood: f.flood}
		}},
		{"settle", "Builds, submissions, proofs of payment and whole settlements on a local chain (needs Node)", func(f *benchFlags, exe, dir string) bench.Benchmark {
			return settle.Benchmark{Exe: exe, Dir: dir, Sandbox: demo.FindSandbox(), Trades: f.trades}
		}},
		{"sybil", "Many client addresses and fresh keys that reserve without paying, and a buyer with proof (needs Node)", func(f *benchFlags, exe, dir string) bench.Benchmark {
			return sybil.Benchmark{Exe: exe, Dir: dir, Sandbox: demo.FindSandbox(), Duration: f.attack, Clients: f.addresses, Keys: f.keys}
		}},
		{"cluster", "Three nodes beside one: acknowledgements, rate, failover; what followers and groups cost", func(f *benchFlags, exe, dir string) bench.Benchmark {
			return clusterbench.Benchmark{Exe: exe, Dir: dir, Failovers: f.failovers, Rounds: f.rounds, Parts: f.parts}
		}},
	}
}

// echoCommand is a child of bench fix.
func echoCommand() *cobra.Command {
	return &cobra.Command{
		Use: "echo KIND", Short: "The baseline of bench fix", Args: cobra.ExactArgs(1), Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return echo.Serve(cmd.Context(), args[0], cmd.OutOrStdout())
		},
	}
}

// clientsCommand is a child of bench ws.
func clientsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "clients", Short: "The clients of bench ws", Args: cobra.NoArgs, Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return clients.Serve(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}

// followersCommand is a child of bench cluster.
func followersCommand() *cobra.Command {
	return &cobra.Command{
		Use: "followers N FOLDER", Short: "The followers of bench cluster", Args: cobra.ExactArgs(2), Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := strconv.Atoi(args[0])
			if err != nil || n < 0 {
				return usagef("followers %q: want a number, 0 or more", args[0])
			}
			return clusterbench.ServeFollowers(cmd.Context(), n, args[1], cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}

func benchAllCommand(parent *cobra.Command, s *settings, f *benchFlags) *cobra.Command {
	return &cobra.Command{
		Use: "all", Short: "Every benchmark, one after the other", Args: cobra.NoArgs,
		Long: "Run every benchmark, one after the other, for about half an hour. A benchmark that cannot run, for\n" +
			"lack of nginx or Node, is reported at the end, and the exit code is 1. With --json each report is\nan object on a line, with --html all of them are one page.",
		Example: "  blockdesk bench all --html report.html",
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.lines, f.all = true, &[]*bench.Report{}
			var failed []error // a benchmark may lack a program on this machine
			for _, sub := range parent.Commands() {
				if sub.Hidden || sub.Name() == "all" || sub.Name() == "play" {
					continue
				}
				sub.SetContext(cmd.Context())
				if err := sub.RunE(sub, nil); err != nil {
					failed = append(failed, fmt.Errorf("%s: %w", sub.Name(), err))
				}
				if cmd.Context().Err() != nil {
					break
				}
			}
			return errors.Join(append(failed, f.writePage(*f.all))...)
		},
	}
}

func (f *benchFlags) inScratch(run func(dir string) error) (err error) {
	parent := f.dir
	if parent == "" {
		parent = os.TempDir()
	}
	dir, err := os.MkdirTemp(parent, "blockdesk-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	return run(dir)
}

// writePage writes reports to the page that --html names, if any, and compares them with
// those of the run that wrote it last.
func (f *benchFlags) writePage(reports []*bench.Report) error {
	if f.html == "" {
		return nil
	}
	if last, err := os.ReadFile(f.html); err == nil { // else there was no run before
		bench.Compare(reports, bench.ReadPage(last))
	}
	file, err := os.Create(f.html)
	if err != nil {
		return err
	}
	return errors.Join(bench.WritePage(file, reports), file.Close())
}

func (f *benchFlags) publish(w io.Writer, asJSON bool, r *bench.Report) error {
	if f.all != nil {
		*f.all = append(*f.all, r)
	} else if err := f.writePage([]*bench.Report{r}); err != nil {
		return err
	}
	if !asJSON {
		return r.WriteText(w)
	}
	if !f.lines {
		return r.WriteJSON(w)
	}
	var text, line bytes.Buffer
	if err := errors.Join(r.WriteJSON(&text), json.Compact(&line, text.Bytes())); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, line.String())
	return err
}

func (f *benchFlags) recorded(parts ...string) string {
	root := f.testdata
	if root == "" {
		root = filepath.Join("..", "shared", "data")
	}
	return filepath.Join(append([]string{root, "orderflow"}, parts...)...)
}

func playCommand(s *settings, f *benchFlags) *cobra.Command {
	var day replay.Day
	cmd := &cobra.Command{
		Use: "play", Args: cobra.NoArgs,
		Short: "Play a recorded day through the FIX gateway and compare the feed and REST with the true book",
		Long: "Play a recorded day of an exchange through the FIX gateway of a server that it starts, and compare\n" +
			"the feed and REST with the true book after every row. With --crash-at the server is killed on the\n" +
			"way. The days amzn and aapl need the recorded inputs (--testdata); own needs no file.",
		Example: "  blockdesk bench play --day own --rows 500",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !slices.Contains(replay.Days, day.Name) {
				return usagef("--day %s: want amzn, aapl or own", day.Name)
			}
			exe, err := os.Executable()
			if err != nil {
				return err
			}
			return f.inScratch(func(dir string) error {
				day.Exe, day.Dir, day.Testdata = exe, dir, f.recorded()
				return runPlay(cmd, s, &day)
			})
		},
	}
	cmd.Flags().StringVar(&day.Name, "day", "amzn", "amzn (level 5, the whole day), aapl (level 10, 998 rows) or own (2,000 generated rows)")
	cmd.Flags().StringVar(&day.Durability, "durability", "sync", "sync or interval")
	cmd.Flags().IntVar(&day.Rows, "rows", 0, "stop after so many rows (0 = all)")
	cmd.Flags().IntVar(&day.RESTEvery, "rest-every", 1, "compare REST every so many rows (0 = never)")
	cmd.Flags().IntSliceVar(&day.CrashAt, "crash-at", nil, "kill -9 the server after the first message of these rows, and continue")
	return cmd
}

func runPlay(cmd *cobra.Command, s *settings, day *replay.Day) error {
	b := s.newBar(cmd.ErrOrStderr(), "playing "+day.Name, inSteps)
	day.Progress = func(done, total int) {
		if done%100 == 0 {
			_ = b.set(cmd.Context(), uint64(done), uint64(total)) // the player checks the context itself
		}
	}
	result, dataDir, err := day.Run(cmd.Context())
	b.end()
	if err != nil {
		return err
	}
	replayed, err := persist.Replay(persist.ToolOptions{
		Dir: filepath.Join(dataDir, service.JournalFolder), Logger: newLogger(config.Log{Level: "error"}, cmd.ErrOrStderr()),
	}, persist.NewestSnapshot)
	if err != nil {
		return err
	}
	hash := hex.EncodeToString(replayed.BookHash[:])
	share := func(part, whole int) string {
		return fmt.Sprintf("%d of %d (%.3f %%)", part, whole, 100*float64(part)/float64(max(whole, 1)))
	}
	text := fmt.Sprintf(
		"%s, %s: %d FIX messages in %v, %d fills, %d crashes\nfeed: rows exact %s; rows that needed no supplied level %s exact; %d gaps, %d snapshots\nREST: rows exact %s\nbook hash %s",
		day.Name, day.Durability, result.Messages, result.Elapsed.Round(1e6), result.Trades, result.Crashes,
		share(result.Exact, result.Rows), share(result.UnaidedExact, result.Unaided), result.FeedGaps, result.Snapshots,
		share(result.RESTExact, result.RESTChecked), hash)
	if result.FirstWrong != "" {
		text += "\n" + result.FirstWrong
	}
	return s.print(cmd, map[string]any{"day": day.Name, "durability": day.Durability, "result": result, "book_hash": hash}, text)
}
