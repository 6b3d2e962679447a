package feed

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"blockdesk/engine"
	"blockdesk/engine/book"
	"blockdesk/engine/event"
	"blockdesk/engine/marketdata"
	"blockdesk/market"
)

// journalled is a random journal: the events of each batch, and a snapshot before each.
type journalled struct {
	batches   [][]event.Event
	snapshots [][]byte
	epochs    []uint64 // of each snapshot
}

// mirroredInstrument is the mirrored one of instruments.
const mirroredInstrument = 2

// journal makes a random journal: orders, cancels, halts, a mirrored book and its trades,
// and sometimes a new epoch.
func journal(t *rapid.T, rng *rand.Rand, batches int) *journalled {
	j := &journalled{}
	r := engine.NewReplica(engine.StateOptions{})
	at, slot, ordinal, orders := int64(1_000_000), uint64(0), uint64(0), market.OrderID(0)
	check := func(c engine.Command, err error) engine.Command {
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	next := func() []engine.Command {
		in, side := market.InstrumentID(rng.IntN(2)), market.Side(1+rng.IntN(2))
		c := engine.Command{Kind: engine.NewOrder, Instrument: in}
		switch roll := rng.IntN(40); {
		case roll == 0:
			return []engine.Command{{Kind: engine.StartEpoch, Arg: r.State.Epoch() + 1}}
		case roll == 1:
			return []engine.Command{{Kind: engine.SetInstrument, Instrument: in, Status: uint8(1 + rng.IntN(2))}}
		case roll < 5:
			slot++
			b := engine.MirrorBook{Instrument: mirroredInstrument, Slot: slot}
			for n := range market.Price(rng.IntN(engine.MaxMirrorLevels + 1)) {
				b.Bids = append(b.Bids, market.Level{Price: 500 - n, Qty: market.Qty(1 + rng.IntN(9))})
			}
			cs, err := engine.MirrorRefreshCommands(nil, &b)
			check(engine.Command{}, err)
			return cs
		case roll < 7:
			ordinal++
			return []engine.Command{check(engine.MirrorTradeCommand(&engine.MirrorSwap{
				Instrument: mirroredInstrument, Ordinal: ordinal, Price: 500, Qty: 1, Side: side, At: at - 1000, Slot: slot + 1,
			}))}
		case roll < 15 && orders > 0:
			c.Kind, c.Order.ID = engine.CancelOrder, max(1, orders-market.OrderID(rng.IntN(200)))
			return []engine.Command{c}
		}
		orders++
		c.Order = book.Order{
			ID: orders, Side: side, Price: 900 + market.Price(rng.IntN(200)), Qty: market.Qty(1 + rng.IntN(20)),
			Type: book.Limit, TIF: book.GTC, STP: book.STPCancelNewest, Participant: market.ParticipantID(side),
		}
		return []engine.Command{c}
	}
	commands := []engine.Command{{Kind: engine.StartEpoch, Arg: 1}}
	for _, in := range instruments() {
		if in.ID == mirroredInstrument {
			in.Source = market.Mirrored
		}
		commands = append(commands, check(engine.DefineInstrumentCommand(&in)))
	}
	for participant := market.ParticipantID(1); participant <= 2; participant++ {
		commands = append(commands, check(engine.SetRiskCommand(participant, engine.AllInstruments, engine.Limits{})))
	}
	for range batches {
		j.snapshots = append(j.snapshots, r.AppendSnapshot(nil))
		j.epochs = append(j.epochs, r.State.Epoch())
		at += 1 + rng.Int64N(1e9)
		var events []event.Event
		for i := range commands {
			commands[i].Seq, commands[i].At = r.State.Seq()+1, at
			r.Apply(&commands[i], func(all []event.Event) { events = append(events, all...) })
		}
		j.batches = append(j.batches, events)
		commands = commands[:0]
		for range 1 + rng.IntN(6)*rng.IntN(3) {
			commands = append(commands, next()...)
		}
	}
	return j
}

// replayedFeed is a feed's output: each update's frame by topic and seq, and the last
// snapshot of each topic.
type replayedFeed struct {
	updates   map[string][]byte
	snapshots map[string][]byte
}

// replayFrom runs a feed from the batch from on, in slices of random size, and returns
// its output of resumable topics.
func replayFrom(t *rapid.T, rng *rand.Rand, j *journalled, from int) *replayedFeed {
	r, err := engine.RestoreReplica(j.snapshots[from], engine.StateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := New(Options{Shards: 1}, instruments(), r.Market, j.epochs[from])
	if err != nil {
		t.Fatal(err)
	}
	for i := range f.topics {
		f.topics[i].subscribers.Store(1)
	}
	replayed := &replayedFeed{updates: map[string][]byte{}, snapshots: map[string][]byte{}}
	var got taken
	receive := func() {
		f.publishToShards()
		f.shards[0].inbox.take(&got)
		for _, p := range got.pubs {
			for k := range ticker {
				if frame := p.frames[k]; frame != nil {
					replayed.updates[fmt.Sprint(p.next.Instrument, k, p.next.Epoch, k.seq(p.next))] = bytes.Clone(frame)
				}
			}
		}
	}
	var slice []event.Event
	for _, batch := range j.batches[from:] {
		slice = append(slice, batch...)
		// The visible events may end within a batch, or span several.
		if rng.IntN(3) == 0 {
			cut := rng.IntN(len(slice) + 1)
			f.apply(slice[:cut])
			slice = append([]event.Event(nil), slice[cut:]...)
			receive()
		} else if rng.IntN(3) == 0 {
			f.apply(slice)
			f.flush() // the consumer says that it is settled
			slice = nil
			receive()
		}
	}
	f.apply(slice)
	f.flush()
	receive()
	for i := range f.views {
		for k := range ticker {
			in := f.set.Get(market.InstrumentID(i))
			replayed.snapshots[fmt.Sprint(i, k)] = bytes.Clone(f.enc.snapshot(in, f.View(in.ID), k))
		}
	}
	return replayed
}

// A feed that joins at any batch sends the same bytes as one that was there from the
// start.
func TestJoinersSayTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		j := journal(t, rng, rapid.IntRange(2, 400).Draw(t, "batches"))
		leader := replayFrom(t, rng, j, 0)
		for range 3 {
			from := rng.IntN(len(j.batches))
			joined := replayFrom(t, rng, j, from)
			for at, frame := range joined.updates {
				if !bytes.Equal(frame, leader.updates[at]) {
					t.Fatalf("joined before batch %d, %s:\n%s\nthe leader\n%s", from, at, frame, leader.updates[at])
				}
			}
			for stream, frame := range joined.snapshots {
				if !bytes.Equal(frame, leader.snapshots[stream]) {
					t.Fatalf("joined before batch %d, %s:\n%s\nthe leader\n%s", from, stream, frame, leader.snapshots[stream])
				}
			}
			if from < len(j.batches)-100 && len(joined.updates) == 0 {
				t.Fatal("nothing was said")
			}
		}
	})
}

