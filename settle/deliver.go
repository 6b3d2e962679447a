package settle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/tx"
	"blockdesk/market"
	"blockdesk/settle/binding"
	"blockdesk/settle/broadcast"
	"blockdesk/settle/cosign"
	"blockdesk/settle/store"
)

// deliveries sends the tokens of paid claims.
type deliveries struct {
	*env
	tracker *broadcast.Tracker
	jobs    *jobs
	builder *builder
	guard   *guard
	key     *deskKey
	search  *search
}

// deliver sends the tokens of a paid claim. It signs no new delivery while an old
// one could still land: each transaction that was ever signed for the claim must
// have ended, and the chain is searched for a delivery that the store lacks, for
// example after the restore of an old backup.
func (d *deliveries) deliver(ctx context.Context, c *rfq.Claim) error {
	list, err := d.store.Transactions(c.ID)
	if err != nil {
		return err
	}
	if n := len(list); n > 0 {
		d.jobs.setSigned(c.ID, n, list[0].SignedAt(), list[n-1].Signature())
	}
	for i := range list {
		if !d.jobs.hasEnded(c.ID, list[i].Hash()) {
			return d.adopt(c.ID, list[i].Hash(), func() error { return d.tracker.Track(list[i]) })
		}
	}
	if len(list) >= MaxDeliveryAttempts {
		return &deliveryProblem{problemAttempts, claimError(c.ID, fmt.Errorf("%d deliveries were signed", len(list)))}
	}
	t, err := d.search.unrecordedDelivery(ctx, c, list)
	if err != nil {
		return err
	}
	if t != nil {
		hash := tx.MessageHash(t.Tx.Signed)
		missing := broadcast.Missing{Claim: c.ID, Kind: cosign.Deliver, Hash: hash, Reference: binding.Reference(c.ID), AllowedAt: d.now()}
		return d.adopt(c.ID, hash, func() error { return d.tracker.Await(missing) })
	}
	return d.deliverNew(ctx, c)
}

// adopt begins, in the desk, a delivery that exists although the desk has none
// under way: its end was not recorded, or its beginning was lost. The tracker finds
// its end.
func (d *deliveries) adopt(id market.ClaimID, hash solana.Hash, track func() error) error {
	result, err := d.desk.Do(&rfq.BeginDelivery{Claim: id, Proof: hash})
	switch {
	case err != nil:
		return claimError(id, err)
	case result.Reason == event.ReasonClaimState:
		return errLater // the claim's newest record has not arrived yet
	case result.Reason != 0:
		return claimError(id, fmt.Errorf("%w: %s", ErrRefused, result.Reason))
	}
	return track()
}

// deliverNew builds, checks, promises, signs, stores and sends a delivery.
func (d *deliveries) deliverNew(ctx context.Context, c *rfq.Claim) error {
	base, err := d.builder.base(&c.Terms)
	if err != nil {
		return claimError(c.ID, err)
	}
	hash, err := d.builder.chain.blockhash(ctx)
	if err != nil {
		return claimError(c.ID, err)
	}
	u, err := d.builder.delivery(c, base, &hash)
	if err != nil {
		return claimError(c.ID, err)
	}
	if err := d.guard.delivery(ctx, c, u); err != nil {
		return err
	}
	promised, err := cosign.AuthorizeDelivery(d.desk, c.ID, u)
	if refused := (*cosign.Refused)(nil); errors.As(err, &refused) && refused.Outcome.Reason == event.ReasonClaimState {
		return errLater
	}
	if err != nil {
		return err
	}
	t, err := d.key.sign(context.WithoutCancel(ctx), promised, hash.LastValidBlockHeight)
	if err != nil {
		return err
	}
	d.counts.delivered.Add(1)
	return d.tracker.Track(t)
}

// deskKey signs what the desk has promised, and stores the result.
type deskKey struct {
	*env
	timeout time.Duration
}

// sign returns a signed transaction once it is on disk. Errors: [ErrSigner], errors
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
