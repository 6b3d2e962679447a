package mirror

import (
	"context"
	"errors"
	"fmt"
	"time"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
)

// finalPool reads the pool as of a finalized slot at or after from, by majority as
// [reader.query] does, because a snapshot that is kept must not be rolled back. The
// pair's swap goroutine calls it once opened is closed. Errors: those of query and of the
// decoder.
func (r *reader) finalPool(ctx context.Context, from uint64) (PoolState, error) {
	list := append([]solana.Address{solana.ClockSysvar}, r.pool.Accounts()...)
	q := newQuorum(r.o, Clock{}, time.Time{})
	for n := 1; ; n++ {
		views, err := r.node.AccountsFromEach(ctx, list, rpc.Finalized, from)
		if err != nil {
			return PoolState{}, err
		}
		q.add(views, r.o.Now())
		got, agreeing, err := q.result()
		if agreeing > 0 {
			return r.pool.Decode(got.at, got.accounts)
		}
		if !errors.Is(err, errUnconfirmed) || n >= r.o.MaxAttempts || !pause(ctx, r.o.AttemptPause) {
			return PoolState{}, fmt.Errorf("snapshot: %w", err)
		}
	}
}
