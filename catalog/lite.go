package catalog

import "blockdesk/market"

// The lite documents are extracts of the others, for consumers that poll one value often.

type liteSummary struct {
	header
	Pairs []liteMarket `json:"pairs"`
}

type liteMarket struct {
	Symbol string   `json:"symbol"`
	Price  *Decimal `json:"price_usd"`
	Last   *Decimal `json:"last"`
	Volume Decimal  `json:"volume_24h"`
	Quote  Decimal  `json:"quote_volume_24h"`
	Trades uint64   `json:"trades_24h"`
	Delta  *Percent `json:"delta_24h_percent"`
}

// LiteSummary returns price and volume of each pair.
func LiteSummary(f *Facts, schema string) any {
	return &liteSummary{newHeader(f, schema), records(f, f.Pairs, func(_ *Facts, p *Pair) liteMarket {
		return liteMarket{
			Symbol: p.Symbol, Price: dollarPrice(p.PriceUSD), Last: p.Last, Volume: p.BaseVolume24h, Quote: p.QuoteVolume24h,
			Trades: p.Trades24h, Delta: p.Windows.Day.DeltaPercent,
		}
	})}
}

type litePairs struct {
	header
	Pairs []litePair `json:"pairs"`
}

type litePair struct {
	Symbol    string `json:"symbol"`
	BaseMint  string `json:"base_mint"`
	QuoteMint string `json:"quote_mint"`
	Source    string `json:"book_source"`
}

// LitePairs returns the mints of each pair.
func LitePairs(f *Facts, schema string) any {
	return &litePairs{configHeader(f, schema), records(f, f.Pairs, func(f *Facts, p *Pair) litePair {
		return litePair{p.Symbol, f.token(p.Base).Mint, f.token(p.Quote).Mint, p.Source.String()}
	})}
}

type liteTokens struct {
	header
	Tokens []liteToken `json:"tokens"`
}

type liteToken struct {
	Symbol   string `json:"symbol"`
	Mint     string `json:"mint"`
	Decimals uint8  `json:"decimals"`
}

func newLiteToken(_ *Facts, t *Token) liteToken { return liteToken{t.Symbol, t.Mint, t.Decimals} }

// LiteTokens returns mint and decimals of each token.
func LiteTokens(f *Facts, schema string) any {
	return &liteTokens{configHeader(f, schema), records(f, f.Tokens, newLiteToken)}
}

type litePools struct {
	header
	Pools []litePool `json:"pools"`
}

type litePool struct {
	Pool   string `json:"pool_id"`
	Symbol string `json:"symbol"`
}

// LitePools returns the address of each pool.
func LitePools(f *Facts, schema string) any {
	d := &litePools{header: configHeader(f, schema), Pools: []litePool{}}
	for i := range f.Pairs {
		if p := f.Pairs[i].Pool; p != nil {
			d.Pools = append(d.Pools, litePool{p.Address, f.Pairs[i].Symbol})
		}
	}
	return d
}

type latestPrice struct {
	header
	priceRecord
}

// LatestPrice returns the canonical pair's price.
func LatestPrice(f *Facts, schema string) any {
	return &latestPrice{newHeader(f, schema), newPriceRecord(f, f.canonical())}
}

type latestCandle struct {
	header
	Symbol    string        `json:"symbol"`
	Timeframe string        `json:"timeframe"`
	Candle    *candleRecord `json:"candle"` // null: no trade yet
}

type candleRecord struct {
	Open        Time    `json:"open_ts"`
	O           Decimal `json:"open"`
	H           Decimal `json:"high"`
	L           Decimal `json:"low"`
	C           Decimal `json:"close"`
	Volume      Decimal `json:"volume"`
	QuoteVolume Decimal `json:"quote_volume"`
	Trades      uint64  `json:"trades"`
}

// LatestCandle returns the canonical pair's newest hour with a trade.
func LatestCandle(f *Facts, schema string) any {
	p := f.canonical()
	d := &latestCandle{header: newHeader(f, schema), Symbol: p.Symbol, Timeframe: "1h"}
	if c := p.Candle; c != nil {
		d.Candle = &candleRecord{c.Open, c.O, c.H, c.L, c.C, c.BaseVolume, c.QuoteVolume, c.Trades}
	}
	return d
}

type latestTrade struct {
	header
	Symbol string       `json:"symbol"`
	Trade  *tradeRecord `json:"trade"` // null: none yet
}

type tradeRecord struct {
	ID        market.TradeID `json:"trade_id"`
	Price     *Decimal       `json:"price"`
	Qty       *Decimal       `json:"qty"`
	Side      string         `json:"side"`
	At        Time           `json:"ts"`
	Signature *string        `json:"signature"`
	Source    string         `json:"source"`
}

// LatestTrade returns the canonical pair's newest trade.
func LatestTrade(f *Facts, schema string) any {
	p := f.canonical()
	d := &latestTrade{header: newHeader(f, schema), Symbol: p.Symbol}
	if p.LastTrade != 0 {
		d.Trade = &tradeRecord{
			p.LastTrade, p.Last, p.LastQty, p.Side.String(), p.LastAt, nullable(p.LastSignature), p.Source.String(),
		}
	}
	return d
}

type latestFees struct {
	header
	FeeBps  uint16  `json:"fee_bps"`
	FeeRate rate    `json:"fee_rate"`
	Model   string  `json:"fee_model"`
	Fees    Decimal `json:"fees_cumulative_usd"`
}

// LatestFees returns the fee and the cumulative fees.
func LatestFees(f *Facts, schema string) any {
	t := newStatusTotals(f, f.canonical())
	return &latestFees{newHeader(f, schema), f.Service.FeeBps, rate(f.Service.FeeBps), feeModel(f.Service.FeeBps), t.Fees}
}
