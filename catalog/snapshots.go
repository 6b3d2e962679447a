package catalog

import (
	"cmp"
	"slices"

	"blockdesk/market"
)

// statusSnapshots is the status record's part about snapshots (docs/specification.md 2.6).
type statusSnapshots struct {
	Current       *activeSnapshot   `json:"current_active_snapshot"`
	History       []snapshotRecord  `json:"historical_snapshots"`
	HistoryAlias  []snapshotRecord  `json:"historicalSnapshots"`
	Feeds         []snapshotFeed    `json:"historicalSnapshotFeeds"`
	Hierarchy     snapshotHierarchy `json:"snapshot_hierarchy"`
	Layers        metricsLayers     `json:"metrics_layers"`
	Estimated     publicMetrics     `json:"estimated_public"`
	Reconstructed publicMetrics     `json:"reconstructed_public_metrics"`
	Coherence     coherenceCheck    `json:"coherence_check"`
}

// snapshotRecord is one recorded state.
type snapshotRecord struct {
	Key        string       `json:"key"`
	Label      string       `json:"label"`
	Heading    string       `json:"heading"`
	At         Time         `json:"time"`
	Current    bool         `json:"current"`
	Pool       string       `json:"pool_id"`
	LPMint     string       `json:"lp_token_mint"`
	BaseVault  Decimal      `json:"base_vault_ui"`
	QuoteVault Decimal      `json:"quote_vault_ui"`
	Swaps      uint64       `json:"swaps_total"`
	Traders    uint64       `json:"traders_estimated"`
	Volume     Decimal      `json:"volume_usd"`
	Fees       Decimal      `json:"fees_usd"`
	FeeRate    rate         `json:"fee_rate"`
	FeeBps     uint16       `json:"fee_bps"`
	Price      *Decimal     `json:"implied_pair_price"`
	Source     string       `json:"snapshot_source"`
	Reference  string       `json:"snapshot_reference"`
	Coherence  feeCoherence `json:"fee_coherence"`
}

// activeSnapshot is the snapshot from which the public totals are taken.
type activeSnapshot struct {
	snapshotRecord
	CurrentVolume  Decimal  `json:"current_volume_usd"`
	CurrentSwaps   uint64   `json:"current_swaps"`
	CurrentTraders uint64   `json:"current_traders_estimated"`
	CurrentFees    Decimal  `json:"current_fees_usd"`
	CurrentRate    rate     `json:"current_fee_rate"`
	CurrentPrice   *Decimal `json:"current_pair_price"`
	CurrentAt      Time     `json:"current_timestamp"`
}

// snapshotFeed is the variant of a snapshot with balances in upper-case members.
type snapshotFeed struct {
	Key            string   `json:"key"`
	BaseVault      Decimal  `json:"BASE_VAULT"`
	QuoteVault     Decimal  `json:"QUOTE_VAULT"`
	UserBase       Decimal  `json:"USER_BASE_ATA"`
	UserQuote      Decimal  `json:"USER_QUOTE_ATA"`
	TotalBase      Decimal  `json:"TOTAL_BASE"`
	TotalQuote     Decimal  `json:"TOTAL_QUOTE"`
	UpdatedAt      Time     `json:"last_updated"`
	Swaps          uint64   `json:"swaps_total"`
	VolumeTokens   Decimal  `json:"volume_tokens_total"`
	Volume         Decimal  `json:"volume_usd_est_total"`
	FeesTokens     Decimal  `json:"fees_tokens_est_total"`
	Fees           Decimal  `json:"fees_usd_est_total"`
	Traders        uint64   `json:"negociants_est_total"`
	SwapsPerTrader *Decimal `json:"swaps_per_negociant_estimate"` // rounded down
	TradersLabel   string   `json:"negociants_label"`
}

// snapshotHierarchy says which snapshot is current. A member is null if there is no such
// snapshot.
type snapshotHierarchy struct {
	Rule         string  `json:"selection_rule"`
	SelectedKey  *string `json:"selected_current_snapshot_key"`
	SelectedAt   Time    `json:"selected_current_snapshot_time"`
	AvailableKey *string `json:"latest_available_snapshot_key"`
	AvailableAt  Time    `json:"latest_available_snapshot_time"`
	HistoryKey   *string `json:"latest_historical_snapshot_key"`
	HistoryAt    Time    `json:"latest_historical_snapshot_time"`
	Count        int     `json:"historical_count"`
	Sorted       bool    `json:"historical_sorted_desc"`
	IsLatest     bool    `json:"current_is_latest"`
}

// metricsLayers describes the layers of totals; our choice.
type metricsLayers struct {
	Exact         string `json:"onchain_exact"`
	Reconstructed string `json:"historical_reconstructed"`
	Matched       string `json:"matched_exact"`
	Public        string `json:"public_totals"`
}

// publicMetrics are totals of one layer.
type publicMetrics struct {
	Swaps   uint64  `json:"swaps_total"`
	Volume  Decimal `json:"volume_usd"`
	Fees    Decimal `json:"fees_usd"`
	Traders uint64  `json:"traders_estimated"`
}

