package orders

import (
	"time"

	"blockdesk/engine"
	"blockdesk/fixgw/reports"
	"blockdesk/fixgw/wire"
	"blockdesk/market"
	"blockdesk/persist/kv"
	"blockdesk/persist/leadership"
)

// Engine takes the commands of orders.
type Engine interface {
	// Submit enqueues a command without waiting: engine.Engine.Submit.
	Submit(*engine.Command) error
	// SubmitAll enqueues the commands of one request, next to each other and all or
	// none: engine.Engine.SubmitAll.
	SubmitAll([]engine.Command) error
	// Enqueue is Submit without waking the matcher: engine.Engine.Enqueue.
	Enqueue(*engine.Command) error
	// NextOrderID returns an id that no order has had: engine.OrderIDs.Next.
	NextOrderID() market.OrderID
	// NextOrderIDs returns the first of n consecutive ids: engine.OrderIDs.NextN.
	NextOrderIDs(n int) market.OrderID
}

// Entry is what the order entry of all sessions shares.
type Entry struct {
	Engine      Engine
	Instruments *market.Instruments
	Store       kv.Store
	Leadership  *leadership.Leadership
	Requests    *reports.Requests
	Now         func() time.Time
	// Format1 makes only commands that release 0.1.0 reads (engine.Format1).
	Format1 bool
}

// Claims answers requests that name a claim of the session in place of an order.
type Claims interface {
	// ChangeClaim answers an F, and with amend a G. It reports false if the request names
	// no claim.
	ChangeClaim(r *wire.OrderRequest, amend bool) (handled bool, reject *wire.Reject)
	// ClaimStatus answers an H in the same way.
	ClaimStatus(r *wire.OrderRequest) (handled bool, reject *wire.Reject)
}
