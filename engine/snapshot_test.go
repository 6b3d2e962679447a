package engine

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"blockdesk/engine/book"
	"blockdesk/engine/event"
	"blockdesk/market"
)

func sampleState(t testing.TB, naive bool, commands []Command) *State {
	t.Helper()
	s, out := NewState(StateOptions{Naive: naive, MaxOrders: 100}), event.NewGrowingSink(8)
	for i := range commands {
		c := commands[i]
		c.Seq = s.Seq() + 1
		out.Reset()
		s.Apply(&c, out)
	}
	return s
}

// TestSnapshotGolden pins the bytes, which are on disk: a change here is a new version.
func TestSnapshotGolden(t *testing.T) {
	commands := sampleCommands()
	commands = commands[:len(commands)-3] // with orders in the books
	for _, naive := range []bool{false, true} {
		got := sampleState(t, naive, commands).AppendSnapshot(nil)
		const path = "testdata/snapshot_v2.hex"
		text := strings.Join(lines(hex.EncodeToString(got), 64), "\n") + "\n"
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if text != string(want) {
			t.Errorf("naive %v: the encoding differs from %s:\n%s", naive, path, text)
		}
	}
}

func lines(s string, width int) (out []string) {
	for len(s) > width {
		out, s = append(out, s[:width]), s[width:]
	}
	return append(out, s)
}

func TestSnapshotSizesMatchTheDiagram(t *testing.T) {
	s := NewState(StateOptions{})
	size := func() int { return len(s.AppendSnapshot(nil)) }
	out := event.NewGrowingSink(8)
	apply := func(c Command, err error) int {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		before := size()
		c.Seq = s.Seq() + 1
		s.Apply(&c, out)
		return size() - before
	}
	if desk := len(s.desk.AppendSnapshot(nil)); size() != stateHeaderSize+deskHeaderSize+desk+piecesHeaderSize {
		t.Errorf("header and an empty desk: %d", size())
	}
	in := testInstrument(0)
	if n := apply(DefineInstrumentCommand(&in)); n != instrumentHeaderSize+len(in.Symbol) {
		t.Errorf("instrument: %d", n)
	}
	if n := apply(SetRiskCommand(3, AllInstruments, Limits{})); n != participantHeaderSize+limitsSize {
		t.Errorf("participant: %d", n)
	}
	if n := apply(SetRiskCommand(3, 0, Limits{})); n != limitsSize {
		t.Errorf("own limits: %d", n)
	}
	if n := apply(testOrder(1, 3), nil); n != orderSize {
		t.Errorf("order: %d", n)
	}
	long := deskCommands(t, longRequest(1))
	if n := apply(long[0], nil); n != MaxPiece {
		t.Errorf("piece: %d", n)
	}
	if n := apply(Command{Kind: Tick}, nil); n != -MaxPiece {
		t.Errorf("a piece that was cut off: %d", n)
	}
}

func testInstrument(id market.InstrumentID) market.Instrument {
	base := fmt.Sprintf("T%d", id)
	return market.Instrument{
		ID: id, Symbol: base + "/USD", Base: base, Quote: "USD", PriceDecimals: 2, QtyDecimals: 3,
		Tick: 1, Lot: 1, MinQty: 1, MaxQty: 1000, MaxPrice: 10_000, Source: market.Matched,
	}
}

func testOrder(id market.OrderID, participant market.ParticipantID) Command {
	c := Command{Kind: NewOrder}
	c.Order = book.Order{
		ID: id, Price: 100, Qty: 10, Participant: participant, Side: market.Buy,
		Type: book.Limit, TIF: book.GTC, STP: book.STPCancelNewest,
	}
	return c
}

func TestHashIsOfTheSnapshot(t *testing.T) {
	s := sampleState(t, false, sampleCommands())
	if s.Hash() != sha256.Sum256(s.AppendSnapshot(nil)) {
		t.Error("the hash is of something else")
	}
	if got := s.AppendSnapshot([]byte("before")); string(got[:6]) != "before" {
		t.Error("AppendSnapshot did not append")
	}
}