type coherenceCheck struct {
	Status    string       `json:"coherence_status"`
	FeeVolume string       `json:"onchain_fee_volume_status"`
	Fees      feeCoherence `json:"fee_coherence"`
}

const selectionRule = "latest_snapshot_by_timestamp"

func (s *Snapshot) record(current bool) snapshotRecord {
	return snapshotRecord{
		Key: s.Key, Label: s.Label, Heading: s.Heading, At: s.At, Current: current, Pool: s.Pool, LPMint: s.LPMint,
		BaseVault: s.BaseVault, QuoteVault: s.QuoteVault, Swaps: s.Swaps, Traders: s.Traders,
		Volume: dollars(s.VolumeUSD), Fees: dollars(s.FeesUSD), FeeRate: rate(s.FeeBps), FeeBps: s.FeeBps,
		Price: dollarPrice(s.Price), Source: s.Source, Reference: s.Reference,
		Coherence: s.coherence(),
	}
}

func (s *Snapshot) feed() snapshotFeed {
	v := snapshotFeed{
		Key: s.Key, BaseVault: s.BaseVault, QuoteVault: s.QuoteVault, UserBase: s.UserBase, UserQuote: s.UserQuote,
		TotalBase: s.TotalBase, TotalQuote: s.TotalQuote, UpdatedAt: s.At, Swaps: s.Swaps,
		VolumeTokens: s.VolumeTokens, Volume: dollars(s.VolumeUSD), FeesTokens: s.FeesTokens, Fees: dollars(s.FeesUSD),
		Traders: s.Traders, TradersLabel: "distinct signers of decoded swaps",
	}
	if s.Traders > 0 {
		const hundredths = 100
		if each, err := market.MulDivFloor(s.Swaps, hundredths, s.Traders); err == nil {
			v.SwapsPerTrader = &Decimal{Units: market.Uint128{Lo: each}, Decimals: 2}
		}
	}
	return v
}

func newStatusSnapshots(f *Facts) statusSnapshots {
	p := f.canonical()
	s := statusSnapshots{
		History: []snapshotRecord{}, Feeds: []snapshotFeed{},
		Hierarchy: snapshotHierarchy{Rule: selectionRule, Sorted: true},
		Layers: metricsLayers{
			Exact:         "raw figures of finalized transactions; never promoted where fees and volume disagree",
			Reconstructed: "figures of the time before indexing began, from recorded snapshots",
			Matched:       "trades of the service's own order book, from its journal; no fee is taken on them",
			Public:        "the current active snapshot, the latest by its time; without one, the sum of the layers",
		},
		Estimated:     newPublicMetrics(f, p),
		Reconstructed: publicMetrics{Swaps: p.Totals.ReconstructedSwaps, Volume: dollars(p.Totals.ReconstructedUSD), Fees: dollars(p.Totals.ReconstructedFeesUSD)},
	}
	fees := coherence(p.Totals.OnchainSwaps, p.Totals.OnchainUSD, p.Totals.FeesUSD, f.Service.FeeBps)
	s.Coherence = coherenceCheck{Status: coherent, FeeVolume: coherent, Fees: fees}
	if fees.Status != coherent {
		s.Coherence.Status, s.Coherence.FeeVolume = separated, separated
	}
	if len(f.Snapshots) == 0 {
		s.HistoryAlias = s.History
		return s
	}
	addSnapshots(f, &s)
	return s
}

// addSnapshots fills in the members that need a snapshot. The history is all snapshots but
// the current one, newest first.
func addSnapshots(f *Facts, s *statusSnapshots) {
	at := currentIndex(f)
	current := &f.Snapshots[at]
	past := slices.Delete(slices.Clone(f.Snapshots), at, at+1)
	slices.SortStableFunc(past, func(a, b Snapshot) int { return cmp.Compare(b.At, a.At) })
	record := current.record(true)
	s.Current = &activeSnapshot{
		snapshotRecord: record, CurrentVolume: record.Volume, CurrentSwaps: record.Swaps, CurrentTraders: record.Traders,
		CurrentFees: record.Fees, CurrentRate: record.FeeRate, CurrentPrice: record.Price, CurrentAt: record.At,
	}
	s.Feeds = append(s.Feeds, current.feed())
	for i := range past {
		s.History = append(s.History, past[i].record(false))
		s.Feeds = append(s.Feeds, past[i].feed())
	}
	s.HistoryAlias = s.History
	h := &s.Hierarchy
	h.SelectedKey, h.SelectedAt = &current.Key, current.At
	h.AvailableKey, h.AvailableAt = &current.Key, current.At
	h.Count, h.IsLatest = len(past), true
	if len(past) > 0 {
		h.HistoryKey, h.HistoryAt = &past[0].Key, past[0].At
		h.IsLatest = current.At >= past[0].At
	}
}

func newPublicMetrics(f *Facts, p *Pair) publicMetrics {
	t := newStatusTotals(f, p)
	return publicMetrics{Swaps: t.Swaps, Volume: t.Volume, Fees: t.Fees, Traders: t.Traders}
}
