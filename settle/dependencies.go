package settle

import (
	"context"

	"blockdesk/desk"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
	"blockdesk/settle/broadcast"
	"blockdesk/settle/proof"
)

// Desk is the part of desk.Desk that settlement uses. Any goroutine may call it.
type Desk interface {
	// Do submits r and returns once its outcome is durable. A refusal by the
	// rules is a Result with a Reason; an error means that nothing has happened,
	// or that the outcome is unknown.
	Do(r rfq.Request) (*desk.Result, error)
	// Claim returns the durable state of a claim, with the payments that named it.
	// It may be a moment behind Consumer.
	Claim(id market.ClaimID) (*desk.History, bool, error)
	// PaymentClaim returns the claim that a payment's signature was recorded for.
	PaymentClaim(signature [64]byte) (market.ClaimID, bool, error)
	// View returns the newest durable view; nil before the first one.
	View() *rfq.View
}

// Consumer returns the engine's events to Run; *engine.Consumer is one.
type Consumer interface {
	Next(ctx context.Context) ([]event.Event, error)
	Release(n int)
}

// Node is the client of the RPC nodes; *rpc.Client is one. Any goroutine may call
// it.
type Node interface {
	broadcast.Node
	proof.Node
	Blockhash(ctx context.Context) (rpc.Blockhash, error)
	Simulate(ctx context.Context, raw []byte, o rpc.SimulateOptions) (rpc.Simulation, error)
	AccountsFromEach(ctx context.Context, list []solana.Address, level rpc.Commitment, minSlot uint64) ([]rpc.NodeAccounts, error)
	GenesisFromEach(ctx context.Context) ([]rpc.NodeGenesis, error)
	Health() []rpc.UpstreamHealth
}
