package rfq

import (
	"context"
	"time"

	"blockdesk/desk"
	"blockdesk/engine"
	"blockdesk/engine/rfq"
	"blockdesk/fixgw/reports"
	"blockdesk/fixgw/wire"
	"blockdesk/market"
	"blockdesk/persist/kv"
)

// Engine takes the commands of requests to the desk.
type Engine interface {
	// SubmitAll enqueues the commands of one request, next to each other and all or
	// none: engine.Engine.SubmitAll.
	SubmitAll([]engine.Command) error
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

// Entry is what the requests of all sessions to the desk share.
type Entry struct {
	Engine      Engine
	Desk        Desk       // nil = the desk is not enabled
	Settlement  Settlement // nil = no chain is configured
	Instruments *market.Instruments
	Store       kv.Store
	Requests    *reports.Requests
	Now         func() time.Time
	MaxQuotes   int            // of a session, live or requested
	Group       market.ShardID // part of the ids of quotes and claims; 0 = the instruments are not split
	// Format1 makes only commands that release 0.1.0 reads (engine.Format1).
	Format1 bool
}

// settles reports whether a claim could be reserved now.
func (e *Entry) settles() bool { return e.Settlement != nil && e.Settlement.Ready() == nil }

// view returns the desk's newest view.
func (e *Entry) view() (*rfq.View, *wire.Refusal) {
	if e.Desk == nil {
		return nil, wire.Refuse(wire.OrdRejUnsupported, wire.CodeUnsupported, "the desk is not enabled")
	}
	v := e.Desk.View()
	if v == nil {
		return nil, wire.Refuse(wire.OrdRejOther, wire.CodeOverloaded, "the desk is starting, try again")
	}
	return v, nil
}
