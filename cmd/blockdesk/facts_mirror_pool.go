package main

import (
	"blockdesk/catalog"
	"blockdesk/internal/solana"
	"blockdesk/market"
	"blockdesk/mirror"
	"blockdesk/service/config"
)

// tradersFrom says how traders are counted (activity_totals).
const tradersFrom = "distinct_fee_payers_of_decoded_swaps"

// mostUSD bounds each figure in dollars, so that a few of them add up to one that
// fits: 4.6 million millions.
const mostUSD = market.USD(1) << 62

// usdFloor is an amount of so many decimals at a price, in dollars rounded down; ok
// is false above mostUSD, and without a price.
func usdFloor(units market.Uint128, decimals int, price market.USDPrice) (usd market.USD, ok bool) {
	if price == 0 {
		return 0, false
	}
	ratio, err := market.NewRatio([]uint64{uint64(price)}, nil, market.USDDecimals-market.USDPriceDecimals-decimals)
	if err != nil {
		return 0, false
	}
	n, err := ratio.Floor(units)
	if err != nil || n > uint64(mostUSD) {
		return 0, false
	}
	return market.USD(n), true
}

// usdSum is what both sides are worth, each rounded down; one without a price
// counts nothing.
func (k *mirroredPair) usdSum(base, held market.Uint128, price, quote market.USDPrice) market.USD {
	first, _ := usdFloor(base, k.config.BaseDecimals, price)
	second, _ := usdFloor(held, k.config.QuoteDecimals, quote)
	return first + second
}

// pool is what the configuration and the chain say of the pair's pool; nil where
// it has none.
func (k *mirroredPair) pool(quote market.USDPrice) *catalog.Pool {
	if k.config == nil || k.config.Pool.Layout == "" {
		return nil
	}
	c := &k.config.Pool
	p := &catalog.Pool{
		Address: c.Address, Program: poolProgram(k.config), Layout: c.Layout, LPMint: c.LPMint,
		BaseMint: k.config.BaseMint, QuoteMint: k.config.QuoteMint, BaseVault: c.BaseVault, QuoteVault: c.QuoteVault,
		BaseDecimals: uint8(k.config.BaseDecimals), QuoteDecimals: uint8(k.config.QuoteDecimals),
	}
	s := k.state.Pool
	if s == nil {
		return p
	}
	p.BaseVault, p.QuoteVault = solana.Text(s.BaseVault), solana.Text(s.QuoteVault)
	p.BaseAtoms, p.QuoteAtoms = s.BaseBalance, s.QuoteBalance
	p.Slot, p.At, p.Spot = s.At.Slot, blockTime(s.At.Unix), k.spot(quote)
	if c.Layout == config.LayoutCPMM { // any other pool's fees are not told apart
		p.BaseFees, p.QuoteFees = &s.BaseFees, &s.QuoteFees
	}
	return p
}

// poolProgram is the program that owns the pool; empty where that is not known.
func poolProgram(c *config.MirrorPair) string {
	l, err := c.Pool.Listing()
	if err != nil || l.Program == (solana.Address{}) {
		return ""
	}
	return solana.Text(l.Program)
}

// bookProgram is the program that the book is of; empty where there is none.
func bookProgram(c *config.MirrorPair) string {
	l, err := c.Book.Listing()
	if err != nil || l.Layout == 0 {
		return ""
	}
	return solana.Text(l.Program)
}

// programID is the program of the first mirrored pair's pool, or else of its book.
// The canonical pair comes before all others.
func programID(c *config.Config) string {
	for i := range c.Instruments {
		for j := range c.Mirror.Pairs {
			p := &c.Mirror.Pairs[j]
			if p.Symbol != c.Instruments[i].Symbol {
				continue
			}
			if program := poolProgram(p); program != "" {
				return program
			}
			if program := bookProgram(p); program != "" {
				return program
			}
		}
	}
	return ""
}

// noDollars is the word of a window whose swaps are proven, and whose dollars are
// not, since nothing prices the quote asset.
const noDollars = "quote_asset_not_priced"

