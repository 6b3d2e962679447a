package settle

import (
	"context"

	"blockdesk/market"
)

// stripes is the number of locks. Claims share a lock by their number, which is
// random. A power of two.
const stripes = 1024

// claimLocks serialise the work on one claim. Unlike with a mutex, the wait for a
// lock ends with a context, because the holder may be waiting for a node.
type claimLocks [stripes]chan struct{}

func newClaimLocks() *claimLocks {
	l := new(claimLocks)
	for i := range l {
		l[i] = make(chan struct{}, 1)
	}
	return l
}

// lock waits for the claim's lock and returns the function that releases it. The
// error is ctx.Err().
func (l *claimLocks) lock(ctx context.Context, id market.ClaimID) (unlock func(), err error) {
	stripe := l[uint64(id)%stripes]
	select {
	case stripe <- struct{}{}:
		return func() { <-stripe }, nil
	case <-ctx.Done():
		return nil, claimError(id, ctx.Err())
	}
}

func (l *claimLocks) try(id market.ClaimID) (unlock func(), ok bool) {
	stripe := l[uint64(id)%stripes]
	select {
	case stripe <- struct{}{}:
		return func() { <-stripe }, true
	default:
		return nil, false
	}
}
