package settle

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/build"
	"blockdesk/internal/solana/eddsa"
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
	treasury   []solana.Address
	syncBuilds bool
}

// Package returns what the client signs to settle a claim that has just been
// reserved: the wallet's payment, or, of an atomic claim, both legs in one
// transaction. payer is the party that pays the atomic transaction's fee; 0 is
// desk.DeskPays. The first transaction package of a claim is stored until FreshPackage
// replaces it, even if a later call names another payer. Package does not sign, and needs
// the chain only for a blockhash, which is usually cached.
//
// Errors: *[desk.Refusal] with RefusalExpired if the claim's time was up before it had
// a transaction package, or with RefusalUnbuildable, after which the claim is released; [ErrNotReady]; [ErrChain]; ctx.Err(); errors
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

// FreshPackage returns a transaction package with a newer blockhash for a claim that is reserved and
// not past its deadline. It replaces the stored one, also as what an atomic claim's taker
// submits. A client that has sent the old one must not sign the new one before the old one
// is known to have expired: of two payments one is due for refund.
//
// Errors: [desk.ErrUnknownBuild] if the claim has no transaction package yet; *[desk.Refusal] with
// RefusalAlreadySettled or RefusalExpired if the claim has moved on; [ErrNotReady];
// [ErrChain]; ctx.Err(); errors of the desk and of package store.
func (p *packages) FreshPackage(ctx context.Context, id market.ClaimID) (desk.Package, error) {
	unlock, err := p.locks.lock(ctx, id)
	if err != nil {
		return desk.Package{}, err
	}
	defer unlock()
	old, ok, err := p.store.Build(id)
	if err != nil {
		return desk.Package{}, err
	}
	if !ok {
		return desk.Package{}, fmt.Errorf("%w: claim %s", desk.ErrUnknownBuild, claimText(id))
	}
	c, err := p.claimOf(id)
	switch {
	case err != nil:
		return desk.Package{}, err
	case c == nil || p.now() >= c.Deadline:
		return desk.Package{}, p.counts.refuse(id, desk.RefusalExpired)
	case c.State != rfq.ClaimReserved:
		return desk.Package{}, p.counts.refuse(id, refusalOfState(c.State))
	}
	payer := desk.DeskPays
	if takerPays(old) {
		payer = desk.TakerPays
	}
	b, err := p.make(ctx, c, payer)
	if err != nil {
		return desk.Package{}, claimError(id, err)
	}
	if err := p.store.ReplaceBuild(b, p.syncBuilds); err != nil {
		return desk.Package{}, err
	}
	return packageOf(b)
}

// build builds a claim's first transaction package and stores it. A claim for which that can never
// work is released at once.
func (p *packages) build(ctx context.Context, c *rfq.Claim, payer desk.FeePayer) (*store.Build, error) {
	if p.now() >= c.Deadline {
		return nil, p.counts.refuse(c.ID, desk.RefusalExpired)
	}
	b, err := p.make(ctx, c, payer)
	if refusal := (*desk.Refusal)(nil); errors.As(err, &refusal) {
		// It holds no capacity until its deadline.
		if _, err := p.desk.Do(&rfq.ReleaseUnbuilt{Claim: c.ID}); err != nil {
			return nil, err
		}
	}
	if err != nil {
		return nil, err
	}
	return p.store.PutBuild(b, p.syncBuilds)
}

// make builds a claim's transaction. A refusal means that this can never work.
func (p *packages) make(ctx context.Context, c *rfq.Claim, payer desk.FeePayer) (*store.Build, error) {
	hash, err := p.builder.chain.blockhash(ctx)
	if err != nil {
		return nil, err
	}
	u, err := p.unsigned(c, payer, &hash)
	switch {
	case errors.Is(err, ErrNotReady):
		return nil, err
	case err != nil:
		p.log.Warn("building a claim's transaction failed", "claim", claimText(c.ID), "error", err)
		return nil, p.counts.refuse(c.ID, desk.RefusalUnbuildable)
	}
	p.counts.built.Add(1)
	return &store.Build{
		Claim: c.ID, Way: c.Mode, Taker: c.Wallet, Raw: u.Bytes(), LastValid: hash.LastValidBlockHeight, BuiltAt: p.now(),
	}, nil
}

// unsigned builds the transaction. Every error but [ErrNotReady] is one of the claim's
// own: for example, its wallet is one of ours.
func (p *packages) unsigned(c *rfq.Claim, payer desk.FeePayer, hash *rpc.Blockhash) (*build.Unsigned, error) {
	if err := p.PayableWallet(c.Wallet); err != nil {
		return nil, err
	}
	switch {
	case c.Mode != rfq.Atomic:
		return p.builder.payment(c, hash)
	case p.signer.Address() == (solana.Address{}):
		return nil, fmt.Errorf("%w: the signer has not said its address yet: is it running?", ErrNotReady)
	}
	return p.builder.atomic(c, payer, hash)
}

// PayableWallet returns nil if an address can be a claim's wallet: it is a key that can
// sign, no program or sysvar, and not one of the desk's wallets or mints. It asks no node
// and may be called before anything is reserved. Errors: [desk.ErrWallet], wrapped.
func (p *packages) PayableWallet(a market.Address) error {
	refuse := func(why string) error { return fmt.Errorf("%w: %s %s", desk.ErrWallet, solana.Base58(a), why) }
	switch {
	case solana.IsReserved(a):
		return refuse("is a program, a sysvar or another address of the network")
	case !eddsa.ValidKey(a):
		return refuse("cannot sign: it is off the curve")
	case a == p.signer.Address() || slices.Contains(p.treasury, a):
		return refuse("is a wallet of the desk")
	}
	v := p.desk.View()
	switch {
	case v == nil:
		return nil
	case slices.Contains(v.Policy.PayTo[:], a):
		return refuse("is a wallet of the desk")
	case slices.Contains(mintsOf(v), a):
		return refuse("is a mint")
	}
	return nil
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
