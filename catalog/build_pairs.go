package catalog

import (
	"cmp"
	"time"

	"blockdesk/engine"
	"blockdesk/engine/marketdata"
	"blockdesk/engine/rfq"
	"blockdesk/feed/archive"
	"blockdesk/market"
	"blockdesk/mirror"
)

func (b *builder) pairs() []Pair {
	b.all = make([]Pair, len(b.Instruments))
	views := make([]*marketdata.View, len(b.all))
	for i := range b.all {
		in := &b.Instruments[i]
		if views[i] = b.Views.View(in.ID); views[i] == nil {
			views[i] = &marketdata.View{Instrument: in.ID, Status: engine.StatusTrading}
		}
		b.all[i] = pairOf(in, views[i])
		b.all[i].Candle = b.candle(in)
		if d, ok := b.History.Definition(in.ID); ok {
			b.all[i].Defined = &d
		}
	}
	// The quote token of a pair may be the base token of a later one.
	for b.priceByMarkets(views) || b.priceByDesk() {
	}
	for i := range b.all {
		b.inDollars(&b.all[i], &b.Instruments[i], views[i])
	}
	return b.all
}

// pairOf returns the members that follow from the view.
func pairOf(in *market.Instrument, v *marketdata.View) Pair {
	t := &v.Ticker
	p := Pair{
		Symbol: in.Symbol, Base: in.Base, Quote: in.Quote, Source: in.Source, Halted: v.Halted(),
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
		p.Windows.Day = Window{Status: WindowUnproven, Trades: t.Trades24h}
	}
	p.Windows.Week = Window{Status: WindowUnproven}
	return p
}

// change returns the change of a price in basis points, rounded towards zero; nil if one
// of the prices is missing.
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

// quoteText returns an exact amount of the quote asset.
func quoteText(in *market.Instrument, n market.Uint128) Decimal {
	text := in.AppendTickLots(nil, n)
	units, err := market.ParseUint128(text, in.NotionalDecimals())
	if err != nil { // unreachable: AppendTickLots printed it
		return Decimal{}
	}
	return Decimal{Units: units, Decimals: in.NotionalDecimals()}
}

// candle returns the newest hour with a trade; nil if there is none, or if the history
// cannot be read, which its readiness check reports.
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
func (b *builder) priceByMarkets(views []*marketdata.View) (some bool) {
	for i := range b.all {
		if p := &b.all[i]; p.PriceUSD == 0 && !p.Halted {
			p.PriceUSD, p.PriceSource = b.marketPrice(&b.Instruments[i], views[i])
			some = some || p.PriceUSD != 0
		}
	}
	return some
}

// marketPrice returns the mid price of a pair's book, else the price of its pool's vaults.
// An on-chain book or pool counts only while its reading is current.
func (b *builder) marketPrice(in *market.Instrument, v *marketdata.View) (market.USDPrice, PriceSource) {
	quote := b.dollars(in.Quote)
	source, live := FromBook, true
	chain := &mirroredPair{}
	if in.Source == market.Mirrored {
		chain = b.mirroredPair(in.Symbol)
		source, live = FromChainBook, chain.hasBook()
	}
	if live && len(v.Bids) > 0 && len(v.Asks) > 0 {
		mid, ok := in.MidPrice(v.Bids[0].Price, v.Asks[0].Price)
		n, err := market.MulDivCeil(uint64(mid), uint64(quote), uint64(oneDollar))
		if ok && mid <= market.MaxUSDPrice && err == nil && n > 0 && n <= uint64(market.MaxUSDPrice) {
			return market.USDPrice(n), source
		}
	}
	if price := chain.spot(quote); price != 0 {
		return price, FromVaultSnapshot
	}
	return 0, NoPrice
}

// priceByDesk prices one pair without a market by the desk's anchor and reports whether it
// did. It prefers a pair whose quote asset has a price, because the others may get a
// market price once their quote asset is priced.
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

// anchor returns the operator's price of a pair; 0 if there is none or it is too old.
func (b *builder) anchor(in *market.Instrument) market.USDPrice {
	if b.Desk == nil {
		return 0
	}
	pair := b.Desk.Pair(in.ID)
	if pair == nil || pair.Source != rfq.SourceOperator || pair.MaxAge != 0 && int64(b.At)-cmp.Or(pair.PublishedAt, pair.AnchorAt) > pair.MaxAge {
		return 0
	}
	return pair.Anchor
}

