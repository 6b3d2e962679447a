package persist

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"blockdesk/engine"
	"blockdesk/engine/book"
	"blockdesk/market"
)

// restingOrders is about how many orders a long flow leaves in the books.
const restingOrders = 17_000

// flowOf makes n stamped commands of the common mix: 48 % limit orders, 42 %
// cancels, 10 % IOC, on two instruments; every batch commands share a time.
func flowOf(n, batch int, seed uint64) []engine.Command {
	rng := rand.New(rand.NewPCG(seed, 1))
	commands := make([]engine.Command, n)
	var live []market.OrderID
	at := int64(1_700_000_000_000_000_000)
	for i := range commands {
		if i%batch == 0 {
			at += 1000
		}
		c := &commands[i]
		c.Seq, c.At, c.Origin = uint64(i+1), at, 1
		c.Instrument = market.InstrumentID(rng.IntN(2))
		c.Order.Participant = market.ParticipantID(1 + rng.IntN(3))
		ref := [12]byte{'c', 'l'}
		for j := 2; j < len(ref); j++ {
			ref[j] = byte('0' + rng.IntN(10))
		}
		c.SetRef(ref[:])
		if k := rng.IntN(100); (k < 42 || len(live) > restingOrders) && len(live) > 0 {
			j := rng.IntN(len(live))
			c.Kind, c.Order.ID = engine.CancelOrder, live[j]
			live[j] = live[len(live)-1]
			live = live[:len(live)-1]
			continue
		}
		c.Kind = engine.NewOrder
		c.Order.ID = market.OrderID(1<<40 + i)
		c.Order.Side = market.Side(1 + rng.IntN(2))
		c.Order.Type, c.Order.TIF, c.Order.STP = book.Limit, book.GTC, book.STPCancelNewest
		c.Order.Price = market.Price(1000 + rng.IntN(500) - 250)
		c.Order.Qty = market.Qty(1 + rng.IntN(1000))
		if rng.IntN(100) < 17 {
			c.Order.TIF = book.IOC
			continue
		}
		live = append(live, c.Order.ID)
	}
	return commands
}

func BenchmarkEncodeFrame(b *testing.B) {
	commands := flowOf(1000, 100, 1)
	var data []byte
	var err error
	b.ReportAllocs()
	for b.Loop() {
		f := Frame{Epoch: 1}
		data, err = AppendFrame(data[:0], &f, commands, nil)
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/command")
	b.ReportMetric(float64(len(data))/1000, "B/command")
}

func BenchmarkDecodeFrame(b *testing.B) {
	data, err := AppendFrame(nil, &Frame{Epoch: 1}, flowOf(1000, 100, 1), nil)
	if err != nil {
		b.Fatal(err)
	}
	var commands []engine.Command
	b.ReportAllocs()
	for b.Loop() {
		f, err := ParseFrame(data)
		if err != nil {
			b.Fatal(err)
		}
		if commands, err = f.AppendCommands(commands[:0]); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/command")
}

func BenchmarkHashFrame(b *testing.B) {
	data, err := AppendFrame(nil, &Frame{Epoch: 1}, flowOf(1000, 100, 1), nil)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		HashFrame(data)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/command")
}

// frameSizes are the commands a frame that the journal is measured at.
var frameSizes = []int{1, 10, 100, 1000}

// benchDir is a folder on the disk that the journal is measured on.
func benchDir(b *testing.B) string {
	b.Helper()
	if dir := os.Getenv("BLOCKDESK_BENCH_DIR"); dir != "" {
		dir, err := os.MkdirTemp(dir, "journal")
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = os.RemoveAll(dir) })
		return dir
	}
	return b.TempDir()
}

// BenchmarkJournal measures Append against the yardstick: the same frames, with
// the same checksum, written to one prewritten file with one fdatasync each. The
// two alternate, so that a noisy machine disturbs both alike; "ratio" is the
// journal's commands a second over the yardstick's.
func BenchmarkJournal(b *testing.B) {
	for _, size := range frameSizes {
		b.Run(fmt.Sprintf("%d", size), func(b *testing.B) { benchRounds(b, size, Options{}) })
	}
	for _, size := range frameSizes {
		b.Run(fmt.Sprintf("mark-every-frame/%d", size), func(b *testing.B) {
			benchRounds(b, size, Options{SyncHighWaterMark: true})
		})
	}
}

// roundCommands is about how many commands a round has, roundFrames the most frames.
const (
	roundCommands = 200_000
	roundFrames   = 500
)

func benchRounds(b *testing.B, size int, o Options) {
	plain := newPlainFile(b)
	o.Dir, o.Logger = benchDir(b), quiet()
	s, err := Open(o)
	if err != nil {
		b.Fatal(err)
	}
	// The high-water mark is synced as Run does; without a snapshot replica, which has a core
	// of its own.
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- s.syncHighWaterMark(ctx) }()
	round := min(roundFrames, roundCommands/size)
	commands := flowOf(round*size, size, 1)
	var seq uint64
	var spent [2]time.Duration
	for b.Loop() {
		for i := range commands {
			seq++
			commands[i].Seq = seq
		}
		for way, write := range []func(uint64, []engine.Command) error{
			plain.append, func(prior uint64, part []engine.Command) error { return s.Append(prior, part, nil) },
		} {
			start := time.Now()
			for i := range round {
				if err := write(uint64(i), commands[i*size:(i+1)*size]); err != nil {
					b.Fatal(err)
				}
			}
			spent[way] += time.Since(start)
		}
	}
	n := float64(b.N) * float64(round*size)
	b.ReportMetric(n/spent[0].Seconds(), "plain/s")
	b.ReportMetric(n/spent[1].Seconds(), "journal/s")
	b.ReportMetric(spent[0].Seconds()/spent[1].Seconds(), "ratio")
	cancel()
	if err := errors.Join(<-done, s.Close()); err != nil {
		b.Fatal(err)
	}
}

// plainFile is the yardstick.
type plainFile struct {
	file   *os.File
	offset int64
	buf    []byte
}

const plainLength = 64 << 20

func newPlainFile(b *testing.B) *plainFile {
	f, err := os.Create(filepath.Join(benchDir(b), "plain"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = f.Close() })
	zeros := make([]byte, 1<<20)
	for range plainLength >> 20 {
		if _, err := f.Write(zeros); err != nil {
			b.Fatal(err)
		}
	}
	if err := f.Sync(); err != nil {
		b.Fatal(err)
	}
	return &plainFile{file: f}
}

func (p *plainFile) append(prior uint64, commands []engine.Command) (err error) {
	if p.buf, err = AppendFrame(p.buf[:0], &Frame{EventHash: prior}, commands, nil); err != nil {
		return err
	}
	if p.offset+int64(len(p.buf)) > plainLength {
		p.offset = 0
	}
	if _, err := p.file.WriteAt(p.buf, p.offset); err != nil {
		return err
	}
	p.offset += int64(len(p.buf))
	return unix.Fdatasync(int(p.file.Fd()))
}
