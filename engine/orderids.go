package engine

import (
	"sync/atomic"

	"blockdesk/market"
)

// orderIDBits is how many low bits of an order id count within an epoch: 10^12
// orders, twelve days at a million a second.
const orderIDBits = 40

// MaxEpoch is the largest epoch that an order id holds.
const MaxEpoch = 1<<(64-orderIDBits) - 1

// OrderIDs gives out order ids that no order of any epoch has had: the epoch in
// the high bits, a counter below. Any number of goroutines may use it.
type OrderIDs struct {
	epoch uint64
	_     cacheLine
	given atomic.Uint64
	_     cacheLine
}

// Next returns the next id. When the epoch's ids are used up it returns 0, which
// is no order and is refused by the engine; a restart begins a new epoch.
func (o *OrderIDs) Next() market.OrderID {
	n := o.given.Add(1)
	if n>>orderIDBits != 0 {
		return 0
	}
	return market.OrderID(o.epoch<<orderIDBits | n)
}