// windows are those of decoded swaps, at the quote asset's present price.
func (k *mirroredPair) windows(quote market.USDPrice) catalog.Windows {
	if k.state == nil {
		unproven := catalog.Window{Status: catalog.WindowUnproven}
		return catalog.Windows{Day: unproven, Week: unproven}
	}
	r := &k.state.Swaps.Rolling
	return catalog.Windows{
		Day: k.window(&r.Day, "24h", quote), Week: k.window(&r.Week, "7d", quote), LastAt: blockTime(r.Last.Time),
	}
}

// window is one of them by its name.
func (k *mirroredPair) window(w *mirror.Window, name string, quote market.USDPrice) catalog.Window {
	switch w.Status {
	case 0: // no history is read
		return catalog.Window{Status: catalog.WindowUnproven}
	case mirror.Empty:
		return catalog.Window{Status: catalog.WindowNoTrades}
	case mirror.Exact:
	default:
		return catalog.Window{Status: catalog.WindowUnproven, Why: w.Status.Word(name)}
	}
	out := catalog.Window{
		Status: catalog.WindowExact, Trades: uint64(w.Swaps), DeltaPercent: percent(w), ReferenceAt: blockTime(w.First.Time),
	}
	var ok bool
	if out.VolumeUSD, ok = usdFloor(w.Quote, k.config.QuoteDecimals, quote); !ok {
		out.Status, out.Why = catalog.WindowUnproven, noDollars
	}
	return out
}

// percent is the change of the price in hundredths of a percent, rounded towards
// zero; nil where it does not fit.
func percent(w *mirror.Window) *catalog.Percent {
	const millionths = 100 // of a hundredth of a percent
	change, ok := w.Delta()
	if !ok {
		return nil
	}
	p := catalog.Percent(change / millionths)
	return &p
}

// totals count from the beginning of what is known. Dollars are at the present
// prices and rounded down. Fees are raw: what the pool owes, and what the fee
// vaults hold.
func (k *mirroredPair) totals(price, quote market.USDPrice) catalog.Totals {
	if k.state == nil {
		return catalog.Totals{}
	}
	s := &k.state.Swaps
	decimals := k.config.QuoteDecimals
	t := catalog.Totals{
		OnchainSwaps: s.Rolling.Totals.Swaps, ReconstructedSwaps: s.Reconstructed.Swaps,
		Traders: s.Traders, TradersFrom: tradersFrom,
	}
	t.OnchainUSD, _ = usdFloor(s.Rolling.Totals.Quote, decimals, quote)
	t.ReconstructedUSD, _ = usdFloor(s.Reconstructed.Quote, decimals, quote)
	base, held := k.fees()
	t.FeesBase = catalog.Decimal{Units: base, Decimals: k.config.BaseDecimals}
	t.FeesQuote = catalog.Decimal{Units: held, Decimals: decimals}
	t.FeesUSD = k.usdSum(base, held, price, quote)
	return t
}

// fees are the pool's own counters and what the fee vaults hold, in atoms.
func (k *mirroredPair) fees() (base, held market.Uint128) {
	if p := k.state.Pool; p != nil {
		base, held = market.Uint128{Lo: uint64(p.BaseFees)}, market.Uint128{Lo: uint64(p.QuoteFees)}
	}
	accounts, _ := k.observed()
	return plus(base, sumOf(accounts, catalog.FeeVaultBase, k.config.BaseMint)),
		plus(held, sumOf(accounts, catalog.FeeVaultQuote, k.config.QuoteMint))
}

// guarantee is what the guarantee accounts hold, in dollars.
func (k *mirroredPair) guarantee(price, quote market.USDPrice) market.USD {
	if k.state == nil {
		return 0
	}
	accounts, _ := k.observed()
	return k.usdSum(sumOf(accounts, catalog.GuaranteeReserve, k.config.BaseMint),
		sumOf(accounts, catalog.GuaranteeReserve, k.config.QuoteMint), price, quote)
}

// plus adds up amounts of 64 bits, of which there are too few to overflow.
func plus(a, b market.Uint128) market.Uint128 {
	sum, _ := a.Add(b)
	return sum
}