// dollars returns the price of an asset: one dollar for USDC, else the price of the first
// pair that sells it and has one; 0 if there is none.
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

// inDollars fills in the members that need the price of the quote asset, at its present
// price and rounded down.
func (b *builder) inDollars(p *Pair, in *market.Instrument, v *marketdata.View) {
	p.Floor = b.floor(in)
	quote := b.dollars(in.Quote)
	if in.Source == market.Mirrored {
		k := b.mirroredPair(in.Symbol)
		k.describe(p, quote)
		p.LastSignature = b.Mirror.signature(v)
		if k.hasBook() {
			p.VisibleUSD = visible(in, v, quote)
		} else { // the documents publish Bid and Ask as current
			p.Bid, p.Ask = nil, nil
		}
		return
	}
	day := &p.Windows.Day
	if ref, ok := b.reference(in); ok && day.Trades > 0 {
		day.DeltaPercent, day.ReferenceAt = change(ref.Price, v.Ticker.Last), Time(ref.At)
	}
	if quote == 0 {
		return
	}
	p.VisibleUSD = visible(in, v, quote)
	if volume, ok := worthUSD(in, v.Ticker.QuoteVolume24h, quote); ok && day.Trades > 0 {
		day.Status, day.VolumeUSD = WindowExact, volume
	}
	p.Windows.Week, p.Totals = b.week(in, quote), b.matched(in, quote)
}

// reference returns the trade with which a price is compared for its change of 24 hours:
// the last one before them. ok is false if there is none, if trades of that time were lost,
// or if the history cannot be read, which its readiness check reports.
func (b *builder) reference(in *market.Instrument) (t marketdata.Trade, ok bool) {
	at := int64(b.At) - int64(mirror.Day)
	if at < b.History.CompleteSince() {
		return t, false
	}
	t, ok, err := b.History.TradeBefore(in.ID, at)
	return t, ok && err == nil
}

// visible returns the value of the displayed book; 0 if it overflows.
func visible(in *market.Instrument, v *marketdata.View, quote market.USDPrice) market.USD {
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

// matched returns the totals of a pair with our own book, at the present price of the
// quote asset, rounded down. They cover the last archive.MaxCandles days with a trade,
// which is what one read returns. They are zero if the history cannot be read, which its
// readiness check reports.
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
	t.Traders, t.TradersFrom = b.History.Traders(in.ID), tradersOfBook
	return t
}

// addSales adds the desk's sales to the pairs, and their sums to the desk. They are missing if
// they cannot be read, which the desk's readiness check reports.
func (b *builder) addSales(f *Facts) {
	if b.Sales == nil {
		return
	}
	for i := range f.Pairs {
		all, day, err := b.Sales.SalesSummary(b.Instruments[i].ID, int64(b.At)-int64(mirror.Day))
		if err != nil {
			return
		}
		f.Pairs[i].Totals.Sales = Sales{all.Count, day.Count, all.VolumeUSD, all.FeesUSD, day.VolumeUSD}
		f.Desk.SettledUSD += all.VolumeUSD
		f.Desk.FeesUSD += all.FeesUSD
	}
}

// worthUSD converts price × qty, in ticks × lots, to dollars.
func worthUSD(in *market.Instrument, n market.Uint128, quote market.USDPrice) (market.USD, bool) {
	text := quoteText(in, n)
	return usdFloor(text.Units, text.Decimals, quote)
}

// week sums up our own trades of the last seven days: the minutes of the first hour that
// began within them, then whole hours. It is unproven if trades of that time were lost.
func (b *builder) week(in *market.Instrument, quote market.USDPrice) Window {
	const hour = int64(time.Hour)
	from := int64(b.At) - int64(mirror.Week)
	whole := from + hour - 1
	whole -= whole % hour // start of the first whole hour
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

// floor returns the lowest price at which the desk may sell: the corridor's lower end less
// the largest discount; 0 if the desk has no anchor or does not sell the pair.
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
