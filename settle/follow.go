package settle

import (
	"context"
	"errors"
	"fmt"
	"io"

	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/market"
)

// follow enters what the engine tells into the tables in memory, until the
// engine or ctx ends. It waits for nothing but the engine, so the ring never
// waits for settlement. What is in the tables comes from durable events alone;
// they are made anew by Start, so no cursor is kept.
func (s *Settlement) follow(ctx context.Context, c Consumer) error {
	var reader rfq.Reader
	for {
		events, err := c.Next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return errEnded
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return fmt.Errorf("settle: following the engine: %w", err)
		}
		for i := range events {
			if record, _, ok := reader.Add(&events[i]); ok {
				s.tell(record)
			}
		}
		c.Release(len(events))
	}
}

// tell enters one record.
func (s *Settlement) tell(record rfq.Record) {
	switch r := record.(type) {
	case *rfq.Claim:
		s.tellClaim(r)
		s.doubt(r)
	case *rfq.Payment:
		if r.State == rfq.PaymentRefundDue && (r.Reason == event.ReasonLatePayment || r.Reason == event.ReasonUndeliverable) {
			// Its claim is told after it, or was before.
			s.doubt(&rfq.Claim{ID: r.Claim, Mode: rfq.Modular, State: rfq.ClaimRefundDue, ChangedAt: r.At})
		}
		s.refund.tell(r)
	case *rfq.Removed:
		if r.What == rfq.TagClaim {
			s.work.forget(market.ClaimID(r.ID))
			s.refund.unhold(market.ClaimID(r.ID))
		}
	}
}

func (s *Settlement) tellClaim(c *rfq.Claim) {
	s.payees.add(c.Terms.Rail, c.Terms.PayTo)
	s.work.tell(c, s.now())
}
