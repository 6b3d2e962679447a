package catalog

import (
	"blockdesk/market"
)

type priceList struct {
	header
	Canonical string        `json:"canonical_pair_id"`
	Prices    []priceRecord `json:"prices"`
}

type priceRecord struct {
	Symbol   string   `json:"symbol"`
	Price    *Decimal `json:"price_usd"`
	Net      *Decimal `json:"price_net_usd"`
	Last     *Decimal `json:"last"`
	Bid      *Decimal `json:"bid"`
	Ask      *Decimal `json:"ask"`
	Source   string   `json:"price_source"`
	LastAt   Time     `json:"last_trade_ts"`
	Epoch    Epoch    `json:"epoch"`
	Seq      uint64   `json:"seq"`
	Delta    *Percent `json:"delta_24h_percent"`
	Degraded bool     `json:"degraded"`
}

// Prices returns the price of each pair and its source.
func Prices(f *Facts, schema string) any {
	return &priceList{newHeader(f, schema), f.canonical().Symbol, records(f, f.Pairs, newPriceRecord)}
}

func newPriceRecord(f *Facts, p *Pair) priceRecord {
	return priceRecord{
		Symbol: p.Symbol, Price: dollarPrice(p.PriceUSD), Net: dollarPrice(lessFee(p.PriceUSD, f.Service.FeeBps)),
		Last: p.Last, Bid: p.Bid, Ask: p.Ask, Source: p.PriceSource.String(), LastAt: p.LastAt,
		Epoch: p.Epoch, Seq: p.Seq, Delta: p.Windows.Day.DeltaPercent, Degraded: len(degradedBy(f, p)) > 0,
	}
}

type capList struct {
	header
	Tokens []capRecord `json:"tokens"`
}

type capRecord struct {
	Symbol string   `json:"symbol"`
	Mint   string   `json:"mint"`
	Supply *Decimal `json:"total_supply"`
	Price  *Decimal `json:"price_usd"`
	Cap    *Decimal `json:"market_cap_usd"`
	Status string   `json:"status"`
}

// MarketCaps returns supply × price of each token that a pair prices, rounded down.
func MarketCaps(f *Facts, schema string) any {
	return &capList{newHeader(f, schema), records(f, f.Tokens, newCapRecord)}
}

func newCapRecord(f *Facts, t *Token) capRecord {
	price := f.priceOf(t.Symbol)
	r := capRecord{Symbol: t.Symbol, Mint: t.Mint, Price: dollarPrice(price), Status: "exact"}
	if t.Supply == nil {
		r.Status = "supply_not_read_from_chain"
		return r
	}
	supply := wholeUnits(*t.Supply, t.Decimals)
	r.Supply = &supply
	if price == 0 {
		r.Status = "no_price"
		return r
	}
	if r.Cap = worth(*t.Supply, t.Decimals, price); r.Cap == nil {
		r.Status = "beyond_range"
	}
	return r
}

type pairList struct {
	header
	Canonical string       `json:"canonical_pair_id"`
	Count     int          `json:"count"`
	Pairs     []pairRecord `json:"pairs"`
}

type pairRecord struct {
	ID            string   `json:"pair_id"`
	Symbol        string   `json:"symbol"`
	Base          string   `json:"base_symbol"`
	BaseMint      string   `json:"base_mint"`
	Quote         string   `json:"quote_symbol"`
	QuoteMint     string   `json:"quote_mint"`
	Source        string   `json:"book_source"`
	Status        string   `json:"status"`
	PriceDecimals uint8    `json:"price_precision"`
	QtyDecimals   uint8    `json:"qty_precision"`
	Tick          Decimal  `json:"tick_size"`
	Lot           Decimal  `json:"lot_size"`
	MinQty        Decimal  `json:"min_qty"`
	Price         *Decimal `json:"price_usd"`
	Volume        Decimal  `json:"volume_24h"`
	QuoteVolume   Decimal  `json:"quote_volume_24h"`
	Trades        uint64   `json:"trades_24h"`
	FeeBps        uint16   `json:"fee_bps"`
	Pool          *string  `json:"pool_id"`
}

