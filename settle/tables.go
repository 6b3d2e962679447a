package settle

import (
	"context"
	"errors"
	"fmt"
	"io"

	"blockdesk/engine/rfq"
	"blockdesk/market"
)

// tables are settlement's records of claims and payments, all of them in memory and
// made of durable records alone: Start fills them, follow updates them.
type tables struct {
	payees  *payees
	jobs    *jobs
	refunds *refunds
	unseen  *unseen
	now     func() int64
}

// follow enters the engine's records until the engine or ctx ends. It waits for
// nothing but the engine, so settlement never holds up the ring.
func (t *tables) follow(ctx context.Context, c Consumer) error {
	var reader rfq.Reader
	for {
		events, err := c.Next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return errEngineStopped
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return fmt.Errorf("settle: following the engine: %w", err)
		}
		for i := range events {
			if record, _, ok := reader.Add(&events[i]); ok {
				t.set(record)
			}
		}
		c.Release(len(events))
	}
}

func (t *tables) set(record rfq.Record) {
	switch r := record.(type) {
	case *rfq.Claim:
		t.setClaim(r)
		t.queueSearch(r)
	case *rfq.Payment:
		if r.State == rfq.PaymentRefundDue && rfq.EndsClaim(r.Reason) {
			// The claim's own record may come before or after this one.
			t.queueSearch(&rfq.Claim{ID: r.Claim, Mode: rfq.Modular, State: rfq.ClaimRefundDue, ChangedAt: r.At})
		}
		t.refunds.set(r)
	case *rfq.Lock:
		t.jobs.retryGuarded(t.now())
	case *rfq.Removed:
		if r.What == rfq.TagClaim {
			t.unseen.remove(market.ClaimID(r.ID))
			t.jobs.remove(market.ClaimID(r.ID))
			t.refunds.unhold(market.ClaimID(r.ID))
		}
	}
}

func (t *tables) setClaim(c *rfq.Claim) {
	t.payees.add(c.Terms.Rail, c.Terms.PayTo)
	t.unseen.set(c)
	t.jobs.set(c, t.now())
}

// queueSearch queues the search for a delivery of a claim whose refund is due, and keeps the
// refund off the list until the search has ended.
func (t *tables) queueSearch(c *rfq.Claim) {
	if c.Mode == rfq.Modular && c.State == rfq.ClaimRefundDue {
		t.refunds.hold(c.ID)
		t.jobs.addSearch(c, t.now())
	}
}
