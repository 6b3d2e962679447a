package main

import (
	"time"

	"blockdesk/catalog"
	"blockdesk/engine"
	"blockdesk/engine/rfq"
	"blockdesk/feed/archive"
	"blockdesk/httpgw"
	"blockdesk/market"
	"blockdesk/mirror"
	"blockdesk/service/config"
)

// pairFacts tells the pairs of one cycle.
type pairFacts struct {
	instruments []market.Instrument
	views       httpgw.Views
	history     tradeHistory
	chain       *mirrorFacts
	desk        *rfq.View // nil: there is none
	at          int64     // Unix nanoseconds
	all         []catalog.Pair
}

// tradeHistory is what outlives the views: *archive.Archive.
type tradeHistory interface {
	httpgw.History
	// Unbroken is since when no trade is missing, Unix nanoseconds.
	Unbroken() int64
}

// oneDollar is a dollar as a price.
const oneDollar = market.USDPrice(1_000_000_000)

// tell fills in the pairs and, where one is mirrored, what the chain tells beside.
func (m *pairFacts) tell(f *catalog.Facts) {
	f.Pairs = m.pairs()
	if m.chain.state == nil {
		return
	}
	canonical := &m.instruments[0]
	f.Chain = m.chain.chain(canonical.Symbol, canonical.Source == market.Mirrored)
	f.Snapshots = m.chain.snapshots(canonical.Symbol, m.dollars(canonical.Quote), f.Service.FeeBps)
	m.chain.tellTokens(f.Tokens)
}

func (m *pairFacts) pairs() []catalog.Pair {
	m.all = make([]catalog.Pair, len(m.instruments))
	views := make([]*engine.View, len(m.all))
	for i := range m.all {
		in := &m.instruments[i]
		if views[i] = m.views.View(in.ID); views[i] == nil {
			views[i] = &engine.View{Instrument: in.ID, Status: engine.StatusTrading}
		}
		m.all[i] = pairOf(in, views[i])
		m.all[i].Candle = m.candle(in)
	}
	// A pair may be priced in the base token of another one, which need not come
	// before it.
	for m.priceByMarkets(views) || m.priceByDesk() {
	}
	for i := range m.all {
		m.inDollars(&m.all[i], &m.instruments[i], views[i])
	}
	return m.all
}

// pairOf is what a view tells.
func pairOf(in *market.Instrument, v *engine.View) catalog.Pair {
	t := &v.Ticker
	p := catalog.Pair{
		Symbol: in.Symbol, Base: in.Base, Quote: in.Quote, Source: in.Source, Halted: v.Status == engine.StatusHalted,
		PriceDecimals: in.PriceDecimals, QtyDecimals: in.QtyDecimals,
		Tick: priceText(in, 1), Lot: qtyText(in, 1), MinQty: qtyText(in, in.MinQty),
		Last: knownPrice(in, t.Last), High24h: knownPrice(in, t.High24h), Low24h: knownPrice(in, t.Low24h),
		LastAt: catalog.Time(t.LastAt), BaseVolume24h: qtyText(in, t.Volume24h), QuoteVolume24h: quoteText(in, t.QuoteVolume24h),
		Trades24h: t.Trades24h, Epoch: catalog.Epoch(v.Epoch), Seq: v.TickerSeq, PriceSource: catalog.NoPrice,
	}
	if t.Last != 0 {
		qty := qtyText(in, t.LastQty)
		p.LastQty = &qty
	}
	if len(v.Bids) > 0 {
		p.Bid = knownPrice(in, v.Bids[0].Price)
	}
	if len(v.Asks) > 0 {
		p.Ask = knownPrice(in, v.Asks[0].Price)
	}
	if len(v.Trades) > 0 {
		p.LastTrade, p.Side = v.Trades[0].ID, v.Trades[0].Side
	}
	p.Windows.LastAt = p.LastAt
	p.Windows.Day = catalog.Window{Status: catalog.WindowNoTrades}
	if t.Trades24h > 0 {
		p.Windows.Day = catalog.Window{Status: catalog.WindowUnproven, Trades: t.Trades24h, DeltaPercent: change(t.Open24h, t.Last)}
	}
	p.Windows.Week = catalog.Window{Status: catalog.WindowUnproven}
	return p
}

// change is the change of a price in hundredths of a percent, rounded towards
// zero; nil where there is none to count from.
func change(from, to market.Price) *catalog.Percent {
	const whole = 10_000
	if from <= 0 || to <= 0 {
		return nil
	}
	n, err := market.MulDivFloor(uint64(max(from, to)-min(from, to)), whole, uint64(from))
	if err != nil || n > 1<<62 {
		return nil
	}
	p := catalog.Percent(n)
	if to < from {
		p = -p
	}
	return &p
}

