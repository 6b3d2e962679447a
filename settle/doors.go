package settle

import (
	"context"

	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/market"
)

// Desk is the engine's desk as settlement needs it. Any goroutine may call it.
type Desk interface {
	// Do submits r and returns once its outcome is durable. A refusal by the
	// rules is a Result with a Reason; an error means that nothing has happened,
	// or that what has happened is not known.
	Do(r rfq.Request) (Result, error)
	// Claim returns a claim as it is in what is durable, with the payments that
	// named it.
	Claim(id market.ClaimID) (*rfq.Claim, []rfq.Payment, bool, error)
	// PaymentClaim returns the claim that a payment's signature was booked for.
	PaymentClaim(signature [64]byte) (market.ClaimID, bool, error)
	// View returns the newest durable view; nil before the first one.
	View() *rfq.View
}

// Result is what came of a request, with the records of what it changed. Nobody
// may change what it points to.
type Result struct {
	rfq.Outcome
	Claim    *rfq.Claim
	Payment  *rfq.Payment
	Ticket   *rfq.Ticket // that Outcome.Ticket names
	Replayed bool        // the answer to an earlier request with the same key
}

// Consumer is what Run follows: engine.Consumer.
type Consumer interface {
	Next(ctx context.Context) ([]event.Event, error)
	Poll() []event.Event
	Release(n int)
	// Whole is the highest Seq whose events have all been returned.
	Whole() uint64
}
