package mirror

import (
	"context"
	"errors"
	"fmt"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/ledger"
	"blockdesk/internal/solana/rpc"
)

// History is what a [Backfill] asks of the chain, of what is final only.
type History interface {
	// List lists the transactions that name an account, the newest first.
	List(ctx context.Context, a solana.Address, page rpc.Page) (List, error)
	// Transaction reads one; found is false where it is not known.
	Transaction(ctx context.Context, s solana.Signature, level rpc.Commitment) (t *ledger.Confirmed, found bool, err error)
}

// Step asks what Next says, of what is final only, and takes the answer. It asks
// once at most; after an error there is nothing better to do than to poll again
// later. Errors: those of the history, [ErrHistory], [ErrNotFound].
func (b *Backfill) Step(ctx context.Context, h History) (Progress, error) {
	switch ask := b.Next(); ask.Kind {
	case RequestList:
		list, err := h.List(ctx, b.o.Account, ask.Page)
		if err != nil {
			return Progress{}, fmt.Errorf("history of %s: %w", solana.Text(b.o.Account), err)
		}
		return b.Listed(list)
	case RequestTransaction:
		c, found, err := h.Transaction(ctx, ask.Transaction, rpc.Finalized)
		l, _ := b.next()
		switch {
		case errors.Is(err, rpc.ErrNoMajority) && !l.contested:
			// Most list it and one has it: the others come to it, in however long. To
			// pass it over would lose a swap for good.
			return Progress{}, fmt.Errorf("%w: %w", ErrNotFound, err)
		case unreadable(err):
			return b.Unavailable(err)
		case err != nil:
			return Progress{}, fmt.Errorf("transaction %s: %w", ask.Transaction, err)
		case !found:
			return b.Unavailable(fmt.Errorf("%w: %s", ErrNotFound, ask.Transaction))
		}
		return b.Read(c)
	case RequestSkip:
		return b.Skip()
	default:
		return Progress{}, nil
	}
}

// unreadable reports whether an error is about the answer, and not about whether
// there is one: asking for ever would stop the mirror.
func unreadable(err error) bool {
	kind := rpc.KindOf(err)
	return kind == rpc.WrongAnswer || kind == rpc.Rejected || errors.Is(err, rpc.ErrDisagree) || errors.Is(err, rpc.ErrNoMajority)
}
