package desk

import (
	"time"

	"blockdesk/market"
)

// ChainHealth is what the settlement knows of the chain and of the desk on it.
type ChainHealth struct {
	Desk  market.Address // that delivers, co-signs and sponsors; zero = unknown
	Nodes []ChainNode    // in the order of preference
	Slot  uint64         // the newest that a node has shown; 0 = none yet
	// BlockhashAge is that of the blockhash that the next package gets, and
	// BlockhashSlot the slot that it is as of; 0 = there is none.
	BlockhashAge  time.Duration
	BlockhashSlot uint64
	Tracked       int // signed transactions whose end is not known yet
	Landed        int // of them in a block that is confirmed
}

// ChainNode is one upstream.
type ChainNode struct {
	Name      string // without credentials: it is published
	Available bool
	Slot      uint64 // the newest that it has shown; 0 = none yet
	Lag       uint64 // slots behind ChainHealth.Slot
}
