package engine

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"blockdesk/engine/book"
	"blockdesk/engine/event"
	"blockdesk/market"
)

// auctionCommands is a random history of n commands on two instruments: auctions by command,
// after a halt and by a volatility band, their uncrossings in slices, and everything that may
// come between.
func auctionCommands(seed uint64, n int) []Command {
	rng := rand.New(rand.NewPCG(seed, 22))
	at := int64(1)
	var list []Command
	add := func(c Command) {
		c.At = at
		list = append(list, c)
	}
	add(Command{Kind: StartEpoch, Arg: 1, Status: StatusInSlices})
	for id := range market.InstrumentID(2) {
		in := testInstrument(id)
		c, err := DefineInstrumentCommand(&in)
		if err != nil {
			panic(err)
		}
		add(c)
	}
	for p := range market.ParticipantID(4) {
		c, err := SetRiskCommand(p+1, AllInstruments, Limits{})
		if err != nil {
			panic(err)
		}
		add(c)
	}
	next := market.OrderID(0)
	for len(list) < n {
		at += rng.Int64N(int64(20 * time.Millisecond))
		c := Command{Instrument: market.InstrumentID(rng.IntN(2))}
		o := &c.Order
		o.Participant = market.ParticipantID(1 + rng.IntN(4))
		switch roll := rng.IntN(200); {
		case roll < 120:
			next++
			c.Kind = NewOrder
			*o = randomOrder(rng, next, at)
		case roll < 140:
			c.Kind, o.ID = AmendOrder, 1+market.OrderID(rng.Int64N(int64(next+1)))
			if o.Qty = market.Qty(rng.IntN(20)); rng.IntN(2) == 0 {
				o.Price = market.Price(90 + rng.IntN(21))
			}
		case roll < 155:
			c.Kind, o.ID = CancelOrder, 1+market.OrderID(rng.Int64N(int64(next+1)))
		case roll < 157:
			c.Kind, c.Instrument, o.Side = MassCancel, AllInstruments, market.Side(rng.IntN(3))
		case roll < 160:
			c.Kind, c.Status = SetParticipant, uint8(1+rng.IntN(2))
		case roll < 175:
			c.Kind = Tick
		case roll < 180:
			c = auctionRules(rng, c.Instrument)
		default:
			c = Command{Kind: SetInstrument, Instrument: c.Instrument, Status: StatusTrading + uint8(rng.IntN(3))}
			if c.Status == StatusAuction {
				c.Arg = uint64(rng.Int64N(int64(200 * time.Millisecond)))
			}
		}
		add(c)
	}
	return list
}

func auctionRules(rng *rand.Rand, in market.InstrumentID) Command {
	var r AuctionRules
	if rng.IntN(2) == 0 {
		r.BandBps, r.Call = uint16(1+rng.IntN(800)), time.Duration(1+rng.Int64N(int64(100*time.Millisecond)))
	}
	if rng.IntN(2) == 0 {
		r.Opening, r.Reference = time.Duration(rng.Int64N(int64(100*time.Millisecond))), market.Price(rng.IntN(120))
	}
	c, err := SetAuctionsCommand(in, r)
	if err != nil {
		panic(err)
	}
	return c
}

func randomOrder(rng *rand.Rand, id market.OrderID, at int64) book.Order {
	o := book.Order{
		ID: id, Participant: market.ParticipantID(1 + rng.IntN(4)), Side: market.Side(1 + rng.IntN(2)), Qty: market.Qty(1 + rng.IntN(20)),
		Price: market.Price(90 + rng.IntN(21)), Type: book.Limit, TIF: book.GTC, STP: book.STP(1 + rng.IntN(4)),
	}
	switch rng.IntN(12) {
	case 0:
		o.Type, o.TIF, o.Price = book.Market, book.IOC, 0
	case 1:
		o.Type, o.Stop = book.StopLimit, market.Price(90+rng.IntN(21))
	case 2:
		o.TIF = book.IOC
	case 3:
		o.Flags = book.FlagPostOnly
	case 4:
		o.TIF, o.ExpireAt = book.GTD, at+1+rng.Int64N(int64(time.Second))
	case 5:
		o.Display = 1 + o.Qty/3
	}
	return o
}

