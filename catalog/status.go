package catalog

import (
	"cmp"
	"strconv"
)

// Constants of the service (docs/specification.md 1.7, 1.11, 2 and 9).
const (
	APIVersion       = "1.1.0"
	ControlChainID   = 1492
	ControlChainRole = "orchestration and runtime chain; not a JSON-RPC endpoint"
	ExecutionNetwork = "solana-mainnet-beta" // where trades execute
	settlementSymbol = "USDC"
	settlementRole   = "canonical_settlement_rail"
)

// feeModel returns fee_model, "fixed_5_percent" for 500.
func feeModel(bps uint16) string {
	const whole = 100 // basis points of a percent
	if bps%whole == 0 {
		return "fixed_" + strconv.Itoa(int(bps/whole)) + "_percent"
	}
	return "fixed_" + strconv.Itoa(int(bps)) + "_bps"
}

// statusRecord is the market status record, members in the order of
// docs/specification.md 2.5.
type statusRecord struct {
	OK       bool   `json:"ok"`
	DataMode string `json:"data_mode"`
	Fallback bool   `json:"fallback_active"`
	Version  string `json:"api_version"`
	Source   string `json:"source"`
	Schema   string `json:"schema"`
	Scope    string `json:"proof_scope"`
	Network  string `json:"execution_network"`
	statusPair
	ControlChain int    `json:"control_chain_id"`
	ChainRole    string `json:"control_chain_role"`
	ChainRPC     bool   `json:"control_chain_rpc_compatible"`
	At           Time   `json:"timestamp_exact"`
	UpdatedAt    Time   `json:"updated_at"`
	statusAssets
	statusPrices
	statusTotals
	Activity activityTotals `json:"activity_totals"`
	statusSnapshots
	Pool    *poolState `json:"onchain_pool_state"`
	Rolling rolling    `json:"rolling_windows"`
	statusBacking
	LastTradeAt Time   `json:"last_trade_ts"`
	LastTrade   string `json:"last_trade_signature"`
	statusChain
	Sources   map[string]string            `json:"sources"`
	Endpoints map[string]map[string]string `json:"endpoint_sets"`
	Roles     map[string]serviceRole       `json:"service_roles"`
	Proof     proofRecord                  `json:"proof"`
}

type statusPair struct {
	Canonical string `json:"canonical_pair_id"`
	Pair      string `json:"pair_id"`
	Label     string `json:"pair_label"`
	Market    string `json:"market_name"`
}

type statusAssets struct {
	ProgramID       string `json:"program_id"`
	PoolID          string `json:"pool_id"`
	Base            string `json:"base_asset_symbol"`
	QuoteOnchain    string `json:"quote_onchain_symbol"`
	QuotePublic     string `json:"quote_public_symbol"`
	QuoteLabel      string `json:"quote_public_label"`
	Settlement      string `json:"settlement_asset_symbol"`
	SettlementLabel string `json:"settlement_asset_label"`
	SettlementRole  string `json:"settlement_role"`
}

// statusPrices are the canonical pair's prices. The gross price includes the fee, the
// net price does not and is rounded down. All are null if nothing prices the pair.
type statusPrices struct {
	Spot        *Decimal `json:"spot_price_usd"`
	Live        *Decimal `json:"current_live_price_usd"`
	LiveGross   *Decimal `json:"current_live_price_gross_usd"`
	LiveNet     *Decimal `json:"current_live_price_net_usd"`
	Gross       *Decimal `json:"price_gross_usd"`
	Net         *Decimal `json:"price_net_usd"`
	LockedFloor *Decimal `json:"locked_floor_price_usd"`
	LiveFloor   *Decimal `json:"current_live_floor_price_usd"`
	FloorLocked bool     `json:"floor_locked"`
	TruthMode   string   `json:"price_truth_mode"`
	Summary     string   `json:"price_source_summary"`
	MarketScope string   `json:"market_scope"`
	Delta       *Percent `json:"delta_24h_percent"`
	DeltaStatus string   `json:"delta_24h_status"`
}

