package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"blockdesk/engine"
	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
	"blockdesk/mirror"
	"blockdesk/prices"
)

// Interval returns the flush interval of durability mode interval.
func (c *Config) Interval() time.Duration { return Millis(c.Durability.IntervalMS) }

// StateOptions returns the options of the matching engine.
func (c *Config) StateOptions() engine.StateOptions {
	return engine.StateOptions{Naive: c.Engine.Book == "naive", MaxOrders: c.Engine.MaxOrders}
}

// MarketInstruments converts the configured instruments to ticks and lots.
func (c *Config) MarketInstruments() ([]market.Instrument, error) {
	out := make([]market.Instrument, 0, len(c.Instruments))
	for i := range c.Instruments {
		in, err := c.Instruments[i].ToMarket(market.InstrumentID(i))
		if err != nil {
			return nil, fmt.Errorf("instruments[%d]: %w", i, err)
		}
		out = append(out, in)
	}
	return out, nil
}

// ToMarket converts the instrument to ticks and lots.
func (ic *Instrument) ToMarket(id market.InstrumentID) (market.Instrument, error) {
	base, quote, _ := strings.Cut(ic.Symbol, "/")
	in := market.Instrument{
		ID: id, Symbol: ic.Symbol, Base: base, Quote: quote,
		PriceDecimals: uint8(ic.PriceDecimals), QtyDecimals: uint8(ic.QtyDecimals), Source: market.Matched,
	}
	if ic.BookSource == market.Mirrored.String() {
		in.Source = market.Mirrored
	}
	var err error
	if in.Tick, err = market.ParseDecimal([]byte(ic.Tick), ic.PriceDecimals); err != nil || in.Tick == 0 {
		return in, fmt.Errorf("%s: tick %q: %w", ic.Symbol, ic.Tick, cmp.Or(err, market.ErrZero))
	}
	if in.Lot, err = market.ParseDecimal([]byte(ic.Lot), ic.QtyDecimals); err != nil || in.Lot == 0 {
		return in, fmt.Errorf("%s: lot %q: %w", ic.Symbol, ic.Lot, cmp.Or(err, market.ErrZero))
	}
	if in.MinQty, err = in.ParseQty([]byte(ic.MinQty)); err != nil {
		return in, fmt.Errorf("%s: min_qty %q: %w", ic.Symbol, ic.MinQty, err)
	}
	if in.MaxQty, err = in.ParseQty([]byte(ic.MaxQty)); err != nil {
		return in, fmt.Errorf("%s: max_qty %q: %w", ic.Symbol, ic.MaxQty, err)
	}
	if in.MaxPrice, err = in.ParsePrice([]byte(ic.MaxPrice)); err != nil {
		return in, fmt.Errorf("%s: max_price %q: %w", ic.Symbol, ic.MaxPrice, err)
	}
	return in, in.Validate()
}

// AuctionRules converts the auction rules of an instrument, which in is of.
func (ic *Instrument) AuctionRules(in *market.Instrument) (r engine.AuctionRules, err error) {
	r = engine.AuctionRules{
		BandBps: uint16(ic.VolatilityBps), Call: time.Duration(ic.VolatilityCallS) * time.Second,
		Opening: time.Duration(ic.OpeningCallS) * time.Second,
	}
	if ic.ReferencePrice != "" {
		if r.Reference, err = in.ParsePrice([]byte(ic.ReferencePrice)); err != nil {
			return r, fmt.Errorf("%s: reference_price %q: %w", ic.Symbol, ic.ReferencePrice, err)
		}
	}
	switch {
	case (ic.VolatilityBps == 0) != (ic.VolatilityCallS == 0):
		return r, fmt.Errorf("%s: volatility_bps %d, volatility_call_s %d: set both or none", ic.Symbol, ic.VolatilityBps, ic.VolatilityCallS)
	case r != engine.AuctionRules{} && in.Source != market.Matched:
		return r, fmt.Errorf("%s: volatility_bps, opening_call_s, reference_price: a mirrored instrument has no auctions", ic.Symbol)
	}
	return r, r.Validate()
}