// TestAuctionsAgree runs random histories with auctions on both books, and on a third state
// that goes through its snapshot, also in the middle of a call: same events, same hash.
func TestAuctionsAgree(t *testing.T) {
	t.Parallel()
	seen := map[event.Kind]int{}
	for seed := range uint64(12) {
		fast, slow, stored := NewState(StateOptions{}), NewState(StateOptions{Naive: true}), NewState(StateOptions{})
		a, b, c := event.NewGrowingSink(8), event.NewGrowingSink(8), event.NewGrowingSink(8)
		for i, command := range auctionCommands(seed, 1500) {
			command.Seq = fast.Seq() + 1
			a.Reset()
			b.Reset()
			c.Reset()
			fast.Apply(&command, a)
			slow.Apply(&command, b)
			stored.Apply(&command, c)
			sameEvents(t, a.Events(), b.Events())
			sameEvents(t, a.Events(), c.Events())
			for i := range a.Events() {
				seen[a.Events()[i].Kind]++
			}
			if i%7 == 0 {
				stored = roundTrip(t, stored)
			}
			if fast.NextExpiry() != slow.NextExpiry() && (fast.NextExpiry() == overdue) != (slow.NextExpiry() == overdue) {
				t.Fatalf("command %d: next expiry %d and %d", i, fast.NextExpiry(), slow.NextExpiry())
			}
		}
		if fast.Hash() != slow.Hash() || fast.Hash() != stored.Hash() {
			t.Fatalf("seed %d: the hashes differ", seed)
		}
	}
	if seen[event.AuctionTraded] < 100 || seen[event.Auction] < 100 || seen[event.Traded] < 100 {
		t.Errorf("the histories are too tame: %v", seen)
	}
}

// TestAuctionEndsByTicks: nothing but the ticks of the engine's clock ends a call, and they
// come until the instrument trades.
func TestAuctionEndsByTicks(t *testing.T) {
	t.Parallel()
	s, out := NewState(StateOptions{}), event.NewGrowingSink(8)
	apply := func(c Command, at int64) {
		c.Seq, c.At = s.Seq()+1, at
		s.Apply(&c, out)
	}
	in := testInstrument(0)
	define, err := DefineInstrumentCommand(&in)
	if err != nil {
		t.Fatal(err)
	}
	risk, err := SetRiskCommand(1, AllInstruments, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	apply(define, 1)
	apply(risk, 1)
	risk.Order.Participant = 2
	apply(risk, 1)
	apply(Command{Kind: SetInstrument, Status: StatusAuction, Arg: uint64(time.Second)}, 1)
	const pairs = 1000
	for i := range market.OrderID(pairs) {
		c := testOrder(2*i+1, 1)
		apply(c, 2)
		c = testOrder(2*i+2, 2)
		c.Order.Side = market.Sell
		apply(c, 2)
	}
	ticks, last := 0, int64(0)
	for s.instruments[0].status == StatusAuction {
		at := max(s.NextExpiry(), last)
		if s.NextExpiry() == 0 || ticks > pairs {
			t.Fatalf("after %d ticks: next expiry %d", ticks, s.NextExpiry())
		}
		before := len(out.Events())
		apply(Command{Kind: Tick}, at)
		last, ticks = at, ticks+1
		trades := 0
		for i := range out.Events()[before:] {
			if out.Events()[before+i].Kind == event.AuctionTraded {
				trades++
			}
		}
		if trades > tickSlice {
			t.Fatalf("a tick made %d trades, at most %d", trades, tickSlice)
		}
	}
	if last < int64(time.Second) || s.trades != pairs {
		t.Errorf("the auction ended at %d with %d trades, want %d", last, s.trades, pairs)
	}
	if s.NextExpiry() != 0 || len(s.calls) != 0 {
		t.Errorf("after the auction: next expiry %d, calls %v", s.NextExpiry(), s.calls)
	}
}

// TestAuctionSnapshotGolden pins the bytes of version 6, and no damage to what it adds restores
// to another state.
func TestAuctionSnapshotGolden(t *testing.T) {
	s := newScript(false)
	s.run(t, "define in=0 symbol=A/USD at=1\ndefine in=1 symbol=B/USD\nrisk who=1 in=all\nrisk who=2 in=all\n"+
		"auctions in=1 band=300 call=5000 opening=7000 reference=120\n"+
		"auction for=1000000000 in=0\nnew id=1 who=1 side=buy qty=10 price=103\nnew id=2 who=2 side=sell qty=4 price=101 display=2\n"+
		"new id=3 who=2 side=sell qty=9 stop=100 type=stop\ntick at=300000000")
	data := s.state.AppendSnapshot(nil)
	checkGolden(t, data, "testdata/snapshot_v6.hex", len(data)-2-2*auctionSize)
}

func TestAuctionRulesValidate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rules AuctionRules
		want  string
	}{
		{AuctionRules{}, ""},
		{AuctionRules{BandBps: 1, Call: MaxCall, Opening: MaxCall, Reference: market.MaxPrice}, ""},
		{AuctionRules{BandBps: MaxBandBps + 1, Call: 1}, "band_bps 10001"},
		{AuctionRules{BandBps: 1}, "volatility call 0s"},
		{AuctionRules{Call: 1}, "volatility call 1ns"},
		{AuctionRules{BandBps: 1, Call: MaxCall + 1}, "volatility call 24h0m0.000000001s"},
		{AuctionRules{Opening: -1}, "opening call -1ns"},
		{AuctionRules{Reference: -1}, "reference price -1"},
	} {
		err := c.rules.Validate()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.rules, err, c.want)
		}
	}
}

