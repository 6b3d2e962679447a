package engine

import (
	"bytes"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"blockdesk/engine/book"
	"blockdesk/engine/event"
	"blockdesk/engine/marketdata"
	"blockdesk/market"
)

// minute is a minute of event time.
const minute int64 = 60_000_000_000

// replay stamps and applies commands one after another, saving and restoring after each
// index in saves, on alternating books.
func replay(t testing.TB, commands []Command, saves []int) (r *Replica, events []event.Event) {
	t.Helper()
	options := StateOptions{MaxOrders: 100}
	r = NewReplica(options)
	for i := range commands {
		c := commands[i]
		c.Seq = r.State.Seq() + 1
		r.Apply(&c, func(e []event.Event) { events = append(events, e...) })
		if slices.Contains(saves, i) {
			options.Naive = !options.Naive
			again, err := RestoreReplica(r.AppendSnapshot(nil), options)
			if err != nil {
				t.Fatalf("restore after command %d: %v", i, err)
			}
			r = again
		}
	}
	return r, events
}

func TestReplicaIsAFunctionOfTheJournal(t *testing.T) {
	commands := sampleCommands()
	want, wantEvents := replay(t, commands, nil)
	all := make([]int, len(commands))
	for i := range all {
		all[i] = i
	}
	for _, saves := range [][]int{{3}, {5, 6, 9}, {len(commands) - 1}, all} {
		got, events := replay(t, commands, saves)
		sameEvents(t, events, wantEvents)
		if got.Digest != want.Digest || !bytes.Equal(got.AppendSnapshot(nil), want.AppendSnapshot(nil)) {
			t.Errorf("saved after %v: another replica", saves)
		}
	}
	var sum uint64
	for i := range wantEvents {
		sum = event.Digest(sum, &wantEvents[i])
	}
	if sum != want.Digest {
		t.Error("the digest is not that of the events")
	}
}

// TestReplicasSideBySide: replicas share nothing; many at once, on any number of
// processors, end the same.
func TestReplicasSideBySide(t *testing.T) {
	commands := sampleCommands()
	want, _ := replay(t, commands, nil)
	hash := want.State.Hash() // a State is for one goroutine at a time
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, procs := range []int{1, 2, 4} {
		runtime.GOMAXPROCS(procs)
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				got, _ := replay(t, commands, []int{4, 8})
				if got.Digest != want.Digest || got.State.Hash() != hash {
					t.Errorf("GOMAXPROCS %d: another replica", procs)
				}
			})
		}
		group.Wait()
	}
}

func TestReplicaVisitsOnlyEvents(t *testing.T) {
	r := NewReplica(StateOptions{})
	calls := 0
	r.Apply(&Command{Seq: 1, Kind: Tick}, func([]event.Event) { calls++ })
	if calls != 0 {
		t.Errorf("%d calls for a command without events", calls)
	}
	r.Apply(&Command{Seq: 2, Kind: StartEpoch, Arg: 1}, nil)
	if r.State.Epoch() != 1 || r.Digest == 0 {
		t.Error("without a visitor nothing was applied")
	}
}

// TestReplicaGivesMemoryBack: the buffer of one huge command is not kept.
func TestReplicaGivesMemoryBack(t *testing.T) {
	r := NewReplica(StateOptions{})
	in := testInstrument(0)
	var setup []Command
	c, err := DefineInstrumentCommand(&in)
	if err != nil {
		t.Fatal(err)
	}
	setup = append(setup, c)
	if c, err = SetRiskCommand(1, AllInstruments, Limits{}); err != nil {
		t.Fatal(err)
	}
	setup = append(setup, c)
	apply := func(c Command) (n int) {
		c.Seq = r.State.Seq() + 1
		r.Apply(&c, func(e []event.Event) { n = len(e) })
		return n
	}
	for _, c := range setup {
		apply(c)
	}
	for id := range maxRetainedEvents {
		apply(testOrder(market.OrderID(1+id), 1))
	}
	if n := apply(Command{Kind: MassCancel, Instrument: AllInstruments}); n != maxRetainedEvents+1 {
		t.Errorf("%d events", n)
	}
	if n := len(r.sink.Buf); n > maxRetainedEvents {
		t.Errorf("room for %d events is kept", n)
	}
}

func TestRestoreReplicaRefuses(t *testing.T) {
	r, _ := replay(t, sampleCommands(), nil)
	whole := r.AppendSnapshot(nil)
	options := StateOptions{MaxOrders: 100}
	for n := range len(whole) {
		if _, err := RestoreReplica(whole[:n], options); err == nil {
			t.Fatalf("cut at %d: accepted", n)
		}
	}
	if _, err := RestoreReplica(append(bytes.Clone(whole), 0), options); err == nil {
		t.Error("a byte more: accepted")
	}
	newer := bytes.Clone(whole)
	newer[4] = 9
	if _, err := RestoreReplica(newer, options); err == nil || !strings.Contains(err.Error(), "version 9") {
		t.Errorf("another version: %v", err)
	}
	long := bytes.Clone(whole)
	for i := 16; i < 24; i++ {
		long[i] = 0xff
	}
	if _, err := RestoreReplica(long, options); !errors.Is(err, ErrSnapshot) {
		t.Errorf("a lying length: %v", err)
	}
}

