package marketdata

import (
	"math"
	"slices"
	"strings"
	"testing"

	"blockdesk/engine/event"
	"blockdesk/market"
)

// minute is a minute of event time.
const minute = nanosPerMinute

// mdEvents makes events as the engine does, with rising Seq and At: a Flush ends a batch.
type mdEvents struct {
	md    *Data
	seq   uint64
	at    int64
	id    int64 // of the last trade
	ended bool  // the batch has
}

func newMDEvents() *mdEvents {
	m := &mdEvents{md: New(), at: 1_000 * windowMinutes * minute}
	m.apply(event.Event{Kind: event.EpochStarted, Other: 7})
	m.apply(event.Event{Kind: event.InstrumentSet, Code: uint16(event.StatusTrading)})
	m.md.Flush(nil)
	m.ended = true
	return m
}

func (m *mdEvents) apply(e event.Event) {
	if m.ended {
		m.at++
		m.ended = false
	}
	m.seq++
	e.Seq, e.At = m.seq, m.at
	m.md.Apply(&e)
}

func (m *mdEvents) rest(side market.Side, p market.Price, shown int64) {
	m.apply(event.Event{Kind: event.Accepted, Side: side, Price: p, Qty: market.Qty(shown), Aux: shown})
}

func (m *mdEvents) cancel(side market.Side, p market.Price, shown int64) {
	m.apply(event.Event{Kind: event.Cancelled, Side: side, Price: p, Qty: market.Qty(shown), Aux: shown})
}

// trade lets a taker on a side trade with a new resting order.
func (m *mdEvents) trade(taker market.Side, p market.Price, q market.Qty) {
	m.rest(taker.Opposite(), p, int64(q))
	m.id++
	m.apply(event.Event{Kind: event.Traded, Side: taker, Price: p, Qty: q, Aux: m.id})
}

// flush returns the only update of a Flush; ok is false if there is none.
func (m *mdEvents) flush(t *testing.T) (next *View, trades []Trade, ok bool) {
	t.Helper()
	before := m.md.View(0)
	m.ended = true
	m.md.Flush(func(prev, n *View, tr []Trade) {
		if ok {
			t.Fatal("two updates of one instrument in one Flush")
		}
		if prev != before {
			t.Fatal("prev is not the last view")
		}
		next, trades, ok = n, tr, true
	})
	return next, trades, ok
}

func (m *mdEvents) mustFlush(t *testing.T) (*View, []Trade) {
	t.Helper()
	next, trades, ok := m.flush(t)
	if !ok {
		t.Fatal("Flush made no view")
	}
	return next, trades
}

// TestMarketDataEffects covers every row of the L2 column in package event.
func TestMarketDataEffects(t *testing.T) {
	const p = 100
	for _, c := range []struct {
		name string
		e    event.Event
		want int64 // displayed at p, where 50 bids and no asks were before
	}{
		{"accepted", event.Event{Kind: event.Accepted, Side: market.Buy, Price: p, Aux: 5}, 55},
		{"accepted without rest", event.Event{Kind: event.Accepted, Side: market.Buy, Price: p, Qty: 5}, 50},
		{"rejected", event.Event{Kind: event.Rejected, Side: market.Buy, Price: p, Qty: 5, Aux: 9}, 50},
		{"traded", event.Event{Kind: event.Traded, Side: market.Sell, Price: p, Qty: 5, Aux: 1}, 45},
		{"rested", event.Event{Kind: event.Rested, Side: market.Buy, Price: p, Qty: 9, Aux: 5}, 55},
		{"cancelled", event.Event{Kind: event.Cancelled, Side: market.Buy, Price: p, Qty: 9, Aux: 5}, 45},
		{"cancelled taker", event.Event{Kind: event.Cancelled, Side: market.Buy, Price: p, Qty: 9}, 50},
		{"reduced", event.Event{Kind: event.Reduced, Side: market.Buy, Price: p, Qty: 9, Aux: 5}, 45},
		{"unrested", event.Event{Kind: event.Unrested, Side: market.Buy, Price: p, Qty: 9, Aux: 50}, 0},
		{"amended", event.Event{Kind: event.Amended, Side: market.Buy, Price: p, Qty: 9, Aux: 5}, 55},
		{"amend rejected", event.Event{Kind: event.AmendRejected, Side: market.Buy, Price: p, Qty: 9, Aux: 5}, 50},
		{"cancel rejected", event.Event{Kind: event.CancelRejected, Side: market.Buy, Price: p, Aux: 5}, 50},
		{"replenished", event.Event{Kind: event.Replenished, Side: market.Buy, Price: p, Qty: 9, Aux: 5}, 55},
		{"triggered", event.Event{Kind: event.Triggered, Side: market.Buy, Price: p, Qty: 9, Aux: 99}, 50},
		{"mass cancelled", event.Event{Kind: event.MassCancelled, Side: market.Buy, Qty: 9}, 50},
		{"participant set", event.Event{Kind: event.ParticipantSet, Code: 1, Instrument: 0xffff}, 50},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMDEvents()
			m.rest(market.Buy, p, 50)
			m.apply(c.e)
			m.md.Flush(nil)
			v := m.md.View(0)
			var got int64
			for _, l := range v.Bids {
				got += int64(l.Qty)
			}
			if got != c.want || len(v.Asks) != 0 {
				t.Fatalf("bids %v, asks %v; want %d at %d", v.Bids, v.Asks, c.want, p)
			}
		})
	}
}