// rolling is rolling_windows.
type rolling struct {
	Day          Decimal  `json:"exact_24h_volume_usd"`
	Week         Decimal  `json:"exact_7d_volume_usd"`
	Delta        *Percent `json:"exact_delta_24h_percent"`
	LastAt       Time     `json:"exact_last_indexed_trade_ts"`
	LastAge      *int64   `json:"exact_last_indexed_trade_age_seconds"`
	ReferenceAt  Time     `json:"exact_window_reference_trade_ts"`
	DayStatus    string   `json:"status_24h"`
	WeekStatus   string   `json:"status_7d"`
	WindowPolicy string   `json:"policy"`
}

// windowPolicy is rolling_windows.policy.
const windowPolicy = "exact_from_trades_no_synthetic_volume"

// statusBacking is the value of the displayed book and of the guarantee accounts at the
// pair's price, rounded down.
type statusBacking struct {
	Visible   Decimal `json:"visible_liquidity_usd"`
	Guarantee Decimal `json:"guarantee_liquidity_usd"`
	Total     Decimal `json:"total_backing_estimate_usd"`
}

// serviceRole is one surface of the service (docs/specification.md 1.8).
type serviceRole struct {
	Role      string   `json:"role"`
	BaseURL   string   `json:"base_url"`
	ReadModel bool     `json:"public_read_model"`
	RPC       bool     `json:"rpc_compatible"`
	Checks    []string `json:"health_checks"`
}

type proofRecord struct {
	Truth        string `json:"source_of_truth"`
	Verification string `json:"verification_status"`
	Executable   string `json:"executable_hash"`
	Commit       string `json:"source_commit"`
}

// poolState is onchain_pool_state.
type poolState struct {
	poolReading
	// ProofHash is the hash of poolReading.
	ProofHash string `json:"proof_hash"`
}

// poolReading is a pool's state as read from the chain.
type poolReading struct {
	Pool       string   `json:"pool_id"`
	BaseMint   string   `json:"base_mint"`
	QuoteMint  string   `json:"quote_mint"`
	BaseVault  string   `json:"base_vault"`
	QuoteVault string   `json:"quote_vault"`
	BaseAtoms  string   `json:"base_vault_balance_atoms"`
	Base       Decimal  `json:"base_vault_balance"`
	QuoteAtoms string   `json:"quote_vault_balance_atoms"`
	Quote      Decimal  `json:"quote_vault_balance"`
	Spot       *Decimal `json:"spot_price_usd"`
	Slot       uint64   `json:"slot"`
	SeenAt     Time     `json:"ts"`
}

// Status returns the market status record.
func Status(f *Facts, schema string) any {
	pair := f.canonical()
	r := &statusRecord{
		OK: true, DataMode: dataMode(f), Fallback: chainFallback(f), Version: APIVersion,
		Source: pair.source(), Schema: schema, Scope: proofScope(f), Network: f.Service.Network,
		statusPair: statusPair{
			Canonical: pair.Symbol, Pair: pair.Symbol, Label: pair.Base + " / " + pair.Quote, Market: f.Service.Market,
		},
		ControlChain: ControlChainID, ChainRole: ControlChainRole, At: f.At, UpdatedAt: updatedAt(f),
		statusAssets: newStatusAssets(f, pair), statusPrices: newStatusPrices(f, pair), statusTotals: newStatusTotals(f, pair),
		statusSnapshots: newStatusSnapshots(f), Pool: pair.Pool.record(), Rolling: newRolling(f, pair), statusBacking: newStatusBacking(f, pair),
		LastTradeAt: pair.LastAt, LastTrade: pair.LastSignature, statusChain: newStatusChain(f, pair),
		Sources: sourceURLs(f.URLs.Base), Endpoints: endpointSets(f), Roles: serviceRoles(f), Proof: newProofRecord(f),
	}
	r.Activity = newActivityTotals(f, pair, &r.statusTotals)
	return r
}

