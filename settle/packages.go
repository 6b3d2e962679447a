package settle

import (
	"context"
	"errors"
	"fmt"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/build"
	"blockdesk/internal/solana/rpc"
	"blockdesk/internal/solana/tx"
	"blockdesk/market"
	"blockdesk/settle/binding"
	"blockdesk/settle/broadcast"
	"blockdesk/settle/store"
)

// packages builds the transactions that clients sign, and reports the progress of
// the desk's transactions.
type packages struct {
	*env
	tracker    *broadcast.Tracker
	builder    *builder
	locks      *claimLocks
	syncBuilds bool
}

// Package returns what the client signs to settle a claim that has just been
// reserved: the wallet's payment, or, of an atomic claim, both legs in one
// transaction, whose fee payer pays; 0 is desk.DeskPays. The first package of a
// claim is stored for good, whatever payer later calls name. Package does not sign,
// and needs the chain only for a blockhash, which is usually cached.
//
// Errors: *[desk.Refusal] with RefusalExpired if the claim's time was up before it had
// a package, or with RefusalUnbuildable; [ErrNotReady]; [ErrChain]; ctx.Err(); errors
// of package store.
func (p *packages) Package(ctx context.Context, c *rfq.Claim, payer desk.FeePayer) (desk.Package, error) {
	unlock, err := p.locks.lock(ctx, c.ID)
	if err != nil {
		return desk.Package{}, err
	}
	defer unlock()
	b, ok, err := p.store.Build(c.ID)
	if err != nil {
		return desk.Package{}, err
	}
	if !ok {
		if b, err = p.build(ctx, c, payer); err != nil {
			return desk.Package{}, claimError(c.ID, err)
		}
	}
	return packageOf(b)
}

// build builds a claim's first package and stores it.
func (p *packages) build(ctx context.Context, c *rfq.Claim, payer desk.FeePayer) (*store.Build, error) {
	now := p.now()
	if now >= c.Deadline {
		return nil, p.counts.refuse(c.ID, desk.RefusalExpired)
	}
	hash, err := p.builder.chain.blockhash(ctx)
	if err != nil {
		return nil, err
	}
	var u *build.Unsigned
	if c.Mode == rfq.Atomic {
		u, err = p.builder.atomic(c, payer, &hash)
	} else {
		u, err = p.builder.payment(c, &hash)
	}
	if errors.Is(err, build.ErrTerms) { // for example, the wallet is one of ours
		p.log.Warn("claim's transaction cannot be built", "claim", claimText(c.ID), "error", err)
		return nil, p.counts.refuse(c.ID, desk.RefusalUnbuildable)
	}
	if err != nil {
		return nil, err
	}
	p.counts.built.Add(1)
	return p.store.PutBuild(&store.Build{
		Claim: c.ID, Way: c.Mode, Taker: c.Wallet, Raw: u.Bytes(), LastValid: hash.LastValidBlockHeight, BuiltAt: now,
	}, p.syncBuilds)
}

func packageOf(b *store.Build) (desk.Package, error) {
	t, err := tx.Decode(b.Raw)
	if err != nil {
		return desk.Package{}, fmt.Errorf("%w: build of claim %s: %w", store.ErrDamaged, claimText(b.Claim), err)
	}
	return desk.Package{
		Transaction: b.Raw, Hash: tx.MessageHash(t.Signed), Blockhash: t.Message.Blockhash, LastValid: b.LastValid,
		Reference: binding.Reference(b.Claim), Memo: binding.Memo(b.Claim), Signers: t.Message.Signers(),
	}, nil
}

// Delivery returns the first signature of the newest transaction that the desk
// signed to deliver what a claim bought, modular or atomic; ok is false if it signed
// none. Errors: those of package store.
func (p *packages) Delivery(id market.ClaimID) (signature [64]byte, ok bool, err error) {
	list, err := p.store.Transactions(id)
	if err != nil || len(list) == 0 {
		return signature, false, err
	}
	return list[len(list)-1].Signature(), true, nil
}

// Build returns the state of a claim's atomic build; ok is false if there is none,
// or if it was pruned. It may ask a node which block the transaction is in. Errors:
// errors of the desk and of package store.
func (p *packages) Build(ctx context.Context, id market.ClaimID) (state desk.BuildState, ok bool, err error) {
	b, ok, err := p.store.Build(id)
	if err != nil || !ok || b.Way != rfq.Atomic {
		return desk.BuildState{}, false, err
	}
	pack, err := packageOf(b)
	if err != nil {
		return desk.BuildState{}, false, err
	}
	claim, err := p.claimOf(id)
	if err != nil {
		return desk.BuildState{}, false, err
	}
	state = desk.BuildState{
		Claim: id, Taker: b.Taker, Stage: desk.BuildExpired, Hash: pack.Hash, Blockhash: pack.Blockhash, LastValid: pack.LastValid, BuiltAt: b.BuiltAt,
	}
	t, signed, err := p.store.Transaction(id, pack.Hash)
	switch {
	case err != nil:
		return desk.BuildState{}, false, err
	case signed:
		state.Signature = t.Signature()
		state.Stage, state.Slot = p.stageOf(ctx, claim, &t)
	case claim != nil && claim.State == rfq.ClaimCosigned:
		state.Stage = desk.BuildBroadcast
	case claim != nil && claim.State == rfq.ClaimReserved:
		state.Stage = desk.BuildOpen
	}
	return state, true, nil
}

// stageOf returns the stage of a transaction that the desk has signed, and the slot
// of its block, 0 if that is unknown. claim is nil if the desk has forgotten it. The
// claim's state decides; the tracker and a node add the rest.
func (p *packages) stageOf(ctx context.Context, claim *rfq.Claim, t *store.Transaction) (desk.BuildStage, uint64) {
	if claim != nil && claim.State == rfq.ClaimCosigned {
		state, _ := p.tracker.State(t.Signature())
		return desk.BuildBroadcast, state.Slot
	}
	list, _, err := p.node.Statuses(ctx, []solana.Signature{t.Signature()}, true)
	landed := err == nil && list[0].Known && list[0].Level == rpc.Finalized
	slot := uint64(0)
	if landed {
		slot = list[0].Slot
	}
	switch {
	case claim != nil && claim.State == rfq.ClaimSettled, claim == nil && landed && !list[0].Failed:
		return desk.BuildFinalized, slot
	case landed && list[0].Failed:
		return desk.BuildFailed, slot
	}
	return desk.BuildExpired, 0
}
