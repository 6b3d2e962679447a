package mirror

import (
	"context"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/ledger"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
)

// Node is the chain: *rpc.Client. Any goroutine may call it.
type Node interface {
	// AccountsFromAll asks every node what some accounts hold.
	AccountsFromAll(ctx context.Context, list []solana.Address, level rpc.Commitment, minSlot uint64) ([]rpc.NodeAccounts, error)
	// SignaturePageFromAll asks every node for a page of the transactions that name an
	// account, the newest first.
	SignaturePageFromAll(ctx context.Context, a solana.Address, page rpc.Page, level rpc.Commitment) ([]rpc.NodeSignatures, error)
	// TransactionByMajority reads one as most nodes that answer tell it.
	TransactionByMajority(ctx context.Context, s solana.Signature, level rpc.Commitment) (t *ledger.Confirmed, found bool, err error)
	// Health tells of the nodes, in the order of the preference.
	Health() []rpc.UpstreamHealth
}

// Refresh is the book of an instrument as of a slot, for the engine.
type Refresh struct {
	Instrument market.InstrumentID
	Slot       uint64
	// Bids and Asks are best first, each price once, at most MaxShownLevels, of 1
	// to market.MaxPrice ticks and 1 to maxShownQty lots. A bid may be above an ask.
	Bids, Asks []market.Level
}

// Trade is a swap, for the engine.
type Trade struct {
	Instrument market.InstrumentID
	// Ordinal is the trade's number in its instrument, from 1 without gaps.
	Ordinal uint64
	Price   market.Price // 1 to market.MaxPrice
	Qty     market.Qty   // 1 to market.MaxQty
	Side    market.Side  // of the taker
	// At is the block's time, Unix nanoseconds, above 0.
	At   int64
	Slot uint64
}

// Told is what the engine has of an instrument for good: it is there again after
// a crash of everything. Zero is nothing.
type Durable struct {
	Slot    uint64 // of the book
	Ordinal uint64 // of the last trade
	// TradedAt is that trade's At.
	TradedAt int64
}

// Engine takes what the chain tells. Any goroutine may call it. That it takes a
// command does not say that the command is durable, or has any effect: an older
// slot has none, and neither has a trade that is not the next one. Told says so.
type Engine interface {
	// Refresh replaces an instrument's book. It keeps nothing of r.
	Refresh(r Refresh) error
	// Trade adds a trade.
	Trade(t Trade) error
	// Told may be behind what was taken, and is never ahead of what is durable.
	Durable(in market.InstrumentID) Durable
}