// AuctionRules converts the auction rules of the instruments.
func (c *Config) AuctionRules(instruments []market.Instrument) ([]engine.AuctionRules, error) {
	out := make([]engine.AuctionRules, len(instruments))
	for i := range instruments {
		var err error
		if out[i], err = c.Instruments[i].AuctionRules(&instruments[i]); err != nil {
			return nil, fmt.Errorf("instruments[%d]: %w", i, err)
		}
	}
	return out, nil
}

// index returns the position of an instrument, which is its id; -1 if there is none.
func (c *Config) index(symbol string) int {
	return slices.IndexFunc(c.Instruments, func(in Instrument) bool { return in.Symbol == symbol })
}

// Placeholders returns the keys whose addresses are placeholders.
func (c *Config) Placeholders() (keys []string) {
	c.Each(func(path, _ string, v reflect.Value) {
		if strings.HasPrefix(path, "rfq.") && strings.HasPrefix(v.String(), placeholderPrefix) {
			keys = append(keys, path)
		}
	})
	return keys
}

// RealMint returns a mint, or nothing for a placeholder.
func RealMint(text string) string {
	if strings.HasPrefix(text, placeholderPrefix) {
		return ""
	}
	return text
}

// completePairs sets the default pairs if the configuration names none: those whose
// instruments exist and are in one group with their via.
func (c *Config) completePairs() {
	if c.RFQ.Pairs != nil {
		return
	}
	c.RFQ.Pairs = slices.DeleteFunc(DefaultPairs(), func(p Pair) bool {
		return c.index(p.Symbol) < 0 || p.Via != "" && (c.index(p.Via) < 0 || !c.sameGroup(p.Symbol, p.Via))
	})
}

// Policy returns the rules for all pairs. Errors name the key.
func (c *RFQ) Policy() (rfq.Policy, error) {
	p := rfq.Policy{
		QuoteTTL: Nanos(c.QuoteTTLS), ClaimTTL: Nanos(c.ClaimTTLS),
		FeeBps: uint16(c.FeeBps), WalletClaims: uint16(c.WalletClaims), USDCMint: addressOr(c.USDCMint, market.Address{}),
		Rules: rfq.RulesGuarded, Grace: Nanos(c.GraceS),
		UnprovenTTL: Nanos(c.UnprovenTTLS), UnprovenShareBps: uint16(c.UnprovenShareBps),
	}
	for rail, text := range c.PayTo.byRail() {
		p.PayTo[rail] = addressOr(text, market.Address{})
	}
	var err error
	if p.UnprovenPerClient, err = usdOf(c.UnprovenUSDPerIP); err != nil {
		return p, fmt.Errorf("rfq.unproven_usd_per_ip: %w", err)
	}
	dust, err := dustByRail(c.DustUSDC, c.DustSOL)
	if err != nil {
		return p, fmt.Errorf("rfq.dust_usdc, rfq.dust_sol: %w", err)
	}
	for rail := range dust {
		p.Dust[rail] = uint64(dust[rail])
	}
	p.Discounts, err = discounts(c.Ladder)
	return p, err
}

// fillSizes lists the fill sizes of the public ladder, for errors.
func fillSizes() string {
	var all []string
	for f := market.FillUSD(1); f.Valid(); f++ {
		all = append(all, f.String())
	}
	return strings.Join(all, ", ")
}

