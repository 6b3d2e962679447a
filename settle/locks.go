package settle

import (
	"context"

	"blockdesk/market"
)

// stripes is how many claims can be worked on at once: claims share a lock by
// their number, which is random. A power of two.
const stripes = 1024

// locks keep two who work on one claim apart. Unlike a mutex, one can be waited
// for until a context ends: its holder may be asking a node.
type locks [stripes]chan struct{}

func newLocks() *locks {
	l := new(locks)
	for i := range l {
		l[i] = make(chan struct{}, 1)
	}
	return l
}

func (l *locks) of(id market.ClaimID) chan struct{} { return l[uint64(id)%stripes] }

// lock waits for the claim's lock, and returns what gives it back. The error is
// the context's.
func (l *locks) lock(ctx context.Context, id market.ClaimID) (unlock func(), err error) {
	stripe := l.of(id)
	select {
	case stripe <- struct{}{}:
		return func() { <-stripe }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// try is lock for one who has something else to do.
func (l *locks) try(id market.ClaimID) (unlock func(), ok bool) {
	stripe := l.of(id)
	select {
	case stripe <- struct{}{}:
		return func() { <-stripe }, true
	default:
		return nil, false
	}
}