func TestRestoreRefuses(t *testing.T) {
	commands := sampleCommands()
	whole := sampleState(t, false, commands[:len(commands)-3]).AppendSnapshot(nil)
	options := StateOptions{MaxOrders: 100}
	for n := range len(whole) {
		if _, err := RestoreState(whole[:n], options); err == nil {
			t.Fatalf("cut at %d: accepted", n)
		}
	}
	if _, err := RestoreState(append(bytes.Clone(whole), 0), options); !errors.Is(err, ErrSnapshot) {
		t.Errorf("a byte more: %v", err)
	}
	if _, err := RestoreState(whole, StateOptions{MaxOrders: -1}); err == nil {
		t.Error("invalid options: accepted")
	}
	for _, version := range []byte{1, 7} {
		other := bytes.Clone(whole)
		other[4] = version
		if _, err := RestoreState(other, options); !errors.Is(err, ErrVersion) || !strings.Contains(err.Error(), fmt.Sprint("version ", version)) {
			t.Errorf("version %d: %v", version, err)
		}
	}
	newer := bytes.Clone(whole)
	newer[4] = stateVersion // which says that more follows
	if _, err := RestoreState(newer, options); !errors.Is(err, ErrSnapshot) {
		t.Errorf("version %d without what it has: %v", stateVersion, err)
	}
	if _, err := RestoreState(whole, options); err != nil {
		t.Errorf("the snapshot itself: %v", err)
	}
}

// TestRestoreDoesNotTrustCounts: counts that exceed the data are refused.
func TestRestoreDoesNotTrustCounts(t *testing.T) {
	commands := sampleCommands()
	s := sampleState(t, false, commands[:len(commands)-3])
	whole := s.AppendSnapshot(nil)
	desk := len(whole) - len(s.appendDesk(nil))
	participants := desk
	for i := range s.participants {
		if p := &s.participants[i]; p.status != 0 {
			participants -= participantHeaderSize + (1+len(p.own))*limitsSize
		}
	}
	for name, at := range map[string][2]int{
		"instruments": {6, 2}, "participants": {8, 2}, "max orders": {12, 4},
		"orders": {stateHeaderSize + 56, 4}, "own limits": {participants + 4, 2},
		"desk": {desk, 8}, "pieces": {len(whole) - len(s.assembler.pending(s.seq+1)) - piecesHeaderSize, piecesHeaderSize},
	} {
		lying := bytes.Clone(whole)
		for i := range at[1] {
			lying[at[0]+i] = 0xff
		}
		var err error
		allocated := testing.AllocsPerRun(1, func() { _, err = RestoreState(lying, StateOptions{MaxOrders: 100}) })
		if err == nil || allocated > 10_000 {
			t.Errorf("%s: error %v after %v allocations", name, err, allocated)
		}
	}
}

// FuzzRestoreState: any bytes are refused, or the canonical form of the state that they
// restore.
func FuzzRestoreState(f *testing.F) {
	commands := sampleCommands()
	for n := range commands {
		f.Add(sampleState(f, false, commands[:n]).AppendSnapshot(nil))
	}
	f.Add(stateWithMirrorData(f).AppendSnapshot(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		options := StateOptions{MaxOrders: 100}
		s, err := RestoreState(data, options)
		options.Naive = true
		slow, slowErr := RestoreState(data, options)
		if (err == nil) != (slowErr == nil) {
			t.Fatalf("ladder: %v, naive: %v", err, slowErr)
		}
		if err != nil {
			return
		}
		if !bytes.Equal(s.AppendSnapshot(nil), data) {
			t.Fatal("accepted what is not canonical")
		}
		a, b := event.NewGrowingSink(8), event.NewGrowingSink(8)
		for _, c := range commands {
			c.Seq = s.Seq() + 1
			a.Reset()
			b.Reset()
			s.Apply(&c, a)
			slow.Apply(&c, b)
			sameEvents(t, a.Events(), b.Events())
		}
	})
}