// dataMode returns data_mode. Its values are our choice.
func dataMode(f *Facts) string {
	switch {
	case !f.Chain.Configured:
		return "engine_live"
	case f.Chain.Synced:
		return "engine_and_chain_live"
	default:
		return "engine_live_chain_last_known"
	}
}

// proofScope returns proof_scope. Its values are our choice.
func proofScope(f *Facts) string {
	if !f.Chain.Configured {
		return "matched_books"
	}
	return "matched_books_and_finalized_chain_reads"
}

func (p *Pair) source() string { return p.Source.String() + "_book" }

// updatedAt returns the time of the last change.
func updatedAt(f *Facts) Time {
	last := f.Chain.SyncedAt
	for i := range f.Pairs {
		last = max(last, f.Pairs[i].LastAt)
	}
	if last == 0 {
		return f.At
	}
	return last
}

func newStatusAssets(f *Facts, p *Pair) statusAssets {
	quote := f.token(p.Quote)
	a := statusAssets{
		ProgramID: f.Service.ProgramID, Base: p.Base, QuoteOnchain: cmp.Or(quote.OnchainSymbol, quote.Symbol), QuotePublic: quote.Symbol,
		QuoteLabel: quote.Name, Settlement: settlementSymbol, SettlementLabel: f.token(settlementSymbol).Name,
		SettlementRole: settlementRole,
	}
	if p.Pool != nil {
		a.PoolID = p.Pool.Address
	}
	return a
}

func newStatusPrices(f *Facts, p *Pair) statusPrices {
	day := &p.Windows.Day
	price, floor := dollarPrice(p.PriceUSD), dollarPrice(p.Floor)
	net := dollarPrice(lessFee(p.PriceUSD, f.Service.FeeBps))
	s := statusPrices{
		Spot: price, Live: price, LiveGross: price, Gross: price, LiveNet: net, Net: net,
		LockedFloor: floor, LiveFloor: floor, FloorLocked: floor != nil, TruthMode: p.PriceSource.String(),
		Summary: p.PriceSource.summary(), MarketScope: "canonical_pair",
		Delta: day.DeltaPercent, DeltaStatus: statusExact,
	}
	if day.DeltaPercent == nil {
		s.DeltaStatus = statusNoReference
	}
	return s
}

// summary returns price_source_summary.
func (s PriceSource) summary() string {
	switch s {
	case FromBook:
		return "middle of the best bid and ask of the service's own order book"
	case FromOperator:
		return "anchor that the operator has set, with its corridor"
	case FromChainBook:
		return "middle of the best bid and ask of the order book on chain"
	case FromVaultSnapshot:
		return "ratio of the pool's vaults as they were last verified on chain"
	default:
		return "nothing prices this pair now"
	}
}

// Window statuses. The first three are from docs/specification.md 2.5, the others are
// our choice.
const (
	statusNone24h     = "no_indexed_swaps_in_24h_window"
	statusNone7d      = "no_indexed_swaps_in_7d_window"
	statusNoReference = "no_indexed_reference_trade_in_24h_window"
	statusExact       = "exact"
	statusUnproven    = "window_not_proven"
)

// status returns status_24h or status_7d; none is the value for a window without trades.
func (w *Window) status(none string) string {
	switch w.Status {
	case WindowExact:
		return statusExact
	case WindowNoTrades:
		return none
	default:
		return cmp.Or(w.Why, statusUnproven)
	}
}

// brief returns the status in freshness.rolling_window_status.
func (w *Window) brief() string {
	if w.Status == WindowExact {
		return statusExact
	}
	return "degraded_or_empty"
}