// TestMarketDataSkipsReferences: a Reference and a Desk event have other data where other
// events have At.
func TestMarketDataSkipsReferences(t *testing.T) {
	m := newMDEvents()
	m.trade(market.Buy, 100, 1)
	var e event.Event
	e.SetReference(m.seq+1, event.Ref{OrderID: math.MaxUint64, Text: []byte("\x02 any text, as long as can be, 40 bytes")})
	m.md.Apply(&e)
	e.SetDesk(m.seq+2, event.DeskChunk{Count: 1, Data: []byte(strings.Repeat("\x7e", event.MaxDeskChunk))})
	m.md.Apply(&e)
	v, _ := m.mustFlush(t)
	if v.Ticker.Trades24h != 1 || v.At != m.at || v.EngineSeq != m.seq {
		t.Fatalf("view %+v", v)
	}
}

func TestMarketDataSeqs(t *testing.T) {
	m := newMDEvents()
	first := m.md.View(0)
	if first.DepthSeq != 1 || first.TradesSeq != 1 || first.TickerSeq != 1 || first.Epoch != 7 {
		t.Fatalf("first view %+v", first)
	}
	check := func(what string, depth, trades, ticker uint64) {
		t.Helper()
		prev := m.md.View(0)
		next, _ := m.mustFlush(t)
		got := [3]uint64{next.DepthSeq - prev.DepthSeq, next.TradesSeq - prev.TradesSeq, next.TickerSeq - prev.TickerSeq}
		if want := [3]uint64{depth, trades, ticker}; got != want {
			t.Fatalf("%s: depth, trades, ticker grew by %v, want %v", what, got, want)
		}
	}
	m.rest(market.Buy, 100, 5)
	check("a first bid", 1, 0, 1)
	m.rest(market.Buy, 99, 5)
	check("a bid behind the best", 1, 0, 0)
	m.rest(market.Sell, 110, 5)
	check("a first ask", 1, 0, 1)
	m.trade(market.Buy, 105, 3)
	check("a trade that leaves the book as it was", 1, 1, 1)
	m.apply(event.Event{Kind: event.InstrumentSet, Code: uint16(event.StatusHalted)})
	check("a halt, which the ticker shows", 0, 0, 1)
	if m.md.View(0).Status != event.StatusHalted {
		t.Fatal("the view does not say that the instrument is halted")
	}
	m.rest(market.Buy, 98, 5)
	m.cancel(market.Buy, 98, 5)
	check("a bid that has gone again", 1, 0, 0)
	m.rest(market.Buy, 98, 5)
	m.rest(market.Sell, 111, 5)
	m.trade(market.Buy, 105, 3)
	m.trade(market.Buy, 105, 3)
	check("a batch counts once", 1, 1, 1)
	m.apply(event.Event{Kind: event.Rejected, Side: market.Buy, Price: 1, Qty: 1})
	if _, _, ok := m.flush(t); ok {
		t.Fatal("a view of a refused order")
	}
}

func TestMarketDataEpoch(t *testing.T) {
	m := newMDEvents()
	for range 5 {
		m.rest(market.Buy, 100, 5)
		m.md.Flush(nil)
	}
	old := m.md.View(0)
	m.apply(event.Event{Kind: event.EpochStarted, Other: 8})
	v, trades := m.mustFlush(t)
	if v.Epoch != 8 || v.DepthSeq != 1 || v.TradesSeq != 1 || v.TickerSeq != 1 || len(trades) != 0 {
		t.Fatalf("first view of the new epoch: %+v", v)
	}
	if !slices.Equal(v.Bids, old.Bids) {
		t.Fatalf("bids %v, before %v", v.Bids, old.Bids)
	}
}

