package quorum

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"blockdesk/engine"
	"blockdesk/engine/book"
	"blockdesk/market"
	"blockdesk/persist/journaltest"
)

// onDisk puts a group's nodes on the disk, with logs written ahead.
func onDisk(o *Options) {
	o.FS, o.MemTableBytes, o.SpareLogs = nil, 16<<20, 4
	o.State = engine.StateOptions{MaxOrders: 1 << 16}
	o.Timeout = 2 * time.Second // others share the machine
}

// BenchmarkQuorum measures the time until a majority of three nodes has a frame of so
// many commands on the one disk that all share, beside one fdatasync of a prewritten
// file. p50-µs is the time to the acknowledgement.
func BenchmarkQuorum(b *testing.B) {
	b.Run("fdatasync", benchSync)
	for _, frame := range []int{1, 10, 100, 1000, 8000} {
		b.Run(fmt.Sprintf("frame=%d", frame), func(b *testing.B) {
			c := newCluster(b, 3, onDisk)
			_, term := c.lead()
			w := newWriter(b, term)
			setup := journaltest.Commands(0, 1)
			if err := w.append(setup); err != nil {
				b.Fatal(err)
			}
			next := flow(w.replica.State.Seq())
			took := make([]time.Duration, 0, b.N)
			commands := make([]engine.Command, frame)
			b.ResetTimer()
			for b.Loop() {
				b.StopTimer()
				next(commands)
				prior := w.replica.Digest
				for i := range commands {
					w.replica.Apply(&commands[i], nil)
				}
				b.StartTimer()
				start := time.Now()
				if err := term.Append(prior, commands, nil); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(start))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
			b.ReportMetric(float64(len(took)*frame)/b.Elapsed().Seconds(), "commands/s")
		})
	}
}

// flow fills commands with orders that never trade and their cancels.
func flow(seq uint64) func([]engine.Command) {
	return func(commands []engine.Command) {
		for i := range commands {
			seq++
			c := engine.Command{Seq: seq, At: 1_700_000_000_000_000_000 + int64(seq), Origin: 1, Kind: engine.NewOrder}
			c.Order.Participant, c.Order.ID = 1, 1<<40+1
			c.Order.ID += market.OrderID(seq / 2)
			if seq%2 == 1 {
				c.Kind = engine.CancelOrder
			} else {
				c.Order.Side, c.Order.Type, c.Order.TIF, c.Order.STP = 1, book.Limit, book.GTC, book.STPCancelNewest
				c.Order.Price, c.Order.Qty = 1000, 10
			}
			commands[i] = c
		}
	}
}

func benchSync(b *testing.B) {
	f, err := os.Create(filepath.Join(b.TempDir(), "plain"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(make([]byte, 16<<20)); err != nil || f.Sync() != nil {
		b.Fatal(err)
	}
	page := make([]byte, 4096)
	took := make([]time.Duration, 0, b.N)
	at := int64(0)
	for b.Loop() {
		start := time.Now()
		if _, err := f.WriteAt(page, at); err != nil {
			b.Fatal(err)
		}
		if err := unix.Fdatasync(int(f.Fd())); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(start))
		at = (at + 4096) % (16 << 20)
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
}

// BenchmarkEngine measures an engine whose journal is a group of three: commands a
// second from one producer that never waits.
func BenchmarkEngine(b *testing.B) {
	c := newCluster(b, 3, onDisk)
	_, term := c.lead()
	r, err := term.Recover(^uint64(0), nil)
	if err != nil {
		b.Fatal(err)
	}
	e, err := engine.New(engine.Options{Journal: term}, r)
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	for _, cmd := range journaltest.Commands(0, 1)[1:] {
		if err := e.Submit(&cmd); err != nil {
			b.Fatal(err)
		}
	}
	next := flow(100)
	commands := make([]engine.Command, 1024)
	b.ResetTimer()
	sent := 0
	for b.Loop() {
		if sent%len(commands) == 0 {
			next(commands)
		}
		for e.Submit(&commands[sent%len(commands)]) != nil {
			time.Sleep(20 * time.Microsecond) // sleep: a benchmark's poll must not take the time that it measures
		}
		sent++
	}
	for e.Stats().Durable < uint64(sent) {
		if err := e.Stats().Failed; err != nil {
			b.Fatal(err)
		}
		time.Sleep(20 * time.Microsecond) // sleep: a benchmark's poll must not take the time that it measures
	}
	b.ReportMetric(float64(sent)/b.Elapsed().Seconds(), "commands/s")
	cancel()
	if err := <-done; err != nil {
		b.Fatal(err)
	}
}