// Pairs lists the pairs.
func Pairs(f *Facts, schema string) any {
	return &pairList{newHeader(f, schema), f.canonical().Symbol, len(f.Pairs), records(f, f.Pairs, newPairRecord)}
}

func newPairRecord(f *Facts, p *Pair) pairRecord {
	r := pairRecord{
		ID: p.Symbol, Symbol: p.Symbol, Base: p.Base, BaseMint: f.token(p.Base).Mint, Quote: p.Quote,
		QuoteMint: f.token(p.Quote).Mint, Source: p.Source.String(), Status: "trading",
		PriceDecimals: p.PriceDecimals, QtyDecimals: p.QtyDecimals, Tick: p.Tick, Lot: p.Lot, MinQty: p.MinQty,
		Price: dollarPrice(p.PriceUSD), Volume: p.BaseVolume24h, QuoteVolume: p.QuoteVolume24h, Trades: p.Trades24h,
		FeeBps: p.feeBps(),
	}
	switch {
	case p.Unreachable:
		r.Status = "unknown"
	case p.Halted:
		r.Status = "halted"
	}
	if p.Pool != nil {
		r.Pool = &p.Pool.Address
	}
	return r
}

type poolList struct {
	header
	Count int          `json:"count"`
	Pools []poolRecord `json:"pools"`
}

type poolRecord struct {
	Symbol  string  `json:"symbol"`
	Program string  `json:"program_id"`
	LPMint  *string `json:"lp_token_mint"`
	FeeBps  *uint16 `json:"pool_fee_bps"`
	poolState
	Liquidity *Decimal `json:"liquidity_usd"`
}

// Pools lists the on-chain pools of the pairs.
func Pools(f *Facts, schema string) any {
	d := &poolList{header: newHeader(f, schema), Pools: []poolRecord{}}
	for i := range f.Pairs {
		if f.Pairs[i].Pool.wasRead() {
			d.Pools = append(d.Pools, newPoolRecord(f, &f.Pairs[i]))
		}
	}
	d.Count = len(d.Pools)
	return d
}

func newPoolRecord(f *Facts, p *Pair) poolRecord {
	return poolRecord{
		Symbol: p.Symbol, Program: p.Pool.Program, LPMint: nullable(p.Pool.LPMint), FeeBps: p.Pool.FeeBps,
		poolState: *p.Pool.record(), Liquidity: poolLiquidity(f, p),
	}
}

// poolLiquidity returns the value of both vaults of a pair's pool in dollars, each
// rounded down; nil if one of them has no price.
func poolLiquidity(f *Facts, p *Pair) *Decimal {
	price := f.priceOf(p.Quote)
	if !p.Pool.wasRead() || p.PriceUSD == 0 || price == 0 {
		return nil
	}
	base, quote := worth(p.Pool.BaseAtoms, p.Pool.BaseDecimals, p.PriceUSD), worth(p.Pool.QuoteAtoms, p.Pool.QuoteDecimals, price)
	if base == nil || quote == nil {
		return nil
	}
	sum, err := base.Units.Add(quote.Units)
	if err != nil {
		return nil
	}
	return &Decimal{Units: sum, Decimals: market.USDDecimals}
}

// PoolByAddress returns the record of the pool with that address; false if there is none or
// it has not been read yet.
func PoolByAddress(f *Facts, schema, address string) (any, bool) {
	for i := range f.Pairs {
		if f.Pairs[i].Pool.wasRead() && f.Pairs[i].Pool.Address == address {
			return &poolDocument{newHeader(f, schema), newPoolRecord(f, &f.Pairs[i])}, true
		}
	}
	return nil, false
}

type poolDocument struct {
	header
	poolRecord
}

type feeList struct {
	header
	FeeBps  uint16     `json:"fee_bps"`
	FeeRate rate       `json:"fee_rate"`
	Model   string     `json:"fee_model"`
	Settled Decimal    `json:"fees_of_settled_claims_usd"`
	Pairs   []pairFees `json:"pairs"`
}

