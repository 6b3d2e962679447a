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
	// VaultPrice: the price comes from the pool, not from a book.
	VaultPrice Reason = 1
	// NotRead: nothing has been read from the chain yet.
	NotRead Reason = 2
	// Stale: the last reading is older than Options.StaleAfter.
	Stale Reason = 3
	// NoUpstream: no node answers, or none with a plausible clock.
	NoUpstream Reason = 4
	// Contradicted: nodes return different data for one slot, or their slots are too far
	// apart.
	Contradicted Reason = 5
	// Unconfirmed: no two nodes agree at present.
	Unconfirmed Reason = 6
	// FutureSlot: a node returns a slot or a time in the future.
	FutureSlot Reason = 7
	// BadAccount: an account has unexpected content.
	BadAccount Reason = 8
	// MarketClosed: the program does not trade on the market any more.
	MarketClosed Reason = 9
	// HistoryBehind: swaps were not read to the chain's end recently.
	HistoryBehind Reason = 10
	// StoreFailed: the store of swaps fails, so none are published.
	StoreFailed Reason = 11
	// EngineRefuses: the engine refuses a command.
	EngineRefuses Reason = 12
	// Failover: the preferred node is not in use.
	Failover Reason = 13

	reasons = 14
)

// String returns the value of degradation_state.reasons. The first is from
// docs/specification.md 2.5, the others are our choice.
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

var _ [16 - reasons]struct{} // all reasons fit into the set's 16 bits

// With returns the set with a reason added.
func (r Reasons) With(reason Reason) Reasons { return r | 1<<reason }

// Has reports whether a reason is in the set.
func (r Reasons) Has(reason Reason) bool { return r>>reason&1 != 0 }

// Words returns the reasons' strings in the order of the constants; empty, not nil, for
// none.
func (r Reasons) Words() []string {
	words := make([]string, 0, reasons)
	for reason := VaultPrice; reason < reasons; reason++ {
		if r.Has(reason) {
			words = append(words, reason.String())
		}
	}
	return words
}

// PriceSource is where a pair's price comes from.
type PriceSource uint8

const (
	// NoPrice: neither a book nor a pool has a price.
	NoPrice PriceSource = 1
	// BookPrice: the on-chain book has orders.
	BookPrice PriceSource = 2
	// PoolPrice: the ratio of the pool's vaults.
	PoolPrice PriceSource = 3
)

// State is the service's state at one moment. It is immutable.
type State struct {
	At    time.Time
	Pairs []PairState // in the order of the options
	// Slot is the highest slot read, and SyncedAt when it was read; zero = never.
	Slot     uint64
	SyncedAt time.Time
	// LastSignature is the signature of the newest transaction read.
	LastSignature solana.Signature
	Upstreams     []UpstreamState // in order of preference
	// Active is the first available node; empty if there is none.
	Active string
	// Failover: Active is not the preferred node.
	Failover bool
	// MaxSlot is the highest slot of any node, Lag how far Slot is behind it.
	MaxSlot, Lag uint64
	// Reasons are the reasons of all pairs and of the nodes.
	Reasons Reasons
}

// UpstreamState is a node's health and its last refusal.
type UpstreamState struct {
	rpc.UpstreamHealth
	// Refused is why the last answer was refused; nil if it was accepted.
	Refused error
}

// PairState is the state of one pair.
type PairState struct {
	Instrument *market.Instrument
	// At is the slot and time of the reading, ReadAt our time of it, and AgreeingNodes the
	// number of nodes that returned it; zero = never. They do not concern Swaps.
	At            Clock
	ReadAt        time.Time
	AgreeingNodes int
	// Orders and OmittedOrders are those of [Depth]. OmittedLevels counts levels that are
	// not published: of less than a lot, or of more lots than the engine takes.
	Orders, OmittedOrders, OmittedLevels int
	// Pool is nil if there is none or it was not read. Proof is its hash.
	Pool  *PoolState
	Proof [32]byte
	// BaseSupply and QuoteSupply are the supplies of the mints.
	BaseSupply, QuoteSupply market.Amount
	// Observed are the accounts that exist, in the order of the options.
	Observed []Holding
	Price    PriceSource
	Swaps    SwapState
	Reasons  Reasons
	// Err is the last failure; nil after a success. It contains no URL.
	Err error
}

// Fresh reports whether the last reading of the pair is current.
func (p *PairState) Fresh() bool { return !p.Reasons.Has(NotRead) && !p.Reasons.Has(Stale) }

// Holding is the balance of an observed account.
type Holding struct {
	Account, Mint solana.Address
	Amount        market.Amount
}

// SwapState is the state of a pair's swaps.
type SwapState struct {
	Rolling Rolling
	// Traders is the number of distinct fee payers of swaps, an estimate of the traders.
	Traders uint64
	// Numbered is the newest ordinal. OmittedSwaps counts swaps without an ordinal, because
	// they are too small or too large for the instrument.
	Numbered, OmittedSwaps uint64
	// Pending is the number of listed transactions that were not read yet.
	Pending int
	// Newest is the newest transaction read.
	Newest TxRef
	// Snapshots are newest first. The caller must not change them.
	Snapshots []Snapshot
	// Reconstructed is the newest snapshot from before the history of Rolling.Totals; zero
	// if that history is complete.
	Reconstructed Snapshot
}

// Snapshot is the state of a pair at one moment (docs/specification.md 2.6). It is stored
// as it is, so its fields are integers of fixed size.
type Snapshot struct {
	At   int64 // Unix seconds
	Slot uint64
	// BaseBalance and QuoteBalance are the balances of the vaults, in atoms, with the
	// uncollected fees BaseFees and QuoteFees.
	BaseBalance, QuoteBalance market.Amount
	BaseFees, QuoteFees       market.Amount
	// Swaps, Base, Quote and Traders are totals.
	Swaps       uint64
	Base, Quote market.Uint128
	Traders     uint64
	// Complete: the totals begin with the vaults' creation.
	Complete bool
}
