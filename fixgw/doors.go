package fixgw

import (
	"context"
	"time"

	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/market"
)

// Doors are what other rooms put behind the gateway's messages. A nil door means
// that there is no such room: what needs it is refused with its reason.
type Doors struct {
	// MarketData is behind MarketDataRequests.
	MarketData MarketData
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
// call it. No error of it goes out: a client is told that the chain is not
// reached.
type Settlement interface {
	// Ready returns nil where a package can be made now. It does not block.
	Ready() error
	// Package returns what the client needs to pay for a claim that is reserved,
	// and for the same claim the same package for ever. It may block until ctx
	// ends.
	Package(ctx context.Context, c *rfq.Claim) (Package, error)
	// Verify looks for a payment on the chain and, where it is final, has the desk
	// take it. It may block until ctx ends.
	Verify(ctx context.Context, p *PaymentProof) (Verdict, error)
}

// Package is an unsigned payment and what binds it to its claim.
type Package struct {
	Transaction []byte         // v0, every signature zero
	Reference   market.Address // read-only account by which the payment is found
	Memo        string         // printable ASCII
}

// PaymentProof names a payment for a claim.
type PaymentProof struct {
	Claim     market.ClaimID
	Ticket    market.TicketID
	Tranche   market.TrancheID
	Signature [64]byte // of the transaction that pays
}

// Verdict is what came of a PaymentProof: the first of these that is set. Where
// none is, the payment serves its claim.
type Verdict struct {
	// Pending: the payment was not found, or is not final; ask again after this.
	Pending time.Duration
	// Refused says why the payment is not acceptable; Mismatch has the machine
	// word where that is ReasonPaymentMismatch (contract, section C).
	Refused  event.Reason
	Mismatch string
}
