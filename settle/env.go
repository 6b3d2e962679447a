package settle

import (
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/market"
	"blockdesk/settle/binding"
	"blockdesk/settle/cosign"
	"blockdesk/settle/store"
)

// env has the dependencies that all parts of a Settlement share.
type env struct {
	desk   Desk
	node   Node
	store  *store.Store
	signer cosign.Signer
	counts counters
	log    *slog.Logger
	clock  func() time.Time
}

func (e *env) now() int64 { return e.clock().UnixNano() }

// claimOf returns the durable state of a claim; nil if the desk does not know it.
func (e *env) claimOf(id market.ClaimID) (*rfq.Claim, error) {
	h, ok, err := e.desk.Claim(id)
	switch {
	case err != nil:
		return nil, claimError(id, err)
	case !ok:
		return nil, nil
	}
	return &h.Claim, nil
}

func claimText(id market.ClaimID) string { return binding.Memo(id) }

func claimError(id market.ClaimID, err error) error {
	return fmt.Errorf("claim %s: %w", claimText(id), err)
}

func chainError(id market.ClaimID, err error) error {
	return fmt.Errorf("claim %s: %w: %w", claimText(id), ErrChain, err)
}

type counter = atomic.Uint64

type counters struct {
	built, refused, cosigned, delivered, settled, released, expired counter
	refunds, refunded, refundsExpired                               counter
}

// Counts are totals since the start.
type Counts struct {
	Built     uint64 // transaction packages
	Refused   uint64 // submissions and transaction packages, by a guard
	Cosigned  uint64 // atomic transactions that the desk has signed
	Delivered uint64 // deliveries that the desk has signed
	Settled   uint64 // claims
	Released  uint64 // atomic claims whose transaction expired or failed
	Expired   uint64 // deliveries that expired or failed
	Refunds   uint64 // transactions of refunds that the desk has signed
	Refunded  uint64 // payments that were paid back by them
	// RefundsExpired are refunds that expired or failed; they are due again.
	RefundsExpired uint64
}

func (c *counters) read() Counts {
	return Counts{
		Built: c.built.Load(), Refused: c.refused.Load(), Cosigned: c.cosigned.Load(), Delivered: c.delivered.Load(),
		Settled: c.settled.Load(), Released: c.released.Load(), Expired: c.expired.Load(),
		Refunds: c.refunds.Load(), Refunded: c.refunded.Load(), RefundsExpired: c.refundsExpired.Load(),
	}
}

// refuse counts and returns a refusal.
func (c *counters) refuse(id market.ClaimID, r desk.RefusalReason) error {
	c.refused.Add(1)
	return &desk.Refusal{Claim: id, Reason: r}
}
