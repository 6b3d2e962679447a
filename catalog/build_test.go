package catalog

import (
	"testing"
	"time"

	"blockdesk/engine"
	"blockdesk/engine/marketdata"
	"blockdesk/engine/rfq"
	"blockdesk/feed/archive"
	"blockdesk/market"
)

// factsScene is a made-up market. 92C/SLUSD comes first, so that its price depends on a
// later pair.
type factsScene struct {
	instruments []market.Instrument
	views       [2]*marketdata.View
	trade       marketdata.Trade                      // of instrument 0, 24 h ago; none without an ID
	candles     map[archive.Interval][]archive.Candle // of instrument 0, oldest first
	at          int64
	unbroken    int64
	traders     uint64 // of instrument 0
	mirror      Mirror
}

func (s *factsScene) View(in market.InstrumentID) *marketdata.View { return s.views[in] }
func (s *factsScene) CompleteSince() int64                         { return s.unbroken }

// Definition knows instrument 1's.
func (s *factsScene) Definition(in market.InstrumentID) (archive.Definition, bool) {
	if in != 1 {
		return archive.Definition{}, false
	}
	return archive.Definition{Seq: 7, At: factsNow - int64(time.Hour)}, true
}

func (s *factsScene) Traders(in market.InstrumentID) uint64 {
	if in != 0 {
		return 0
	}
	return s.traders
}

func (s *factsScene) TradeBefore(in market.InstrumentID, at int64) (marketdata.Trade, bool, error) {
	return s.trade, in == 0 && s.trade.ID != 0 && s.trade.At < at, nil
}

func (s *factsScene) Candles(in market.InstrumentID, i archive.Interval, before int64, limit int) (out []archive.Candle, _ error) {
	for _, c := range s.candles[i] {
		if in == 0 && (before == 0 || c.OpenAt < before) {
			out = append(out, c)
		}
	}
	return out[max(0, len(out)-limit):], nil
}

var factsNow = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC).UnixNano()

// sceneInstrument has six decimals and the smallest units.
func sceneInstrument(id market.InstrumentID, base, quote string, source market.BookSource) market.Instrument {
	return market.Instrument{
		ID: id, Symbol: base + "/" + quote, Base: base, Quote: quote, PriceDecimals: 6, QtyDecimals: 6, Tick: 1, Lot: 1,
		MinQty: 10_000, MaxQty: 100_000_000_000_000, MaxPrice: 1_000_000_000_000, Source: source,
	}
}

func newFactsScene() *factsScene {
	return &factsScene{at: factsNow, instruments: []market.Instrument{
		sceneInstrument(0, "92C", "SLUSD", market.Matched), sceneInstrument(1, "SLUSD", "USDC", market.Matched),
	}}
}

// quoted returns a view with one level a side, of one base unit each.
func quoted(in market.InstrumentID, bid, ask market.Price) *marketdata.View {
	const unit = 1_000_000
	return &marketdata.View{
		Instrument: in, Status: engine.StatusTrading, Epoch: 3, TickerSeq: 9,
		Bids: []market.Level{{Price: bid, Qty: unit}}, Asks: []market.Level{{Price: ask, Qty: unit}},
	}
}

func (s *factsScene) input(desk *rfq.View) *Input {
	return &Input{At: Time(s.at), Instruments: s.instruments, Views: s, History: s, Mirror: s.mirror, DeskEnabled: desk != nil, Desk: desk}
}

func (s *factsScene) pairs(desk *rfq.View) []Pair {
	return NewFacts(s.input(desk)).Pairs
}

