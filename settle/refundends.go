package settle

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/settle/binding"
	"blockdesk/settle/broadcast"
	"blockdesk/settle/cosign"
	"blockdesk/settle/store"
)

// advance continues with a stored transaction of refunds: the desk's permission, the signature,
// the tracker. fresh means that this process has just made it, so it is not signed. A
// transaction that cannot go on now stays open and is tried again.
func (r *refunder) advance(ctx context.Context, x *store.RefundTransaction, fresh bool) {
	err := r.tryAdvance(ctx, x)
	refused := (*cosign.RefundRefused)(nil)
	switch {
	case err == nil:
		return
	case fresh && (errors.As(err, &refused) || errors.Is(err, cosign.ErrRefundTerms)):
		// Only permission for all payments leads to a signature.
		r.log.Warn("desk refused a refund", "error", err)
		if err = r.recordRefund(&broadcast.Result{Kind: cosign.Refund, Hash: x.Hash, End: broadcast.Expired}); err == nil {
			return
		}
	case errors.As(err, &refused) || errors.Is(err, cosign.ErrRefundTerms) || errors.Is(err, errOutdated):
		// An earlier process may have signed it: wait until it can no longer land.
		err = r.tracker.Await(broadcast.Missing{
			Kind: cosign.Refund, Hash: x.Hash, Reference: binding.RefundReference(x.Items[0].Payment), LastValid: x.LastValid, AllowedAt: x.MadeAt,
		})
	}
	if err == nil || ctx.Err() != nil {
		return
	}
	r.log.Warn("refund is delayed, trying again", "refund", x.Hash.String(), "error", err)
	for i := range x.Items {
		r.fail(x.Items[i].Payment, problemOfRefund(err))
	}
	r.open = append(r.open, x)
}

// tryAdvance takes a transaction to the tracker. Errors: *[cosign.RefundRefused] and those
// of [cosign.AuthorizeRefund]; errOutdated if it can hardly land any more; [ErrSigner];
// [ErrChain]; errors of package store and of the tracker.
func (r *refunder) tryAdvance(ctx context.Context, x *store.RefundTransaction) error {
	if x.State == store.RefundSigned {
		r.permitAgain(x)
		return r.tracker.Track(x.Transaction())
	}
	newest, err := r.builder.chain.blockhash(ctx)
	if err != nil {
		return err
	}
	if x.LastValid+r.guard.blockhashLife < newest.LastValidBlockHeight+MinLife {
		return fmt.Errorf("%w: refund %s", errOutdated, x.Hash)
	}
	v := r.desk.View()
	if v == nil {
		return errNoView
	}
	permitted, err := cosign.AuthorizeRefund(r.desk, x.Operator, x.Raw, v.Policy.USDCMint)
	if err != nil {
		return err
	}
	signed, err := r.key.refund(ctx, permitted)
	if err != nil {
		return err
	}
	r.counts.refunds.Add(1)
	return r.tracker.Track(signed.Transaction())
}

// refund signs refunds that the desk has permitted, and stores the result.
func (k *deskKey) refund(ctx context.Context, permitted cosign.AuthorizedRefund) (*store.RefundTransaction, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), k.timeout)
	defer cancel()
	signed, err := permitted.Sign(ctx, k.signer)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSigner, err)
	}
	return k.store.Refunds.Sign(signed, k.now())
}

// permitAgain repeats the permission for a signed transaction, whose record a crash in mode
// interval may have lost.
func (r *refunder) permitAgain(x *store.RefundTransaction) {
	for i := range x.Items {
		result, err := r.desk.Do(&rfq.BeginRefund{Header: rfq.Header{Operator: x.Operator}, Signature: x.Items[i].Payment, Proof: x.Hash})
		if err == nil && result.Reason != 0 {
			r.log.Error("journal lost a signed refund, and the desk refuses it now", "payment", x.Items[i].Payment.String(), "reason", result.Reason.String())
		}
	}
}

// resumeOpen continues with open transactions: those of an earlier process, and those that
// had to wait.
func (r *refunder) resumeOpen(ctx context.Context) {
	list := r.open
	r.open = nil
	for i, x := range list {
		if ctx.Err() != nil {
			r.open = append(r.open, list[i:]...)
			return
		}
		if r.stopped() == problemLocked && x.State == store.RefundPrepared {
			r.open = append(r.open, x)
			continue
		}
		r.advance(ctx, x, false)
	}
	r.orphans = slices.DeleteFunc(r.orphans, r.adoptOrphan)
}

