package main

import (
	"strings"
	"testing"
	"time"

	"blockdesk/catalog"
	"blockdesk/engine"
	"blockdesk/engine/rfq"
	"blockdesk/feed/archive"
	"blockdesk/market"
	"blockdesk/service/config"
)

// factsScene is a market that a test puts together: 92C/SLUSD comes first, so
// that its price waits for the second pair's.
type factsScene struct {
	instruments []market.Instrument
	views       [2]*engine.View
	candles     map[archive.Interval][]archive.Candle // of instrument 0, oldest first
	at          int64
	unbroken    int64
	chain       mirrorFacts
}

func (s *factsScene) View(in market.InstrumentID) *engine.View { return s.views[in] }
func (s *factsScene) Version() uint64                          { return 0 }
func (s *factsScene) Cursor() uint64                           { return 0 }
func (s *factsScene) Unbroken() int64                          { return s.unbroken }

func (s *factsScene) Trades(market.InstrumentID, market.TradeID, int) ([]engine.Trade, error) {
	return nil, nil
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

func newFactsScene(t *testing.T) *factsScene {
	t.Helper()
	cfg := config.Default()
	cfg.Instruments[0], cfg.Instruments[1] = cfg.Instruments[1], cfg.Instruments[0]
	instruments, err := cfg.MarketInstruments()
	if err != nil {
		t.Fatal(err)
	}
	return &factsScene{instruments: instruments, at: factsNow}
}

// quoted is a view with one level a side, of one base unit each.
func quoted(in market.InstrumentID, bid, ask market.Price) *engine.View {
	const unit = 1_000_000
	return &engine.View{
		Instrument: in, Status: engine.StatusTrading, Epoch: 3, TickerSeq: 9,
		Bids: []market.Level{{Price: bid, Qty: unit}}, Asks: []market.Level{{Price: ask, Qty: unit}},
	}
}

func (s *factsScene) pairs(desk *rfq.View) []catalog.Pair {
	m := &pairFacts{instruments: s.instruments, views: s, history: s, chain: &s.chain, desk: desk, at: s.at}
	return m.pairs()
}

// TestPairPrices: a book prices its pair, in dollars by the pair that sells its
// quote asset, whatever their order; else the desk's anchor does while it is
// fresh; else nothing.
func TestPairPrices(t *testing.T) {
	s := newFactsScene(t)
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
		from catalog.PriceSource
	}
	halted := quoted(1, 998_000, 1_000_000)
	halted.Status = engine.StatusHalted
	oneSided := quoted(1, 998_000, 1_000_000)
	oneSided.Asks = nil
	for name, c := range map[string]struct {
		first, second *engine.View
		desk          *rfq.View
		want          [2]price
	}{
		"nothing":  {nil, nil, nil, [2]price{{0, catalog.NoPrice}, {0, catalog.NoPrice}}},
		"books":    {quoted(0, 499_999, 500_000), quoted(1, 998_000, 1_000_000), nil, [2]price{{499_499_501, catalog.FromBook}, {999_000_000, catalog.FromBook}}},
		"no quote": {quoted(0, 499_999, 500_000), nil, nil, [2]price{{0, catalog.NoPrice}, {0, catalog.NoPrice}}},
		"anchor":   {quoted(0, 500_000, 500_000), oneSided, anchored(factsNow), [2]price{{1_000_000_000, catalog.FromBook}, {2_000_000_000, catalog.FromOperator}}},
		"anchors":  {quoted(0, 500_000, 500_000), nil, both, [2]price{{1_000_000_000, catalog.FromBook}, {2_000_000_000, catalog.FromOperator}}},
		"no books": {nil, nil, both, [2]price{{3_000_000_000, catalog.FromOperator}, {2_000_000_000, catalog.FromOperator}}},
		"halted":   {nil, halted, anchored(factsNow), [2]price{{0, catalog.NoPrice}, {2_000_000_000, catalog.FromOperator}}},
		"stale":    {nil, halted, anchored(factsNow - int64(2*time.Hour)), [2]price{{0, catalog.NoPrice}, {0, catalog.NoPrice}}},
	} {
		s.views = [2]*engine.View{c.first, c.second}
		for i, p := range s.pairs(c.desk) {
			if got := (price{p.PriceUSD, p.PriceSource}); got != c.want[i] {
				t.Errorf("%s: %s is priced %+v, want %+v", name, p.Symbol, got, c.want[i])
			}
		}
	}
	s.views = [2]*engine.View{}
	if got := s.pairs(anchored(factsNow))[1].Floor; got != 1_800_000_000 {
		t.Errorf("the floor is %d, want the corridor's end", got)
	}
}

