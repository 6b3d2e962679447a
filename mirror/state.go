package mirror

import (
	"time"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
)

// Reason is why market data is degraded.
type Reason uint8

const (
	// VaultPrice: the price is the pool's, not a book's.
	VaultPrice Reason = 1
	// NotRead: nothing has been read from the chain yet.
	NotRead Reason = 2
	// Stale: what was read last is older than Options.StaleAfter.
	Stale Reason = 3
	// NoUpstream: no node answers, or none that is of our time.
	NoUpstream Reason = 4
	// Contradicted: nodes tell different things of one slot, or their slots are too
	// far apart.
	Contradicted Reason = 5
	// Unconfirmed: no two nodes have told the same lately.
	Unconfirmed Reason = 6
	// FutureSlot: a node tells of a slot or a time that cannot be yet.
	FutureSlot Reason = 7
	// BadAccount: an account is not what it should be.
	BadAccount Reason = 8
	// MarketClosed: the program does not trade on the market any more.
	MarketClosed Reason = 9
	// HistoryBehind: swaps have not been read to the chain's end lately.
	HistoryBehind Reason = 10
	// StoreFailed: what is known of swaps cannot be kept, so none are told.
	StoreFailed Reason = 11
	// EngineRefuses: the engine does not take what it is told.
	EngineRefuses Reason = 12
	// Failover: the preferred node is not in use.
	Failover Reason = 13

	reasons = 14
)

// String returns the word of degradation_state.reasons; the description gives the
// first one, the others are our choice.
func (r Reason) String() string {
	switch r {
	case VaultPrice:
		return "live_price_using_verified_vault_snapshot"
	case NotRead:
		return "chain_not_read_yet"
	case Stale:
		return "chain_data_stale"
	case NoUpstream:
		return "no_rpc_upstream_answers"
	case Contradicted:
		return "rpc_upstreams_contradict"
	case Unconfirmed:
		return "rpc_upstreams_unconfirmed"
	case FutureSlot:
		return "rpc_upstream_ahead_of_time"
	case BadAccount:
		return "onchain_account_refused"
	case MarketClosed:
		return "onchain_market_closed"
	case HistoryBehind:
		return "swap_history_not_synced"
	case StoreFailed:
		return "swap_store_failed"
	case EngineRefuses:
		return "engine_refuses_market_data"
	case Failover:
		return "rpc_failover_active"
	default:
		return "reason?"
	}
}

// Reasons is a set of reasons.
type Reasons uint16

var _ [16 - reasons]struct{} // they fit

// With returns the set with a reason.
func (r Reasons) With(reason Reason) Reasons { return r | 1<<reason }

// Has reports whether a reason is in the set.
func (r Reasons) Has(reason Reason) bool { return r>>reason&1 != 0 }

// Words returns the set's words, in the order of the constants; empty, not nil,
// for none.
func (r Reasons) Words() []string {
	words := make([]string, 0, reasons)
	for reason := VaultPrice; reason < reasons; reason++ {
		if r.Has(reason) {
			words = append(words, reason.String())
		}
	}
	return words
}

// PriceSource says what a pair's price is from.
type PriceSource uint8

const (
	// NoPrice: neither a book nor a pool tells one.
	NoPrice PriceSource = 1
	// BookPrice: the on-chain book has orders.
	BookPrice PriceSource = 2
	// PoolPrice: the pool's vaults.
	PoolPrice PriceSource = 3
)

// State is what the service knows at a moment. It does not change any more.
type State struct {
	At    time.Time
	Pairs []PairState // in the order of the options
	// Slot is the highest that was read, and SyncedAt when that was; zero for
	// never.
	Slot     uint64
	SyncedAt time.Time
	// LastSignature is of the newest transaction read.
	LastSignature solana.Signature
	Upstreams     []UpstreamState // in the order of the preference
	// Active is the node that is preferred of those that are available; empty if
	// none is.
	Active string
	// Failover: that is not the first one.
	Failover bool
	// MaxSlot is the highest that any node has shown, Lag how far Slot is behind.
	MaxSlot, Lag uint64
	// Reasons are all pairs' and the nodes'.
	Reasons Reasons
}

// UpstreamState is a node's health, and what it was last refused for.
type UpstreamState struct {
	rpc.UpstreamHealth
	// Refused is why its last answer was not believed; nil if it was.
	Refused error
}

// PairState is what is known of a pair.
type PairState struct {
	Instrument *market.Instrument
	// At is the bank that all but the swaps was read as of, ReadAt when, and
	// AgreeingNodes how many nodes told it; zero for never.
	At            Clock
	ReadAt        time.Time
	AgreeingNodes int
	// Orders and OmittedOrders are the book's: see [Depth]. OmittedLevels is how many of
	// the levels that the orders make are not shown: of less than a lot, or of more
	// lots than the engine takes.
	Orders, OmittedOrders, OmittedLevels int
	// Pool is nil where there is none, or it has not been read; Proof its hash.
	Pool  *PoolState
	Proof [32]byte
	// BaseSupply and QuoteSupply are the mints'.
	BaseSupply, QuoteSupply market.Amount
	// Observed are the accounts that exist, in the order of the options.
	Observed []Holding
	Price    PriceSource
	Swaps    SwapState
	Reasons  Reasons
	// Err is the last failure, nil since nothing fails. It shows no URL.
	Err error
}

// Fresh reports whether the last reading of the pair is current.
func (p *PairState) Fresh() bool { return !p.Reasons.Has(NotRead) && !p.Reasons.Has(Stale) }

// Holding is a token account that was read along.
type Holding struct {
	Account, Mint solana.Address
	Amount        market.Amount
}

// SwapState is what is known of a pair's swaps.
type SwapState struct {
	Rolling Rolling
	// Traders is how many takers there were, by who paid for the transaction: an
	// estimate.
	Traders uint64
	// Numbered is the ordinal of the newest swap that has one, Untold how many are
	// too small or too large for the instrument and have none.
	Numbered, OmittedSwaps uint64
	// Pending is how many transactions are listed and not read.
	Pending int
	// Newest is the transaction read last.
	Newest TxRef
	// Snapshot are the snapshots, the newest first. The caller may not change it.
	Snapshots []Snapshot
	// Reconstructed are the totals of the newest snapshot from before the history
	// that Rolling.Totals are of; zero where that is complete.
	Reconstructed Snapshot
}

// Snapshot is a pair as it stood at a moment (description, 2.6). Integers only,
// so that it is kept as it is.
type Snapshot struct {
	// At is in seconds of Unix time.
	At   int64
	Slot uint64
	// BaseBalance and QuoteBalance are the vaults', in atoms, of which BaseFees and
	// QuoteFees belong to others.
	BaseBalance, QuoteBalance market.Amount
	BaseFees, QuoteFees       market.Amount
	// Swaps, Base, Quote and Traders are totals up to then.
	Swaps       uint64
	Base, Quote market.Uint128
	Traders     uint64
	// Complete: they are from the vaults' creation on.
	Complete bool
}
