package catalog

import "slices"

// statusChain is the status record's part about the chain and the RPC nodes.
type statusChain struct {
	Slot        uint64      `json:"slot"`
	AgeSeconds  int64       `json:"data_freshness_seconds"`
	Freshness   freshness   `json:"freshness"`
	Degradation degradation `json:"degradation_state"`
	ProofHash   string      `json:"proof_hash"`
	SyncedAt    Time        `json:"last_chain_sync_at"`
	Active      string      `json:"active_rpc_url"`
	Policy      rpcPolicy   `json:"rpc_policy"`
	Health      rpcHealth   `json:"rpc_health"`
}

type freshness struct {
	AgeSeconds int64  `json:"data_freshness_seconds"`
	SyncedAt   Time   `json:"last_chain_sync_at"`
	LastAt     Time   `json:"last_indexed_trade_ts"`
	LastAge    *int64 `json:"last_indexed_trade_age_seconds"`
	Windows    struct {
		Day  string `json:"h24"`
		Week string `json:"d7"`
	} `json:"rolling_window_status"`
}

type degradation struct {
	Degraded    bool     `json:"degraded"`
	Reasons     []string `json:"reasons"`
	Failover    bool     `json:"rpc_failover_active"`
	Upstreams   int      `json:"rpc_upstream_count"`
	PriceSource string   `json:"price_source"`
}

type rpcPolicy struct {
	Selection string   `json:"selection_mode"`
	Count     int      `json:"configured_upstream_count"`
	Upstreams []string `json:"configured_upstreams"`
	Primary   string   `json:"preferred_primary"`
	Fallbacks []string `json:"fallback_upstreams"`
	Active    string   `json:"active_upstream"`
}

type rpcHealth struct {
	Active    string           `json:"activeRpcUrl"`
	LatencyMS *int64           `json:"rpcLatencyMs"`
	Slot      uint64           `json:"latestSlotSeen"`
	Signature string           `json:"lastSignatureSeen"`
	SyncedAt  Time             `json:"lastChainSyncAt"`
	Lag       *uint64          `json:"slotLag"`
	Primary   string           `json:"primary"`
	Fallback  string           `json:"fallback"`
	Providers []providerRecord `json:"providers"`
}

type providerRecord struct {
	URL       string  `json:"url"`
	Available bool    `json:"available"`
	Slot      uint64  `json:"latestSlot"`
	LatencyMS *int64  `json:"latencyMs"`
	LastOkAt  Time    `json:"lastOkAt"`
	LastError *string `json:"lastError"`
}

func newStatusChain(f *Facts, p *Pair) statusChain {
	c := &f.Chain
	reasons := degradedBy(f, p)
	age := chainAge(f)
	s := statusChain{
		Slot: c.Slot, AgeSeconds: age, ProofHash: hashOf(newProofSubject(f)), SyncedAt: c.SyncedAt, Active: c.Active,
		Degradation: degradation{
			Degraded: len(reasons) > 0, Reasons: reasons, Failover: c.Failover,
			Upstreams: len(c.Providers), PriceSource: p.PriceSource.String(),
		},
		Freshness: freshness{
			AgeSeconds: age, SyncedAt: c.SyncedAt, LastAt: p.Windows.LastAt, LastAge: ageAt(f, p.Windows.LastAt),
		},
		Policy: rpcPolicy{
			Selection: c.Selection, Count: len(c.Providers), Primary: c.Primary,
			Upstreams: records(f, c.Providers, func(_ *Facts, p *Provider) string { return p.URL }),
			Fallbacks: append([]string{}, c.Fallbacks...), Active: c.Active,
		},
		Health: rpcHealth{
			Active: c.Active, LatencyMS: c.LatencyMS, Slot: c.MaxSlot, Signature: c.LastSig, SyncedAt: c.SyncedAt,
			Lag: c.SlotBehind, Primary: c.Primary, Providers: records(f, c.Providers, newProviderRecord),
		},
	}
	s.Freshness.Windows.Day, s.Freshness.Windows.Week = p.Windows.Day.brief(), p.Windows.Week.brief()
	if len(c.Fallbacks) > 0 {
		s.Health.Fallback = c.Fallbacks[0]
	}
	return s
}

// chainAge returns the seconds since the last reading of the chain, or since the start
// if there was none. Without a chain it is 0: all figures are the engine's own.
func chainAge(f *Facts) int64 {
	switch {
	case !f.Chain.Configured:
		return 0
	case f.Chain.SyncedAt == 0:
		return seconds(f.Service.ConfiguredAt, f.At)
	default:
		return seconds(f.Chain.SyncedAt, f.At)
	}
}

// Reasons of degradation that follow from the facts. The last is from
// docs/specification.md 2.5, the others are our choice.
const (
	reasonNotMainnet = "not_mainnet"
	reasonNetwork    = "network_unknown"

	reasonNoChain   = "chain_not_configured"
	reasonNotSynced = "chain_not_synced"
	reasonHalted    = "trading_halted"
	reasonNoTrade   = "no_trade_yet"
	reasonNoPrice   = "no_price"
	reasonVaults    = "live_price_using_verified_vault_snapshot"
)

// degradedBy returns all reasons why a pair is degraded.
func degradedBy(f *Facts, p *Pair) []string {
	c := &f.Chain
	all := append([]string{}, c.Reasons...)
	for _, reason := range p.Reasons {
		if !slices.Contains(all, reason) {
			all = append(all, reason)
		}
	}
	for _, r := range []struct {
		holds  bool
		reason string
	}{
		{f.Service.Network != ExecutionNetwork, reasonNotMainnet},
		{f.Service.NetworkUnknown, reasonNetwork},
		{!c.Configured, reasonNoChain},
		{c.Configured && !c.Synced, reasonNotSynced},
		{p.Halted, reasonHalted},
		{p.LastAt == 0 && p.Windows.LastAt == 0, reasonNoTrade},
		{p.PriceSource != FromVaultSnapshot && p.PriceUSD == 0, reasonNoPrice},
		{p.PriceSource == FromVaultSnapshot, reasonVaults},
	} {
		if r.holds && !slices.Contains(all, r.reason) {
			all = append(all, r.reason)
		}
	}
	return all
}

func newProviderRecord(_ *Facts, p *Provider) providerRecord {
	return providerRecord{p.URL, p.Available, p.LatestSlot, p.LatencyMS, p.LastOkAt, nullable(p.LastError)}
}

// Reasons returns why the documents publish a pair as degraded; nil if there is no such
// pair, or f is nil.
func (f *Facts) Reasons(symbol string) []string {
	if p := f.pair(symbol); p != nil {
		return degradedBy(f, p)
	}
	return nil
}
