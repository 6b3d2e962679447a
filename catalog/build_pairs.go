package catalog

import (
	"time"

	"blockdesk/engine"
	"blockdesk/engine/rfq"
	"blockdesk/feed/archive"
	"blockdesk/market"
	"blockdesk/mirror"
)

// oneDollar is a dollar as a price.
const oneDollar = market.USDPrice(1_000_000_000)

func (b *builder) pairs() []Pair {
	b.all = make([]Pair, len(b.Instruments))
	views := make([]*engine.View, len(b.all))
	for i := range b.all {
		in := &b.Instruments[i]
		if views[i] = b.Views.View(in.ID); views[i] == nil {
			views[i] = &engine.View{Instrument: in.ID, Status: engine.StatusTrading}
		}
		b.all[i] = pairOf(in, views[i])
		b.all[i].Candle = b.candle(in)
	}
	// A pair may be priced in the base token of another one, which need not come
	// before it.
	for b.priceByMarkets(views) || b.priceByDesk() {
	}
	for i := range b.all {
		b.inDollars(&b.all[i], &b.Instruments[i], views[i])
	}
	return b.all
}

// pairOf returns what the view contains.
func pairOf(in *market.Instrument, v *engine.View) Pair {
	t := &v.Ticker
	p := Pair{
		Symbol: in.Symbol, Base: in.Base, Quote: in.Quote, Source: in.Source, Halted: v.Status == engine.StatusHalted,
		PriceDecimals: in.PriceDecimals, QtyDecimals: in.QtyDecimals,
		Tick: priceText(in, 1), Lot: qtyText(in, 1), MinQty: qtyText(in, in.MinQty),
		Last: knownPrice(in, t.Last), High24h: knownPrice(in, t.High24h), Low24h: knownPrice(in, t.Low24h),
		LastAt: Time(t.LastAt), BaseVolume24h: qtyText(in, t.Volume24h), QuoteVolume24h: quoteText(in, t.QuoteVolume24h),
		Trades24h: t.Trades24h, Epoch: Epoch(v.Epoch), Seq: v.TickerSeq, PriceSource: NoPrice,
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
	p.Windows.Day = Window{Status: WindowNoTrades}
	if t.Trades24h > 0 {
		p.Windows.Day = Window{Status: WindowUnproven, Trades: t.Trades24h, DeltaPercent: change(t.Open24h, t.Last)}
	}
	p.Windows.Week = Window{Status: WindowUnproven}
	return p
}

// change is the change of a price in hundredths of a percent, rounded towards
// zero; nil where there is none to compare with.
func change(from, to market.Price) *Percent {
	const whole = 10_000
	if from <= 0 || to <= 0 {
		return nil
	}
	n, err := market.MulDivFloor(uint64(max(from, to)-min(from, to)), whole, uint64(from))
	if err != nil || n > 1<<62 {
		return nil
	}
	p := Percent(n)
	if to < from {
		p = -p
	}
	return &p
}

func priceText(in *market.Instrument, p market.Price) Decimal {
	return Decimal{Units: market.Mul(uint64(p), in.Tick), Decimals: int(in.PriceDecimals)}
}

func knownPrice(in *market.Instrument, p market.Price) *Decimal {
	if p == 0 {
		return nil
	}
	text := priceText(in, p)
	return &text
}

func qtyText(in *market.Instrument, q market.Qty) Decimal {
	return Decimal{Units: market.Mul(uint64(q), in.Lot), Decimals: int(in.QtyDecimals)}
}

// quoteText is an amount of the quote asset, exact.
func quoteText(in *market.Instrument, n market.Uint128) Decimal {
	text := in.AppendTickLots(nil, n)
	units, err := market.ParseUint128(text, in.NotionalDecimals())
	if err != nil { // it was printed from such a number
		return Decimal{}
	}
	return Decimal{Units: units, Decimals: in.NotionalDecimals()}
}

// candle is the newest hour with a trade; nil where there is none, or where the
// history cannot be read, which its readiness check reports.
func (b *builder) candle(in *market.Instrument) *Candle {
	candles, err := b.History.Candles(in.ID, archive.Hour1, 0, 1)
	if err != nil || len(candles) == 0 {
		return nil
	}
	c := &candles[0]
	return &Candle{
		Open: Time(c.OpenAt), O: priceText(in, c.Open), H: priceText(in, c.High), L: priceText(in, c.Low), C: priceText(in, c.Close),
		BaseVolume: qtyText(in, c.Volume), QuoteVolume: quoteText(in, c.Quote), Trades: c.Trades,
	}
}

// priceByMarkets prices the pairs without a price by their markets. It reports
// whether it priced any.
func (b *builder) priceByMarkets(views []*engine.View) (some bool) {
	for i := range b.all {
		if p := &b.all[i]; p.PriceUSD == 0 && !p.Halted {
			p.PriceUSD, p.PriceSource = b.marketPrice(&b.Instruments[i], views[i])
			some = some || p.PriceUSD != 0
		}
	}
	return some
}

// marketPrice is the middle of a pair's book, else the price of its pool's vaults.
// A book and a pool on chain count while their reading is current.
func (b *builder) marketPrice(in *market.Instrument, v *engine.View) (market.USDPrice, PriceSource) {
	quote := b.dollars(in.Quote)
	source, live := FromBook, true
	chain := &mirroredPair{}
	if in.Source == market.Mirrored {
		chain = b.mirroredPair(in.Symbol)
		source, live = FromChainBook, chain.hasBook()
	}
	if live && len(v.Bids) > 0 && len(v.Asks) > 0 {
		mid := in.MidPrice(v.Bids[0].Price, v.Asks[0].Price)
		n, err := market.MulDivCeil(uint64(mid), uint64(quote), uint64(oneDollar))
		if err == nil && n > 0 && n <= uint64(market.MaxUSDPrice) {
			return market.USDPrice(n), source
		}
	}
	if price := chain.spot(quote); price != 0 {
		return price, FromVaultSnapshot
	}
	return 0, NoPrice
}

// priceByDesk prices one pair that has no market by the desk's anchor. It prefers a
// pair whose quote asset has a price, because the markets of the others may only
// wait for that price. It reports whether it priced one.
func (b *builder) priceByDesk() bool {
	waiting := -1
	for i := range b.all {
		if b.all[i].PriceUSD != 0 || b.anchor(&b.Instruments[i]) == 0 {
			continue
		}
		if b.dollars(b.Instruments[i].Quote) != 0 {
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
	b.all[waiting].PriceUSD, b.all[waiting].PriceSource = b.anchor(&b.Instruments[waiting]), FromOperator
	return true
}

// anchor is the operator's price of a pair; 0 if there is none or it is too old.
func (b *builder) anchor(in *market.Instrument) market.USDPrice {
	if b.Desk == nil {
		return 0
	}
	pair := b.Desk.Pair(in.ID)
	if pair == nil || pair.Source != rfq.SourceOperator || pair.MaxAge != 0 && int64(b.At)-pair.AnchorAt > pair.MaxAge {
		return 0
	}
	return pair.Anchor
}

// dollars is the price of an asset: a dollar for USDC, else that of the first
// pair that sells it and has a price; 0 = none.
func (b *builder) dollars(symbol string) market.USDPrice {
	if symbol == settlementSymbol {
		return oneDollar
	}
	for i := range b.all {
		if b.all[i].Base == symbol && b.all[i].PriceUSD != 0 {
			return b.all[i].PriceUSD
		}
	}
	return 0
}

// inDollars fills in what needs the price of the quote asset. Everything is at
// its present price, rounded down.
func (b *builder) inDollars(p *Pair, in *market.Instrument, v *engine.View) {
	p.Floor = b.floor(in)
	quote := b.dollars(in.Quote)
	if in.Source == market.Mirrored {
		k := b.mirroredPair(in.Symbol)
		k.describe(p, quote)
		p.LastSignature = b.Mirror.signature(v)
		if k.hasBook() {
			p.VisibleUSD = visible(in, v, quote)
		} else { // documents take these for current offers; depth has its slot and time
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
		day.Status, day.VolumeUSD = WindowExact, volume
	}
	p.Windows.Week, p.Totals = b.week(in, quote), b.matched(in, quote)
}

// visible is the value of the displayed book; 0 if it does not fit.
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

// matched are the totals of a pair with a book of our own, at the present price
// of the quote asset, rounded down. They cover the last archive.MaxCandles days with
// a trade, which is all that one read of the history returns. Where the history
// cannot be read they are zero; its readiness check reports that.
func (b *builder) matched(in *market.Instrument, quote market.USDPrice) (t Totals) {
	days, err := b.History.Candles(in.ID, archive.Day1, 0, archive.MaxCandles)
	if err != nil {
		return t
	}
	trades, sum := uint64(0), market.Uint128{}
	for i := range days {
		if sum, err = sum.Add(days[i].Quote); err != nil {
			return t
		}
		trades += days[i].Trades
	}
	volume, ok := worthUSD(in, sum, quote)
	if !ok {
		return t
	}
	t.MatchedTrades, t.MatchedUSD = trades, volume
	return t
}

// worthUSD turns price × qty, in ticks × lots, into dollars.
func worthUSD(in *market.Instrument, n market.Uint128, quote market.USDPrice) (market.USD, bool) {
	text := quoteText(in, n)
	return usdFloor(text.Units, text.Decimals, quote)
}

// week sums up our own trades of the last seven days, by the minute as those of
// the last day: the minutes that began within them, and then the hours. It is not
// proven where trades of that time were lost with their store.
func (b *builder) week(in *market.Instrument, quote market.USDPrice) Window {
	const hour = int64(time.Hour)
	from := int64(b.At) - int64(mirror.Week)
	whole := from + hour - 1
	whole -= whole % hour // the first whole hour begins then
	if from < b.History.CompleteSince() {
		return Window{Status: WindowUnproven, Why: mirror.Partial.Word("7d")}
	}
	w, sum := Window{Status: WindowUnproven}, market.Uint128{}
	for _, part := range [...]struct {
		interval     archive.Interval
		from, before int64
		most         int
	}{{archive.Minute1, from, whole, 60}, {archive.Hour1, whole, 0, 7 * 24}} {
		candles, err := b.History.Candles(in.ID, part.interval, part.before, part.most)
		if err != nil {
			return Window{Status: WindowUnproven}
		}
		for i := range candles {
			if candles[i].OpenAt < part.from {
				continue
			}
			if sum, err = sum.Add(candles[i].Quote); err != nil {
				return Window{Status: WindowUnproven}
			}
			w.Trades += candles[i].Trades
		}
	}
	volume, ok := worthUSD(in, sum, quote)
	switch {
	case !ok:
		w.Trades = 0
	case w.Trades == 0:
		w.Status = WindowNoTrades
	default:
		w.Status, w.VolumeUSD = WindowExact, volume
	}
	return w
}

// floor is the lowest price that the desk may sell at: the corridor's end less
// the largest discount. 0 = it has no anchor, or does not sell the pair.
func (b *builder) floor(in *market.Instrument) market.USDPrice {
	if b.Desk == nil {
		return 0
	}
	pair := b.Desk.Pair(in.ID)
	if pair == nil {
		return 0
	}
	lowest, _ := rfq.Corridor(pair)
	if lowest == 0 {
		return 0
	}
	return b.Desk.Policy.Price(lowest, market.FillCount)
}
