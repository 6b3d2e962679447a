package httpgw

import (
	"context"

	"github.com/valyala/fasthttp"

	"blockdesk/catalog"
	"blockdesk/desk"
	"blockdesk/engine"
	"blockdesk/engine/rfq"
	"blockdesk/market"
)

// Views is where market data comes from. View returns the newest view of an
// instrument, nil before the first one; it must not block. A view must never
// change after it was returned.
type Views interface {
	View(in market.InstrumentID) *engine.View
}

// Doors are what other rooms put behind a route of this one. A nil door leaves
// its routes out of the table.
type Doors struct {
	// WebSocket takes an upgrade request for /ws/rfq. It must not panic.
	WebSocket fasthttp.RequestHandler
	// Stream takes a request for /api/v1/market/stream, GET or HEAD, and answers it
	// itself, X-Request-Id and the headers of the limit apart. It must not panic.
	Stream fasthttp.RequestHandler
	// WebSocketHealth returns the body of /ws/rfq/health, any value that
	// encoding/json encodes. It is called once a request.
	WebSocketHealth func() any
	// History is behind klines, candles and trades older than a view's. Nil:
	// there is none.
	History History
	// Signatures tells of which transactions the trades of mirrored instruments
	// were. Nil: of none it is known.
	Signatures Signatures
	// Facts returns what the documents of package catalog are made of: the same
	// value until the next cycle, which nobody changes. It must not block for long.
	// Nil: none of them is served.
	Facts func() *catalog.Facts
	// Desk is behind every RFQ route.
	Desk Desk
	// Settlement is behind claims and proofs of payment. Where it is nil, they
	// stand in the table, and what is right is answered CHAIN_UNAVAILABLE. The
	// same holds for Handshake and DvP; without a Handshake no token is good.
	Settlement Settlement
	Handshake  Handshake
	DvP        DvP
	// ChainHealth is what /api/v1/dvp/status says of the chain, asked at most
	// once for a rendering of it. It must not block. Nil: nothing is known.
	ChainHealth func() ChainHealth
}

// Signatures is where trades were made on chain. Any goroutine may call it.
type Signatures interface {
	// Signatures returns the signatures of the transactions of an instrument's trades
	// from one ordinal to another, both included, in their order; zeros for one that
	// is not known. At most MaxTrades are asked for at once.
	Signatures(in market.InstrumentID, from, to uint64) ([][64]byte, error)
}

// Desk is the RFQ desk as the routes need it; see package desk. Any goroutine
// may call it.
type Desk interface {
	View() *rfq.View // nil before the first one
	Do(r rfq.Request) (*desk.Result, error)
	Claim(id market.ClaimID) (*desk.History, bool, error)
}

// Settlement is the room that talks to the chain. Any goroutine may call it.
// Whatever it returns goes out: no error of it does, but a *desk.Refusal.
type Settlement interface {
	// Ready returns nil where a package can be built now. It must not block.
	Ready() error
	// Package returns what the client needs to pay for a claim that has just been
	// reserved, and for the same claim the same package for ever:
	// the payer of the first one stands. A *desk.Refusal says why there is none.
	Package(ctx context.Context, c *rfq.Claim, payer desk.FeePayer) (desk.Package, error)
	// Verify looks for a payment on the chain and, where it is final, has the desk
	// take it. An error means that the chain or the desk could not be asked; those
	// of package desk say which.
	Verify(ctx context.Context, p *desk.PaymentProof) (desk.Verdict, error)
	// Delivery returns the first signature of the newest transaction of ours that
	// delivers what a claim bought; ok is false where the desk has signed none.
	Delivery(id market.ClaimID) (signature [64]byte, ok bool, err error)
}