// A feed that is far behind skips sequence numbers and repeats none. Its position equals
// the others', and its streams continue with snapshots.
func TestFarBehindLeavesNumbersOut(t *testing.T) {
	var slice []event.Event
	for seq := range uint64(2 * catchUpEvents) {
		slice = append(slice, restingOrder(seq+1))
	}
	var views [2]*marketdata.View
	for i := range views {
		f, err := New(Options{Shards: 1}, instruments(), marketdata.New(), 0)
		if err != nil {
			t.Fatal(err)
		}
		f.topics[0].subscribers.Store(1)
		most := 1 // events at a time
		if i == 0 {
			most = len(slice)
		}
		for from := 0; from < len(slice); from += most {
			f.apply(slice[from : from+most])
		}
		f.flush()
		views[i] = f.View(0)
		if n, want := f.stats.encoded.Load(), []uint64{0, 2 * catchUpEvents}[i]; n != want {
			t.Errorf("%d updates of %d at a time, want %d", n, most, want)
		}
	}
	if a, b := views[0], views[1]; a.DepthSeq != 2*catchUpEvents || a.DepthSeq != b.DepthSeq || a.EngineSeq != b.EngineSeq || a.At != b.At {
		t.Errorf("far behind %+v\nin time %+v", a, b)
	}
}
