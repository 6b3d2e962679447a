package admin

import (
	"math"

	"github.com/prometheus/client_golang/prometheus"

	"blockdesk/desk"
)

// SettlementSources are the functions that /metrics asks about settlement, at
// each scrape. They must not block. A nil one leaves its metrics out.
type SettlementSources struct {
	Chain  func() desk.ChainHealth
	Money  func() desk.MoneyCounts
	Tokens func() int // DvP tokens that are good now
	// Counts is what the settlement counts itself; nil: nothing.
	Counts prometheus.Collector
}

const settlementPrefix = "blockdesk_settlement_"

// collectors returns the metrics that have a source.
func (s *SettlementSources) collectors() []prometheus.Collector {
	var all []prometheus.Collector
	if s.Chain != nil {
		all = append(all, NewMetrics(settlementPrefix, s.Chain).
			Gauge("tracked", "Signed transactions whose end is not known yet.", func(h *desk.ChainHealth) float64 { return float64(h.Tracked) }).
			Gauge("landed", "Tracked transactions in a block that is confirmed.", func(h *desk.ChainHealth) float64 { return float64(h.Landed) }).
			Gauge("blockhash_age_seconds", "Age of the blockhash that the next package gets; 0: there is none.", func(h *desk.ChainHealth) float64 { return h.BlockhashAge.Seconds() }).
			Gauge("blockhash_slot", "Slot of the blockhash that the next package gets; 0: there is none.", func(h *desk.ChainHealth) float64 { return float64(h.BlockhashSlot) }),
			newNodeMetrics(settlementPrefix, func() []desk.ChainNode { return s.Chain().Nodes }))
	}
	if s.Money != nil {
		all = append(all, NewMetrics(settlementPrefix, s.Money).
			Gauge("stuck_deliveries", "Paid claims whose delivery does not get through.", func(n *desk.MoneyCounts) float64 { return float64(n.DeliveriesFailing) }).
			Gauge("doubtful", "Claims whose transaction can land no more, and of which the nodes cannot tell whether it has.", func(n *desk.MoneyCounts) float64 { return float64(n.OutcomesUnknown) }).
			Gauge("refunds_due", "Payments that are owed back.", func(n *desk.MoneyCounts) float64 { return float64(n.RefundsDue) }).
			Gauge("strays", "Payments that the desk cannot book and nobody has resolved.", func(n *desk.MoneyCounts) float64 { return float64(n.Unmatched) }))
	}
	if s.Tokens != nil {
		all = append(all, NewMetrics(settlementPrefix, s.Tokens).
			Gauge("tokens", "DvP tokens that are good now.", func(n *int) float64 { return float64(*n) }))
	}
	if s.Counts != nil {
		all = append(all, s.Counts)
	}
	return all
}

// newNodeMetrics returns the metrics of each upstream, by its name. One that has shown
// no slot has none.
func newNodeMetrics(prefix string, nodes func() []desk.ChainNode) prometheus.Collector {
	shown := func(n *desk.ChainNode, value uint64) float64 {
		if n.Slot == 0 {
			return math.NaN()
		}
		return float64(value)
	}
	return newLabelled(prefix, "node", nodes, func(n *desk.ChainNode) string { return n.Name }).
		Gauge("node_available", "1 while the node answers.", func(n *desk.ChainNode) float64 { return BoolValue(n.Available) }).
		Gauge("node_slot", "The newest slot that the node has shown.", func(n *desk.ChainNode) float64 { return shown(n, n.Slot) }).
		Gauge("node_lag_slots", "Slots that the node is behind the newest that any has shown.", func(n *desk.ChainNode) float64 { return shown(n, n.Lag) })
}
