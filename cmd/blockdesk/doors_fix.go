package main

import (
	"context"
	"errors"
	"fmt"

	"blockdesk/engine/rfq"
	"blockdesk/fixgw"
	"blockdesk/internal/solana/build"
	"blockdesk/settle"
	"blockdesk/settle/proof"
)

// fixSettlement is settlement as the FIX gateway needs it: fixgw.Settlement. It
// translates and decides nothing. The gateway is made before the room that it
// leads to, and asks nothing of it before both run.
type fixSettlement struct{ part *settlement }

// Ready returns nil where a claim can be settled now.
func (d fixSettlement) Ready() error { return d.part.ready() }

// Package returns the payment that a claim's wallet signs, which pays its fee. A
// claim whose time is up is not one that cannot be paid.
func (d fixSettlement) Package(ctx context.Context, c *rfq.Claim) (fixgw.Package, error) {
	p, err := d.part.core.Package(ctx, c, build.Taker)
	var guard *settle.Refusal
	switch {
	case errors.As(err, &guard) && guard.Reason == settle.Unbuildable:
		return fixgw.Package{}, fmt.Errorf("%w: %w", fixgw.ErrNoPackage, err)
	case err != nil:
		return fixgw.Package{}, err
	}
	return fixgw.Package{Transaction: p.Raw, Reference: p.Reference, Memo: p.Memo}, nil
}

// Verify looks for a payment. The request has no key: the desk books a signature
// once, whoever asks and however often.
func (d fixSettlement) Verify(ctx context.Context, p *fixgw.PaymentProof) (fixgw.Verdict, error) {
	v, err := d.part.core.Verify(ctx, &proof.Request{
		Claim: p.Claim, Ticket: p.Ticket, Tranche: p.Tranche, Signature: p.Signature,
	})
	if err != nil {
		return fixgw.Verdict{}, err
	}
	return fixgw.Verdict{Pending: v.Pending, Refused: v.Refused, Mismatch: v.Mismatch}, nil
}
