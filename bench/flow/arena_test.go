package flow

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"blockdesk/engine/book"
	"blockdesk/engine/book/ladder"
	"blockdesk/engine/book/naive"
	"blockdesk/engine/event"
	"blockdesk/internal/runtest"
	"blockdesk/market"
)

// arenaBook is what a flow needs of a book.
type arenaBook interface {
	Submit(o *book.Order, at int64, seq uint64, out *event.Sink)
	Amend(o *book.Order, at int64, seq uint64, out *event.Sink)
	Cancel(id market.OrderID, participant market.ParticipantID, at int64, seq uint64, out *event.Sink)
}

// runArena runs a flow through a book and returns the digest of its reports.
func runArena(b arenaBook, flow []ArenaRecord) (digest string, lines int) {
	return reportArena(b, flow, NewArenaReports())
}

func reportArena(b arenaBook, flow []ArenaRecord, reports *ArenaReports) (digest string, lines int) {
	out := event.NewGrowingSink(64)
	for i := range flow {
		r := &flow[i]
		o := r.Order()
		out.Reset()
		switch r.Kind {
		case ArenaNew:
			b.Submit(&o, 0, r.Seq, out)
		case ArenaCancel:
			b.Cancel(o.ID, o.Participant, 0, r.Seq, out)
		default:
			b.Amend(&o, 0, r.Seq, out)
		}
		reports.Add(out.Events())
	}
	return reports.Sum()
}

// TestArenaReports holds both books to the report stream that the benchmark
// publishes for its flow, to the bit.
func TestArenaReports(t *testing.T) {
	const published = "e9b2e3926854410b01a035aeb25dd05f1e597c233be8263de9eb49b6713d367e"
	dir := os.Getenv("BLOCKDESK_TESTDATA")
	if dir == "" {
		dir = "../../../shared/data"
	}
	flow, err := OpenArena(filepath.Join(dir, "orderflow", "arena", "normal.bin.zst"))
	if errors.Is(err, fs.ErrNotExist) {
		runtest.SkipMissing(t, "flow of the arena", "BLOCKDESK_TESTDATA must name the folder of the recorded data")
	}
	if err != nil {
		t.Fatal(err)
	}
	digest, lines := runArena(ladder.New(book.Options{}), flow)
	t.Logf("%d messages, %d reports, %s", len(flow), lines, digest)
	if digest != published {
		t.Errorf("the ladder's reports give %s, published is %s", digest, published)
	}
	prefix := flow[:min(len(flow), 30_000)]
	a, _ := runArena(naive.New(book.Options{}), prefix)
	b, _ := runArena(ladder.New(book.Options{}), prefix)
	if a != b {
		t.Errorf("the first %d messages: naive %s, ladder %s", len(prefix), a, b)
	}
}

// TestOwnArena is the same on a flow of our own making, which is always there.
func TestOwnArena(t *testing.T) {
	const golden = "0b8beb23ba49a282f3ae391df4fab540d2d3936260402e3816efd2082e6a9d2f"
	flow := NewArena(1, 60_000)
	kinds := map[ArenaKind]int{}
	for i := range flow {
		kinds[flow[i].Kind]++
	}
	if kinds[ArenaNew] < 20_000 || kinds[ArenaCancel] < 20_000 || kinds[ArenaModify] < 4000 {
		t.Errorf("the flow has %v", kinds)
	}
	for name, b := range map[string]arenaBook{"naive": naive.New(book.Options{}), "ladder": ladder.New(book.Options{})} {
		if digest, lines := runArena(b, flow); digest != golden {
			t.Errorf("%s: %d reports give %s, want %s", name, lines, digest, golden)
		}
	}
}

// encodeArena is the writer that ReadArena is tested with.
func encodeArena(flow []ArenaRecord) []byte {
	out := binary.LittleEndian.AppendUint64(nil, arenaMagic)
	out = binary.LittleEndian.AppendUint32(out, arenaVersion)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(flow)))
	for i := range flow {
		r := &flow[i]
		ioc := byte(0)
		if r.IOC {
			ioc = 1
		}
		out = append(out, byte(r.Kind), byte(r.Side-market.Buy), ioc, 0)
		out = binary.LittleEndian.AppendUint32(out, r.Qty)
		out = binary.LittleEndian.AppendUint64(out, r.Seq)
		out = binary.LittleEndian.AppendUint64(out, r.ID)
		out = binary.LittleEndian.AppendUint64(out, uint64(r.Price))
		out = binary.LittleEndian.AppendUint64(out, 0)
	}
	return out
}