// adoptOrphan takes up a payment whose refund was under way at the start, and reports
// whether that is done. If the store lacks the transaction, the tracker looks for it; if
// the store has seen its end, that is recorded again.
func (r *refunder) adoptOrphan(p rfq.Payment) bool {
	x, ok, err := r.store.Refunds.Get(p.Proof)
	switch {
	case err != nil:
	case !ok:
		err = r.await(&p, p.Proof)
	case x.State == store.RefundPaid:
		err = r.recordPayment(&broadcast.Result{Hash: x.Hash, Signature: x.Signature, End: broadcast.Finalized}, p.Signature)
	case x.State == store.RefundExpired:
		err = r.recordPayment(&broadcast.Result{Hash: x.Hash, End: broadcast.Expired}, p.Signature)
	}
	if err != nil {
		r.log.Warn("the store lacks the transaction of an open refund, and its end could not be looked up: trying again", "payment", solana.Signature(p.Signature).String(), "error", err)
	}
	return err == nil
}

// await has the tracker find the end of a refund whose bytes the store lacks. It is in no
// block before the payment's.
func (r *refunder) await(p *rfq.Payment, hash solana.Hash) error {
	since := p.At
	if p.BlockTime > 0 {
		since = min(since, p.BlockTime*1e9)
	}
	return r.tracker.Await(broadcast.Missing{
		Kind: cosign.Refund, Hash: hash, Reference: binding.RefundReference(p.Signature), AllowedAt: since,
	})
}

// adopt begins, in the desk, a refund that is on the chain without a record. The tracker
// finds its end. Errors: errLater if that has begun; errors of the desk.
func (r *refunder) adopt(p *rfq.Payment, hash solana.Hash) error {
	result, err := r.desk.Do(&rfq.BeginRefund{Signature: p.Signature, Proof: hash})
	switch {
	case err != nil:
		return err
	case result.Reason != 0:
		return fmt.Errorf("%w: %s", ErrRefused, result.Reason)
	}
	if err := r.await(p, hash); err != nil {
		return err
	}
	return errLater
}

// recordRefund records in the desk and in the store how a transaction of refunds ended. The
// tracker calls it again until it returns nil, so every step is repeatable.
func (r *refundOrders) recordRefund(end *broadcast.Result) error {
	x, stored, err := r.store.Refunds.Get(end.Hash)
	if err != nil {
		return err
	}
	payments := r.refunds.byProof(end.Hash)
	if stored {
		payments = payments[:0]
		for i := range x.Items {
			payments = append(payments, x.Items[i].Payment)
		}
	}
	for _, payment := range payments {
		if err := r.recordPayment(end, payment); err != nil {
			return err
		}
	}
	if stored {
		state := store.RefundExpired
		if end.End == broadcast.Finalized {
			state = store.RefundPaid
		}
		err := r.store.Refunds.End(end.Hash, state, r.now())
		if errors.Is(err, store.ErrConflict) {
			r.log.Error("another outcome of this refund is already stored and stays", "refund", end.Hash.String(), "end", end.End.String())
			err = nil
		}
		if err != nil {
			return err
		}
	}
	r.wakeUp()
	return nil
}

func (r *refundOrders) recordPayment(end *broadcast.Result, payment solana.Signature) error {
	var request rfq.Request = &rfq.RefundPayment{Signature: payment, Proof: end.Hash}
	if end.End != broadcast.Finalized {
		request = &rfq.ExpireRefund{Signature: payment, Proof: end.Hash}
	}
	result, err := r.desk.Do(request)
	switch {
	case err != nil:
		return fmt.Errorf("refund of %s: %w", payment, err)
	case end.End != broadcast.Finalized:
		if result.Reason == event.ReasonNone {
			problem := problemExpired
			if end.End == broadcast.Failed {
				problem = problemFailed
			}
			r.fail(payment, problem)
			r.counts.refundsExpired.Add(1)
		}
		return nil
	case result.Reason != event.ReasonNone:
		r.log.Error("desk refused a refund that is on the chain", "payment", payment.String(),
			"refund", end.Signature.String(), "reason", result.Reason.String())
	default:
		r.counts.refunded.Add(1)
	}
	r.done(payment)
	return nil
}
