package admin

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"blockdesk/desk"
)

// MirrorSources are the sources of the metrics of mirrored instruments; see DeskSources.
type MirrorSources struct {
	Pairs func() []MirrorPair
	Nodes func() []desk.ChainNode
}

// MirrorPair has the metrics of a mirrored instrument.
type MirrorPair struct {
	Symbol        string
	Slot          uint64        // of the book and the vaults; 0 = never read
	Age           time.Duration // since they were read
	AgreeingNodes int           // nodes that agree on them
	OmittedOrders int           // orders that the instrument cannot express
	Trades        uint64        // swaps that are trades
	OmittedSwaps  uint64        // swaps that are too small or too large for the instrument
	Pending       int           // transactions that are listed and not read
	Degraded      bool
}

const mirrorPrefix = "blockdesk_mirror_"

// newMirrorMetrics returns the metrics of each mirrored instrument, by its symbol.
func newMirrorMetrics(pairs func() []MirrorPair) prometheus.Collector {
	return newLabelled(mirrorPrefix, "symbol", pairs, func(p *MirrorPair) string { return p.Symbol }).
		Gauge("slot", "Slot of the last reading of book and vaults; 0: never.", func(p *MirrorPair) float64 { return float64(p.Slot) }).
		Gauge("age_seconds", "Time since book and vaults were read.", func(p *MirrorPair) float64 { return p.Age.Seconds() }).
		Gauge("agreeing_nodes", "Nodes that agree on book and vaults.", func(p *MirrorPair) float64 { return float64(p.AgreeingNodes) }).
		Formerly("witnesses").
		Gauge("orders_omitted", "Orders of the chain's book that do not fit the instrument.", func(p *MirrorPair) float64 { return float64(p.OmittedOrders) }).
		Formerly("orders_unshown").
		Gauge("transactions_pending", "The pool's transactions listed but not read yet.", func(p *MirrorPair) float64 { return float64(p.Pending) }).
		Counter("trades_total", "Swaps recorded as trades, since the mirror's store was created.", func(p *MirrorPair) float64 { return float64(p.Trades) }).
		Counter("swaps_omitted_total", "Swaps too small or large to be trades, since the mirror's store was created.", func(p *MirrorPair) float64 { return float64(p.OmittedSwaps) }).
		Formerly("swaps_untold_total").
		Gauge("degraded", "1 while book and vaults are old or without a majority of the nodes (degradation_state).", func(p *MirrorPair) float64 { return BoolValue(p.Degraded) })
}

// collectors returns the metrics whose source is set.
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
