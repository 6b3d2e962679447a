package catalog

import (
	"blockdesk/internal/solana"
	"blockdesk/market"
	"blockdesk/mirror"
)

// How traders are counted: traders_estimated_source of activity_totals.
const (
	tradersFrom   = "distinct_fee_payers_of_decoded_swaps"
	tradersOfBook = "distinct_participants_of_matched_trades"
)

// usdSum returns the value of both sides, each rounded down; a side without a price counts
// as zero.
func (k *mirroredPair) usdSum(base, held market.Uint128, price, quote market.USDPrice) market.USD {
	first, _ := usdFloor(base, k.config.BaseDecimals, price)
	second, _ := usdFloor(held, k.config.QuoteDecimals, quote)
	return first + second
}

// pool returns the pair's pool from the configuration and the chain; nil if it has none.
func (k *mirroredPair) pool(quote market.USDPrice) *Pool {
	if k.config == nil || k.config.Pool == nil {
		return nil
	}
	pool := *k.config.Pool
	p, s := &pool, k.state.Pool
	if s == nil {
		return p
	}
	p.BaseVault, p.QuoteVault = solana.Base58(s.BaseVault), solana.Base58(s.QuoteVault)
	p.BaseAtoms, p.QuoteAtoms = s.BaseBalance, s.QuoteBalance
	p.Slot, p.At, p.Spot = s.At.Slot, blockTime(s.At.Unix), k.spot(quote)
	if k.config.PoolFees {
		p.BaseFees, p.QuoteFees = &s.BaseFees, &s.QuoteFees
	}
	return p
}

// noDollars is the status of a window whose swaps are proven but have no value in dollars,
// because nothing prices the quote asset.
const noDollars = "quote_asset_not_priced"

// windows returns the windows of decoded swaps, at the quote asset's present price.
func (k *mirroredPair) windows(quote market.USDPrice) Windows {
	if k.state == nil {
		unproven := Window{Status: WindowUnproven}
		return Windows{Day: unproven, Week: unproven}
	}
	r := &k.state.Swaps.Rolling
	if !k.fresh() {
		// Swaps may have happened since the last reading, so no window is proven.
		return Windows{
			Day:    Window{Status: WindowUnproven, Why: mirror.Behind.Word("24h")},
			Week:   Window{Status: WindowUnproven, Why: mirror.Behind.Word("7d")},
			LastAt: blockTime(r.Last.Time),
		}
	}
	return Windows{
		Day: k.window(&r.Day, "24h", quote), Week: k.window(&r.Week, "7d", quote), LastAt: blockTime(r.Last.Time),
	}
}

// window converts one window; name is "24h" or "7d".
func (k *mirroredPair) window(w *mirror.Window, name string, quote market.USDPrice) Window {
	switch w.Status {
	case 0: // no history is read
		return Window{Status: WindowUnproven}
	case mirror.Empty:
		return Window{Status: WindowNoTrades}
	case mirror.Exact:
	default:
		return Window{Status: WindowUnproven, Why: w.Status.Word(name)}
	}
	out := Window{
		Status: WindowExact, Trades: uint64(w.Swaps), DeltaPercent: percent(w), ReferenceAt: blockTime(w.Reference.Time),
	}
	var ok bool
	if out.VolumeUSD, ok = usdFloor(w.Quote, k.config.QuoteDecimals, quote); !ok {
		out.Status, out.Why = WindowUnproven, noDollars
	}
	return out
}

// percent returns the change of the price in basis points, rounded towards zero; nil if it
// overflows.
func percent(w *mirror.Window) *Percent {
	const millionths = 100 // in a basis point
	change, ok := w.Delta()
	if !ok {
		return nil
	}
	p := Percent(change / millionths)
	return &p
}

// totals returns the cumulative figures. Dollars are at present prices and rounded down.
// Fees are those that the pool owes and those in the fee vaults.
func (k *mirroredPair) totals(price, quote market.USDPrice) Totals {
	if k.state == nil {
		return Totals{}
	}
	s := &k.state.Swaps
	decimals := k.config.QuoteDecimals
	t := Totals{
		OnchainSwaps: s.Rolling.Totals.Swaps, ReconstructedSwaps: s.Reconstructed.Swaps,
		Traders: s.Traders, TradersFrom: tradersFrom,
	}
	t.OnchainUSD, _ = usdFloor(s.Rolling.Totals.Quote, decimals, quote)
	t.ReconstructedUSD, _ = usdFloor(s.Reconstructed.Quote, decimals, quote)
	t.ReconstructedFeesUSD = k.usdSum(
		market.Uint128{Lo: uint64(s.Reconstructed.BaseFees)}, market.Uint128{Lo: uint64(s.Reconstructed.QuoteFees)}, price, quote)
	base, held := k.fees()
	t.FeesBase = Decimal{Units: base, Decimals: k.config.BaseDecimals}
	t.FeesQuote = Decimal{Units: held, Decimals: decimals}
	t.FeesUSD = k.usdSum(base, held, price, quote)
	return t
}

// fees returns the pool's own fee counters plus the balances of the fee vaults, in atoms.
func (k *mirroredPair) fees() (base, held market.Uint128) {
	if p := k.state.Pool; p != nil {
		base, held = market.Uint128{Lo: uint64(p.BaseFees)}, market.Uint128{Lo: uint64(p.QuoteFees)}
	}
	return plus(base, k.heldBy(FeeVaultBase, k.config.BaseMint)), plus(held, k.heldBy(FeeVaultQuote, k.config.QuoteMint))
}

// guarantee returns the value of the guarantee accounts in dollars.
func (k *mirroredPair) guarantee(price, quote market.USDPrice) market.USD {
	if k.state == nil {
		return 0
	}
	return k.usdSum(k.heldBy(GuaranteeReserve, k.config.BaseMint), k.heldBy(GuaranteeReserve, k.config.QuoteMint), price, quote)
}

// describe fills in the chain state of a mirrored pair that already has its price. quote
// is the price of its quote asset; 0 = none.
func (k *mirroredPair) describe(p *Pair, quote market.USDPrice) {
	p.Reasons, p.Pool = k.reasons(), k.pool(quote)
	if k.state != nil {
		p.ReadAt = timeOf(k.state.ReadAt)
	}
	last := p.Windows.LastAt
	p.Windows = k.windows(quote)
	p.Windows.LastAt = max(p.Windows.LastAt, last)
	p.Totals, p.GuaranteeUSD = k.totals(p.PriceUSD, quote), k.guarantee(p.PriceUSD, quote)
	p.NoBook = k.config != nil && !k.config.Book
	if p.NoBook && k.fresh() && k.state.Pool != nil && p.PriceUSD != 0 && quote != 0 {
		pool := k.state.Pool // without a book, trades are against its vaults
		p.VisibleUSD = k.usdSum(market.Uint128{Lo: uint64(pool.BaseBalance)}, market.Uint128{Lo: uint64(pool.QuoteBalance)}, p.PriceUSD, quote)
	}
}