// TestPairFigures: volumes are of real trades, at the quote asset's present
// price, and zero with their status where nothing proves them.
func TestPairFigures(t *testing.T) {
	s := newFactsScene(t)
	v := quoted(0, 499_999, 500_001)
	v.Ticker = engine.Ticker{
		Last: 500_000, LastQty: 2_000_000, LastAt: factsNow, Open24h: 400_000, High24h: 600_000, Low24h: 400_000,
		Volume24h: 3_000_000, QuoteVolume24h: market.Mul(3_000_000, 500_000), Trades24h: 2,
	}
	v.Trades = []engine.Trade{{ID: 7, Side: market.Sell}}
	s.views = [2]*engine.View{v, nil}
	hour := int64(time.Hour)
	candle := func(ago int64) archive.Candle {
		return archive.Candle{OpenAt: factsNow - ago*hour, Open: 1, High: 1, Low: 1, Close: 1, Volume: 1, Quote: market.Mul(1_000_000, 1_000_000), Trades: 1}
	}
	s.candles = map[archive.Interval][]archive.Candle{archive.Hour1: {candle(169), candle(168), candle(1)}}

	p := s.pairs(nil)[0]
	if p.Windows.Day.Status != catalog.WindowUnproven || p.Windows.Day.VolumeUSD != 0 || p.VisibleUSD != 0 {
		t.Errorf("without the quote asset's price: %+v", p)
	}
	s.views[1] = quoted(1, 2_000_000, 2_000_000) // SLUSD is two dollars
	p = s.pairs(nil)[0]
	day, week := p.Windows.Day, p.Windows.Week
	if day.Status != catalog.WindowExact || day.VolumeUSD != 3_000_000 || day.Trades != 2 || *day.DeltaPercent != 2500 {
		t.Errorf("24 h: %+v", day)
	}
	if week.Status != catalog.WindowExact || week.VolumeUSD != 4_000_000 || week.Trades != 2 {
		t.Errorf("7 d: %+v", week)
	}
	if p.VisibleUSD != 2_000_000 || p.LastTrade != 7 || p.Side != market.Sell || p.LastSignature != "" || p.Candle == nil ||
		p.Last.String() != "0.500000" || p.QuoteVolume24h.String() != "1.500000000000" || p.Epoch != 3 {
		t.Errorf("the pair is %+v", p)
	}
	s.views[0].Ticker, s.candles = engine.Ticker{}, nil
	p = s.pairs(nil)[0]
	if p.Windows.Day.Status != catalog.WindowNoTrades || p.Windows.Week.Status != catalog.WindowNoTrades || p.Last != nil {
		t.Errorf("without trades: %+v", p)
	}
}

// TestWeekByTheMinute: of the hour that the week begins in, the minutes count that
// began within it, and of all others the whole hour.
func TestWeekByTheMinute(t *testing.T) {
	s := newFactsScene(t)
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
		if got := s.pairs(nil)[0].Windows.Week; got.VolumeUSD != want*1_000_000 || got.Status != catalog.WindowExact {
			t.Errorf("%v past the hour: %+v, want %d dollars", late, got, want)
		}
	}
	for unbroken, want := range map[int64]catalog.WindowStatus{s.at - week: catalog.WindowExact, s.at - week + 1: catalog.WindowUnproven} {
		s.unbroken = unbroken
		if got := s.pairs(nil)[0].Windows.Week; got.Status != want || (got.VolumeUSD == 0) != (want == catalog.WindowUnproven) {
			t.Errorf("after a hole: %+v, want status %d", got, want)
		}
	}
}

