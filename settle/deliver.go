package settle

import (
	"context"
	"errors"
	"fmt"

	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/build"
	"blockdesk/internal/solana/ledger"
	"blockdesk/internal/solana/rpc"
	"blockdesk/internal/solana/tx"
	"blockdesk/market"
	"blockdesk/settle/binding"
	"blockdesk/settle/broadcast"
	"blockdesk/settle/cosign"
	"blockdesk/settle/store"
)

// maxLooked bounds the transactions that are read to find a delivery that nobody
// remembers.
const maxLooked = 32

// deliver sends the tokens of a claim that is paid for. Nothing new is signed
// while anything old could deliver: each transaction that was ever signed for the
// claim is seen to its end first, and the chain is searched for one that no store
// has, as after an old backup.
func (s *Settlement) deliver(ctx context.Context, c *rfq.Claim) error {
	list, err := s.store.Transactions(c.ID)
	if err != nil {
		return err
	}
	if n := len(list); n > 0 {
		s.work.signed(c.ID, n, list[0].SignedAt(), list[n-1].Signature())
	}
	for i := range list {
		if !s.work.hasEnded(c.ID, list[i].Hash()) {
			return s.adopt(c.ID, list[i].Hash(), func() error { return s.tracker.Track(list[i]) })
		}
	}
	if len(list) >= MaxDeliveryAttempts {
		return &obstacle{wordTries, fmt.Errorf("claim %s: %d deliveries were signed", claimText(c.ID), len(list))}
	}
	t, err := s.forgotten(ctx, c, list)
	if err != nil {
		return err
	}
	if t != nil {
		hash := tx.MessageHash(t.Tx.Signed)
		missing := broadcast.Missing{Claim: c.ID, Kind: cosign.Deliver, Hash: hash, Reference: binding.Reference(c.ID), AllowedAt: s.now()}
		return s.adopt(c.ID, hash, func() error { return s.tracker.Await(missing) })
	}
	return s.deliverNew(ctx, c)
}

// adopt takes up a delivery that exists although the desk says that none is out:
// the end of it was not booked, or its beginning was lost. The tracker finds out
// what became of it.
func (s *Settlement) adopt(id market.ClaimID, hash solana.Hash, track func() error) error {
	result, err := s.desk.Do(&rfq.BeginDelivery{Claim: id, Proof: hash})
	switch {
	case err != nil:
		return fmt.Errorf("claim %s: %w", claimText(id), err)
	case result.Reason == event.ReasonClaimState:
		return errLater // the follower will tell what it is now
	case result.Reason != 0:
		return fmt.Errorf("claim %s: %w: %s", claimText(id), ErrRefused, result.Reason)
	}
	return track()
}

// forgotten searches the chain for a delivery of the claim that is not in the
// store; nil where there is none. A stranger may name the claim's reference as
// often as he likes, so only the newest transactions are read: this is for
// backups, not against him.
func (s *Settlement) forgotten(ctx context.Context, c *rfq.Claim, known []store.Transaction) (*ledger.Confirmed, error) {
	h, ok, err := s.desk.Claim(c.ID)
	switch {
	case err != nil:
		return nil, fmt.Errorf("claim %s: %w", claimText(c.ID), err)
	case !ok || len(h.Payments) == 0:
		return nil, errLater // the desk's store is behind the follower
	}
	payments := h.Payments
	page := rpc.Page{Limit: maxLooked + len(payments) + len(known)}
	infos, err := s.node.Signatures(ctx, binding.Reference(c.ID), page, rpc.Confirmed)
	if err != nil {
		return nil, fmt.Errorf("claim %s: %w: %w", claimText(c.ID), ErrChain, err)
	}
	skip := map[solana.Signature]bool{}
	for i := range payments {
		skip[payments[i].Signature] = true
	}
	for i := range known {
		skip[known[i].Signature()] = true
	}
	for i := range infos {
		if infos[i].Failed || skip[infos[i].Signature] {
			continue
		}
		t, ok, err := s.node.Transaction(ctx, infos[i].Signature, rpc.Confirmed)
		switch {
		case err != nil:
			return nil, fmt.Errorf("claim %s: %w: %w", claimText(c.ID), ErrChain, err)
		case !ok: // the node that lists it is not the one that was asked, or lies
			return nil, fmt.Errorf("claim %s: %w: %s is listed and not found", claimText(c.ID), ErrChain, infos[i].Signature)
		}
		if shape, err := cosign.CheckDelivery(t.Tx.Signed, s.signer.Address()); err == nil && shape.Claim == c.ID && !t.Failed {
			return t, nil
		}
	}
	return nil, nil
}

// deliverNew makes, promises, signs, keeps and sends a delivery.
func (s *Settlement) deliverNew(ctx context.Context, c *rfq.Claim) error {
	u, lastValid, err := s.delivery(ctx, c)
	if err != nil {
		return fmt.Errorf("claim %s: %w", claimText(c.ID), err)
	}
	run, err := s.node.Simulate(ctx, u.Bytes(), rpc.SimulateOptions{})
	if err != nil {
		return fmt.Errorf("claim %s: %w: %w", claimText(c.ID), ErrChain, err)
	}
	if run.Failed {
		return &obstacle{wordOfDelivery(run.Error), fmt.Errorf("claim %s: %s", claimText(c.ID), run.Error)}
	}
	promised, err := cosign.AuthorizeDelivery(s.desk, c.ID, u)
	if refused := (*cosign.Refused)(nil); errors.As(err, &refused) && refused.Outcome.Reason == event.ReasonClaimState {
		return errLater
	}
	if err != nil {
		return err
	}
	kept, err := s.sign(context.WithoutCancel(ctx), promised, lastValid)
	if err != nil {
		return err
	}
	s.counts.delivered.Add(1)
	return s.tracker.Track(kept)
}

func (s *Settlement) delivery(ctx context.Context, c *rfq.Claim) (*build.Unsigned, uint64, error) {
	base, err := s.base(&c.Terms)
	if err != nil {
		return nil, 0, err
	}
	hash, err := s.blockhash(ctx)
	if err != nil {
		return nil, 0, err
	}
	d := build.Delivery{
		Common: s.common(c.ID, &hash), Desk: s.signer.Address(), Wallet: c.Wallet, Base: base, Amount: market.Amount(c.Terms.Base),
	}
	u, err := d.Build(&s.tokens)
	return u, hash.LastValidBlockHeight, err
}