// TestPairPrices: a book prices its pair, in dollars by the pair that sells its quote
// asset, in any order; else the desk's anchor prices it while it is fresh; else nothing.
func TestPairPrices(t *testing.T) {
	s := newFactsScene()
	anchored := func(at int64) *rfq.View {
		return &rfq.View{Pairs: []rfq.Pair{
			{Instrument: 1, Source: rfq.SourceOperator, CorridorBps: 1000, MaxAge: int64(time.Hour), Anchor: 2_000_000_000, AnchorAt: at},
		}}
	}
	both := anchored(factsNow)
	both.Pairs = append(both.Pairs, both.Pairs[0])
	both.Pairs[0].Instrument, both.Pairs[0].Anchor = 0, 3_000_000_000
	type price struct {
		usd  market.USDPrice
		from PriceSource
	}
	halted := quoted(1, 998_000, 1_000_000)
	halted.Status = engine.StatusHalted
	oneSided := quoted(1, 998_000, 1_000_000)
	oneSided.Asks = nil
	for name, c := range map[string]struct {
		first, second *marketdata.View
		desk          *rfq.View
		want          [2]price
	}{
		"nothing":  {nil, nil, nil, [2]price{{0, NoPrice}, {0, NoPrice}}},
		"books":    {quoted(0, 499_999, 500_000), quoted(1, 998_000, 1_000_000), nil, [2]price{{499_499_501, FromBook}, {999_000_000, FromBook}}},
		"no quote": {quoted(0, 499_999, 500_000), nil, nil, [2]price{{0, NoPrice}, {0, NoPrice}}},
		"anchor":   {quoted(0, 500_000, 500_000), oneSided, anchored(factsNow), [2]price{{1_000_000_000, FromBook}, {2_000_000_000, FromOperator}}},
		"anchors":  {quoted(0, 500_000, 500_000), nil, both, [2]price{{1_000_000_000, FromBook}, {2_000_000_000, FromOperator}}},
		"no books": {nil, nil, both, [2]price{{3_000_000_000, FromOperator}, {2_000_000_000, FromOperator}}},
		"halted":   {nil, halted, anchored(factsNow), [2]price{{0, NoPrice}, {2_000_000_000, FromOperator}}},
		"stale":    {nil, halted, anchored(factsNow - int64(2*time.Hour)), [2]price{{0, NoPrice}, {0, NoPrice}}},
	} {
		s.views = [2]*marketdata.View{c.first, c.second}
		for i, p := range s.pairs(c.desk) {
			if known := p.Defined != nil && *p.Defined == (archive.Definition{Seq: 7, At: factsNow - int64(time.Hour)}); known != (i == 1) {
				t.Errorf("%s: %s was defined at %+v", name, p.Symbol, p.Defined)
			}
			if got := (price{p.PriceUSD, p.PriceSource}); got != c.want[i] {
				t.Errorf("%s: %s is priced %+v, want %+v", name, p.Symbol, got, c.want[i])
			}
		}
	}
	s.views = [2]*marketdata.View{}
	if got := s.pairs(anchored(factsNow))[1].Floor; got != 1_800_000_000 {
		t.Errorf("the floor is %d, want the corridor's end", got)
	}
}

// TestPairFigures: volumes are those of real trades, at the quote asset's present price;
// unproven ones are zero with their status.
func TestPairFigures(t *testing.T) {
	s := newFactsScene()
	v := quoted(0, 499_999, 500_001)
	v.Ticker = marketdata.Ticker{
		Last: 500_000, LastQty: 2_000_000, LastAt: factsNow, Open24h: 400_000, High24h: 600_000, Low24h: 400_000,
		Volume24h: 3_000_000, QuoteVolume24h: market.Mul(3_000_000, 500_000), Trades24h: 2,
	}
	v.Trades = []marketdata.Trade{{ID: 7, Side: market.Sell}}
	s.views = [2]*marketdata.View{v, nil}
	hour := int64(time.Hour)
	candle := func(ago int64) archive.Candle {
		return archive.Candle{OpenAt: factsNow - ago*hour, Open: 1, High: 1, Low: 1, Close: 1, Volume: 1, Quote: market.Mul(1_000_000, 1_000_000), Trades: 1}
	}
	s.trade = marketdata.Trade{ID: 3, Price: 400_000, At: factsNow - 25*hour}
	s.candles = map[archive.Interval][]archive.Candle{archive.Hour1: {candle(169), candle(168), candle(1)}}

	p := s.pairs(nil)[0]
	if p.Windows.Day.Status != WindowUnproven || p.Windows.Day.VolumeUSD != 0 || p.VisibleUSD != 0 {
		t.Errorf("without the quote asset's price: %+v", p)
	}
	s.views[1] = quoted(1, 2_000_000, 2_000_000) // SLUSD is two dollars
	p = s.pairs(nil)[0]
	day, week := p.Windows.Day, p.Windows.Week
	if day.Status != WindowExact || day.VolumeUSD != 3_000_000 || day.Trades != 2 || *day.DeltaPercent != 2500 || day.ReferenceAt != Time(s.trade.At) {
		t.Errorf("24 h: %+v", day)
	}
	if week.Status != WindowExact || week.VolumeUSD != 4_000_000 || week.Trades != 2 {
		t.Errorf("7 d: %+v", week)
	}
	if p.VisibleUSD != 2_000_000 || p.LastTrade != 7 || p.Side != market.Sell || p.LastSignature != "" || p.Candle == nil ||
		p.Last.String() != "0.500000" || p.QuoteVolume24h.String() != "1.500000000000" || p.Epoch != 3 {
		t.Errorf("the pair is %+v", p)
	}
	s.views[0].Ticker, s.candles = marketdata.Ticker{}, nil
	p = s.pairs(nil)[0]
	if p.Windows.Day.Status != WindowNoTrades || p.Windows.Week.Status != WindowNoTrades || p.Last != nil {
		t.Errorf("without trades: %+v", p)
	}
}

