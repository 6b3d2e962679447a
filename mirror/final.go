package mirror

import (
	"context"
	"errors"
	"fmt"
	"time"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
)

// finalPool reads the pool as of a slot that is final, and not before from, by a
// majority of the nodes as [reader.query] does: what is kept for good must not be
// rolled back. It is for the goroutine of the pair's swaps, once opened is closed.
// Errors: as ask's, and the decoder's.
func (r *reader) finalPool(ctx context.Context, from uint64) (PoolState, error) {
	list := append([]solana.Address{solana.ClockSysvar}, r.pool.Accounts()...)
	q := newQuorum(r.o, Clock{}, time.Time{})
	for n := 1; ; n++ {
		views, err := r.node.AccountsFromAll(ctx, list, rpc.Finalized, from)
		if err != nil {
			return PoolState{}, err
		}
		q.add(views, r.o.Now())
		got, witnesses, err := q.result()
		if witnesses > 0 {
			return r.pool.Decode(got.at, got.accounts)
		}
		if !errors.Is(err, errUnconfirmed) || n >= r.o.MaxAttempts || !pause(ctx, r.o.AttemptPause) {
			return PoolState{}, fmt.Errorf("snapshot: %w", err)
		}
	}
}