// TestFactsCycle: facts stand for a cycle, and nobody waits for the next ones
// while another makes them.
func TestFactsCycle(t *testing.T) {
	begin := time.Unix(0, factsNow)
	now := begin
	b := &factsBook{clock: func() time.Time { return now }}
	f := &catalog.Facts{}
	b.kept.Store(&cycleFacts{begin, f})
	now = begin.Add(factsCycle - 1)
	if b.now() != f {
		t.Error("other facts within the cycle")
	}
	b.making.Lock()
	defer b.making.Unlock()
	now = begin.Add(factsCycle)
	if b.now() != f {
		t.Error("not the last facts while others are made")
	}
}

func TestChange(t *testing.T) {
	for _, c := range []struct {
		from, to market.Price
		want     catalog.Percent
	}{{100, 100, 0}, {100, 125, 2500}, {100, 75, -2500}, {3, 1, -6666}, {3, 4, 3333}, {1, 1 << 40, (1<<40 - 1) * 10_000}} {
		if got := change(c.from, c.to); got == nil || *got != c.want {
			t.Errorf("from %d to %d is %v, want %d", c.from, c.to, got, c.want)
		}
	}
	if change(0, 1) != nil || change(1, 0) != nil {
		t.Error("a change from or to nothing")
	}
}

// TestFactsTokens: each token once, with its role; placeholders are no mints, and
// what the configuration says of a token is told.
func TestFactsTokens(t *testing.T) {
	cfg := config.Default()
	cfg.Tokens = []config.Token{{Symbol: "92C", Name: "Ninety-two", OnchainSymbol: "92c", LogoURI: "https://desk.example/l.svg", CoinMarketCapID: 5}}
	cfg.RFQ.Pairs[0].BaseMint = "SLUSDmint1111111111111111111111111111111111"
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	all := ""
	for _, token := range factsTokens(&cfg) {
		all += strings.Join([]string{token.Symbol, token.Name, token.OnchainSymbol, token.Role.String(), token.Mint, token.LogoURI}, ",") + " "
	}
	const want = "SLUSD,SLUSD,,quote,SLUSDmint1111111111111111111111111111111111, USDC,USDC,,settlement,, " +
		"92C,Ninety-two,92c,base,,https://desk.example/l.svg "
	if all != want {
		t.Errorf("the tokens are %s\nwant %s", all, want)
	}
}

// TestTokenSettings: what is wrong is refused with its key.
func TestTokenSettings(t *testing.T) {
	for _, c := range []struct {
		tokens []config.Token
		key    string
	}{
		{[]config.Token{{Symbol: "NONE"}}, "tokens[0].symbol"},
		{[]config.Token{{Symbol: "SLUSD"}, {Symbol: "SLUSD"}}, "tokens[1].symbol"},
		{[]config.Token{{Symbol: "USDC", LogoURI: "logo.svg"}}, "tokens[0].logo_uri"},
		{[]config.Token{{Symbol: "USDC", ImageIPFSURI: "ipfs://" + strings.Repeat("x", config.MaxTokenURI-6)}}, "tokens[0].image_ipfs_uri"},
		{[]config.Token{{Symbol: "USDC", Name: strings.Repeat("x", config.MaxTokenName+1)}}, "tokens[0]"},
		{[]config.Token{{Symbol: "USDC", CoinMarketCapID: -1}}, "tokens[0].coinmarketcap_id"},
	} {
		cfg := config.Default()
		cfg.Tokens = c.tokens
		if err := cfg.Validate(); err == nil || !strings.HasPrefix(err.Error(), c.key) {
			t.Errorf("%+v: %v, want %s", c.tokens, err, c.key)
		}
	}
	cfg := config.Default()
	cfg.Tokens = []config.Token{{
		Symbol: "USDC", Name: strings.Repeat("x", config.MaxTokenName), ImageIPFSURI: "ipfs://" + strings.Repeat("x", config.MaxTokenURI-7),
	}}
	if err := cfg.Validate(); err != nil {
		t.Error(err)
	}
}
