package engine

import (
	"bytes"
	"encoding/hex"
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"blockdesk/engine/event"
	"blockdesk/engine/marketdata"
	"blockdesk/internal/await"
	"blockdesk/market"
)

func refreshCommands(t testing.TB, b *MirrorBook) []Command {
	t.Helper()
	cs, err := MirrorRefreshCommands(nil, b)
	if err != nil {
		t.Fatal(err)
	}
	return cs
}

// largestBook returns the book with the longest encoding.
func largestBook() *MirrorBook {
	b := &MirrorBook{Instrument: market.MaxInstruments - 1, Slot: 1<<64 - 1}
	for i := range market.Price(MaxMirrorLevels) {
		b.Bids = append(b.Bids, market.Level{Price: market.MaxPrice - i<<40, Qty: MaxMirrorQty})
		b.Asks = append(b.Asks, market.Level{Price: 1 + i<<40, Qty: MaxMirrorQty})
	}
	return b
}

func drawBook(t *rapid.T) *MirrorBook {
	b := &MirrorBook{
		Instrument: market.InstrumentID(rapid.IntRange(0, market.MaxInstruments-1).Draw(t, "instrument")),
		Slot:       rapid.Uint64Range(1, 1<<64-1).Draw(t, "slot"),
	}
	side := func(name string, sign int) []market.Level {
		prices := rapid.SliceOfNDistinct(rapid.Int64Range(1, int64(market.MaxPrice)), 0, MaxMirrorLevels, rapid.ID[int64]).Draw(t, name)
		slices.SortFunc(prices, func(x, y int64) int { return sign * int(x-y) })
		levels := []market.Level{}
		for _, p := range prices {
			qty := rapid.Int64Range(1, int64(MaxMirrorQty)).Draw(t, "quantity")
			levels = append(levels, market.Level{Price: market.Price(p), Qty: market.Qty(qty)})
		}
		return levels
	}
	b.Bids, b.Asks = side("bids", -1), side("asks", +1)
	return b
}

// TestMirrorRefreshCommands: every book is the same after its commands.
func TestMirrorRefreshCommands(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := drawBook(t)
		cs, err := MirrorRefreshCommands(nil, b)
		if err != nil {
			t.Fatal(err)
		}
		var j Assembler
		for i := range cs {
			cs[i].Seq = uint64(i + 1)
			data, incomplete := j.Add(&cs[i])
			if last := i == len(cs)-1; incomplete || last != (data != nil) || last != (cs[i].Kind == MirrorRefresh) || !cs[i].IsPiece() {
				t.Fatalf("command %d of %d: %d bytes, incomplete %v", i, len(cs), len(data), incomplete)
			}
			if data == nil {
				continue
			}
			if got, err := DecodeMirrorBook(data); err != nil || !reflect.DeepEqual(&got, b) {
				t.Fatalf("%v\n%+v\nbecame\n%+v", err, b, got)
			}
		}
	})
}

// TestMirrorRefreshLimits: the largest book fits MaxPieces and one SubmitAll; a larger one
// is refused and has no effect.
func TestMirrorRefreshLimits(t *testing.T) {
	b := largestBook()
	if n := len(b.append(nil)); n > maxMirrorBytes {
		t.Errorf("%d bytes, at most %d", n, maxMirrorBytes)
	}
	if cs := refreshCommands(t, b); len(cs) > MaxPieces || len(cs) > MaxSubmitAll {
		t.Errorf("%d commands, at most %d", len(cs), MaxPieces)
	}
	for name, spoil := range map[string]func(b *MirrorBook){
		"no slot":                  func(b *MirrorBook) { b.Slot = 0 },
		"instrument at the limit":  func(b *MirrorBook) { b.Instrument = market.MaxInstruments },
		"a bid more":               func(b *MirrorBook) { b.Bids = append(b.Bids, market.Level{Price: 1, Qty: 1}) },
		"an ask more":              func(b *MirrorBook) { b.Asks = append(b.Asks, market.Level{Price: market.MaxPrice, Qty: 1}) },
		"a price of zero":          func(b *MirrorBook) { b.Asks[0].Price = 0 },
		"a negative price":         func(b *MirrorBook) { b.Asks[0].Price = -1 },
		"a price above the limit":  func(b *MirrorBook) { b.Bids[0].Price = market.MaxPrice + 1 },
		"no quantity":              func(b *MirrorBook) { b.Bids[3].Qty = 0 },
		"a quantity above":         func(b *MirrorBook) { b.Bids[3].Qty = MaxMirrorQty + 1 },
		"a price twice":            func(b *MirrorBook) { b.Asks[4].Price = b.Asks[3].Price },
		"bids in the wrong order":  func(b *MirrorBook) { slices.Reverse(b.Bids) },
		"asks in the wrong order":  func(b *MirrorBook) { slices.Reverse(b.Asks) },
		"the sides for each other": func(b *MirrorBook) { b.Bids, b.Asks = b.Asks, b.Bids },
	} {
		b := largestBook()
		spoil(b)
		got, err := MirrorRefreshCommands([]Command{{Kind: Tick}}, b)
		if !errors.Is(err, ErrMirror) || len(got) != 1 || got[0].Kind != Tick {
			t.Errorf("%s: %v, %d commands", name, err, len(got))
		}
	}
}