// discounts reads the ladder: every fill size, and a larger one never with a smaller
// discount (our choice: splitting a block must not pay).
func discounts(ladder []LadderStep) (out [market.FillCount]uint16, err error) {
	var given [market.FillCount]bool
	for i, step := range ladder {
		fill, ok := market.ParseFill([]byte(strconv.Itoa(step.FillUSD)))
		if !ok {
			return out, fmt.Errorf("rfq.ladder[%d].fill_usd: %d is not a fill size: must be one of %s", i, step.FillUSD, fillSizes())
		}
		given[fill-1], out[fill-1] = true, uint16(step.DiscountBps)
	}
	for f := market.FillUSD(1); f.Valid(); f++ {
		if !given[f-1] {
			return out, fmt.Errorf("rfq.ladder: fill_usd %s is missing", f)
		}
		if f > 1 && out[f-1] < out[f-2] {
			return out, fmt.Errorf("rfq.ladder: the discount of fill_usd %s is smaller than that of %s", f, f-1)
		}
	}
	return out, nil
}

// PairSetup is one pair of the desk, with the initial values that an operator may
// change.
type PairSetup struct {
	Pair      rfq.Pair
	Symbol    string
	Anchor    market.USDPrice // 0 = not given
	Inventory uint64
	Stocked   bool // inventory is given
}

// DeskPairs returns the configured pairs in their order. Errors name the key.
func (c *Config) DeskPairs() (out []PairSetup, err error) {
	for i := range c.RFQ.Pairs {
		p := &c.RFQ.Pairs[i]
		id, via := c.index(p.Symbol), c.index(p.Via)
		if id < 0 {
			return nil, fmt.Errorf("rfq.pairs[%d].symbol: %q is not among the instruments", i, p.Symbol)
		}
		s, err := p.setup(market.InstrumentID(id), &c.RFQ)
		if err != nil {
			return nil, fmt.Errorf("rfq.pairs[%d].%w", i, err)
		}
		s.Pair.MaxAge = c.priceAge(BaseOf(p.Symbol), p.MaxAgeS)
		inDollars := func(other Pair) bool { return other.Symbol == p.Via && other.Via == "" }
		switch {
		case p.Via == "":
		case via < 0 || via == id || !slices.ContainsFunc(c.RFQ.Pairs, inDollars):
			return nil, fmt.Errorf("rfq.pairs[%d].via: %q is not another pair that is priced in dollars", i, p.Via)
		default:
			s.Pair.Via = market.InstrumentID(via)
		}
		out = append(out, s)
	}
	return out, nil
}

func (p *Pair) setup(id market.InstrumentID, all *RFQ) (s PairSetup, err error) {
	s = PairSetup{Symbol: p.Symbol, Stocked: p.Inventory != "", Pair: rfq.Pair{
		Instrument: id, BaseMint: addressOr(p.BaseMint, market.Address{}), BaseDecimals: uint8(p.BaseDecimals),
		Source: rfq.SourceOperator, CorridorBps: uint16(p.CorridorBps), Via: rfq.NoInstrument,
	}}
	s.Pair.FirmBps[market.RailUSDC] = uint16(cmp.Or(p.FirmBpsUSDC, all.FirmBpsUSDC))
	s.Pair.FirmBps[market.RailSOL] = uint16(cmp.Or(p.FirmBpsSOL, all.FirmBpsSOL))
	if p.PriceSource == "book" {
		s.Pair.Source = rfq.SourceBook
	}
	for _, word := range p.Rails {
		if rail, ok := market.ParseRail([]byte(word)); ok {
			s.Pair.Rails = s.Pair.Rails.With(rail)
		}
	}
	if s.Anchor, _, err = ParseUSDPrice(p.ReferencePriceUSD); err != nil {
		return s, fmt.Errorf("reference_price_usd: %w", err)
	}
	if s.Stocked {
		if s.Inventory, err = market.ParseDecimal([]byte(p.Inventory), p.BaseDecimals); err != nil {
			return s, fmt.Errorf("inventory: %q: %w", p.Inventory, err)
		}
	}
	return s, nil
}