func TestReadArena(t *testing.T) {
	flow := NewArena(2, 500)
	whole := encodeArena(flow)
	got, err := ReadArena(bytes.NewReader(whole))
	if err != nil || !slices.Equal(got, flow) {
		t.Fatalf("read back %d records, %v", len(got), err)
	}
	second := arenaHeader + arenaRecord
	for _, c := range []struct {
		name string
		harm func([]byte) []byte
	}{
		{"empty", func(b []byte) []byte { return nil }},
		{"header cut", func(b []byte) []byte { return b[:15] }},
		{"magic", func(b []byte) []byte { b[0]++; return b }},
		{"version", func(b []byte) []byte { b[8]++; return b }},
		{"too many", func(b []byte) []byte { binary.LittleEndian.PutUint32(b[12:], MaxArena+1); return b }},
		{"more than there are", func(b []byte) []byte { binary.LittleEndian.PutUint32(b[12:], MaxArena); return b }},
		{"record cut", func(b []byte) []byte { return b[:len(b)-1] }},
		{"a byte too many", func(b []byte) []byte { return append(b, 0) }},
		{"type", func(b []byte) []byte { b[second] = 3; return b }},
		{"side", func(b []byte) []byte { b[second+1] = 2; return b }},
		{"ioc", func(b []byte) []byte { b[second+2] = 2; return b }},
		{"padding", func(b []byte) []byte { b[second+3] = 1; return b }},
		{"tail", func(b []byte) []byte { b[second+39] = 1; return b }},
		{"quantity 0", func(b []byte) []byte { clear(b[second+4 : second+8]); return b }},
		{"seq not above the last", func(b []byte) []byte { clear(b[second+8 : second+16]); return b }},
		{"price 0", func(b []byte) []byte { clear(b[second+24 : second+32]); return b }},
		{"negative price", func(b []byte) []byte { b[second+31] = 0x80; return b }},
	} {
		if _, err := ReadArena(bytes.NewReader(c.harm(slices.Clone(whole)))); !errors.Is(err, ErrArena) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if _, err := OpenArena(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}

// TestArenaReportText shows each kind of report line once.
func TestArenaReportText(t *testing.T) {
	var text strings.Builder
	reports := NewArenaReports()
	reports.sum = textHash{reports.sum, &text}
	flow := []ArenaRecord{
		{Seq: 1, Kind: ArenaNew, Side: market.Sell, ID: 0, Price: 100, Qty: 5},
		{Seq: 2, Kind: ArenaNew, Side: market.Buy, ID: 1, Price: 100, Qty: 7, IOC: true},
		{Seq: 3, Kind: ArenaNew, Side: market.Buy, ID: 2, Price: 99, Qty: 7},
		{Seq: 4, Kind: ArenaNew, Side: market.Sell, ID: 3, Price: 102, Qty: 5},
		{Seq: 5, Kind: ArenaModify, Side: market.Buy, ID: 2, Price: 102, Qty: 9},
		{Seq: 6, Kind: ArenaCancel, Side: market.Buy, ID: 2},
		{Seq: 7, Kind: ArenaCancel, Side: market.Buy, ID: 2},
		{Seq: 8, Kind: ArenaModify, Side: market.Buy, ID: 9, Price: 1, Qty: 1},
	}
	_, lines := reportArena(naive.New(book.Options{}), flow, reports)
	const want = `0,1,1,0,100,5
0,2,0,1,100,7
1,2,100,5,0,1
2,2,0,1,100
0,3,0,2,99,7
0,4,1,3,102,5
1,5,102,5,3,2
3,5,0,2,102,9
2,6,0,2,102
4,7,2
5,8,9`
	if text.String() != want || lines != 11 {
		t.Errorf("%d lines:\n%s\nwant:\n%s", lines, text.String(), want)
	}
}

func FuzzReadArena(f *testing.F) {
	f.Add(encodeArena(NewArena(3, 20)))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		flow, err := ReadArena(bytes.NewReader(data))
		if err != nil {
			return
		}
		if again := encodeArena(flow); !bytes.Equal(again, data) {
			t.Errorf("%d records read from %d bytes are written as %d", len(flow), len(data), len(again))
		}
	})
}

// textHash keeps what is hashed.
type textHash struct {
	hash.Hash
	text *strings.Builder
}

func (h textHash) Write(p []byte) (int, error) {
	h.text.Write(p)
	return h.Hash.Write(p)
}
