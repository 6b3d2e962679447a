package fixgw

import (
	"context"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/fixgw/marketdata"
)

// Dependencies are the parts of the process that the gateway asks. A nil one is not in
// this process: a request that needs it is refused with that reason.
type Dependencies struct {
	// MarketData answers MarketDataRequests.
	MarketData marketdata.Source
	// Desk answers QuoteRequests and orders that name a quote.
	Desk Desk
	// Settlement answers claims and reports of payments.
	Settlement Settlement
}

// Desk is what the gateway reads of the RFQ desk: desk.Desk. Requests go to the Engine,
// and their results come back as its events.
type Desk interface {
	// View returns the newest durable view; nil before the first. It does not
	// block. Any goroutine may call it.
	View() *rfq.View
}

// Settlement makes what a client signs, and proves payments. Any goroutine may call it.
// Clients see only *desk.Refusal; any other error is CHAIN_UNAVAILABLE to them.
type Settlement interface {
	// Ready returns nil where a package can be made now. It does not block.
	Ready() error
	// Package returns what the client needs to pay for a reserved claim, and for the
	// same claim always the same package. A *desk.Refusal gives the reason why there is
	// none. It may block until ctx ends.
	Package(ctx context.Context, c *rfq.Claim, payer desk.FeePayer) (desk.Package, error)
	// Verify looks for a payment on the chain and, if it is final, books it at the desk.
	// It may block until ctx ends.
	Verify(ctx context.Context, p *desk.PaymentProof) (desk.Verdict, error)
}
