package catalog

import "cmp"

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
