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

// MirrorPair is what metrics show of a mirrored instrument.
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
		Gauge("slot", "Slot of the chain that the book and the vaults are of; 0: never read.", func(p *MirrorPair) float64 { return float64(p.Slot) }).
		Gauge("age_seconds", "Time since they were read.", func(p *MirrorPair) float64 { return p.Age.Seconds() }).
		Gauge("witnesses", "Nodes that told them.", func(p *MirrorPair) float64 { return float64(p.AgreeingNodes) }).
		Gauge("orders_unshown", "Orders of the chain's book that the instrument cannot express.", func(p *MirrorPair) float64 { return float64(p.OmittedOrders) }).
		Gauge("transactions_pending", "Transactions of the pool that are listed and not read yet.", func(p *MirrorPair) float64 { return float64(p.Pending) }).
		Counter("trades_total", "Swaps that are trades, since the mirror's store began.", func(p *MirrorPair) float64 { return float64(p.Trades) }).
		Counter("swaps_untold_total", "Swaps that are too small or too large to be trades, since the mirror's store began.", func(p *MirrorPair) float64 { return float64(p.OmittedSwaps) }).
		Gauge("degraded", "1 while what the chain tells of the instrument is degraded; its status document says why.", func(p *MirrorPair) float64 { return BoolValue(p.Degraded) })
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
