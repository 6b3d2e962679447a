package settle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/build"
	"blockdesk/internal/solana/rpc"
	"blockdesk/internal/solana/token"
	"blockdesk/internal/solana/tx"
	"blockdesk/market"
	"blockdesk/settle/binding"
	"blockdesk/settle/cosign"
	"blockdesk/settle/search"
	"blockdesk/settle/store"
)

// run pays back what is ordered, until ctx ends. It waits without a timer while there is
// nothing to do.
func (r *refunder) run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		r.resumeOpen(ctx)
		for ctx.Err() == nil && r.payBatch(ctx) {
		}
		if timer.Stop(); r.hasWork() {
			timer.Reset(refundCheckEvery)
		}
		select {
		case <-r.wake:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return nil
}

// payBatch pays the next batch of payments back, and reports whether there was one.
func (r *refunder) payBatch(ctx context.Context) bool {
	batch := r.next()
	if len(batch) == 0 {
		return false
	}
	if problem := r.stopped(); problem != "" {
		r.failAll(batch, problem)
		return true
	}
	ready := batch[:0:0]
	for i := range batch {
		p := &batch[i]
		err := r.checkRefund(ctx, p)
		if err == nil {
			ready = append(ready, *p)
			continue
		}
		r.failed(ctx, p.Signature, err)
	}
	if len(ready) > 0 && ctx.Err() == nil {
		r.pay(ctx, ready)
	}
	return true
}

func (r *refunder) failed(ctx context.Context, payment solana.Signature, err error) {
	switch {
	case ctx.Err() != nil:
		return
	case errors.Is(err, errLater):
		r.postpone(payment)
		return
	}
	problem := problemOfRefund(err)
	r.log.Warn("refund failed", "payment", payment.String(), "problem", problem, "error", err)
	r.fail(payment, problem)
}

func (r *refunder) failAll(batch []rfq.Payment, problem string) {
	for i := range batch {
		r.fail(batch[i].Signature, problem)
	}
}

// checkRefund checks that a payment may be paid back: its payer is known and can be
// paid, and neither the store nor the chain has a refund of it that the journal lacks, for
// example after the restore of a backup. Such a refund is recorded instead. Errors:
// errRefundPayer, errLater, [ErrChain], [store.ErrConflict], errors of package store.
func (r *refunder) checkRefund(ctx context.Context, p *rfq.Payment) error {
	if err := r.checkPayer(ctx, p); err != nil {
		return err
	}
	list, err := r.store.Refunds.Of(p.Signature)
	if err != nil {
		return err
	}
	if paid, open := store.PaidOf(list, p.Signature); open {
		return errLater
	} else if paid > 0 && paid+p.RefundAtoms() > refundable(p) {
		return r.recordAgain(p, list)
	}
	return r.unrecordedRefund(ctx, p, list)
}

// refundable returns how much of a payment may go back in all.
func refundable(p *rfq.Payment) uint64 { return p.Amount - min(p.Amount, p.AppliedAtoms()) }

// recordAgain records a refund that is final, and that the journal has lost.
func (r *refunder) recordAgain(p *rfq.Payment, list []*store.RefundTransaction) error {
	for _, x := range list {
		for i := range x.Items {
			if x.State != store.RefundPaid || x.Items[i].Payment != p.Signature || uint64(x.Items[i].Amount) != p.RefundAtoms() {
				continue
			}
			r.log.Warn("refund found on the chain, recorded again", "payment", solana.Signature(p.Signature).String(), "refund", x.Signature.String())
			if _, err := r.desk.Do(&rfq.RefundPayment{Signature: p.Signature, Proof: x.Hash}); err != nil {
				return err
			}
			r.done(p.Signature)
			return errLater
		}
	}
	return fmt.Errorf("%w: payment %s was paid back before, but not as the desk's record says", store.ErrConflict, solana.Signature(p.Signature))
}