func priceText(in *market.Instrument, p market.Price) catalog.Decimal {
	return catalog.Decimal{Units: market.Mul(uint64(p), in.Tick), Decimals: int(in.PriceDecimals)}
}

func knownPrice(in *market.Instrument, p market.Price) *catalog.Decimal {
	if p == 0 {
		return nil
	}
	text := priceText(in, p)
	return &text
}

func qtyText(in *market.Instrument, q market.Qty) catalog.Decimal {
	return catalog.Decimal{Units: market.Mul(uint64(q), in.Lot), Decimals: int(in.QtyDecimals)}
}

// quoteText is an amount of the quote asset, exact.
func quoteText(in *market.Instrument, n market.Uint128) catalog.Decimal {
	text := in.AppendTickLots(nil, n)
	units, err := market.ParseUint128(text, in.NotionalDecimals())
	if err != nil { // it was printed from such a number
		return catalog.Decimal{}
	}
	return catalog.Decimal{Units: units, Decimals: in.NotionalDecimals()}
}

// candle is the newest hour with a trade; nil where there is none, or where the
// history cannot be read: that is its readiness's to say.
func (m *pairFacts) candle(in *market.Instrument) *catalog.Candle {
	candles, err := m.history.Candles(in.ID, archive.Hour1, 0, 1)
	if err != nil || len(candles) == 0 {
		return nil
	}
	c := &candles[0]
	return &catalog.Candle{
		Open: catalog.Time(c.OpenAt), O: priceText(in, c.Open), H: priceText(in, c.High), L: priceText(in, c.Low), C: priceText(in, c.Close),
		BaseVolume: qtyText(in, c.Volume), QuoteVolume: quoteText(in, c.Quote), Trades: c.Trades,
	}
}

// priceByMarkets prices what has no price yet by its market. It reports whether it
// could any.
func (m *pairFacts) priceByMarkets(views []*engine.View) (some bool) {
	for i := range m.all {
		if p := &m.all[i]; p.PriceUSD == 0 && !p.Halted {
			p.PriceUSD, p.PriceSource = m.marketPrice(&m.instruments[i], views[i])
			some = some || p.PriceUSD != 0
		}
	}
	return some
}

// marketPrice is the middle of a pair's book, else what its pool's vaults make. A
// book and a pool on chain count while what was read of them is of now.
func (m *pairFacts) marketPrice(in *market.Instrument, v *engine.View) (market.USDPrice, catalog.PriceSource) {
	quote := m.dollars(in.Quote)
	source, live := catalog.FromBook, true
	var chain mirroredPair
	if in.Source == market.Mirrored {
		chain = m.chain.pair(in.Symbol)
		source, live = catalog.FromChainBook, chain.hasBook()
	}
	if live && len(v.Bids) > 0 && len(v.Asks) > 0 {
		mid := httpgw.MidPrice(in, v.Bids[0].Price, v.Asks[0].Price)
		n, err := market.MulDivCeil(uint64(mid), uint64(quote), uint64(oneDollar))
		if err == nil && n > 0 && n <= uint64(market.MaxUSDPrice) {
			return market.USDPrice(n), source
		}
	}
	if price := chain.spot(quote); price != 0 {
		return price, catalog.FromVaultSnapshot
	}
	return 0, catalog.NoPrice
}

// priceByDesk prices one pair that has no market by the desk's anchor: rather one
// whose quote asset has a price, since the others' markets may only wait for that
// price. It reports whether it could.
func (m *pairFacts) priceByDesk() bool {
	waiting := -1
	for i := range m.all {
		if m.all[i].PriceUSD != 0 || m.anchor(&m.instruments[i]) == 0 {
			continue
		}
		if m.dollars(m.instruments[i].Quote) != 0 {
			waiting = i
			break
		}
		if waiting < 0 {
			waiting = i
		}
	}
	if waiting < 0 {
		return false
	}
	m.all[waiting].PriceUSD, m.all[waiting].PriceSource = m.anchor(&m.instruments[waiting]), catalog.FromOperator
	return true
}

// anchor is the operator's price of a pair; 0 where there is none, or it is too
// old.
func (m *pairFacts) anchor(in *market.Instrument) market.USDPrice {
	if m.desk == nil {
		return 0
	}
	pair := m.desk.Pair(in.ID)
	if pair == nil || pair.Source != rfq.SourceOperator || pair.MaxAge != 0 && m.at-pair.AnchorAt > pair.MaxAge {
		return 0
	}
	return pair.Anchor
}

