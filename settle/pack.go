package settle

import (
	"context"
	"errors"
	"fmt"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/internal/solana/build"
	"blockdesk/internal/solana/rpc"
	"blockdesk/internal/solana/token"
	"blockdesk/internal/solana/tx"
	"blockdesk/market"
	"blockdesk/settle/binding"
	"blockdesk/settle/store"
)

// Package returns what the client signs to settle a claim that has just been
// reserved: the wallet's payment, or, of an atomic claim, both legs in one
// transaction, whose fee payer pays; 0 is desk.DeskPays. The first package
// of a claim is kept and stands for ever, whatever payer is later. It does not
// sign, and asks the chain for nothing but a blockhash, which is there as a rule.
//
// Errors: *[desk.Refusal] with RefusalExpired where the claim's time was up before it
// had a package, or with RefusalUnbuildable; [ErrNotReady]; [ErrChain]; ctx's; those of
// package store.
func (s *Settlement) Package(ctx context.Context, c *rfq.Claim, payer desk.FeePayer) (desk.Package, error) {
	unlock, err := s.locks.lock(ctx, c.ID)
	if err != nil {
		return desk.Package{}, fmt.Errorf("claim %s: %w", claimText(c.ID), err)
	}
	defer unlock()
	kept, ok, err := s.store.Build(c.ID)
	if err != nil {
		return desk.Package{}, err
	}
	if !ok {
		if kept, err = s.compose(ctx, c, payer); err != nil {
			return desk.Package{}, fmt.Errorf("claim %s: %w", claimText(c.ID), err)
		}
	}
	return packageOf(kept)
}

// compose builds a claim's first package and keeps it.
func (s *Settlement) compose(ctx context.Context, c *rfq.Claim, payer desk.FeePayer) (*store.Build, error) {
	now := s.now()
	if now >= c.Deadline {
		return nil, s.refuse(c.ID, desk.RefusalExpired)
	}
	hash, err := s.blockhash(ctx)
	if err != nil {
		return nil, err
	}
	var u *build.Unsigned
	if c.Mode == rfq.Atomic {
		u, err = s.atomic(c, payer, &hash)
	} else {
		u, err = s.payment(c, &hash)
	}
	if errors.Is(err, build.ErrTerms) { // the wallet is one of ours, say
		s.log.Warn("a claim's transaction cannot be built", "claim", claimText(c.ID), "error", err)
		return nil, s.refuse(c.ID, desk.RefusalUnbuildable)
	}
	if err != nil {
		return nil, err
	}
	s.counts.built.Add(1)
	return s.store.PutBuild(&store.Build{
		Claim: c.ID, Way: c.Mode, Taker: c.Wallet, Raw: u.Bytes(), LastValid: hash.LastValidBlockHeight, BuiltAt: now,
	}, s.options.SyncBuilds)
}

// common is what binds a transaction to its claim and bounds its life and cost.
func (s *Settlement) common(id market.ClaimID, hash *rpc.Blockhash) build.Common {
	return build.Common{Blockhash: hash.Hash, Budget: s.options.Budget, Memo: binding.Memo(id), Reference: binding.Reference(id)}
}

// leg is the payment of a claim. It creates nothing: the ground has shown that
// the account to be paid exists.
func (s *Settlement) leg(t *rfq.Terms) (build.Leg, error) {
	leg := build.Leg{Rail: t.Rail, Amount: market.Amount(t.Payment), To: t.PayTo}
	if t.Rail != market.RailUSDC {
		return leg, nil
	}
	v := s.desk.View()
	if v == nil {
		return leg, fmt.Errorf("%w: the desk shows nothing yet", ErrNotReady)
	}
	var err error
	leg.Mint, err = s.ground.Load().mint(v.Policy.USDCMint)
	return leg, err
}

// base is the mint that a claim delivers.
func (s *Settlement) base(t *rfq.Terms) (token.Checked, error) {
	v := s.desk.View()
	if v == nil || v.Pair(t.Instrument) == nil {
		return token.Checked{}, fmt.Errorf("%w: the desk does not show instrument %d", ErrNotReady, t.Instrument)
	}
	return s.ground.Load().mint(v.Pair(t.Instrument).BaseMint)
}

func (s *Settlement) payment(c *rfq.Claim, hash *rpc.Blockhash) (*build.Unsigned, error) {
	leg, err := s.leg(&c.Terms)
	if err != nil {
		return nil, err
	}
	p := build.Payment{Common: s.common(c.ID, hash), Wallet: c.Wallet, Leg: leg}
	return p.Build(&s.tokens)
}

func (s *Settlement) atomic(c *rfq.Claim, payer desk.FeePayer, hash *rpc.Blockhash) (*build.Unsigned, error) {
	leg, err := s.leg(&c.Terms)
	if err != nil {
		return nil, err
	}
	base, err := s.base(&c.Terms)
	if err != nil {
		return nil, err
	}
	feePayer := build.Desk
	if payer == desk.TakerPays {
		feePayer = build.Taker
	}
	a := build.Atomic{
		Common: s.common(c.ID, hash), Taker: c.Wallet, Desk: s.signer.Address(), Payment: leg,
		Base: base, BaseAmount: market.Amount(c.Terms.Base), FeePayer: feePayer, RentPayer: build.Taker,
	}
	return a.Build(&s.tokens)
}

// packageOf tells what a kept build is.
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

// claimText names a claim in errors and logs.
func claimText(id market.ClaimID) string { return binding.Memo(id) }