// unrecordedRefund searches the chain for a refund of a payment that is not among known.
// It finds what was sent before the restore of an old backup: the tracker finds its end. As
// with deliveries, only the newest transactions are read. Errors: errLater if there is one,
// [ErrChain].
func (r *refunder) unrecordedRefund(ctx context.Context, p *rfq.Payment, known []*store.RefundTransaction) error {
	query := search.Search{Reference: binding.RefundReference(p.Signature), Since: p.Slot, Ours: func(message []byte) bool {
		shape, err := cosign.CheckRefund(message, r.signer.Address())
		return err == nil && slices.ContainsFunc(shape.Items, func(x cosign.RefundItem) bool { return x.Payment == p.Signature })
	}}
	for _, x := range known {
		query.Known = append(query.Known, x.Signature)
	}
	result, err := query.Run(ctx, r.node)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrChain, err)
	case result.Found == nil:
		return nil
	}
	r.log.Error("refund found on the chain that the store lacks", "payment", solana.Signature(p.Signature).String(), "refund", result.Found.Signature().String())
	return r.adopt(p, tx.MessageHash(result.Found.Tx.Signed))
}

// checkPayer checks that the payer's account for the asset exists. The refund goes to the
// wallet that owned what was paid, as the desk's record has it. Errors: errRefundPayer,
// [ErrChain], [ErrNotReady].
func (r *refunder) checkPayer(ctx context.Context, p *rfq.Payment) error {
	payer := p.Payer
	switch {
	case payer == (solana.Address{}):
		return errRefundPayer{problemPayer}
	case payer == r.signer.Address() || slices.Contains(r.treasury, payer) || r.isPayee(payer):
		return errRefundPayer{problemPayerOurs}
	case p.Rail == market.RailSOL:
		return nil // the simulation shows whether it can be paid
	}
	mint, err := r.usdc()
	if err != nil {
		return err
	}
	account, err := r.builder.accounts.TokenAccount(payer, mint.Address(), mint.Program())
	if err != nil {
		return errRefundPayer{problemPayerAccount}
	}
	payable := false
	takes := func(_ solana.Address, a *rpc.Account) any { return takesTokens(a, payer, mint.Address()) }
	err = r.readEach(ctx, []solana.Address{account}, takes, func(_ solana.Address, a *rpc.Account) {
		payable = takesTokens(a, payer, mint.Address())
	})
	if err == nil && !payable {
		err = errRefundPayer{problemPayerAccount}
	}
	return err
}

func (r *refunder) isPayee(wallet solana.Address) bool {
	v := r.desk.View()
	return v != nil && slices.Contains(v.Policy.PayTo[:], wallet)
}

func (r *refunder) usdc() (token.Checked, error) {
	v := r.desk.View()
	if v == nil {
		return token.Checked{}, errNoView
	}
	return r.builder.chain.mint(v.Policy.USDCMint)
}

// pay builds, simulates, stores, gets permission, signs, stores and sends one transaction for a
// batch.
func (r *refunder) pay(ctx context.Context, batch []rfq.Payment) {
	u, lastValid, err := r.buildRefund(ctx, batch)
	if err == nil {
		var at int
		if at, err = r.simulateRefund(ctx, u); err != nil && at >= 0 {
			// The others go on without it.
			r.failed(ctx, batch[at].Signature, err)
			return
		}
	}
	var x *store.RefundTransaction
	if err == nil {
		x, err = r.prepare(batch, u, lastValid)
	}
	if err != nil {
		for i := range batch {
			r.failed(ctx, batch[i].Signature, err)
		}
		return
	}
	r.advance(ctx, x, true)
}

func (r *refunder) prepare(batch []rfq.Payment, u *build.Unsigned, lastValid uint64) (*store.RefundTransaction, error) {
	x := &store.RefundTransaction{Hash: u.Hash(), Raw: u.Bytes(), LastValid: lastValid, MadeAt: r.now()}
	most := make([]uint64, len(batch))
	for i := range batch {
		most[i] = refundable(&batch[i])
		if o, ok := r.order(batch[i].Signature); ok {
			x.Operator, x.By = o.Operator, o.By
		}
	}
	return r.store.Refunds.Put(x, most)
}

