package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"blockdesk/market"
)

// header begins the documents whose shape is our choice. At is the moment that
// the document is of.
type header struct {
	OK      bool   `json:"ok"`
	Schema  string `json:"schema"`
	Version string `json:"api_version"`
	At      Time   `json:"timestamp_exact"`
	Network string `json:"execution_network"`
}

func (f *Facts) header(schema string) header {
	return header{OK: true, Schema: schema, Version: APIVersion, At: f.At, Network: f.Service.Network}
}

// fixed is header for what the configuration alone makes.
func (f *Facts) fixed(schema string) header {
	h := f.header(schema)
	h.At = f.Service.ConfiguredAt
	return h
}

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

// Prices tells what each pair is worth now and where that is from.
func Prices(f *Facts, schema string) any {
	d := &priceList{header: f.header(schema), Canonical: f.canonical().Symbol, Prices: []priceRecord{}}
	for i := range f.Pairs {
		d.Prices = append(d.Prices, f.price(&f.Pairs[i]))
	}
	return d
}

func (f *Facts) price(p *Pair) priceRecord {
	return priceRecord{
		Symbol: p.Symbol, Price: dollarPrice(p.PriceUSD), Net: dollarPrice(lessFee(p.PriceUSD, f.Service.FeeBps)),
		Last: p.Last, Bid: p.Bid, Ask: p.Ask, Source: p.PriceSource.String(), LastAt: p.LastAt,
		Epoch: p.Epoch, Seq: p.Seq, Delta: p.Windows.Day.DeltaPercent, Degraded: len(f.reasons(p)) > 0,
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

// MarketCaps tells supply × price of each token that a pair prices, rounded down.
func MarketCaps(f *Facts, schema string) any {
	d := &capList{header: f.header(schema), Tokens: []capRecord{}}
	for i := range f.Tokens {
		d.Tokens = append(d.Tokens, f.capOf(&f.Tokens[i]))
	}
	return d
}

func (f *Facts) capOf(t *Token) capRecord {
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

// worth is an amount at a price, in dollars rounded down; nil past 2^64
// millionths.
func worth(n market.Amount, decimals uint8, price market.USDPrice) *Decimal {
	const toUSD = market.USDPriceDecimals - market.USDDecimals
	product := market.Mul(uint64(n), uint64(price))
	whole, err := product.DivFloor(market.Pow10(int(decimals)))
	if err != nil {
		return nil
	}
	value := dollars(market.USD(whole / market.Pow10(toUSD)))
	return &value
}

// PriceUSD returns what a pair's base unit is worth and where that is from, as
// every document tells it; 0 where nothing prices it, or f is nil.
func (f *Facts) PriceUSD(symbol string) (market.USDPrice, PriceSource) {
	if f != nil {
		for i := range f.Pairs {
			if f.Pairs[i].Symbol == symbol {
				return f.Pairs[i].PriceUSD, f.Pairs[i].PriceSource
			}
		}
	}
	return 0, NoPrice
}

// ChainBook returns when a mirrored pair was last read from the chain, 0 for never,
// and whether its book has a bid or an ask that is of now, as every document tells
// it. There is neither where there is no such pair, or f is nil.
func (f *Facts) ChainBook(symbol string) (readAt Time, live bool) {
	if f != nil {
		for i := range f.Pairs {
			if p := &f.Pairs[i]; p.Symbol == symbol {
				return p.ReadAt, p.Bid != nil || p.Ask != nil
			}
		}
	}
	return 0, false
}

// Reasons returns why what a pair shows is less than it should be, as every
// document tells it; none where there is no such pair, or f is nil.
func (f *Facts) Reasons(symbol string) []string {
	if f != nil {
		for i := range f.Pairs {
			if f.Pairs[i].Symbol == symbol {
				return f.reasons(&f.Pairs[i])
			}
		}
	}
	return nil
}

// priceOf is the dollar price of a token: that of the first pair that sells it,
// or a dollar for USDC, which the desk takes for one.
func (f *Facts) priceOf(symbol string) market.USDPrice {
	for i := range f.Pairs {
		if f.Pairs[i].Base == symbol && f.Pairs[i].PriceUSD != 0 {
			return f.Pairs[i].PriceUSD
		}
	}
	if symbol == settlementSymbol {
		return market.USDPrice(market.Pow10(market.USDPriceDecimals))
	}
	return 0
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

// Pairs lists what is traded.
func Pairs(f *Facts, schema string) any {
	d := &pairList{
		header: f.header(schema), Canonical: f.canonical().Symbol, Count: len(f.Pairs), Pairs: []pairRecord{},
	}
	for i := range f.Pairs {
		d.Pairs = append(d.Pairs, f.pair(&f.Pairs[i]))
	}
	return d
}

func (f *Facts) pair(p *Pair) pairRecord {
	r := pairRecord{
		ID: p.Symbol, Symbol: p.Symbol, Base: p.Base, BaseMint: f.token(p.Base).Mint, Quote: p.Quote,
		QuoteMint: f.token(p.Quote).Mint, Source: p.Source.String(), Status: "trading",
		PriceDecimals: p.PriceDecimals, QtyDecimals: p.QtyDecimals, Tick: p.Tick, Lot: p.Lot, MinQty: p.MinQty,
		Price: dollarPrice(p.PriceUSD), Volume: p.BaseVolume24h, QuoteVolume: p.QuoteVolume24h, Trades: p.Trades24h,
		FeeBps: f.Service.FeeBps,
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

// Pools lists the pools on chain that back the pairs.
func Pools(f *Facts, schema string) any {
	d := &poolList{header: f.header(schema), Pools: []poolRecord{}}
	for i := range f.Pairs {
		if f.Pairs[i].Pool.wasRead() {
			d.Pools = append(d.Pools, f.pool(&f.Pairs[i]))
		}
	}
	d.Count = len(d.Pools)
	return d
}

func (f *Facts) pool(p *Pair) poolRecord {
	r := poolRecord{
		Symbol: p.Symbol, Program: p.Pool.Program, LPMint: known(p.Pool.LPMint), FeeBps: p.Pool.FeeBps,
		poolState: *p.Pool.record(),
	}
	r.Liquidity = f.liquidity(p)
	return r
}

// liquidity is what both vaults of a pair's pool hold in dollars, each rounded
// down; nil where one of them has no price.
func (f *Facts) liquidity(p *Pair) *Decimal {
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

// PoolAt returns the record of one pool by its address; false where there is none
// that has been read.
func PoolAt(f *Facts, schema, address string) (any, bool) {
	for i := range f.Pairs {
		if f.Pairs[i].Pool.wasRead() && f.Pairs[i].Pool.Address == address {
			return &poolDocument{f.header(schema), f.pool(&f.Pairs[i])}, true
		}
	}
	return nil, false
}

// HasPool reports whether a pair has the pool of this address, read or not.
func (f *Facts) HasPool(address string) bool { return slices.Contains(f.poolAddresses(), address) }

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

// settledFees is the fee on what the desk has delivered, rounded down.
func (f *Facts) settledFees() market.USD { return feeOf(f.Desk.SettledUSD, f.Service.FeeBps) }

// Fees tells the fee model and what was collected, the chain's raw figures apart.
func Fees(f *Facts, schema string) any {
	d := &feeList{
		header: f.header(schema), FeeBps: f.Service.FeeBps, FeeRate: rate(f.Service.FeeBps), Model: feeModel(f.Service.FeeBps),
		Settled: dollars(f.settledFees()), Pairs: []pairFees{},
	}
	for i := range f.Pairs {
		p, t := &f.Pairs[i], &f.Pairs[i].Totals
		d.Pairs = append(d.Pairs, pairFees{
			Symbol: p.Symbol, Volume: dollars(t.OnchainUSD), Raw: dollars(t.FeesUSD), Base: t.FeesBase, Quote: t.FeesQuote,
			Unknown: t.FeesUnknown, Coherence: coherence(t.OnchainSwaps, t.OnchainUSD, t.FeesUSD, f.Service.FeeBps),
		})
	}
	return d
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
		header: f.header(schema), Enabled: k.Enabled, Open: k.OpenTickets, Capacity: dollars(k.CapacityUSD),
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
}

// Debt tells what the desk owes: what claims whose end is open were promised, and
// payments that are to go back, each in its own money.
func Debt(f *Facts, schema string) any {
	k := &f.Desk
	return &debtRecord{
		header: f.header(schema), Promised: dollars(k.ReservedUSD), UnderWay: k.UnderWay, Refunds: k.RefundsDue,
		USDC: wholeUnits(k.RefundsUSDC, uint8(market.RailUSDC.Decimals())), SOL: wholeUnits(k.RefundsSOL, uint8(market.RailSOL.Decimals())),
	}
}

type proofDocument struct {
	header
	Proof   proofRecord  `json:"proof"`
	Subject proofSubject `json:"subject"`
	Hash    string       `json:"proof_hash"`
	How     string       `json:"recompute"`
}

// proofSubject is what the proof hash is of.
type proofSubject struct {
	At     Time        `json:"timestamp_exact"`
	Proof  proofRecord `json:"proof"`
	Slot   uint64      `json:"slot"`
	Pools  []poolState `json:"pools"`
	Prices []priceRef  `json:"prices"`
}

type priceRef struct {
	Symbol string   `json:"symbol"`
	Price  *Decimal `json:"price_usd"`
	Epoch  Epoch    `json:"epoch"`
	Seq    uint64   `json:"seq"`
}

// Proof tells what program runs, from what source, and a hash over what it says
// of the chain and the prices, which a reader can compute again.
func Proof(f *Facts, schema string) any {
	subject := f.proofSubject()
	return &proofDocument{
		header: f.header(schema), Proof: subject.Proof, Subject: subject, Hash: hashOf(subject),
		How: "sha256 of the member subject as it stands in this document, without spaces; a pool's, of the pool as it stands in subject, but for its proof_hash",
	}
}

func (f *Facts) proofSubject() proofSubject {
	s := proofSubject{At: f.At, Proof: f.proof(), Slot: f.Chain.Slot, Pools: []poolState{}, Prices: []priceRef{}}
	for i := range f.Pairs {
		p := &f.Pairs[i]
		s.Prices = append(s.Prices, priceRef{p.Symbol, dollarPrice(p.PriceUSD), p.Epoch, p.Seq})
		if p.Pool.wasRead() {
			s.Pools = append(s.Pools, *p.Pool.record())
		}
	}
	return s
}

// hashOf returns "sha256:" and the hash of a value's JSON, members in the order
// of the type.
func hashOf(value any) string {
	sum := sha256.Sum256(Encode(value))
	return "sha256:" + hex.EncodeToString(sum[:])
}
