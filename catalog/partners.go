package catalog

import (
	"strconv"
	"time"
)

// The documents of this file have exactly the members of the aggregators' public formats.
// The HTTP gateway makes the documents that depend on a query.

// geckoTicker is a row of CoinGecko's tickers.
type geckoTicker struct {
	ID           string   `json:"ticker_id"`
	Base         string   `json:"base_currency"`
	Target       string   `json:"target_currency"`
	Pool         string   `json:"pool_id"`
	Last         *Decimal `json:"last_price"`
	BaseVolume   Decimal  `json:"base_volume"`
	TargetVolume Decimal  `json:"target_volume"`
	Bid          *Decimal `json:"bid"`
	Ask          *Decimal `json:"ask"`
	High         *Decimal `json:"high"`
	Low          *Decimal `json:"low"`
	Liquidity    *Decimal `json:"liquidity_in_usd"`
}

// CoinGeckoTickers lists price and volume of each pair. CoinGecko asks a DEX for mints in
// base_currency and target_currency; a token without a mint has its symbol there.
func CoinGeckoTickers(f *Facts, _ string) any {
	all := records(f, f.Pairs, func(f *Facts, p *Pair) geckoTicker {
		row := geckoTicker{
			ID: Ticker(p.Symbol), Base: f.token(p.Base).asset(), Target: f.token(p.Quote).asset(), Pool: Ticker(p.Symbol),
			Last: p.Last, BaseVolume: p.BaseVolume24h, TargetVolume: p.QuoteVolume24h, Bid: p.Bid, Ask: p.Ask,
			High: p.High24h, Low: p.Low24h, Liquidity: poolLiquidity(f, p),
		}
		if p.Pool != nil {
			row.Pool = p.Pool.Address
		} else if p.VisibleUSD > 0 {
			visible := dollars(p.VisibleUSD)
			row.Liquidity = &visible
		}
		return row
	})
	return &all
}

// capSummary is a row of CoinMarketCap's summary.
type capSummary struct {
	Pair        string   `json:"trading_pairs"`
	Base        string   `json:"base_currency"`
	Quote       string   `json:"quote_currency"`
	Last        *Decimal `json:"last_price"`
	Ask         *Decimal `json:"lowest_ask"`
	Bid         *Decimal `json:"highest_bid"`
	BaseVolume  Decimal  `json:"base_volume"`
	QuoteVolume Decimal  `json:"quote_volume"`
	Change      *Percent `json:"price_change_percent_24h"`
	High        *Decimal `json:"highest_price_24h"`
	Low         *Decimal `json:"lowest_price_24h"`
}

// CoinMarketCapSummary lists price and volume of each pair.
func CoinMarketCapSummary(f *Facts, _ string) any {
	all := records(f, f.Pairs, func(_ *Facts, p *Pair) capSummary {
		return capSummary{
			Pair: Ticker(p.Symbol), Base: p.Base, Quote: p.Quote, Last: p.Last, Ask: p.Ask, Bid: p.Bid,
			BaseVolume: p.BaseVolume24h, QuoteVolume: p.QuoteVolume24h, Change: p.Windows.Day.DeltaPercent,
			High: p.High24h, Low: p.Low24h,
		}
	})
	return &all
}

// capAsset is a member of CoinMarketCap's assets. There are no deposits and no
// withdrawals, because trades settle on chain.
type capAsset struct {
	Name        string  `json:"name"`
	ID          *uint64 `json:"unified_cryptoasset_id"` // null: not configured
	CanWithdraw bool    `json:"can_withdraw"`
	CanDeposit  bool    `json:"can_deposit"`
	MakerFee    rate    `json:"maker_fee"`
	TakerFee    rate    `json:"taker_fee"`
	Contract    string  `json:"contractAddress"`
}

// CoinMarketCapAssets returns each token by its symbol.
func CoinMarketCapAssets(f *Facts, _ string) any {
	all := map[string]capAsset{}
	for i := range f.Tokens {
		t := &f.Tokens[i]
		fee := rate(f.tradeFee(t.Symbol))
		all[t.Symbol] = capAsset{Name: t.Name, ID: t.CoinMarketCapID, MakerFee: fee, TakerFee: fee, Contract: t.Mint}
	}
	return &all
}

