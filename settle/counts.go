package settle

import (
	"sync/atomic"

	"blockdesk/desk"
	"blockdesk/market"
)

type counter = atomic.Uint64

type counters struct{ built, refused, cosigned, delivered, settled, released, expired counter }

// Counts are totals since the start.
type Counts struct {
	Built     uint64 // packages
	Refused   uint64 // submissions and packages, by a guard
	Cosigned  uint64 // atomic transactions that the desk has signed
	Delivered uint64 // deliveries that the desk has signed
	Settled   uint64 // claims
	Released  uint64 // atomic claims whose transaction expired or failed
	Expired   uint64 // deliveries that expired or failed
}

func (c *counters) read() Counts {
	return Counts{
		Built: c.built.Load(), Refused: c.refused.Load(), Cosigned: c.cosigned.Load(), Delivered: c.delivered.Load(),
		Settled: c.settled.Load(), Released: c.released.Load(), Expired: c.expired.Load(),
	}
}

// refuse counts and returns a refusal.
func (c *counters) refuse(id market.ClaimID, r desk.RefusalReason) error {
	c.refused.Add(1)
	return &desk.Refusal{Claim: id, Reason: r}
}