// TestMirrorBookGolden pins the bytes, which are in existing journals.
func TestMirrorBookGolden(t *testing.T) {
	b := MirrorBook{
		Instrument: 0x0102, Slot: 0x0a0b0c0d0e0f1011, Bids: []market.Level{{Price: 300, Qty: 5}, {Price: 298, Qty: 1 << 40}},
		Asks: []market.Level{{Price: 301, Qty: 128}, {Price: 429, Qty: 1}, {Price: 430, Qty: 2}},
	}
	const want = "0100" + "0201" + "11100f0e0d0c0b0a" + "0200" + "0300" +
		"ac02" + "05" + "02" + "808080808020" + "ad02" + "8001" + "8001" + "01" + "01" + "02"
	if got := hex.EncodeToString(b.append(nil)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestDecodeMirrorBookRefuses(t *testing.T) {
	const head = "0100" + "0000" + "0100000000000000"
	for name, text := range map[string]string{
		"nothing":              "",
		"a short header":       head + "0000" + "00",
		"another version":      "02" + head[2:] + "0000" + "0000",
		"a byte that is not 0": "0101" + head[4:] + "0000" + "0000",
		"no slot":              "0100" + "0000" + "0000000000000000" + "0000" + "0000",
		"an instrument beyond": "0100" + "ffff" + "0100000000000000" + "0000" + "0000",
		"a level more":         head + "6500" + "0000" + strings.Repeat("0101", 101),
		"fewer levels":         head + "0200" + "0000" + "0201",
		"more levels":          head + "0000" + "0000" + "0201",
		"no quantity":          head + "0100" + "0000" + "02",
		"a quantity of zero":   head + "0100" + "0000" + "0200",
		"an endless varint":    head + "0100" + "0000" + "ffffffffffffffffffffff01",
		"a distance too large": head + "0100" + "0000" + "ffffffffffffffffff01" + "01",
		"a bid below zero":     head + "0200" + "0000" + "0201" + "0301",
		"a bid at its own":     head + "0200" + "0000" + "0201" + "0001",
		"an ask above all":     head + "0000" + "0200" + "80808080808020" + "01" + "0101",
		"a varint cut off":     head + "0000" + "0100" + "02" + "80",
	} {
		data, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(name, err)
		}
		if b, err := DecodeMirrorBook(data); !errors.Is(err, ErrMirror) {
			t.Errorf("%s: %+v, %v", name, b, err)
		}
	}
}

// FuzzDecodeMirrorBook: any bytes are refused, or a book that encodes again.
func FuzzDecodeMirrorBook(f *testing.F) {
	f.Add(largestBook().append(nil))
	f.Add((&MirrorBook{Slot: 1, Bids: []market.Level{{Price: 2, Qty: 1}}}).append(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := DecodeMirrorBook(data)
		if err != nil {
			if !errors.Is(err, ErrMirror) {
				t.Fatal(err)
			}
			return
		}
		again, err := DecodeMirrorBook(b.append(nil))
		if err != nil || !reflect.DeepEqual(again, b) {
			t.Fatalf("%v: %+v became %+v", err, b, again)
		}
	})
}

func TestMirrorTradeCommandRefuses(t *testing.T) {
	good := MirrorSwap{Instrument: 1, Ordinal: 1, Price: market.MaxPrice, Qty: market.MaxQty, Side: market.Buy, At: 1}
	if _, err := MirrorTradeCommand(&good); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(s *MirrorSwap){
		"instrument": func(s *MirrorSwap) { s.Instrument = market.MaxInstruments },
		"ordinal":    func(s *MirrorSwap) { s.Ordinal = 0 },
		"price":      func(s *MirrorSwap) { s.Price = 0 },
		"high price": func(s *MirrorSwap) { s.Price++ },
		"quantity":   func(s *MirrorSwap) { s.Qty = 0 },
		"large":      func(s *MirrorSwap) { s.Qty++ },
		"side":       func(s *MirrorSwap) { s.Side = 3 },
		"time":       func(s *MirrorSwap) { s.At = 0 },
	} {
		bad := good
		spoil(&bad)
		if c, err := MirrorTradeCommand(&bad); !errors.Is(err, ErrMirror) || c != (Command{}) {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
}

// TestMirrorState: with incomplete, stale and out-of-order commands in between, the state
// has the last book and the trades up to the last ordinal; and a replica that is saved and
// restored at any point, on either book, continues the same.
func TestMirrorState(t *testing.T) {
	flow := newMirrorFlow(3)
	var commands []Command
	for range 1_500 {
		c := flow.next()
		c.At = int64(len(commands)) * minute / 5
		commands = append(commands, c)
	}
	for len(flow.mirror.queue) > 0 {
		commands = append(commands, flow.next())
	}
	r, events := replay(t, commands, nil)
	m := r.State.instruments[2].mirror
	want := flow.mirror.book
	if !slices.Equal(m.bids, want.Bids) || !slices.Equal(m.asks, want.Asks) {
		t.Errorf("bids %v, want %v\nasks %v, want %v", m.bids, want.Bids, m.asks, want.Asks)
	}
	if slot, ordinal := r.State.MirrorPosition(2); slot != want.Slot || ordinal != flow.mirror.ordinal {
		t.Errorf("slot %d, ordinal %d; want %d, %d", slot, ordinal, want.Slot, flow.mirror.ordinal)
	}
	kinds, reasons := map[event.Kind]int{}, map[event.Reason]int{}
	next, at := uint64(1), int64(0)
	for i := range events {
		e := &events[i]
		kinds[e.Kind]++
		if e.Kind == event.Rejected && (e.Instrument == 2 || e.Instrument == AllInstruments) {
			reasons[event.Reason(e.Code)]++
		}
		if published, ok := marketdata.TradeOf(e); ok && e.Instrument == 2 {
			if published.Ordinal != next || published.At < at || published.At > e.At {
				t.Fatalf("trade %+v after ordinal %d at %d", published, next-1, at)
			}
			next, at = next+1, published.At
		}
	}
	if kinds[event.Mirrored] != flow.mirror.published || next != flow.mirror.ordinal+1 {
		t.Errorf("%d refreshes, %d trades; want %d, %d", kinds[event.Mirrored], next-1, flow.mirror.published, flow.mirror.ordinal)
	}
	for _, why := range []event.Reason{event.ReasonStaleSlot, event.ReasonOutOfSequence, event.ReasonNotMatched, event.ReasonInvalidCommand} {
		if reasons[why] == 0 {
			t.Errorf("nothing was refused as %v: %v", why, reasons)
		}
	}
	all := make([]int, len(commands))
	for i := range all {
		all[i] = i
	}
	again, sameAgain := replay(t, commands, all)
	sameEvents(t, sameAgain, events)
	if again.Digest != r.Digest || !bytes.Equal(again.AppendSnapshot(nil), r.AppendSnapshot(nil)) || again.State.BookHash() != r.State.BookHash() {
		t.Error("saved after every command: another replica")
	}
}

// TestMirrorPositionOfOthers: a matched or unknown instrument has no mirror position.
func TestMirrorPositionOfOthers(t *testing.T) {
	s := NewState(StateOptions{})
	in := testInstrument(0)
	c, err := DefineInstrumentCommand(&in)
	mustApply(t, s, c, err)
	for _, id := range []market.InstrumentID{0, 1, AllInstruments} {
		if slot, ordinal := s.MirrorPosition(id); slot != 0 || ordinal != 0 {
			t.Errorf("instrument %d: slot %d, ordinal %d", id, slot, ordinal)
		}
	}
}

// TestBookHashSeesMirroredLevels: quantity and side of a level change the hash.
func TestBookHashSeesMirroredLevels(t *testing.T) {
	hash := func(bids, asks []market.Level) [32]byte {
		s := mirroredState(t)
		for _, c := range refreshCommands(t, &MirrorBook{Slot: 5, Bids: bids, Asks: asks}) {
			mustApply(t, s, c, nil)
		}
		return s.BookHash()
	}
	seen := map[[32]byte]bool{}
	level := []market.Level{{Price: 7, Qty: 1}}
	for _, book := range [][2][]market.Level{{nil, nil}, {level, nil}, {nil, level}, {{{Price: 7, Qty: 2}}, nil}, {{{Price: 8, Qty: 1}}, nil}} {
		seen[hash(book[0], book[1])] = true
	}
	if len(seen) != 5 {
		t.Errorf("%d hashes of 5 books", len(seen))
	}
}

// mirroredState returns a state with one, mirrored, instrument.
func mirroredState(t testing.TB) *State {
	t.Helper()
	s := NewState(StateOptions{MaxOrders: 100})
	in := testInstrument(0)
	in.Source = market.Mirrored
	c, err := DefineInstrumentCommand(&in)
	mustApply(t, s, c, err)
	return s
}

// stateWithMirrorData returns mirroredState after a refresh and two trades.
func stateWithMirrorData(t testing.TB) *State {
	t.Helper()
	s := mirroredState(t)
	b := &MirrorBook{Slot: 100, Bids: []market.Level{{Price: 50, Qty: 5}, {Price: 49, Qty: 7}}, Asks: []market.Level{{Price: 52, Qty: 3}}}
	for _, c := range refreshCommands(t, b) {
		mustApply(t, s, c, nil)
	}
	for n := range uint64(2) {
		c, err := MirrorTradeCommand(&MirrorSwap{Ordinal: n + 1, Price: 51, Qty: 2, Side: market.Sell, At: 1000, Slot: 99})
		c.At = 2000
		mustApply(t, s, c, err)
	}
	return s
}

// TestMirroredSnapshotGolden pins what version 3 adds to version 2.
func TestMirroredSnapshotGolden(t *testing.T) {
	s := stateWithMirrorData(t)
	whole := s.AppendSnapshot(nil)
	const want = "0100" +
		"0000" + "0200" + "0100" + "0000" + "6400000000000000" + "0200000000000000" + "e803000000000000" +
		"3200000000000000" + "0500000000000000" + "3100000000000000" + "0700000000000000" + "3400000000000000" + "0300000000000000"
	if got := hex.EncodeToString(whole[len(whole)-len(want)/2:]); got != want || whole[4] != 3 {
		t.Errorf("version %d, at the end %s, want %s", whole[4], got, want)
	}
	s.instruments[0].mirror = &mirrorState{}
	plain := s.AppendSnapshot(nil)
	if plain[4] != 2 || !bytes.Equal(plain[5:], whole[5:len(whole)-len(want)/2]) {
		t.Error("version 2 is not the beginning of version 3")
	}
}

// TestOldSnapshotOpens reads version 2 as programs without mirrored instruments wrote it.
func TestOldSnapshotOpens(t *testing.T) {
	text, err := os.ReadFile("testdata/snapshot_v2.hex")
	if err != nil {
		t.Fatal(err)
	}
	data, err := hex.DecodeString(strings.Join(strings.Fields(string(text)), ""))
	if err != nil {
		t.Fatal(err)
	}
	s, err := RestoreState(data, StateOptions{})
	if err != nil || !bytes.Equal(s.AppendSnapshot(nil), data) {
		t.Errorf("%v", err)
	}
}

func TestRestoreRefusesMirrored(t *testing.T) {
	good := stateWithMirrorData(t).AppendSnapshot(nil)
	const record = mirroredHeaderSize + 3*16
	count := len(good) - record - 2
	id := count + 2
	levels := id + mirroredHeaderSize
	for name, spoil := range map[string]func(b []byte){
		"none":                        func(b []byte) { b[count] = 0 },
		"more than there are":         func(b []byte) { b[count] = 2 },
		"an instrument beyond":        func(b []byte) { b[id] = 1 },
		"more bids":                   func(b []byte) { b[id+2] = 3 },
		"more bids than there can be": func(b []byte) { b[id+2] = MaxMirrorLevels + 1 },
		"a byte that must be zero":    func(b []byte) { b[id+6] = 1 },
		"levels without a slot":       func(b []byte) { b[id+8] = 0 },
		"no ordinal, but a trade":     func(b []byte) { b[id+16] = 0 },
		"an ordinal beyond":           func(b []byte) { b[id+23] = 0x80 },
		"a trade of the future":       func(b []byte) { b[id+25] = 0xff },
		"a trade before 1970":         func(b []byte) { b[id+31] = 0xff },
		"levels out of order":         func(b []byte) { b[levels] = 48 },
		"a level without quantity":    func(b []byte) { b[levels+8] = 0 },
		"orders of our own":           func(b []byte) { b[stateHeaderSize+56] = 1 },
		"a matched instrument":        func(b []byte) { b[stateHeaderSize+3] = uint8(market.Matched) },
		"no last trade":               func(b []byte) { b[stateHeaderSize+48] = 0 },
	} {
		bad := bytes.Clone(good)
		spoil(bad)
		if _, err := RestoreState(bad, StateOptions{}); !errors.Is(err, ErrSnapshot) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for n := range good {
		if _, err := RestoreState(good[:n], StateOptions{}); err == nil {
			t.Fatalf("cut at %d: accepted", n)
		}
	}
	if _, err := RestoreState(good, StateOptions{}); err != nil {
		t.Errorf("the snapshot itself: %v", err)
	}
	twice := bytes.Clone(good)
	twice[count] = 2
	twice = append(twice, good[id:]...)
	if _, err := RestoreState(twice, StateOptions{}); !errors.Is(err, ErrSnapshot) {
		t.Errorf("an instrument twice: %v", err)
	}
}

// TestRefreshThroughSmallRings: the largest refresh passes through rings that hold just its
// commands, and far fewer than its events; a consumer that makes views after every slice
// sees only whole refreshes.
func TestRefreshThroughSmallRings(t *testing.T) {
	const refreshes = 20
	e := newEngine(t, Options{IngressSize: 64, EgressSize: 16})
	c := e.Consumer("views")
	e.start(t)
	in := testInstrument(0)
	in.Source = market.Mirrored
	define, err := DefineInstrumentCommand(&in)
	if err != nil {
		t.Fatal(err)
	}
	e.mustSubmit(t, define)
	var books []*MirrorBook
	for n := range market.Price(refreshes) {
		b := largestBook()
		b.Instrument, b.Slot = 0, uint64(n+1)
		for i := range b.Bids {
			b.Bids[i].Price -= n
			b.Asks[i].Price += n
		}
		books = append(books, b)
	}
	views := make(chan int, 1)
	go func() {
		m, published := marketdata.New(), 0
		for {
			events, err := c.Next(t.Context())
			if err != nil {
				views <- published
				return
			}
			for i := range events {
				m.Apply(&events[i])
			}
			c.Release(len(events))
			m.Flush(func(_, v *marketdata.View, _ []marketdata.Trade) {
				if v.Slot == 0 {
					return
				}
				published++
				if b := books[v.Slot-1]; !slices.Equal(v.Bids, b.Bids) || !slices.Equal(v.Asks, b.Asks) {
					t.Errorf("slot %d: bids %v, asks %v", v.Slot, v.Bids, v.Asks)
				}
			})
		}
	}()
	for _, b := range books {
		cs := refreshCommands(t, b)
		await.True(t, "room in the ring", func() bool { return e.SubmitAll(cs) == nil })
	}
	if err := e.finish(t); err != nil {
		t.Fatal(err)
	}
	if published := <-views; published == 0 || published > refreshes {
		t.Errorf("%d views of %d refreshes", published, refreshes)
	}
	if slot, _ := e.replica.State.MirrorPosition(0); slot != refreshes {
		t.Errorf("slot %d at the end", slot)
	}
	if err := e.SubmitAll(refreshCommands(t, books[0])[:1]); !errors.Is(err, ErrStopped) {
		t.Errorf("after the end: %v", err)
	}
}

// TestMirrorAdmission: AdmitCancels refuses refreshes and trades, because the mirror can
// send them again.
func TestMirrorAdmission(t *testing.T) {
	e := newEngine(t, Options{})
	e.SetAdmission(AdmitCancels)
	trade, err := MirrorTradeCommand(&MirrorSwap{Ordinal: 1, Price: 1, Qty: 1, Side: market.Buy, At: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, cs := range [][]Command{refreshCommands(t, largestBook()), refreshCommands(t, &MirrorBook{Slot: 1}), {trade}} {
		if err := e.SubmitAll(cs); !errors.Is(err, ErrReadOnly) {
			t.Errorf("%d commands of kind %d: %v", len(cs), cs[len(cs)-1].Kind, err)
		}
	}
}
