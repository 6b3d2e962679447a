package catalog

import (
	"strconv"

	"blockdesk/market"
)

// statusTotals are the cumulative figures. The public totals are those of the current
// snapshot, the latest by its time (docs/specification.md 2.6, rule 1). Without a
// snapshot they are the sum of decoded swaps, reconstructed swaps and our own trades, and
// the fees are those that settled claims have paid, because no other fee is taken.
type statusTotals struct {
	Swaps              uint64  `json:"swaps_total"`
	SwapsOnchain       uint64  `json:"swaps_total_onchain"`
	SwapsReconstructed uint64  `json:"swaps_total_reconstructed"`
	Day                Decimal `json:"volume_24h_usd"`
	Week               Decimal `json:"volume_7d_usd"`
	Volume             Decimal `json:"volume_cumulative_usd"`
	VolumeOnchain      Decimal `json:"volume_cumulative_onchain"`
	VolumeReconstruct  Decimal `json:"volume_cumulative_reconstructed"`
	Fees               Decimal `json:"fees_cumulative_usd"`
	FeesOnchainRaw     Decimal `json:"fees_cumulative_onchain_raw"`
	FeesReconstructed  Decimal `json:"fees_cumulative_reconstructed"`
	FeesPaid           Decimal `json:"fees_paid_cumulative_usd"`
	FeesCollected      Decimal `json:"fees_collected_cumulative_usd"`
	FeesBase           Decimal `json:"fees_base_cumulative_ui"`
	FeesQuote          Decimal `json:"fees_quote_cumulative_ui"`
	FeesUnknown        Decimal `json:"fees_unknown_cumulative_ui"`
	FeeBps             uint16  `json:"fee_bps"`
	FeeRate            rate    `json:"fee_rate"`
	FeeModel           string  `json:"fee_model"`
	Traders            uint64  `json:"traders_estimated_total"`
	TradersAlias       uint64  `json:"estimated_traders_total"`
}

// activityTotals repeats the totals with their sources.
type activityTotals struct {
	statusTotals
	TradersEstimated uint64        `json:"traders_estimated"`
	TradersSource    string        `json:"traders_estimated_source"`
	TradersTotal     uint64        `json:"traders_total_estimated"`
	Onchain          layer         `json:"onchain_exact"`
	Reconstructed    layer         `json:"historical_reconstructed"`
	Matched          matchedLayer  `json:"matched_exact"`
	Sales            salesLayer    `json:"rfq_settled"`
	Coherence        *feeCoherence `json:"fee_coherence"`
}

// layer is one source of totals: decoded from the chain, or reconstructed.
type layer struct {
	Swaps     uint64  `json:"swaps_total"`
	Volume    Decimal `json:"volume_usd"`
	Fees      Decimal `json:"fees_usd"`
	FeesBase  Decimal `json:"fees_base_ui"`
	FeesQuote Decimal `json:"fees_quote_ui"`
	Status    string  `json:"onchain_fee_volume_status"`
}

// matchedLayer are the totals of our own book, which charges no fee (our choice).
type matchedLayer struct {
	Trades uint64  `json:"trades_total"`
	Volume Decimal `json:"volume_usd"`
}

// salesLayer are the desk's settled claims of the pair. They are no trades of the book, and no
// other total has them.
type salesLayer struct {
	Trades    uint64  `json:"trades_total"`
	Volume    Decimal `json:"volume_usd"`
	Fees      Decimal `json:"fees_usd"`
	DayTrades uint64  `json:"trades_24h"`
	Day       Decimal `json:"volume_24h_usd"`
}

func newSalesLayer(s *Sales) salesLayer {
	return salesLayer{s.Count, dollars(s.VolumeUSD), dollars(s.FeesUSD), s.DayCount, dollars(s.DayUSD)}
}

// separated is the status of fees that do not match the volume (docs/specification.md
// 2.5).
const separated = "separated_due_to_fee_volume_mismatch"