type pairFees struct {
	Symbol    string       `json:"symbol"`
	Volume    Decimal      `json:"volume_cumulative_onchain"`
	Raw       Decimal      `json:"fees_cumulative_onchain_raw"`
	Base      Decimal      `json:"fees_base_cumulative_ui"`
	Quote     Decimal      `json:"fees_quote_cumulative_ui"`
	Unknown   Decimal      `json:"fees_unknown_cumulative_ui"`
	Coherence feeCoherence `json:"fee_coherence"`
}

// Fees returns the fee model and the fees collected, with the chain's raw figures
// apart.
func Fees(f *Facts, schema string) any {
	return &feeList{
		header: newHeader(f, schema), FeeBps: f.Service.FeeBps, FeeRate: rate(f.Service.FeeBps), Model: feeModel(f.Service.FeeBps),
		Settled: dollars(f.Desk.FeesUSD), Pairs: records(f, f.Pairs, newPairFees),
	}
}

func newPairFees(f *Facts, p *Pair) pairFees {
	t := &p.Totals
	return pairFees{
		Symbol: p.Symbol, Volume: dollars(t.OnchainUSD), Raw: dollars(t.FeesUSD), Base: t.FeesBase, Quote: t.FeesQuote,
		Unknown: t.FeesUnknown, Coherence: coherence(t.OnchainSwaps, t.OnchainUSD, t.FeesUSD, f.Service.FeeBps),
	}
}

type claimTotals struct {
	header
	Enabled   bool    `json:"rfq_enabled"`
	Open      uint64  `json:"open_tickets"`
	Capacity  Decimal `json:"capacity_usd"`
	Available Decimal `json:"available_usd"`
	Reserved  Decimal `json:"claims_open_usd"`
	Settled   Decimal `json:"claims_settled_usd"`
	UnderWay  uint64  `json:"transactions_under_way"`
}

// Claims sums up the desk's claims.
func Claims(f *Facts, schema string) any {
	k := &f.Desk
	return &claimTotals{
		header: newHeader(f, schema), Enabled: k.Enabled, Open: k.OpenTickets, Capacity: dollars(k.CapacityUSD),
		Available: dollars(k.AvailableUSD), Reserved: dollars(k.ReservedUSD), Settled: dollars(k.SettledUSD), UnderWay: k.UnderWay,
	}
}

type debtRecord struct {
	header
	Promised Decimal `json:"promised_usd"`
	UnderWay uint64  `json:"transactions_under_way"`
	Refunds  uint64  `json:"refunds_due"`
	USDC     Decimal `json:"refunds_due_usdc"`
	SOL      Decimal `json:"refunds_due_sol"`

	Unmatched     uint64  `json:"unmatched_payments"`
	UnmatchedUSDC Decimal `json:"unmatched_usdc"`
	UnmatchedSOL  Decimal `json:"unmatched_sol"`
}

// Debt returns what the desk owes: the value of open claims, the refunds due, and the payments
// that match no claim, each in its own currency. The amounts of unmatched payments are those of
// the 1,000 that the service reads; their number is exact.
func Debt(f *Facts, schema string) any {
	k := &f.Desk
	return &debtRecord{
		header: newHeader(f, schema), Promised: dollars(k.ReservedUSD), UnderWay: k.UnderWay, Refunds: k.RefundsDue,
		USDC: wholeUnits(k.RefundsUSDC, uint8(market.RailUSDC.Decimals())), SOL: wholeUnits(k.RefundsSOL, uint8(market.RailSOL.Decimals())),
		Unmatched:     k.Unmatched,
		UnmatchedUSDC: wholeUnits(k.UnmatchedUSDC, uint8(market.RailUSDC.Decimals())), UnmatchedSOL: wholeUnits(k.UnmatchedSOL, uint8(market.RailSOL.Decimals())),
	}
}