func FuzzRestoreReplica(f *testing.F) {
	commands := sampleCommands()
	flow := newMirrorFlow(1)
	var mirror []Command
	for flow.mirror.published < 5 || len(flow.mirror.queue) > 0 {
		mirror = append(mirror, flow.next())
	}
	r, _ := replay(f, mirror, nil)
	f.Add(r.AppendSnapshot(nil))
	commands = append(commands, refreshCommands(f, &MirrorBook{Instrument: 2, Slot: 1<<64 - 1, Asks: []market.Level{{Price: 1, Qty: 1}}})...)
	for n := range commands {
		r, _ := replay(f, commands[:n], nil)
		f.Add(r.AppendSnapshot(nil))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := RestoreReplica(data, StateOptions{MaxOrders: 100})
		if err != nil {
			return
		}
		for _, c := range commands {
			c.Seq = r.State.Seq() + 1
			r.Apply(&c, nil)
		}
		r.AppendSnapshot(nil)
	})
}

// TestRestoreReplicaRefusesOtherMarketData: each part is a valid snapshot, but they are of
// two journals.
func TestRestoreReplicaRefusesOtherMarketData(t *testing.T) {
	commands := sampleCommands()
	r, _ := replay(t, commands, nil)
	last := len(commands) - 1 // it changes nothing that is displayed
	for n := range last {
		other, _ := replay(t, commands[:n], nil)
		mixed := &Replica{State: r.State, Market: other.Market}
		_, err := RestoreReplica(mixed.AppendSnapshot(nil), StateOptions{MaxOrders: 100})
		same := bytes.Equal(other.Market.AppendSnapshot(nil), r.Market.AppendSnapshot(nil))
		if !same && !errors.Is(err, ErrSnapshot) {
			t.Errorf("market data after %d commands of %d: %v", n, len(commands), err)
		}
	}
}

// TestReplicaRefusesMismatchedMirror: a state and market data that are each valid, but of
// different chains.
func TestReplicaRefusesMismatchedMirror(t *testing.T) {
	replica := func(slot uint64, bid market.Price) *Replica {
		r := NewReplica(StateOptions{})
		in := testInstrument(0)
		in.Source = market.Mirrored
		c, err := DefineInstrumentCommand(&in)
		if err != nil {
			t.Fatal(err)
		}
		commands := append([]Command{c}, refreshCommands(t, &MirrorBook{Slot: slot, Bids: []market.Level{{Price: bid, Qty: 1}}})...)
		for i := range commands {
			commands[i].Seq = uint64(i + 1)
			r.Apply(&commands[i], nil)
		}
		return r
	}
	for _, c := range []struct {
		slot uint64
		bid  market.Price
		good bool
	}{{5, 10, true}, {6, 10, false}, {5, 11, false}} {
		r := replica(5, 10)
		r.Market = replica(c.slot, c.bid).Market
		if _, err := RestoreReplica(r.AppendSnapshot(nil), StateOptions{}); (err == nil) != c.good || err != nil && !errors.Is(err, ErrSnapshot) {
			t.Errorf("slot %d, bid %d: %v", c.slot, c.bid, err)
		}
	}
}

// TestMarketDataFollowsState runs random commands through a replica and compares market
// data and books.
func TestMarketDataFollowsState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		flow := newMirrorFlow(rapid.Uint64().Draw(t, "seed"))
		r := NewReplica(StateOptions{})
		var seq uint64
		for range rapid.IntRange(1, 30).Draw(t, "flushes") {
			var want []marketdata.Trade
			for range rapid.IntRange(1, 40).Draw(t, "commands") {
				c := flow.next()
				seq++
				c.Seq, c.At = seq, int64(seq)*minute/7
				r.Apply(&c, func(events []event.Event) {
					for i := range events {
						if published, ok := marketdata.TradeOf(&events[i]); ok {
							want = append(want, published)
						}
					}
				})
			}
			first := r.Market.View(0) == nil
			var news []marketdata.Trade
			r.Market.Flush(func(prev, next *marketdata.View, trades []marketdata.Trade) {
				news = append(news, trades...)
				checkDelta(t, prev, next)
			})
			slices.SortFunc(news, func(a, b marketdata.Trade) int { return int(a.ID) - int(b.ID) })
			if !first && !slices.Equal(news, want) {
				t.Fatalf("news %v, want %v", news, want)
			}
			for _, in := range r.State.Instruments() {
				checkView(t, r.State, r.Market.View(in.ID))
			}
		}
	})
}

