package engine

import (
	"sync/atomic"

	"blockdesk/market"
)

// orderIDBits is the size of the counter in an order id: 10^12 orders an epoch, twelve days
// at a million a second.
const orderIDBits = 40

// MaxEpoch is the largest epoch that fits an order id.
const MaxEpoch = 1<<(64-orderIDBits) - 1

// OrderIDs issues order ids that are unique over all epochs: the epoch in the high bits, a
// counter in the low ones. Any number of goroutines may use it.
type OrderIDs struct {
	epoch uint64
	_     cacheLine
	given atomic.Uint64
	_     cacheLine
}

// Next returns the next id: NextN(1).
func (o *OrderIDs) Next() market.OrderID { return o.NextN(1) }

// NextN returns the first of n consecutive ids, n at least 1. Once the ids of the epoch are used up it returns 0, which the
// engine refuses; a restart begins a new epoch.
func (o *OrderIDs) NextN(n int) market.OrderID {
	last := o.given.Add(uint64(n))
	if last>>orderIDBits != 0 {
		return 0
	}
	return market.OrderID(o.epoch<<orderIDBits | (last - uint64(n) + 1))
}
