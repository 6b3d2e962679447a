package shardwire

import (
	"blockdesk/catalog"
	"blockdesk/market"
)

// Facts is a shard's share of [catalog.Facts].
type Facts struct {
	Pairs  []catalog.Pair // without Unreachable: a shard sends only its own pairs
	Tokens []catalog.Token
	Desk   catalog.Desk
}

// AppendFacts appends f's encoding and returns the extended slice. If f exceeds a limit,
// it returns dst and ErrFormat.
func AppendFacts(dst []byte, f *Facts) ([]byte, error) {
	c := codec{buf: appendHead(dst, kindFacts)}
	f.walk(&c)
	if c.err != nil {
		return dst, c.err
	}
	return c.buf, nil
}

// DecodeFacts decodes a document. The result does not alias data. Errors: ErrFormat,
// VersionError.
func DecodeFacts(data []byte) (*Facts, error) {
	rest, err := body(data, kindFacts)
	if err != nil {
		return nil, err
	}
	c := codec{buf: rest, reading: true}
	f := &Facts{}
	if f.walk(&c); c.end() != nil {
		return nil, c.err
	}
	return f, nil
}

// The walk functions define the order of the fields: see [Version].

func (f *Facts) walk(c *codec) {
	list(c, &f.Pairs, MaxPairs, walkPair)
	list(c, &f.Tokens, MaxTokens, walkToken)
	walkDesk(c, &f.Desk)
}

func walkPair(c *codec, p *catalog.Pair) {
	for _, text := range []*string{&p.Symbol, &p.Base, &p.Quote} {
		c.text(text)
	}
	enum(c, &p.Source, market.Mirrored)
	c.flag(&p.Halted)
	c.flag(&p.NoBook)
	enum(c, &p.PriceDecimals, market.MaxDecimals)
	enum(c, &p.QtyDecimals, market.MaxDecimals)
	for _, d := range []*catalog.Decimal{&p.Tick, &p.Lot, &p.MinQty} {
		c.decimal(d)
	}
	for _, d := range []**catalog.Decimal{&p.Last, &p.Bid, &p.Ask, &p.High24h, &p.Low24h} {
		optional(c, d, (*codec).decimal)
	}
	i64(c, &p.LastAt)
	u64(c, &p.LastTrade)
	c.text(&p.LastSignature)
	enum(c, &p.Side, market.Sell)
	optional(c, &p.LastQty, (*codec).decimal)
	c.decimal(&p.BaseVolume24h)
	c.decimal(&p.QuoteVolume24h)
	u64(c, &p.Trades24h)
	u64(c, &p.Epoch)
	u64(c, &p.Seq)
	optional(c, &p.Candle, walkCandle)
	u64(c, &p.PriceUSD)
	enum(c, &p.PriceSource, catalog.FromVaultSnapshot)
	u64(c, &p.Floor)
	u64(c, &p.VisibleUSD)
	u64(c, &p.GuaranteeUSD)
	i64(c, &p.ReadAt)
	optional(c, &p.Pool, walkPool)
	walkWindow(c, &p.Windows.Day)
	walkWindow(c, &p.Windows.Week)
	i64(c, &p.Windows.LastAt)
	walkTotals(c, &p.Totals)
	list(c, &p.Reasons, MaxReasons, (*codec).text)
}

func walkCandle(c *codec, v *catalog.Candle) {
	i64(c, &v.Open)
	for _, d := range []*catalog.Decimal{&v.O, &v.H, &v.L, &v.C, &v.BaseVolume, &v.QuoteVolume} {
		c.decimal(d)
	}
	u64(c, &v.Trades)
}

func walkPool(c *codec, p *catalog.Pool) {
	for _, text := range []*string{&p.Address, &p.Program, &p.Layout, &p.BaseMint, &p.QuoteMint, &p.BaseVault, &p.QuoteVault, &p.LPMint} {
		c.text(text)
	}
	u64(c, &p.BaseAtoms)
	u64(c, &p.QuoteAtoms)
	enum(c, &p.BaseDecimals, market.MaxWideDecimals)
	enum(c, &p.QuoteDecimals, market.MaxWideDecimals)
	optional(c, &p.FeeBps, u16[uint16])
	u64(c, &p.Spot)
	u64(c, &p.Slot)
	i64(c, &p.At)
	optional(c, &p.BaseFees, u64[market.Amount])
	optional(c, &p.QuoteFees, u64[market.Amount])
}

func walkWindow(c *codec, w *catalog.Window) {
	enum(c, &w.Status, catalog.WindowUnproven)
	c.text(&w.Why)
	u64(c, &w.VolumeUSD)
	u64(c, &w.Trades)
	optional(c, &w.DeltaPercent, i64[catalog.Percent])
	i64(c, &w.ReferenceAt)
}

func walkTotals(c *codec, t *catalog.Totals) {
	u64(c, &t.OnchainSwaps)
	u64(c, &t.ReconstructedSwaps)
	u64(c, &t.OnchainUSD)
	u64(c, &t.ReconstructedUSD)
	u64(c, &t.ReconstructedFeesUSD)
	u64(c, &t.MatchedTrades)
	u64(c, &t.MatchedUSD)
	for _, d := range []*catalog.Decimal{&t.FeesBase, &t.FeesQuote, &t.FeesUnknown} {
		c.decimal(d)
	}
	u64(c, &t.FeesUSD)
	u64(c, &t.Sales.Count)
	u64(c, &t.Sales.DayCount)
	u64(c, &t.Sales.VolumeUSD)
	u64(c, &t.Sales.FeesUSD)
	u64(c, &t.Sales.DayUSD)
	u64(c, &t.Traders)
	c.text(&t.TradersFrom)
}

func walkToken(c *codec, t *catalog.Token) {
	for _, text := range []*string{&t.Mint, &t.Symbol, &t.OnchainSymbol, &t.Name} {
		c.text(text)
	}
	enum(c, &t.Decimals, market.MaxWideDecimals)
	enum(c, &t.Role, catalog.RoleSettlement)
	for _, text := range []*string{&t.LogoURI, &t.MetadataURI, &t.ImageURI, &t.ImageIPFS, &t.ImageGateway} {
		c.text(text)
	}
	optional(c, &t.Supply, u64[market.Amount])
	optional(c, &t.CoinMarketCapID, u64[uint64])
	list(c, &t.Accounts, MaxAccounts, walkAccount)
}

func walkAccount(c *codec, a *catalog.Account) {
	c.text(&a.Address)
	u64(c, &a.Amount)
	enum(c, &a.Role, catalog.DeskInventory)
	for _, text := range []*string{&a.Label, &a.Pool, &a.PoolLabel} {
		c.text(text)
	}
	u64(c, &a.Slot)
}

func walkDesk(c *codec, d *catalog.Desk) {
	c.flag(&d.Enabled)
	u64(c, &d.OpenTickets)
	for _, v := range []*market.USD{&d.CapacityUSD, &d.AvailableUSD, &d.ReservedUSD, &d.SettledUSD, &d.FeesUSD} {
		u64(c, v)
	}
	u64(c, &d.UnderWay)
	u64(c, &d.RefundsDue)
	u64(c, &d.RefundsUSDC)
	u64(c, &d.RefundsSOL)
	u64(c, &d.Unmatched)
	u64(c, &d.UnmatchedUSDC)
	u64(c, &d.UnmatchedSOL)
}
