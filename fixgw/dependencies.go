package fixgw

import (
	"context"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/fixgw/marketdata"
)

// Dependencies answer the gateway's messages. A nil one means that there is no such
// part in this process: a request that needs it is refused with its reason.
type Dependencies struct {
	// MarketData is behind MarketDataRequests.
	MarketData marketdata.Source
	// Desk is behind QuoteRequests and orders that name a quote.
	Desk Desk
	// Settlement is behind claims and proofs of payment.
	Settlement Settlement
}

// Desk is what the gateway reads of the RFQ desk: desk.Desk. Requests go to the
// Engine, and what comes of them is followed in its events.
type Desk interface {
	// View returns the newest durable view; nil before the first. It does not
	// block. Any goroutine may call it.
	View() *rfq.View
}

// Settlement makes what a client signs, and proves payments. Any goroutine may
// call it. No error of it goes out but a *desk.Refusal: a client is told that the
// chain is not reached.
type Settlement interface {
	// Ready returns nil where a package can be made now. It does not block.
	Ready() error
	// Package returns what the client needs to pay for a claim that is reserved,
	// and for the same claim the same package for ever. A *desk.Refusal says why there is
	// none. It may block until ctx ends.
	Package(ctx context.Context, c *rfq.Claim, payer desk.FeePayer) (desk.Package, error)
	// Verify looks for a payment on the chain and, where it is final, has the desk
	// take it. It may block until ctx ends.
	Verify(ctx context.Context, p *desk.PaymentProof) (desk.Verdict, error)
}
