package admin

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"blockdesk/desk"
)

// MirrorSources are where the metrics of mirrored instruments come from. Nil
// functions leave theirs out.
type MirrorSources struct {
	Pairs func() []MirrorPair
	Nodes func() []desk.ChainNode
}

// MirrorPair is what metrics tell of a mirrored instrument.
type MirrorPair struct {
	Symbol    string
	Slot      uint64        // of the book and the vaults; 0 = never read
	Age       time.Duration // since they were read
	Witnesses int           // nodes that told them
	Unshown   int           // orders that the instrument cannot express
	Numbered  uint64        // swaps that are trades
	Untold    uint64        // swaps that are too small or too large for the instrument
	Pending   int           // transactions that are listed and not read
	Degraded  bool
}

const mirrorPrefix = "blockdesk_mirror_"

// mirrorMetrics are those of each mirrored instrument, by its symbol.
type mirrorMetrics struct {
	pairs func() []MirrorPair
	list  []mirrorMetric
}

type mirrorMetric struct {
	of    *prometheus.Desc
	kind  prometheus.ValueType
	value func(*MirrorPair) float64
}

func newMirrorMetrics(pairs func() []MirrorPair) *mirrorMetrics {
	m := &mirrorMetrics{pairs: pairs}
	for _, x := range []struct {
		name, help string
		kind       prometheus.ValueType
		value      func(*MirrorPair) float64
	}{
		{"slot", "Slot of the chain that the book and the vaults are of; 0: never read.", prometheus.GaugeValue, func(p *MirrorPair) float64 { return float64(p.Slot) }},
		{"age_seconds", "Time since they were read.", prometheus.GaugeValue, func(p *MirrorPair) float64 { return p.Age.Seconds() }},
		{"witnesses", "Nodes that told them.", prometheus.GaugeValue, func(p *MirrorPair) float64 { return float64(p.Witnesses) }},
		{"orders_unshown", "Orders of the chain's book that the instrument cannot express.", prometheus.GaugeValue, func(p *MirrorPair) float64 { return float64(p.Unshown) }},
		{"transactions_pending", "Transactions of the pool that are listed and not read yet.", prometheus.GaugeValue, func(p *MirrorPair) float64 { return float64(p.Pending) }},
		{"trades_total", "Swaps that are trades, since the mirror's store began.", prometheus.CounterValue, func(p *MirrorPair) float64 { return float64(p.Numbered) }},
		{"swaps_untold_total", "Swaps that are too small or too large to be trades, since the mirror's store began.", prometheus.CounterValue, func(p *MirrorPair) float64 { return float64(p.Untold) }},
		{"degraded", "1 while what the chain tells of the instrument is degraded; its status document says why.", prometheus.GaugeValue, func(p *MirrorPair) float64 { return OneIf(p.Degraded) }},
	} {
		of := prometheus.NewDesc(mirrorPrefix+x.name, x.help, []string{"symbol"}, nil)
		m.list = append(m.list, mirrorMetric{of, x.kind, x.value})
	}
	return m
}

// Describe sends the descriptions.
func (m *mirrorMetrics) Describe(out chan<- *prometheus.Desc) {
	for i := range m.list {
		out <- m.list[i].of
	}
}

// Collect sends the values of now.
func (m *mirrorMetrics) Collect(out chan<- prometheus.Metric) {
	pairs := m.pairs()
	for i := range pairs {
		for j := range m.list {
			x := &m.list[j]
			out <- prometheus.MustNewConstMetric(x.of, x.kind, x.value(&pairs[i]), pairs[i].Symbol)
		}
	}
}

// collectors returns the metrics that have a source.
func (s *MirrorSources) collectors() []prometheus.Collector {
	var all []prometheus.Collector
	if s.Pairs != nil {
		all = append(all, newMirrorMetrics(s.Pairs))
	}
	if s.Nodes != nil {
		all = append(all, newNodeMetrics(mirrorPrefix, s.Nodes))
	}
	return all
}