// TestMarketDataDepthLimit: levels beyond MaxDepth are kept but not shown, and do not count
// as a change until they enter the view.
func TestMarketDataDepthLimit(t *testing.T) {
	m := newMDEvents()
	for i := range MaxDepth + 1 {
		m.rest(market.Sell, market.Price(1000+i), 1)
	}
	v, _ := m.mustFlush(t)
	if len(v.Asks) != MaxDepth || v.Asks[MaxDepth-1].Price != 1000+MaxDepth-1 {
		t.Fatalf("%d asks, last %v", len(v.Asks), v.Asks[len(v.Asks)-1])
	}
	m.rest(market.Sell, 1000+MaxDepth, 1)
	if _, _, ok := m.flush(t); ok {
		t.Fatal("level MaxDepth+1 changed the view")
	}
	m.cancel(market.Sell, 1000, 1)
	v, _ = m.mustFlush(t)
	if got := v.Asks[MaxDepth-1]; len(v.Asks) != MaxDepth || got != (market.Level{Price: 1000 + MaxDepth, Qty: 2}) {
		t.Fatalf("last of %d asks is %v", len(v.Asks), got)
	}
}

// TestMarketDataTape compares views and new trades for many batch sizes with one long list;
// returned slices never change.
func TestMarketDataTape(t *testing.T) {
	m := newMDEvents()
	var all []Trade
	type comparison struct{ got, want []Trade }
	var keep []comparison
	for round, n := range []int{1, 2, 99, 100, 101, 1, 5, 400, 401, 3, 700, 1, 1, 250, 40, 40, 40, 40, 40} {
		for i := range n {
			m.at += 1000
			side := market.Side(1 + i%2)
			m.trade(side, market.Price(100+i), market.Qty(1+round))
			all = append(all, Trade{
				ID: market.TradeID(m.id), Seq: m.seq, At: m.at,
				Price: market.Price(100 + i), Qty: market.Qty(1 + round), Side: side,
			})
		}
		v, news := m.mustFlush(t)
		if want := all[len(all)-n:]; !slices.Equal(news, want) {
			t.Fatalf("round %d: news %v, want %v", round, news, want)
		}
		want := slices.Clone(all[max(0, len(all)-MaxTape):])
		slices.Reverse(want)
		if !slices.Equal(v.Trades, want) {
			t.Fatalf("round %d: tape %v, want %v", round, v.Trades, want)
		}
		keep = append(keep, comparison{v.Trades, want}, comparison{news, slices.Clone(news)})
	}
	for i, k := range keep {
		if !slices.Equal(k.got, k.want) {
			t.Fatalf("what round %d handed out has changed", i/2)
		}
		if cap(k.got) != len(k.got) {
			t.Fatalf("what round %d handed out can be appended to", i/2)
		}
	}
}

// TestMarketDataBeforeFlush: a replay never flushes, and keeps only the tape.
func TestMarketDataBeforeFlush(t *testing.T) {
	m := &mdEvents{md: New()}
	m.apply(event.Event{Kind: event.InstrumentSet, Code: uint16(event.StatusTrading)})
	for range 10 * MaxTape {
		m.trade(market.Buy, 100, 1)
	}
	if n := len(m.md.data[0].tape.recent); n > 2*MaxTape {
		t.Fatalf("%d trades kept without a Flush, at most %d", n, 2*MaxTape)
	}
	v, news := m.mustFlush(t)
	if len(news) != 0 {
		t.Fatalf("the first Flush publishes %d old trades as new", len(news))
	}
	if len(v.Trades) != MaxTape || v.Trades[0].ID != market.TradeID(m.id) || v.Trades[MaxTape-1].ID != market.TradeID(m.id-MaxTape+1) {
		t.Fatalf("tape of %d, %v to %v", len(v.Trades), v.Trades[0], v.Trades[len(v.Trades)-1])
	}
}

