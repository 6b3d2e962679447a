package mirror

import (
	"context"
	"errors"
	"fmt"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/ledger"
	"blockdesk/internal/solana/rpc"
)

// History is the source of a [Backfill], of finalized transactions only.
type History interface {
	// List lists the transactions that name an account, newest first.
	List(ctx context.Context, a solana.Address, page rpc.Page) (List, error)
	// Transaction reads a transaction; found is false if it is unknown.
	Transaction(ctx context.Context, s solana.Signature, level rpc.Commitment) (t *ledger.Confirmed, found bool, err error)
}

// Step makes at most one request and handles the answer. After an error, poll again
// later. Errors: [ErrHistory], [ErrNotFound], errors of the history.
func (b *Backfill) Step(ctx context.Context, h History) (Progress, error) {
	switch next := b.Next(); next.Kind {
	case RequestList:
		list, err := h.List(ctx, b.o.Account, next.Page)
		if err != nil {
			return Progress{}, fmt.Errorf("history of %s: %w", solana.Base58(b.o.Account), err)
		}
		return b.Listed(list)
	case RequestTransaction:
		c, found, err := h.Transaction(ctx, next.Transaction, rpc.Finalized)
		l, _ := b.next()
		switch {
		case errors.Is(err, rpc.ErrNoMajority) && !l.contested:
			// Most nodes list the transaction and one has it, so the others will have it
			// soon. Skipping it would lose a swap for good.
			return Progress{}, fmt.Errorf("%w: %w", ErrNotFound, err)
		case unreadable(err):
			return b.Unavailable(err)
		case err != nil:
			return Progress{}, fmt.Errorf("transaction %s: %w", next.Transaction, err)
		case !found:
			return b.Unavailable(fmt.Errorf("%w: %s", ErrNotFound, next.Transaction))
		}
		return b.Read(c)
	case RequestSkip:
		return b.Skip()
	default:
		return Progress{}, nil
	}
}

// unreadable reports whether an error concerns the content of an answer. Retrying such an
// error forever would stop the mirror.
func unreadable(err error) bool {
	kind := rpc.KindOf(err)
	return kind == rpc.WrongAnswer || kind == rpc.Rejected || errors.Is(err, rpc.ErrDisagree) || errors.Is(err, rpc.ErrNoMajority)
}