// TestWeekByTheMinute: the week's first hour counts from its first whole minute, all other
// hours count entirely.
func TestWeekByTheMinute(t *testing.T) {
	s := newFactsScene()
	s.views[1] = quoted(1, 1_000_000, 1_000_000)
	const week = int64(7 * 24 * time.Hour)
	candle := func(at int64, dollars uint64) archive.Candle {
		return archive.Candle{OpenAt: at, Quote: market.Mul(1_000_000, dollars*1_000_000), Trades: 1}
	}
	begin := factsNow - week
	s.candles = map[archive.Interval][]archive.Candle{
		archive.Minute1: {
			candle(begin, 1), candle(begin+int64(29*time.Minute), 2), candle(begin+int64(30*time.Minute), 4),
			candle(begin+int64(59*time.Minute), 8), candle(begin+int64(time.Hour), 16),
		},
		archive.Hour1: {candle(begin, 15), candle(begin+int64(time.Hour), 16), candle(factsNow, 32)},
	}
	for late, want := range map[time.Duration]market.USD{
		0: 15 + 16 + 32, 1: 2 + 4 + 8 + 16 + 32, 30 * time.Minute: 4 + 8 + 16 + 32, 30*time.Minute + 1: 8 + 16 + 32,
		time.Hour - 1: 16 + 32, time.Hour: 16 + 32,
	} {
		s.at = factsNow + int64(late)
		if got := s.pairs(nil)[0].Windows.Week; got.VolumeUSD != want*1_000_000 || got.Status != WindowExact {
			t.Errorf("%v past the hour: %+v, want %d dollars", late, got, want)
		}
	}
	for unbroken, want := range map[int64]WindowStatus{s.at - week: WindowExact, s.at - week + 1: WindowUnproven} {
		s.unbroken = unbroken
		if got := s.pairs(nil)[0].Windows.Week; got.Status != want || (got.VolumeUSD == 0) != (want == WindowUnproven) {
			t.Errorf("after a hole: %+v, want status %d", got, want)
		}
	}
}

// TestFactsCycle: facts are valid for a cycle, and no reader waits for the next ones
// while another computes them.
func TestFactsCycle(t *testing.T) {
	begin := time.Unix(0, factsNow)
	now := begin
	c := NewCache(nil, func() time.Time { return now })
	f := &Facts{}
	c.current.Store(&cycleFacts{begin, f})
	now = begin.Add(Cycle - 1)
	if c.Facts() != f {
		t.Error("other facts within the cycle")
	}
	c.computing.Lock()
	defer c.computing.Unlock()
	now = begin.Add(Cycle)
	if c.Facts() != f {
		t.Error("not the last facts while others are made")
	}
}

func TestChange(t *testing.T) {
	for _, c := range []struct {
		from, to market.Price
		want     Percent
	}{{100, 100, 0}, {100, 125, 2500}, {100, 75, -2500}, {3, 1, -6666}, {3, 4, 3333}, {1, 1 << 40, (1<<40 - 1) * 10_000}} {
		if got := change(c.from, c.to); got == nil || *got != c.want {
			t.Errorf("from %d to %d is %v, want %d", c.from, c.to, got, c.want)
		}
	}
	if change(0, 1) != nil || change(1, 0) != nil {
		t.Error("a change from or to nothing")
	}
}

// TestMatchedTotals: the trades of all days count, those of a window among them, at the
// quote asset's present price; without a price the totals are zero.
func TestMatchedTotals(t *testing.T) {
	s := newFactsScene()
	day := func(ago int, dollars uint64) archive.Candle {
		return archive.Candle{
			OpenAt: factsNow - int64(ago)*int64(24*time.Hour), Quote: market.Mul(1_000_000, dollars*1_000_000), Trades: dollars,
		}
	}
	s.candles = map[archive.Interval][]archive.Candle{archive.Day1: {day(400, 3), day(9, 2), day(0, 1)}}
	if got := s.pairs(nil)[0].Totals; got != (Totals{}) {
		t.Errorf("without the quote asset's price: %+v", got)
	}
	s.views[1] = quoted(1, 2_000_000, 2_000_000) // SLUSD is two dollars
	s.traders = 7
	if got := s.pairs(nil)[0].Totals; got.MatchedTrades != 6 || got.MatchedUSD != 12_000_000 || got.OnchainSwaps != 0 ||
		got.Traders != 7 || got.TradersFrom != tradersOfBook {
		t.Errorf("six SLUSD in six trades: %+v", got)
	}
	if got := s.pairs(nil)[1].Totals; got.MatchedTrades != 0 || got.MatchedUSD != 0 {
		t.Errorf("a pair without trades: %+v", got)
	}
}
