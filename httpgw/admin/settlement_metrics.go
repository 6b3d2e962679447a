package admin

import (
	"math"

	"github.com/prometheus/client_golang/prometheus"

	"blockdesk/desk"
)

// SettlementSources are the sources of the settlement's metrics; see DeskSources.
type SettlementSources struct {
	Chain  func() desk.ChainHealth
	Money  func() desk.MoneyCounts
	Tokens func() int // number of valid DvP tokens
	// SignerLimits returns the ceilings of the signer's process.
	SignerLimits func() []desk.SignerLimit
	Counts       prometheus.Collector // the settlement's own metrics; nil = none
}

const settlementPrefix = "blockdesk_settlement_"

// collectors returns the metrics whose source is set.
func (s *SettlementSources) collectors() []prometheus.Collector {
	var all []prometheus.Collector
	if s.Chain != nil {
		all = append(all, NewMetrics(settlementPrefix, s.Chain).
			Gauge("tracked", "Signed transactions of yet unknown outcome.", func(h *desk.ChainHealth) float64 { return float64(h.Tracked) }).
			Gauge("landed", "Tracked transactions in a confirmed block.", func(h *desk.ChainHealth) float64 { return float64(h.Landed) }).
			Gauge("blockhash_age_seconds", "Age of the blockhash for clients' next transaction; 0: none.", func(h *desk.ChainHealth) float64 { return h.BlockhashAge.Seconds() }).
			Gauge("blockhash_slot", "Slot of the blockhash for clients' next transaction; 0: none.", func(h *desk.ChainHealth) float64 { return float64(h.BlockhashSlot) }),
			newBalanceMetrics(func() []desk.Balance { return s.Chain().Balances }),
			newNodeMetrics(settlementPrefix, func() []desk.ChainNode { return s.Chain().Nodes }))
	}
	if s.Money != nil {
		all = append(all, NewMetrics(settlementPrefix, s.Money).
			Gauge("deliveries_failing", "Paid claims whose delivery keeps failing.", func(n *desk.MoneyCounts) float64 { return float64(n.DeliveriesFailing) }).
			Formerly("stuck_deliveries").
			Gauge("outcome_unknown", "Claims with an expired transaction of unknown outcome.", func(n *desk.MoneyCounts) float64 { return float64(n.OutcomesUnknown) }).
			Formerly("doubtful").
			Gauge("refunds_due", "Payments with a refund due.", func(n *desk.MoneyCounts) float64 { return float64(n.RefundsDue) }).
			Gauge("refunds_ordered", "Payments with an ordered refund that is not final.", func(n *desk.MoneyCounts) float64 { return float64(n.Ordered) }).
			Gauge("refunding", "Refunds permitted or sent, not final.", func(n *desk.MoneyCounts) float64 { return float64(n.Refunding) }).
			Counter("unmatched_dropped_total", "Unmatched payments displaced by larger ones.", func(n *desk.MoneyCounts) float64 { return float64(n.Dropped) }).
			Formerly("strays_dropped_total").
			Counter("dust_total", "Transfers below settle.dust_usdc and settle.dust_sol, only counted.", func(n *desk.MoneyCounts) float64 { return float64(n.Dust) }).
			Counter("worthless_tokens_total", "Transfers of foreign tokens, only counted.", func(n *desk.MoneyCounts) float64 { return float64(n.Foreign) }).
			Gauge("unmatched_payments", "Unresolved payments that match no claim.", func(n *desk.MoneyCounts) float64 { return float64(n.Unmatched) }).
			Formerly("strays"))
	}
	if s.SignerLimits != nil {
		all = append(all, newLabelled("blockdesk_signer_", "limit", s.SignerLimits, func(l *desk.SignerLimit) string { return l.Name }).
			Gauge("hour_used_atoms", "Atoms that the signer has signed away in the last hour.", func(l *desk.SignerLimit) float64 { return float64(l.Hour) }).
			Gauge("hour_max_atoms", "Limit of the atoms that the signer signs away in an hour.", func(l *desk.SignerLimit) float64 { return float64(l.MaxHour) }).
			Gauge("day_used_atoms", "Atoms that the signer has signed away in the last day.", func(l *desk.SignerLimit) float64 { return float64(l.Day) }).
			Gauge("day_max_atoms", "Limit of the atoms that the signer signs away in a day.", func(l *desk.SignerLimit) float64 { return float64(l.MaxDay) }))
	}
	if s.Tokens != nil {
		all = append(all, NewMetrics(settlementPrefix, s.Tokens).
			Gauge("tokens", "Valid DvP tokens.", func(n *int) float64 { return float64(*n) }))
	}
	if s.Counts != nil {
		all = append(all, s.Counts)
	}
	return all
}

// newBalanceMetrics returns the metrics of what the desk's wallet holds, by asset.
func newBalanceMetrics(balances func() []desk.Balance) prometheus.Collector {
	return newLabelled(settlementPrefix, "asset", balances, func(b *desk.Balance) string { return b.Asset }).
		Gauge("desk_balance_atoms", "Balance of the desk's wallet on the chain, in atoms (lamports of SOL).", func(b *desk.Balance) float64 { return float64(b.Atoms) }).
		Gauge("desk_balance_needed_atoms", "Balance below which the wallet is low: SOL for 50 deliveries, a token for what is reserved, SOL and USDC for ordered refunds.", func(b *desk.Balance) float64 { return float64(b.Needed) })
}

// newNodeMetrics returns the metrics of each node, by name. A node that has not reported a
// slot has no slot metrics.
func newNodeMetrics(prefix string, nodes func() []desk.ChainNode) prometheus.Collector {
	shown := func(n *desk.ChainNode, value uint64) float64 {
		if n.Slot == 0 {
			return math.NaN()
		}
		return float64(value)
	}
	return newLabelled(prefix, "node", nodes, func(n *desk.ChainNode) string { return n.Name }).
		Gauge("node_available", "1 while the node answers.", func(n *desk.ChainNode) float64 { return BoolValue(n.Available) }).
		Gauge("node_slot", "Newest slot reported by the node.", func(n *desk.ChainNode) float64 { return shown(n, n.Slot) }).
		Gauge("node_lag_slots", "Slots behind the newest slot of any node.", func(n *desk.ChainNode) float64 { return shown(n, n.Lag) })
}