// refundUnits are the compute units of one refund: a transfer, and a memo of the most
// bytes.
const refundUnits = 60_000

func (r *refunder) buildRefund(ctx context.Context, batch []rfq.Payment) (*build.Unsigned, uint64, error) {
	hash, err := r.builder.chain.blockhash(ctx)
	if err != nil {
		return nil, 0, err
	}
	leg := build.Leg{Rail: batch[0].Rail}
	if leg.Rail == market.RailUSDC {
		if leg.Mint, err = r.usdc(); err != nil {
			return nil, 0, err
		}
	}
	t := build.Refunds{Blockhash: hash.Hash, Budget: r.builder.budget, Desk: r.signer.Address()}
	t.Budget.Units = max(t.Budget.Units, uint32(min(build.MaxUnits, refundUnits*len(batch))))
	if _, err := t.Budget.PriorityLamports(); err != nil { // of so many units it is above the cap
		t.Budget.MicroLamports = build.MaxPriorityLamports * 1_000_000 / uint64(t.Budget.Units)
	}
	for i := range batch {
		p := &batch[i]
		leg.To, leg.Amount = p.Payer, market.Amount(p.RefundAtoms())
		t.Items = append(t.Items, build.Refund{Leg: leg, Memo: binding.RefundMemo(p.Signature), Reference: binding.RefundReference(p.Signature)})
	}
	u, err := t.Build(&r.builder.accounts)
	return u, hash.LastValidBlockHeight, err
}

// simulateRefund simulates a transaction of refunds. at is the payment whose refund
// failed, negative if it was none of them. Errors: *deliveryProblem, [ErrChain].
func (r *refunder) simulateRefund(ctx context.Context, u *build.Unsigned) (at int, err error) {
	run, err := r.node.Simulate(ctx, u.Bytes(), rpc.SimulateOptions{})
	if err != nil {
		return -1, fmt.Errorf("%w: %w", ErrChain, err)
	}
	if !run.Failed {
		return -1, nil
	}
	f := parseFault(run.Error)
	at = -1
	if f.instruction >= refundsBegin {
		at = (f.instruction - refundsBegin) / 2
	}
	problem := problemSimulation
	switch {
	case f.instruction == noInstruction && f.name == faultBlockhash:
		problem = problemChain
	case f.instruction == noInstruction && f.name == faultRent:
		// The payer's wallet is empty, and the amount below what an account must hold.
		problem, at = problemPayerAccount, refundOfAccount(u, f.account)
	case f.instruction == noInstruction && (f.name == faultFee || f.name == faultNoPayer):
		problem = problemFunds
	case f.name == faultCustom && f.custom == insufficientFunds:
		problem = problemRefundFunds
	case f.name == faultCustom && f.custom == accountFrozen:
		problem = problemFrozen
	case f.name == faultInvalidAccount:
		problem = problemRefundFunds // the payer's account was read, so it is the desk's
	}
	return at, &deliveryProblem{problem, errors.New(run.Error)}
}

// refundsBegin is the position of the first refund, after the budget; each has a transfer
// and a memo.
const refundsBegin = 2

// refundOfAccount returns the refund that goes to an account of the message, -1 if none.
func refundOfAccount(u *build.Unsigned, account int) int {
	m, err := tx.DecodeMessage(u.Message())
	if err != nil || account < 0 || account >= len(m.Keys) {
		return -1
	}
	shape, err := cosign.CheckRefund(u.Message(), m.Keys[0])
	if err != nil {
		return -1
	}
	return slices.IndexFunc(shape.Items, func(x cosign.RefundItem) bool { return x.To == m.Keys[account] })
}