// dollars is the price of an asset: a dollar for USDC, else that of the first
// pair that sells it and has a price; 0 = none.
func (m *pairFacts) dollars(symbol string) market.USDPrice {
	if symbol == config.SettlementToken {
		return oneDollar
	}
	for i := range m.all {
		if m.all[i].Base == symbol && m.all[i].PriceUSD != 0 {
			return m.all[i].PriceUSD
		}
	}
	return 0
}

// inDollars fills in what needs the price of the quote asset. Everything is at
// its present price, rounded down.
func (m *pairFacts) inDollars(p *catalog.Pair, in *market.Instrument, v *engine.View) {
	p.Floor = m.floor(in)
	quote := m.dollars(in.Quote)
	if in.Source == market.Mirrored {
		k := m.chain.pair(in.Symbol)
		m.chain.tell(p, &k, v, quote)
		if k.hasBook() {
			p.VisibleUSD = visible(in, v, quote)
		} else { // documents take these for offers of now; depth tells its slot and time
			p.Bid, p.Ask = nil, nil
		}
		return
	}
	if quote == 0 {
		return
	}
	p.VisibleUSD = visible(in, v, quote)
	day := &p.Windows.Day
	if volume, ok := worthUSD(in, v.Ticker.QuoteVolume24h, quote); ok && day.Trades > 0 {
		day.Status, day.VolumeUSD = catalog.WindowExact, volume
	}
	p.Windows.Week, p.Totals = m.week(in, quote), m.matched(in, quote)
}

// visible is what stands in the displayed book; 0 beyond any number that could be
// told.
func visible(in *market.Instrument, v *engine.View, quote market.USDPrice) market.USD {
	sum := market.Uint128{}
	for _, side := range [][]market.Level{v.Bids, v.Asks} {
		for _, l := range side {
			next, err := sum.Add(market.Mul(uint64(l.Price), uint64(l.Qty)))
			if err != nil {
				return 0
			}
			sum = next
		}
	}
	usd, _ := worthUSD(in, sum, quote)
	return usd
}

// worthUSD turns price × qty, in ticks × lots, into dollars.
func worthUSD(in *market.Instrument, n market.Uint128, quote market.USDPrice) (market.USD, bool) {
	text := quoteText(in, n)
	return usdFloor(text.Units, text.Decimals, quote)
}

// week sums up our own trades of the last seven days, by the minute as those of
// the last day: the minutes that began within them, and then the hours. It is not
// proven where trades of that time were lost with their store.
func (m *pairFacts) week(in *market.Instrument, quote market.USDPrice) catalog.Window {
	const hour = int64(time.Hour)
	from := m.at - int64(mirror.Week)
	whole := from + hour - 1
	whole -= whole % hour // the first whole hour begins then
	if from < m.history.Unbroken() {
		return catalog.Window{Status: catalog.WindowUnproven, Why: mirror.Partial.Word("7d")}
	}
	w, sum := catalog.Window{Status: catalog.WindowUnproven}, market.Uint128{}
	for _, part := range [...]struct {
		interval     archive.Interval
		from, before int64
		most         int
	}{{archive.Minute1, from, whole, 60}, {archive.Hour1, whole, 0, 7 * 24}} {
		candles, err := m.history.Candles(in.ID, part.interval, part.before, part.most)
		if err != nil {
			return catalog.Window{Status: catalog.WindowUnproven}
		}
		for i := range candles {
			if candles[i].OpenAt < part.from {
				continue
			}
			if sum, err = sum.Add(candles[i].Quote); err != nil {
				return catalog.Window{Status: catalog.WindowUnproven}
			}
			w.Trades += candles[i].Trades
		}
	}
	volume, ok := worthUSD(in, sum, quote)
	switch {
	case !ok:
		w.Trades = 0
	case w.Trades == 0:
		w.Status = catalog.WindowNoTrades
	default:
		w.Status, w.VolumeUSD = catalog.WindowExact, volume
	}
	return w
}

// floor is the lowest price that the desk may sell at: the corridor's end less
// the largest discount. 0 = it has no anchor, or does not sell the pair.
func (m *pairFacts) floor(in *market.Instrument) market.USDPrice {
	if m.desk == nil {
		return 0
	}
	pair := m.desk.Pair(in.ID)
	if pair == nil {
		return 0
	}
	lowest, _ := rfq.Corridor(pair)
	if lowest == 0 {
		return 0
	}
	return m.desk.Policy.Price(lowest, market.FillCount)
}
