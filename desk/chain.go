package desk

import (
	"time"

	"blockdesk/market"
)

// ChainHealth is the state of settlement's nodes and of the desk's transactions on
// the chain.
type ChainHealth struct {
	Desk  market.Address // wallet that delivers, countersigns and sponsors; zero = unknown
	Nodes []ChainNode    // in the order of preference
	Slot  uint64         // newest slot of any node; 0 = none yet
	// BlockhashAge is the age of the blockhash that the next transaction package gets, and
	// BlockhashSlot the slot in which it was read; 0 = there is none.
	BlockhashAge  time.Duration
	BlockhashSlot uint64
	Tracked       int // signed transactions whose end is not known yet
	Landed        int // tracked transactions in a confirmed block
	// Network is the network of the nodes by the hash of its first block: "mainnet",
	// "devnet", "testnet" or "local"; "" before enough nodes have answered.
	Network string
	// Balances are what the desk's wallet holds; nil before they were read.
	Balances []Balance
}

// LowSOL and LowToken are the problems of a [Balance].
const (
	LowSOL   = "low_sol"
	LowToken = "low_token"
)

// Balance is what the desk's wallet holds of one asset, as of a finalized slot.
type Balance struct {
	// Asset is "SOL", "USDC", or of a base token its symbol or mint. Mint is in base58,
	// empty for SOL. Instrument is the pair that sells it, if Base is set.
	Asset, Mint string
	Instrument  market.InstrumentID
	Base        bool
	// Atoms is what a majority of the nodes reports at least. Below Needed it is low: SOL
	// for some deliveries, a base token for what is reserved, SOL and USDC for the refunds
	// that an operator has ordered.
	Atoms, Needed uint64
	// Account is the wallet's account of the token, and Supply what a majority of the nodes
	// reports at least as the supply of its mint; zero for SOL. Slot is the lowest of their
	// answers.
	Account market.Address
	Supply  uint64
	Slot    uint64
}

// Problem returns LowSOL or LowToken if the balance is low, else "".
func (b *Balance) Problem() string {
	switch {
	case b.Atoms >= b.Needed:
		return ""
	case b.Mint != "":
		return LowToken
	}
	return LowSOL
}

// ChainNode is the health of one RPC node.
type ChainNode struct {
	Name      string // without credentials: it is published
	Available bool
	Slot      uint64 // newest slot of the node; 0 = none yet
	Lag       uint64 // slots behind ChainHealth.Slot
}