func TestMarketDataWindow(t *testing.T) {
	m := newMDEvents()
	start := m.at
	trade := func(after int64, p market.Price, q market.Qty) {
		m.at = start + after*minute
		m.trade(market.Buy, p, q)
	}
	expect := func(what string, want Ticker) {
		t.Helper()
		m.md.Flush(nil)
		got := m.md.View(0).Ticker
		got.Last, got.LastQty, got.LastAt = 0, 0, 0
		if got != want {
			t.Fatalf("%s: %+v, want %+v", what, got, want)
		}
	}
	quote := func(n uint64) market.Uint128 { return market.Uint128{Lo: n} }
	trade(0, 50, 2)
	trade(0, 90, 1)
	trade(1, 60, 3)
	trade(700, 40, 1)
	expect("four trades", Ticker{Open24h: 50, High24h: 90, Low24h: 40, Volume24h: 7, QuoteVolume24h: quote(410), Trades24h: 4})
	m.md.Advance(start + (windowMinutes-1)*minute + minute - 1)
	expect("the last moment of the first minute", Ticker{Open24h: 50, High24h: 90, Low24h: 40, Volume24h: 7, QuoteVolume24h: quote(410), Trades24h: 4})
	m.md.Advance(start + windowMinutes*minute)
	expect("a minute later", Ticker{Open24h: 60, High24h: 60, Low24h: 40, Volume24h: 4, QuoteVolume24h: quote(220), Trades24h: 2})
	m.md.Advance(start)
	expect("time does not fall", Ticker{Open24h: 60, High24h: 60, Low24h: 40, Volume24h: 4, QuoteVolume24h: quote(220), Trades24h: 2})
	m.at = start + (windowMinutes+1)*minute
	m.rest(market.Buy, 1, 1)
	expect("an event of any kind moves the window", Ticker{Open24h: 40, High24h: 40, Low24h: 40, Volume24h: 1, QuoteVolume24h: quote(40), Trades24h: 1})
	m.md.Advance(start + 10*windowMinutes*minute)
	expect("nothing left", Ticker{})
	if v := m.md.View(0); v.Ticker.Last != 40 || v.Ticker.LastAt != start+700*minute {
		t.Fatalf("the last trade expired with the window: %+v", v.Ticker)
	}
}

// TestMarketDataSaturates: figures that overflow stay at the largest value.
func TestMarketDataSaturates(t *testing.T) {
	var w window
	var sum Ticker
	big := Trade{Price: market.MaxPrice, Qty: market.MaxQty}
	for range 1 << 17 {
		w.add(&big, &sum)
	}
	if sum.Volume24h != math.MaxInt64 || w[0].volume != math.MaxInt64 {
		t.Fatalf("volume %d", sum.Volume24h)
	}
	full := market.Uint128{Hi: math.MaxUint64, Lo: math.MaxUint64 - 1}
	if got := addQuote(full, market.Uint128{Lo: 2}); got != (market.Uint128{Hi: math.MaxUint64, Lo: math.MaxUint64}) {
		t.Fatalf("quote volume %v", got)
	}
}

func TestMarketDataPanicsOnABrokenEngine(t *testing.T) {
	for name, e := range map[string]event.Event{
		"a level that is not there": {Kind: event.Cancelled, Side: market.Buy, Price: 5, Aux: 1},
		"more than the level has":   {Kind: event.Cancelled, Side: market.Buy, Price: 100, Aux: 11},
		"an unknown instrument":     {Kind: event.Accepted, Side: market.Buy, Price: 5, Aux: 1, Instrument: market.MaxInstruments},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMDEvents()
			m.rest(market.Buy, 100, 10)
			defer func() {
				if recover() == nil {
					t.Fatal("no panic")
				}
			}()
			m.apply(e)
		})
	}
}

// TestMarketDataAllocations: Apply does not allocate once the book has its size, and Flush
// allocates only the new view and its changed sides.
func TestMarketDataAllocations(t *testing.T) {
	m := newMDEvents()
	for p := range market.Price(500) {
		m.rest(market.Buy, 1+p, 1)
		m.rest(market.Sell, 1001+p, 1)
	}
	m.md.Flush(nil)
	events := func() {
		for p := range market.Price(200) {
			m.cancel(market.Buy, 500-p, 1)
			m.rest(market.Buy, 700+p, 1)
		}
		m.trade(market.Buy, 950, 1)
		for p := range market.Price(200) {
			m.cancel(market.Buy, 700+p, 1)
			m.rest(market.Buy, 500-p, 1)
		}
	}
	events()
	if n := testing.AllocsPerRun(100, events); n != 0 {
		t.Fatalf("Apply: %v allocations in 802 events", n)
	}
	m.md.Flush(nil)
	flush := func() {
		m.rest(market.Buy, 501, 1)
		m.md.Flush(nil)
	}
	flush()
	if n := testing.AllocsPerRun(100, flush); n != 2 {
		t.Fatalf("Flush of one side: %v allocations, want the view and the side", n)
	}
}
