package admin

import (
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

// nodeMetrics are those of each upstream, by its name.
type nodeMetrics struct {
	nodes                func() []desk.ChainNode
	available, slot, lag *prometheus.Desc
}

func newNodeMetrics(prefix string, nodes func() []desk.ChainNode) *nodeMetrics {
	of := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(prefix+name, help, []string{"node"}, nil)
	}
	return &nodeMetrics{
		nodes:     nodes,
		available: of("node_available", "1 while the node answers."),
		slot:      of("node_slot", "The newest slot that the node has shown."),
		lag:       of("node_lag_slots", "Slots that the node is behind the newest that any has shown."),
	}
}

// Describe sends the descriptions.
func (m *nodeMetrics) Describe(out chan<- *prometheus.Desc) {
	out <- m.available
	out <- m.slot
	out <- m.lag
}

// Collect sends the values of now. A node that has shown no slot has none.
func (m *nodeMetrics) Collect(out chan<- prometheus.Metric) {
	named := map[string]bool{}
	for _, n := range m.nodes() {
		if named[n.Name] { // Prometheus refuses a value that comes twice, and all others with it
			continue
		}
		named[n.Name] = true
		send := func(of *prometheus.Desc, value float64) {
			out <- prometheus.MustNewConstMetric(of, prometheus.GaugeValue, value, n.Name)
		}
		send(m.available, OneIf(n.Available))
		if n.Slot != 0 {
			send(m.slot, float64(n.Slot))
			send(m.lag, float64(n.Lag))
		}
	}
}
