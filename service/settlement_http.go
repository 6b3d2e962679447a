package service

import (
	"time"

	"blockdesk/desk"
	"blockdesk/httpgw/admin"
	"blockdesk/settle"
)

// settleGateway is settlement as the REST gateway and the operators need it:
// terms.Settlement, dvp.Cosigner and admin.Money.
type settleGateway struct {
	*settle.Settlement
	part *settlement
}

// Ready returns nil where a claim can be settled now.
func (d *settleGateway) Ready() error { return d.part.ready() }

// health is what the gateway tells of the chain.
func (p *settlement) health() desk.ChainHealth {
	h := p.core.Health()
	out := desk.ChainHealth{Desk: h.Desk, Tracked: h.Working, Landed: h.Tracker.Landed}
	if !h.Blockhash.FetchedAt.IsZero() {
		out.BlockhashAge = max(time.Since(h.Blockhash.FetchedAt), 1)
		out.BlockhashSlot = h.Blockhash.Slot
	}
	for i := range h.Nodes {
		n := &h.Nodes[i]
		out.Nodes = append(out.Nodes, desk.ChainNode{Name: n.Name, Available: n.Available, Slot: n.Slot, Lag: n.Lag})
		out.Slot = max(out.Slot, n.Slot)
	}
	return out
}

// sources are what /metrics asks of settlement.
func (d *settleGateway) sources() admin.SettlementSources {
	return admin.SettlementSources{
		Chain: d.part.health, Money: d.MoneyCounts, Tokens: d.part.access.Live,
		Counts: admin.NewMetrics("blockdesk_settlement_", d.Settlement.Counts).
			Counter("packages_total", "Packages made.", func(c *settle.Counts) float64 { return float64(c.Built) }).
			Counter("refused_total", "Submissions and packages that a guard has refused.", func(c *settle.Counts) float64 { return float64(c.Refused) }).
			Counter("cosigned_total", "Atomic transactions that the desk has signed.", func(c *settle.Counts) float64 { return float64(c.Cosigned) }).
			Counter("deliveries_total", "Deliveries that the desk has signed.", func(c *settle.Counts) float64 { return float64(c.Delivered) }).
			Counter("settled_total", "Claims that were settled.", func(c *settle.Counts) float64 { return float64(c.Settled) }).
			Counter("released_total", "Atomic claims that were given back.", func(c *settle.Counts) float64 { return float64(c.Released) }).
			Counter("lapsed_total", "Deliveries that ended without delivering.", func(c *settle.Counts) float64 { return float64(c.Expired) }),
	}
}
