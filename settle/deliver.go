package settle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
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
	search  *deliverySearch
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
		if t := &list[i]; !d.jobs.hasEnded(c.ID, t.Hash()) {
			return d.adopt(&broadcast.Missing{
				Claim: c.ID, Kind: cosign.Deliver, Hash: t.Hash(), Reference: binding.Reference(c.ID), LastValid: t.LastValid(), AllowedAt: t.SignedAt(),
			}, func() error { return d.tracker.Track(*t) })
		}
	}
	if len(list) >= MaxDeliveryAttempts {
		return &deliveryProblem{problemAttempts, claimError(c.ID, fmt.Errorf("%d deliveries failed or expired, and at most %d are tried: release or refund the claim", len(list), MaxDeliveryAttempts))}
	}
	t, err := d.search.unrecordedDelivery(ctx, c, list)
	if err != nil {
		return err
	}
	if t != nil {
		missing := broadcast.Missing{
			Claim: c.ID, Kind: cosign.Deliver, Hash: tx.MessageHash(t.Tx.Signed), Reference: binding.Reference(c.ID), AllowedAt: c.ReservedAt,
		}
		return d.adopt(&missing, func() error { return d.tracker.Await(missing) })
	}
	return d.deliverNew(ctx, c)
}

// adopt begins, in the desk, a delivery that exists although the desk has none
// under way: its end was not recorded, or its beginning was lost. The tracker finds
// its end. If the desk's guard refuses a delivery now, nothing is sent, but the end is
// awaited all the same, because the transaction may land.
func (d *deliveries) adopt(m *broadcast.Missing, track func() error) error {
	result, err := d.desk.Do(&rfq.BeginDelivery{Claim: m.Claim, Proof: m.Hash})
	switch {
	case err != nil:
		return claimError(m.Claim, err)
	case result.Reason == event.ReasonClaimState:
		return errLater // the claim's newest record has not arrived yet
	case isGuard(result.Reason):
		return errors.Join(guarded(m.Claim, result.Reason), d.tracker.Await(*m))
	case result.Reason != 0:
		return claimError(m.Claim, fmt.Errorf("%w: %s", ErrRefused, result.Reason))
	}
	return track()
}

// deliverNew builds, checks, gets permission, signs, stores and sends a delivery.
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
	permitted, err := cosign.AuthorizeDelivery(d.desk, c.ID, u)
	if refused := (*cosign.Refused)(nil); errors.As(err, &refused) {
		return d.refused(c.ID, refused.Outcome.Reason, err)
	}
	if err != nil {
		return err
	}
	t, err := d.key.sign(context.WithoutCancel(ctx), permitted, hash.LastValidBlockHeight)
	if err != nil {
		return err
	}
	d.counts.delivered.Add(1)
	return d.tracker.Track(t)
}

// refused handles the desk's refusal to begin a new delivery: nothing was signed. If the
// price has moved against the desk, the payment is due for refund; for every other reason
// of the guard the claim waits, and is listed.
func (d *deliveries) refused(id market.ClaimID, reason event.Reason, err error) error {
	switch {
	case reason == event.ReasonClaimState:
		return errLater
	case !isGuard(reason):
		return err
	case reason != event.ReasonPriceCorridor:
		return guarded(id, reason)
	}
	result, err := d.desk.Do(&rfq.AbandonDelivery{Claim: id, Reason: event.ReasonPriceCorridor})
	switch {
	case err != nil:
		return claimError(id, err)
	case result.Reason == event.ReasonNone:
		d.log.Warn("price moved too far since the payment, refund due", "claim", claimText(id))
		return nil
	case result.Reason == event.ReasonClaimState:
		return errLater
	}
	// The price is back, or the desk's list of refunds is full.
	return guarded(id, result.Reason)
}

// isGuard reports whether a reason is one of the desk's guard before a delivery.
func isGuard(r event.Reason) bool { return slices.Contains(guardReasons(), r) }

// guarded returns the problem of a delivery that waits because the desk's guard refuses
// it.
func guarded(id market.ClaimID, r event.Reason) error {
	return &deliveryProblem{r.String(), claimError(id, fmt.Errorf("%w: %s", ErrRefused, r))}
}

// deskKey signs what the desk has permitted, and stores the result.
type deskKey struct {
	*env
	timeout time.Duration
}

// sign returns a signed transaction once it is on disk. Errors: [ErrSigner], errors
// of package store.
func (k *deskKey) sign(ctx context.Context, permitted cosign.Authorized, lastValid uint64) (store.Transaction, error) {
	ctx, cancel := context.WithTimeout(ctx, k.timeout)
	defer cancel()
	signed, err := permitted.Sign(ctx, k.signer)
	if err != nil {
		return store.Transaction{}, fmt.Errorf("%w: %w", ErrSigner, err)
	}
	return k.store.PutTransaction(signed, lastValid, k.now())
}
