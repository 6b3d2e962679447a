// Package broadcast gives signed transactions to the chain until their end.
package broadcast

import (
	"context"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/ledger"
	"blockdesk/internal/solana/rpc"
	"blockdesk/settle/store"
)

// Node is the chain. *rpc.Client is one. Any goroutine may call it.
type Node interface {
	Send(ctx context.Context, raw []byte, o rpc.SendOptions) (solana.Signature, error)
	Statuses(ctx context.Context, list []solana.Signature, search bool) ([]rpc.Status, uint64, error)
	Position(ctx context.Context, level rpc.Commitment) (rpc.Position, error)
	Transaction(ctx context.Context, s solana.Signature, level rpc.Commitment) (*ledger.Confirmed, bool, error)
	StatusesEverywhere(ctx context.Context, list []solana.Signature) ([]rpc.View, error)
	SignaturesEverywhere(ctx context.Context, a solana.Address, views []rpc.View, most int) []rpc.History
}

// Tracker sends transactions until they end.
type Tracker struct {
	options Options
	node    Node
	ended   func(context.Context, Result) error
}

// New makes a tracker. It calls no node; what it is given before Run waits.
// ended is told of each end, again with a growing pause until it returns nil.
// Errors: [ErrOptions].
func New(o Options, node Node, ended func(context.Context, Result) error) (*Tracker, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	return &Tracker{options: o.withDefaults(), node: node, ended: ended}, nil
}

// Track takes a kept transaction. The same one again changes nothing. It does not
// block. Errors: [ErrFull], [ErrInvalid].
func (t *Tracker) Track(k store.Kept) error { return nil }

// Await takes a transaction whose bytes are not there. Errors: as Track.
func (t *Tracker) Await(m Missing) error { return nil }

// State returns how far a transaction is that is under way.
func (t *Tracker) State(sig solana.Signature) (State, bool) { return State{}, false }

// Run works until the context ends. It returns nil.
func (t *Tracker) Run(ctx context.Context) error { return nil }