// tradeFee returns the largest fee of the pairs that trade a token.
func (f *Facts) tradeFee(symbol string) (bps uint16) {
	for i := range f.Pairs {
		if p := &f.Pairs[i]; p.Base == symbol || p.Quote == symbol {
			bps = max(bps, p.feeBps())
		}
	}
	return bps
}

// capTicker is a member of CoinMarketCap's ticker.
type capTicker struct {
	BaseID      *uint64  `json:"base_id"`
	QuoteID     *uint64  `json:"quote_id"`
	Last        *Decimal `json:"last_price"`
	BaseVolume  Decimal  `json:"base_volume"`
	QuoteVolume Decimal  `json:"quote_volume"`
	Frozen      int      `json:"isFrozen"` // 1 = halted
}

// CoinMarketCapTicker returns price and volume of each pair by its Ticker.
func CoinMarketCapTicker(f *Facts, _ string) any {
	all := map[string]capTicker{}
	for i := range f.Pairs {
		p := &f.Pairs[i]
		row := capTicker{
			BaseID: f.token(p.Base).CoinMarketCapID, QuoteID: f.token(p.Quote).CoinMarketCapID,
			Last: p.Last, BaseVolume: p.BaseVolume24h, QuoteVolume: p.QuoteVolume24h,
		}
		if p.Halted || p.Unreachable {
			row.Frozen = 1
		}
		all[Ticker(p.Symbol)] = row
	}
	return &all
}

// ScreenerAsset is DEX Screener's asset.
type ScreenerAsset struct {
	Asset struct {
		ID     string   `json:"id"`
		Name   string   `json:"name"`
		Symbol string   `json:"symbol"`
		Supply *Decimal `json:"totalSupply,omitempty"`
	} `json:"asset"`
}

// ScreenerPair is DEX Screener's pair.
type ScreenerPair struct {
	Pair struct {
		ID     string `json:"id"`
		Dex    string `json:"dexKey"`
		Asset0 string `json:"asset0Id"`
		Asset1 string `json:"asset1Id"`
		// The block of the pair's definition; absent if it is unknown.
		CreatedBlock uint64 `json:"createdAtBlockNumber,omitempty"`
		CreatedAt    int64  `json:"createdAtBlockTimestamp,omitempty"` // Unix seconds
		CreatedTxn   string `json:"createdAtTxnId,omitempty"`
		FeeBps       uint16 `json:"feeBps"`
	} `json:"pair"`
}

// ScreenerAssetByID returns the token with that id in DEX Screener's format; false if there is none.
func ScreenerAssetByID(f *Facts, id string) (*ScreenerAsset, bool) {
	for i := range f.Tokens {
		t := &f.Tokens[i]
		if t.asset() != id {
			continue
		}
		a := &ScreenerAsset{}
		a.Asset.ID, a.Asset.Name, a.Asset.Symbol = id, t.Name, t.Symbol
		if t.Supply != nil {
			supply := wholeUnits(*t.Supply, t.Decimals)
			a.Asset.Supply = &supply
		}
		return a, true
	}
	return nil, false
}

// ScreenerPairByID returns the pair with that Ticker in DEX Screener's format; false if there is
// none.
func ScreenerPairByID(f *Facts, id string) (*ScreenerPair, bool) {
	for i := range f.Pairs {
		p := &f.Pairs[i]
		if Ticker(p.Symbol) != id {
			continue
		}
		s := &ScreenerPair{}
		s.Pair.ID, s.Pair.Dex, s.Pair.FeeBps = id, f.Service.Name, p.feeBps()
		s.Pair.Asset0, s.Pair.Asset1 = f.token(p.Base).asset(), f.token(p.Quote).asset()
		if d := p.Defined; d != nil {
			s.Pair.CreatedBlock, s.Pair.CreatedAt, s.Pair.CreatedTxn = d.Seq, d.At/int64(time.Second), strconv.FormatUint(d.Seq, 10)
		}
		return s, true
	}
	return nil, false
}
