package catalog

import (
	"math"
	"strconv"
	"time"

	"blockdesk/market"
	"blockdesk/mirror"
)

const (
	// maxSnapshots bounds the published snapshots, which by default is more than a week.
	// The mirror keeps mirror.MaxSnapshots.
	maxSnapshots = 32
	// snapshotSource and presentSource are values of snapshot_source.
	snapshotSource = "recorded_by_mirror_from_finalized_swaps"
	presentSource  = "present_state_of_mirror_with_finalized_swaps"
)

// snapshots returns the present state of the pair and the recorded ones, newest first, in
// dollars at the present price of the quote asset; nil without a price.
func (k *mirroredPair) snapshots(now Time, quote market.USDPrice, feeBps uint16) []Snapshot {
	if k.state == nil || quote == 0 {
		return nil
	}
	list := k.state.Swaps.Snapshots
	all := make([]Snapshot, 0, min(len(list)+1, maxSnapshots))
	if present, ok := k.present(now); ok {
		s := k.snapshot(&present, quote, feeBps)
		s.Source = presentSource
		all = append(all, s)
		if len(list) > 0 && list[0].At == present.At {
			list = list[1:] // recorded in this second: the same state
		}
	}
	for i := range list[:min(len(list), maxSnapshots-len(all))] {
		all = append(all, k.snapshot(&list[i], quote, feeBps))
	}
	return all
}

// present returns the state of a pool as a snapshot: with the time now while the reading
// is current, else with the time of the reading. Its totals include the reconstructed
// ones, so they continue those of earlier snapshots. ok is false before the first reading.
func (k *mirroredPair) present(now Time) (s mirror.Snapshot, ok bool) {
	if !k.wasRead() || k.state.Pool == nil {
		return s, false
	}
	p, swaps := k.state.Pool, &k.state.Swaps
	at := k.state.ReadAt.Unix()
	if k.fresh() {
		at = int64(now) / int64(time.Second)
	}
	t, before := &swaps.Rolling.Totals, &swaps.Reconstructed
	return mirror.Snapshot{
		At: at, Slot: p.At.Slot, BaseBalance: p.BaseBalance, QuoteBalance: p.QuoteBalance, BaseFees: p.BaseFees, QuoteFees: p.QuoteFees,
		Swaps: t.Swaps + before.Swaps, Base: plus(t.Base, before.Base), Quote: plus(t.Quote, before.Quote), Traders: swaps.Traders,
		Complete: t.Complete,
	}, true
}

func (k *mirroredPair) snapshot(r *mirror.Snapshot, quote market.USDPrice, feeBps uint16) Snapshot {
	c := k.config
	base := func(n market.Amount) Decimal { return wholeUnits(n, uint8(c.BaseDecimals)) }
	held := func(n market.Amount) Decimal { return wholeUnits(n, uint8(c.QuoteDecimals)) }
	var pool Pool
	if c.Pool != nil {
		pool = *c.Pool
	}
	at := time.Unix(r.At, 0).UTC()
	reference := "slot " + strconv.FormatUint(r.Slot, 10)
	s := Snapshot{
		Key: at.Format("20060102T150405Z"), Label: at.Format("2006-01-02 15:04 UTC"), Heading: c.Symbol + " at " + reference,
		At: blockTime(r.At), Pool: pool.Address, LPMint: pool.LPMint,
		BaseVault: base(r.BaseBalance), QuoteVault: held(r.QuoteBalance), UserBase: base(r.BaseFees), UserQuote: held(r.QuoteFees),
		// The fees lie in the vaults, so the totals already include them.
		TotalBase: base(r.BaseBalance), TotalQuote: held(r.QuoteBalance),
		Swaps: r.Swaps, Traders: r.Traders, VolumeTokens: Decimal{Units: r.Base, Decimals: c.BaseDecimals},
		FeesTokens: base(feesInBase(r)), FeeBps: feeBps, Source: snapshotSource, Reference: reference,
	}
	s.VolumeUSD, _ = usdFloor(r.Quote, c.QuoteDecimals, quote)
	s.Price = spotFloor(r.BaseBalance-r.BaseFees, r.QuoteBalance-r.QuoteFees, c.BaseDecimals-c.QuoteDecimals, quote)
	s.FeesUSD = k.usdSum(market.Uint128{Lo: uint64(r.BaseFees)}, market.Uint128{Lo: uint64(r.QuoteFees)}, s.Price, quote)
	return s
}

// feesInBase returns the fees of both sides in atoms of the base token. The quote fees are
// converted at the price of the vaults, rounded down.
func feesInBase(r *mirror.Snapshot) market.Amount {
	held := r.QuoteBalance - r.QuoteFees
	if held == 0 {
		return r.BaseFees
	}
	n, err := market.MulDivFloor(uint64(r.QuoteFees), uint64(r.BaseBalance-r.BaseFees), uint64(held))
	if err != nil || n > math.MaxUint64-uint64(r.BaseFees) {
		return r.BaseFees
	}
	return r.BaseFees + market.Amount(n)
}