func newRolling(f *Facts, p *Pair) rolling {
	w := &p.Windows
	return rolling{
		Day: dollars(w.Day.VolumeUSD), Week: dollars(w.Week.VolumeUSD), Delta: w.Day.DeltaPercent, LastAt: w.LastAt, LastAge: ageAt(f, w.LastAt),
		ReferenceAt: w.Day.ReferenceAt, DayStatus: w.Day.status(statusNone24h), WeekStatus: w.Week.status(statusNone7d),
		WindowPolicy: windowPolicy,
	}
}

// ageAt returns the age of then at Facts.At in whole seconds; nil if then is none.
func ageAt(f *Facts, then Time) *int64 {
	if then == 0 {
		return nil
	}
	age := seconds(then, f.At)
	return &age
}

// wasRead reports whether there is a pool and it was read.
func (p *Pool) wasRead() bool { return p != nil && p.Slot > 0 }

// record returns onchain_pool_state; nil unless the pool was read.
func (p *Pool) record() *poolState {
	if !p.wasRead() {
		return nil
	}
	seen := poolReading{
		Pool: p.Address, BaseMint: p.BaseMint, QuoteMint: p.QuoteMint, BaseVault: p.BaseVault, QuoteVault: p.QuoteVault,
		BaseAtoms: strconv.FormatUint(uint64(p.BaseAtoms), 10), Base: wholeUnits(p.BaseAtoms, p.BaseDecimals),
		QuoteAtoms: strconv.FormatUint(uint64(p.QuoteAtoms), 10), Quote: wholeUnits(p.QuoteAtoms, p.QuoteDecimals),
		Spot: dollarPrice(p.Spot), Slot: p.Slot, SeenAt: p.At,
	}
	return &poolState{seen, hashOf(seen)}
}

func newProofRecord(f *Facts) proofRecord {
	p := proofRecord{
		Truth: "journal_of_the_engine", Verification: "reproducible_by_replay",
		Executable: f.Service.Build.ExecutableHash, Commit: f.Service.Build.SourceCommit,
	}
	if f.Chain.Configured {
		p.Truth = "journal_of_the_engine_and_finalized_chain_state"
	}
	return p
}

// sourceURLs returns the reads that the status record summarizes, on one address.
func sourceURLs(base string) map[string]string {
	all := map[string]string{}
	for _, name := range []string{"status", "ticker", "depth", "trades", "klines", "pools", "proof"} {
		all[name] = base + marketPath(name)
	}
	return all
}

// endpointSets returns those reads on each address, and the streams.
func endpointSets(f *Facts) map[string]map[string]string {
	return map[string]map[string]string{
		"public": sourceURLs(f.URLs.Base), "registry": sourceURLs(f.URLs.API),
		"stream": {
			"websocket": f.URLs.WS + "/ws/rfq", "websocket_health": f.URLs.API + "/ws/rfq/health",
			"server_sent_events": f.URLs.Base + marketPath("stream"),
		},
	}
}

// serviceRoles returns the service's surfaces (docs/specification.md 1.8).
func serviceRoles(f *Facts) map[string]serviceRole {
	check := func(base, path string) []string { return []string{base + path} }
	return map[string]serviceRole{
		"public_mirror": {
			Role: "canonical_public_market_source", BaseURL: f.URLs.Mirror, ReadModel: true,
			Checks: check(f.URLs.Mirror, "/api/v1/rfq/status"),
		},
		"registry_backend": {
			Role: "historical_dex_execution_surface", BaseURL: f.URLs.API, ReadModel: true,
			Checks: check(f.URLs.API, "/ws/rfq/health"),
		},
		"native_backend": {
			Role: "control_chain_runtime_proxy", BaseURL: f.URLs.Native,
			Checks: check(f.URLs.Native, "/rfq-native/market-tickets.json"),
		},
		"public_frontend": {
			Role: "human_surface_and_market_proxy", BaseURL: f.URLs.Base, ReadModel: true,
			Checks: check(f.URLs.Base, "/api/v1/market/status"),
		},
	}
}
