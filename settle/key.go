package settle

import (
	"context"
	"fmt"
	"time"

	"blockdesk/settle/cosign"
	"blockdesk/settle/store"
)

// deskKey signs what the desk has promised, and stores the result.
type deskKey struct {
	signer  cosign.Signer
	store   *store.Store
	timeout time.Duration
	now     func() int64
}

// sign returns a signed transaction once it is on disk. Errors: [ErrSigner], those
// of package store.
func (k *deskKey) sign(ctx context.Context, promised cosign.Authorized, lastValid uint64) (store.Transaction, error) {
	ctx, cancel := context.WithTimeout(ctx, k.timeout)
	defer cancel()
	signed, err := promised.Sign(ctx, k.signer)
	if err != nil {
		return store.Transaction{}, fmt.Errorf("%w: %w", ErrSigner, err)
	}
	return k.store.PutTransaction(signed, lastValid, k.now())
}
