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
	Tokens func() int // Cosigner tokens that are good now
	// Counters are what the settlement counts itself.
	Counters []Counter
}

// Counter is a number that only grows while the process runs.
type Counter struct {
	Name  string // snake_case, ends in _total; blockdesk_settlement_ comes before it
	Help  string
	Value func() uint64
}

const settlementPrefix = "blockdesk_settlement_"

// collectors returns the metrics that have a source.
func (s *SettlementSources) collectors() []prometheus.Collector {
	var all []prometheus.Collector
	gauge := func(name, help string, value func() float64) {
		all = append(all, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: settlementPrefix + name, Help: help}, value))
	}
	if s.Chain != nil {
		gauge("tracked", "Signed transactions whose end is not known yet.", func() float64 { return float64(s.Chain().Tracked) })
		gauge("landed", "Tracked transactions in a block that is confirmed.", func() float64 { return float64(s.Chain().Landed) })
		gauge("blockhash_age_seconds", "Age of the blockhash that the next package gets; 0: there is none.",
			func() float64 { return s.Chain().BlockhashAge.Seconds() })
		gauge("blockhash_slot", "Slot of the blockhash that the next package gets; 0: there is none.",
			func() float64 { return float64(s.Chain().BlockhashSlot) })
		all = append(all, newNodeMetrics(settlementPrefix, func() []desk.ChainNode { return s.Chain().Nodes }))
	}
	if s.Money != nil {
		for _, list := range []struct {
			name, help string
			value      func(desk.MoneyCounts) int
		}{
			{"stuck_deliveries", "Paid claims whose delivery does not get through.", func(n desk.MoneyCounts) int { return n.Stuck }},
			{"doubtful", "Claims whose transaction can land no more, and of which the nodes cannot tell whether it has.", func(n desk.MoneyCounts) int { return n.Doubtful }},
			{"refunds_due", "Payments that are owed back.", func(n desk.MoneyCounts) int { return n.Refunds }},
			{"strays", "Payments that the desk cannot book and nobody has resolved.", func(n desk.MoneyCounts) int { return n.Strays }},
		} {
			gauge(list.name, list.help, func() float64 { return float64(list.value(s.Money())) })
		}
	}
	if s.Tokens != nil {
		gauge("tokens", "DvP tokens that are good now.", func() float64 { return float64(s.Tokens()) })
	}
	for _, c := range s.Counters {
		all = append(all, prometheus.NewCounterFunc(prometheus.CounterOpts{Name: settlementPrefix + c.Name, Help: c.Help},
			func() float64 { return float64(c.Value()) }))
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
		Gauge("node_available", "1 while the node answers.", func(n *desk.ChainNode) float64 { return OneIf(n.Available) }).
		Gauge("node_slot", "The newest slot that the node has shown.", func(n *desk.ChainNode) float64 { return shown(n, n.Slot) }).
		Gauge("node_lag_slots", "Slots that the node is behind the newest that any has shown.", func(n *desk.ChainNode) float64 { return shown(n, n.Lag) })
}
