package mirror

import (
	"context"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/ledger"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
)

// Node is the client of the RPC nodes; *rpc.Client is one. Any goroutine may call it.
type Node interface {
	// AccountsFromEach reads accounts from every node.
	AccountsFromEach(ctx context.Context, list []solana.Address, level rpc.Commitment, minSlot uint64) ([]rpc.NodeAccounts, error)
	// SignaturePageFromEach reads, from every node, a page of the transactions that name
	// an account, newest first.
	SignaturePageFromEach(ctx context.Context, a solana.Address, page rpc.Page, level rpc.Commitment) ([]rpc.NodeSignatures, error)
	// TransactionByMajority reads a transaction as the majority of the answering nodes
	// has it.
	TransactionByMajority(ctx context.Context, s solana.Signature, level rpc.Commitment) (t *ledger.Confirmed, found bool, err error)
	// Health returns the health of the nodes, in order of preference.
	Health() []rpc.UpstreamHealth
}

// Refresh is an instrument's book as of a slot.
type Refresh struct {
	Instrument market.InstrumentID
	Slot       uint64
	// Bids and Asks are best first, one level a price, at most MaxShownLevels, with 1 to
	// market.MaxPrice ticks and 1 to maxShownQty lots. The book may be crossed.
	Bids, Asks []market.Level
}

// Trade is a swap as a trade of its instrument.
type Trade struct {
	Instrument market.InstrumentID
	// Ordinal is the trade's number in its instrument, from 1 without gaps.
	Ordinal uint64
	Price   market.Price // 1 to market.MaxPrice
	Qty     market.Qty   // 1 to market.MaxQty
	Side    market.Side  // of the taker
	// At is the block's time in Unix nanoseconds, above 0.
	At   int64
	Slot uint64
}

// Durable is the durable state of an instrument in the engine; zero means none.
type Durable struct {
	Slot    uint64 // of the book
	Ordinal uint64 // of the last trade
	// TradedAt is that trade's At.
	TradedAt int64
}

// Engine accepts books and trades. Any goroutine may call it. An accepted command may not
// be durable yet, and may have no effect: a refresh of an older slot has none, and
// neither has a trade that is not the next one. Durable returns the result.
type Engine interface {
	// Refresh replaces an instrument's book. It does not keep r.
	Refresh(r Refresh) error
	// Trade adds a trade.
	Trade(t Trade) error
	// Durable may lag behind the accepted commands; it is never ahead of durable ones.
	Durable(in market.InstrumentID) Durable
}
