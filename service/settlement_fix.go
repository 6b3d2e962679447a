package service

import (
	"context"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
)

// fixSettlement is settlement as the FIX gateway needs it: fixgw.Settlement. The
// gateway is made before settlement opens, and asks nothing of it before both run.
type fixSettlement struct{ part *settlement }

// Ready returns nil where a claim can be settled now.
func (d fixSettlement) Ready() error { return d.part.ready() }

// Package returns what the claim's wallet signs.
func (d fixSettlement) Package(ctx context.Context, c *rfq.Claim, payer desk.FeePayer) (desk.Package, error) {
	return d.part.core.Package(ctx, c, payer)
}

// Verify looks for a payment.
func (d fixSettlement) Verify(ctx context.Context, p *desk.PaymentProof) (desk.Verdict, error) {
	return d.part.core.Verify(ctx, p)
}
