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
	// BlockhashAge is the age of the blockhash that the next package gets, and
	// BlockhashSlot the slot in which it was read; 0 = there is none.
	BlockhashAge  time.Duration
	BlockhashSlot uint64
	Tracked       int // signed transactions whose end is not known yet
	Landed        int // tracked transactions in a confirmed block
}

// ChainNode is the health of one RPC node.
type ChainNode struct {
	Name      string // without credentials: it is published
	Available bool
	Slot      uint64 // newest slot of the node; 0 = none yet
	Lag       uint64 // slots behind ChainHealth.Slot
}