// BenchmarkUncross is a tick's slice of an uncrossing: 256 pairs, one order each.
func BenchmarkUncross(b *testing.B) {
	s, out := NewState(StateOptions{}), &event.Sink{Buf: make([]event.Event, 1<<12), Limit: 1 << 62}
	apply := func(c Command) {
		c.Seq, c.At = s.Seq()+1, s.At()+1
		s.Apply(&c, out)
	}
	in := testInstrument(0)
	define, _ := DefineInstrumentCommand(&in)
	apply(define)
	for p := range market.ParticipantID(2) {
		risk, _ := SetRiskCommand(p+1, AllInstruments, Limits{})
		apply(risk)
	}
	id := market.OrderID(0)
	for b.Loop() {
		b.StopTimer()
		apply(Command{Kind: SetInstrument, Status: StatusAuction})
		for range tickSlice {
			for side := market.Buy; side <= market.Sell; side++ {
				id++
				c := testOrder(id, market.ParticipantID(side))
				c.Order.Side = side
				apply(c)
			}
		}
		apply(Command{Kind: SetInstrument, Status: StatusTrading})
		b.StartTimer()
		apply(Command{Kind: Tick})
		b.StopTimer()
		apply(Command{Kind: Tick})
		b.StartTimer()
	}
}

// deepAuction returns a state in a call with 10,000 crossing levels a side, and a function that
// applies a command.
func deepAuction(tb testing.TB, call time.Duration) (*State, func(Command, int64) []event.Event) {
	tb.Helper()
	s, out := NewState(StateOptions{}), event.NewGrowingSink(1<<10)
	apply := func(c Command, at int64) []event.Event {
		out.Reset()
		c.Seq, c.At = s.Seq()+1, at
		s.Apply(&c, out)
		return out.Events()
	}
	in := testInstrument(0)
	in.MaxPrice = 100_000
	define, err := DefineInstrumentCommand(&in)
	if err != nil {
		tb.Fatal(err)
	}
	apply(define, 1)
	for p := range market.ParticipantID(2) {
		risk, err := SetRiskCommand(p+1, AllInstruments, Limits{})
		if err != nil {
			tb.Fatal(err)
		}
		apply(risk, 1)
	}
	apply(Command{Kind: SetInstrument, Status: StatusAuction, Arg: uint64(call)}, 1)
	const levels = 10_000
	for i := range market.OrderID(levels) {
		c := testOrder(2*i+1, 1)
		c.Order.Price = 2*levels - market.Price(i)
		apply(c, 1)
		c.Order.ID, c.Order.Participant, c.Order.Side, c.Order.Price = 2*i+2, 2, market.Sell, 1+market.Price(i)
		apply(c, 1)
	}
	return s, apply
}

// TestAuctionPriceInSlices: the end of a call with 20,000 crossing levels costs no command more
// than a slice. An order between the slices of the search is refused, a cancel is not, and the
// price is that of all orders.
func TestAuctionPriceInSlices(t *testing.T) {
	t.Parallel()
	s, apply := deepAuction(t, time.Second)
	at, ticks, priced := int64(2*time.Second), 0, 0
	for in := &s.instruments[0]; in.status == StatusAuction; ticks++ {
		if ticks > 1000 {
			t.Fatal("the auction does not end")
		}
		before := in.call.search
		events := apply(Command{Kind: Tick}, at)
		if len(events) > 3*tickSlice+2 {
			t.Fatalf("tick %d has %d events", ticks, len(events))
		}
		if in.call.phase != pricing {
			continue
		}
		if priced++; before == in.call.search {
			t.Fatalf("tick %d reads nothing", ticks)
		}
		if ticks != 10 {
			continue
		}
		for _, c := range []Command{testOrder(1<<20, 1), {Kind: CancelOrder, Order: book.Order{ID: 19_999, Participant: 1}}} {
			refused := false
			for _, e := range apply(c, at) {
				refused = refused || e.Kind == event.Rejected && event.Reason(e.Code) == event.ReasonAuction
			}
			if refused != (c.Kind == NewOrder) {
				t.Errorf("kind %d between the slices: refused %v", c.Kind, refused)
			}
		}
	}
	if least := 20_000/tickSlice/2 - 2; priced < least {
		t.Errorf("the search took %d ticks, want %d at least", priced, least)
	}
	if s.trades != 9_999 { // one order is cancelled
		t.Errorf("%d trades, want 9,999", s.trades)
	}
}

// BenchmarkIndicative is a tick's slice of the search for the price of 10,000 crossing levels a
// side.
func BenchmarkIndicative(b *testing.B) {
	s, apply := deepAuction(b, 0)
	at := int64(2 * time.Second)
	for b.Loop() {
		at += int64(time.Millisecond)
		s.instruments[0].call.publishAt, s.nextCall, s.nextExpiry = 0, 0, 0
		apply(Command{Kind: Tick}, at)
	}
}