func newStatusTotals(f *Facts, p *Pair) statusTotals {
	t := &p.Totals
	s := statusTotals{
		Swaps: t.OnchainSwaps + t.ReconstructedSwaps + t.MatchedTrades, SwapsOnchain: t.OnchainSwaps, SwapsReconstructed: t.ReconstructedSwaps,
		Day: dollars(p.Windows.Day.VolumeUSD), Week: dollars(p.Windows.Week.VolumeUSD),
		Volume:        dollars(t.OnchainUSD + t.ReconstructedUSD + t.MatchedUSD),
		VolumeOnchain: dollars(t.OnchainUSD), VolumeReconstruct: dollars(t.ReconstructedUSD),
		Fees:           dollars(f.Desk.FeesUSD),
		FeesOnchainRaw: dollars(t.FeesUSD), FeesReconstructed: dollars(t.ReconstructedFeesUSD),
		FeesPaid: dollars(f.Desk.FeesUSD), FeesCollected: dollars(f.Desk.FeesUSD),
		FeesBase: t.FeesBase, FeesQuote: t.FeesQuote, FeesUnknown: t.FeesUnknown,
		FeeBps: f.Service.FeeBps, FeeRate: rate(f.Service.FeeBps), FeeModel: feeModel(f.Service.FeeBps),
		Traders: t.Traders, TradersAlias: t.Traders,
	}
	if p.Source == market.Mirrored {
		s.Fees = dollars(0) // until a snapshot has recorded some
	}
	if len(f.Snapshots) > 0 {
		current := &f.Snapshots[currentIndex(f)]
		s.Swaps, s.Volume, s.Fees = current.Swaps, dollars(current.VolumeUSD), dollars(current.FeesUSD)
		s.Traders, s.TradersAlias = current.Traders, current.Traders
	}
	return s
}

func newActivityTotals(f *Facts, p *Pair, s *statusTotals) activityTotals {
	t := &p.Totals
	chain := coherence(t.OnchainSwaps, t.OnchainUSD, t.FeesUSD, f.Service.FeeBps)
	a := activityTotals{
		statusTotals: *s, TradersEstimated: s.Traders, TradersSource: t.TradersFrom, TradersTotal: s.Traders,
		Onchain: layer{
			Swaps: t.OnchainSwaps, Volume: dollars(t.OnchainUSD), Fees: dollars(t.FeesUSD),
			FeesBase: t.FeesBase, FeesQuote: t.FeesQuote, Status: coherent,
		},
		Reconstructed: layer{
			Swaps: t.ReconstructedSwaps, Volume: dollars(t.ReconstructedUSD),
			Fees: dollars(t.ReconstructedFeesUSD), Status: coherent,
		},
		Matched:   matchedLayer{t.MatchedTrades, dollars(t.MatchedUSD)},
		Sales:     newSalesLayer(&t.Sales),
		Coherence: &chain,
	}
	if a.TradersSource == "" {
		a.TradersSource = "not_counted"
	}
	if chain.Status != coherent {
		a.Onchain.Status = separated
	}
	return a
}

func newStatusBacking(f *Facts, p *Pair) statusBacking {
	return statusBacking{
		Visible: dollars(p.VisibleUSD), Guarantee: dollars(p.GuaranteeUSD), Total: dollars(p.VisibleUSD + p.GuaranteeUSD),
	}
}

// feeCoherence compares reported fees with volume × fee rate.
type feeCoherence struct {
	Status     string  `json:"status"`
	Expected   Decimal `json:"expected_fees_usd"`
	Reported   Decimal `json:"reported_fees_usd"`
	Difference Decimal `json:"difference_usd"` // without its sign
}

// Values of fee_coherence.status (docs/specification.md 2.5).
const (
	coherent = "coherent"
	mismatch = "fee_volume_mismatch"
)

// coherence compares reported fees with the expected ones. It allows a difference of one
// millionth of a dollar a swap, for rounding.
func coherence(swaps uint64, volume, reported market.USD, bps uint16) feeCoherence {
	expected := feeOf(volume, bps)
	difference := max(expected, reported) - min(expected, reported)
	c := feeCoherence{
		Status: coherent, Expected: dollars(expected), Reported: dollars(reported), Difference: dollars(difference),
	}
	if uint64(difference) > swaps {
		c.Status = mismatch
	}
	return c
}

// feeModel returns fee_model, "fixed_5_percent" for 500.
func feeModel(bps uint16) string {
	const whole = 100 // basis points of a percent
	if bps%whole == 0 {
		return "fixed_" + strconv.Itoa(int(bps/whole)) + "_percent"
	}
	return "fixed_" + strconv.Itoa(int(bps)) + "_bps"
}

// statusBacking is the value of the displayed book and of the guarantee accounts at the
// pair's price, rounded down.
type statusBacking struct {
	Visible   Decimal `json:"visible_liquidity_usd"`
	Guarantee Decimal `json:"guarantee_liquidity_usd"`
	Total     Decimal `json:"total_backing_estimate_usd"`
}

// currentIndex returns the index of the latest snapshot by its time. There must be one.
func currentIndex(f *Facts) int {
	latest := 0
	for i := range f.Snapshots {
		if f.Snapshots[i].At > f.Snapshots[latest].At {
			latest = i
		}
	}
	return latest
}

func (s *Snapshot) coherence() feeCoherence {
	return coherence(s.Swaps, s.VolumeUSD, s.FeesUSD, s.FeeBps)
}