// PriceAssets returns the assets that have rules, sorted by name, without their pools,
// which are a matter of the running mirror. Errors name the key.
func (c *Config) PriceAssets() (out []prices.Asset, err error) {
	for _, name := range slices.Sorted(maps.Keys(c.Prices)) {
		r := c.Prices[name]
		a := prices.Asset{Name: name, Rule: r.Rule(), Window: time.Duration(r.PoolWindowS) * time.Second}
		if r.Has(prices.Pyth) {
			if a.FeedID, a.Account, err = r.pyth(name); err != nil {
				return nil, fmt.Errorf("prices.%s.%w", name, err)
			}
		}
		out = append(out, a)
	}
	return out, nil
}

// priceAge returns how old the price of an asset may be, in nanoseconds: that of its rule,
// or the configured age of an operator's price.
func (c *Config) priceAge(asset string, operatorAgeS int) int64 {
	if r, ok := c.Prices[asset]; ok {
		return Nanos(r.MaxAgeS)
	}
	return Nanos(operatorAgeS)
}

// SolMaxAge returns how old the price of SOL may be, in nanoseconds; 0 = any age.
func (c *Config) SolMaxAge() int64 { return c.priceAge(SolAsset, c.RFQ.SOLMaxAgeS) }

// PricedByOperator returns the assets that are sold or paid with and have no rule, so that
// their prices are only as young as an operator's last command.
func (c *Config) PricedByOperator() (assets []string) {
	add := func(asset string) {
		if _, ok := c.Prices[asset]; !ok && !slices.Contains(assets, asset) {
			assets = append(assets, asset)
		}
	}
	for i := range c.RFQ.Pairs {
		p := &c.RFQ.Pairs[i]
		if slices.Contains(p.Rails, market.RailSOL.String()) && c.RFQ.PayTo.SOL != "" {
			add(SolAsset)
		}
		if p.PriceSource == "operator" {
			add(BaseOf(p.Symbol))
		}
	}
	return assets
}

// Mirrors reports whether any instrument is read from a chain.
func (c *Config) Mirrors() bool { return len(c.Mirror.Pairs) > 0 }

// UnreadInstruments returns the mirrored instruments without a pair: their books and
// trades do not change.
func (c *Config) UnreadInstruments() (symbols []string) {
	for i := range c.Instruments {
		in := &c.Instruments[i]
		named := func(p MirrorPair) bool { return p.Symbol == in.Symbol }
		if in.BookSource == market.Mirrored.String() && !slices.ContainsFunc(c.Mirror.Pairs, named) {
			symbols = append(symbols, in.Symbol)
		}
	}
	return symbols
}

// MirrorNodes returns the nodes that the mirror reads.
func (c *Config) MirrorNodes() ([]rpc.Upstream, error) {
	return upstreams(cmp.Or(c.Mirror.RPCURLs, c.Chain.RPCURLs))
}

// MirrorOptions returns the options of the mirror. Errors name the key.
func (c *Config) MirrorOptions(instruments []market.Instrument) (mirror.Options, error) {
	m := &c.Mirror
	tolerance := Seconds(m.ClockToleranceS)
	o := mirror.Options{
		Every: Millis(m.EveryMS), StaleAfter: Millis(m.StaleAfterMS), SnapshotEvery: Seconds(m.RecordEveryS),
		MaxBehind: tolerance, MaxAhead: tolerance, Lookback: time.Duration(m.ReachDays) * 24 * time.Hour,
	}
	if m.ReachDays == 0 {
		o.Lookback = -1
	}
	for i := range m.Pairs {
		p, err := m.Pairs[i].pair(instruments)
		if err != nil {
			return o, fmt.Errorf("mirror.pairs[%d].%w", i, err)
		}
		o.Pairs = append(o.Pairs, p)
	}
	return o, nil
}

