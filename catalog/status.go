package catalog

import (
	"cmp"
)

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

// serviceRole is one surface of the service (docs/specification.md 1.8).
type serviceRole struct {
	Role      string   `json:"role"`
	BaseURL   string   `json:"base_url"`
	ReadModel bool     `json:"public_read_model"`
	RPC       bool     `json:"rpc_compatible"`
	Checks    []string `json:"health_checks"`
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
		Sources: sourceURLs(f, f.URLs.Base), Endpoints: endpointSets(f), Roles: serviceRoles(f), Proof: newProofRecord(f),
	}
	r.Activity = newActivityTotals(f, pair, &r.statusTotals)
	return r
}

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

// sourceURLs returns the reads that the status record summarizes, on one address.
func sourceURLs(f *Facts, base string) map[string]string {
	all := map[string]string{}
	for _, name := range []string{"status", "ticker", "depth", "trades", "klines", "pools", "proof"} {
		if path, ok := f.readPath(name); ok {
			all[name] = base + path
		}
	}
	return all
}

// endpointSets returns those reads on each address, and the streams.
func endpointSets(f *Facts) map[string]map[string]string {
	return map[string]map[string]string{
		"public": sourceURLs(f, f.URLs.Base), "registry": sourceURLs(f, f.URLs.API),
		"stream": {
			"websocket": f.URLs.WS + "/ws/rfq", "websocket_health": f.URLs.API + "/ws/rfq/health",
			"server_sent_events": f.URLs.Base + marketPath("stream"),
		},
	}
}

// serviceRoles returns the service's surfaces (docs/specification.md 1.8), each with a read
// that answers while it works. Without a desk there is no native surface.
func serviceRoles(f *Facts) map[string]serviceRole {
	check := func(base, path string) []string { return []string{base + path} }
	mirrored := marketPath("symbols")
	if f.Desk.Enabled {
		mirrored = "/api/v1/rfq/status"
	}
	all := map[string]serviceRole{
		"public_mirror": {
			Role: "canonical_public_market_source", BaseURL: f.URLs.Mirror, ReadModel: true,
			Checks: check(f.URLs.Mirror, mirrored),
		},
		"registry_backend": {
			Role: "historical_dex_execution_surface", BaseURL: f.URLs.API, ReadModel: true,
			Checks: check(f.URLs.API, "/ws/rfq/health"),
		},
		"public_frontend": {
			Role: "human_surface_and_market_proxy", BaseURL: f.URLs.Base, ReadModel: true,
			Checks: check(f.URLs.Base, marketPath("status")),
		},
	}
	if f.Desk.Enabled {
		all["native_backend"] = serviceRole{
			Role: "control_chain_runtime_proxy", BaseURL: f.URLs.Native,
			Checks: check(f.URLs.Native, "/rfq-native/market-tickets.json"),
		}
	}
	return all
}