func checkDelta(t *rapid.T, prev, next *marketdata.View) {
	if prev == nil || prev.Epoch != next.Epoch {
		return
	}
	same := slices.Equal(prev.Bids, next.Bids) && slices.Equal(prev.Asks, next.Asks)
	if !same && prev.DepthSeq >= next.DepthSeq {
		t.Fatalf("depth seq %d after %d, and other levels", next.DepthSeq, prev.DepthSeq)
	}
	if slices.Equal(prev.Trades, next.Trades) != (prev.TradesSeq == next.TradesSeq) {
		t.Fatalf("trades seq %d after %d", next.TradesSeq, prev.TradesSeq)
	}
}

func checkView(t *rapid.T, s *State, v *marketdata.View) {
	sides := map[market.Side]map[market.Price]market.Qty{market.Buy: {}, market.Sell: {}}
	s.Orders(v.Instrument, func(o book.LiveOrder) {
		if !o.Waiting {
			sides[o.Side][o.Price] += o.Shown
		}
	})
	slot := uint64(0)
	if m := s.instruments[v.Instrument].mirror; m != nil {
		slot = m.slot
		for _, l := range m.bids {
			sides[market.Buy][l.Price] = l.Qty
		}
		for _, l := range m.asks {
			sides[market.Sell][l.Price] = l.Qty
		}
	}
	if v.Slot != slot {
		t.Fatalf("slot %d, the state has %d", v.Slot, slot)
	}
	for side, levels := range map[market.Side][]market.Level{market.Buy: v.Bids, market.Sell: v.Asks} {
		if len(levels) != min(len(sides[side]), marketdata.MaxDepth) {
			t.Fatalf("%s: %d levels, the book has %d", side, len(levels), len(sides[side]))
		}
		for i, l := range levels {
			if sides[side][l.Price] != l.Qty {
				t.Fatalf("%s: level %v, the book has %d", side, l, sides[side][l.Price])
			}
			if i > 0 && (levels[i-1].Price > l.Price) != (side == market.Buy) {
				t.Fatalf("%s: level %d out of order: %v", side, i, levels)
			}
		}
	}
	if v.Status != s.Status(v.Instrument) || v.EngineSeq > s.Seq() {
		t.Fatalf("status %d, seq %d; the state has %d, %d", v.Status, v.EngineSeq, s.Status(v.Instrument), s.Seq())
	}
}

// TestMarketDataSnapshot: restored market data continue exactly as the original, flushed or
// not.
func TestMarketDataSnapshot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		flow := newFlow(rapid.Uint64().Draw(t, "seed"))
		flow.terms = true
		if rapid.Bool().Draw(t, "mirrored") {
			flow = newMirrorFlow(rapid.Uint64().Draw(t, "seed"))
		}
		r := NewReplica(StateOptions{})
		step := rapid.SampledFrom([]int64{1, minute / 3, 50 * minute}).Draw(t, "step")
		flushEvery := rapid.SampledFrom([]int{1, 7, 1 << 30}).Draw(t, "flush every")
		var seq uint64
		run := func(n int, visit func([]event.Event)) {
			for range n {
				c := flow.next()
				seq++
				c.Seq, c.At = seq, int64(seq)*step
				r.Apply(&c, visit)
				if int(seq)%flushEvery == 0 {
					r.Market.Flush(nil)
				}
			}
		}
		run(rapid.IntRange(0, 600).Draw(t, "before"), nil)
		snapshot := r.Market.AppendSnapshot(nil)
		m, rest, err := marketdata.Restore(append(slices.Clone(snapshot), "rest"...))
		if err != nil || string(rest) != "rest" {
			t.Fatalf("rest %q, err %v", rest, err)
		}
		run(rapid.IntRange(0, 300).Draw(t, "after"), func(events []event.Event) {
			for i := range events {
				m.Apply(&events[i])
			}
		})
		if !bytes.Equal(m.AppendSnapshot(nil), r.Market.AppendSnapshot(nil)) {
			t.Fatal("restored market data differ")
		}
		r.Market.Flush(nil)
		m.Flush(nil)
		for _, in := range r.State.Instruments() {
			sameView(t, m.View(in.ID), r.Market.View(in.ID))
		}
	})
}

func sameView(t *rapid.T, got, want *marketdata.View) {
	if !slices.Equal(got.Bids, want.Bids) || !slices.Equal(got.Asks, want.Asks) ||
		!slices.Equal(got.Trades, want.Trades) || got.Ticker != want.Ticker || got.Status != want.Status || got.Slot != want.Slot ||
		got.Epoch != want.Epoch || got.DepthSeq != want.DepthSeq || got.TradesSeq != want.TradesSeq ||
		got.EngineSeq != want.EngineSeq || got.At != want.At {
		t.Fatalf("view %+v\nwant %+v", got, want)
	}
}