func (c *MirrorPair) pair(instruments []market.Instrument) (p mirror.Pair, err error) {
	for i := range instruments {
		if instruments[i].Symbol == c.Symbol {
			p.Instrument = &instruments[i]
		}
	}
	if p.Instrument == nil || p.Instrument.Source != market.Mirrored {
		return p, fmt.Errorf("symbol: %q is not an instrument with book_source: mirrored", c.Symbol)
	}
	p.Base = coin(c.BaseMint, c.BaseDecimals)
	p.Quote = coin(c.QuoteMint, c.QuoteDecimals)
	if p.Book, err = c.Book.Listing(); err != nil {
		return p, fmt.Errorf("book.%w", err)
	}
	if p.Pool, err = c.Pool.Listing(); err != nil {
		return p, fmt.Errorf("pool.%w", err)
	}
	for i := range c.Observed {
		p.Observed = append(p.Observed, addressOr(c.Observed[i].Address, solana.Address{}))
	}
	return p, nil
}

func coin(mint string, decimals int) mirror.Coin {
	return mirror.Coin{Mint: addressOr(mint, solana.Address{}), Decimals: uint8(decimals)}
}

// Listing returns the order book to read; its Layout is 0 if there is none.
func (c *MirrorBook) Listing() (l mirror.Listing, err error) {
	var program solana.Address
	switch c.Layout {
	case mirror.Manifest.String():
		l.Layout, program = mirror.Manifest, solana.ManifestProgram
	case mirror.Serum.String():
		l.Layout, program = mirror.Serum, solana.OpenBookProgram
	case mirror.OpenBook.String():
		l.Layout, program = mirror.OpenBook, solana.OpenBookV2Program
	default:
		if *c != (MirrorBook{}) {
			err = errors.New("layout: must be one of manifest, serum, openbook")
		}
		return l, err
	}
	l.Program, l.Market = addressOr(c.Program, program), addressOr(c.Market, solana.Address{})
	return l, missing("market", l.Market)
}

// Listing returns the pool to read.
func (c *MirrorPool) Listing() (l mirror.PoolListing, err error) {
	switch c.Layout {
	case LayoutCPMM:
		if c.BaseVault != "" || c.QuoteVault != "" {
			return l, fmt.Errorf("base_vault, quote_vault: must be empty: a %s pool names its vaults", LayoutCPMM)
		}
		l.Program = addressOr(c.Program, solana.RaydiumCPMMProgram)
	case LayoutVaultPair:
		if c.Program != "" {
			return l, fmt.Errorf("program: must be empty: of a %s only the vaults are read", LayoutVaultPair)
		}
		l.BaseVault, l.QuoteVault = addressOr(c.BaseVault, solana.Address{}), addressOr(c.QuoteVault, solana.Address{})
		err = cmp.Or(missing("base_vault", l.BaseVault), missing("quote_vault", l.QuoteVault))
	default:
		if *c != (MirrorPool{}) {
			err = fmt.Errorf("layout: must be one of %s, %s", LayoutCPMM, LayoutVaultPair)
		}
		return l, err
	}
	l.Pool = addressOr(c.Address, solana.Address{})
	return l, cmp.Or(err, missing("address", l.Pool))
}

func missing(key string, a solana.Address) error {
	if a == (solana.Address{}) {
		return errors.New(key + ": missing")
	}
	return nil
}

// TokenWindow returns the least time between two DvP tokens of a client address.
func (c *Config) TokenWindow() time.Duration {
	perHour := c.HTTP.TokensPerHour
	if perHour == 0 && c.Demo {
		perHour = maxTokensPerHour // so that the pages, the SDKs and the documents work one after the other
	}
	return time.Hour / time.Duration(max(1, perHour))
}

// maxTokensPerHour is the largest value of http.tokens_per_hour.
const maxTokensPerHour = 3600

// sameGroup reports whether two symbols are in the same group.
func (c *Config) sameGroup(a, b string) bool {
	return !slices.ContainsFunc(c.Groups, func(g Group) bool {
		return slices.Contains(g.Instruments, a) != slices.Contains(g.Instruments, b)
	})
}
