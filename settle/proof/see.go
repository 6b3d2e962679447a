package proof

import (
	"context"
	"fmt"
	"slices"

	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/payment"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
)

// MaxSeen bounds the confirmed transactions of an account that one round looks at.
const MaxSeen = 256

// see looks at the confirmed transactions of an account that are not final yet, and
// reports those to the desk that would pay their claim: an unproven claim gets its full
// time then. One node's word is enough, because no money moves by it: a node that lies
// gives a claim the time that a proven one has. It does nothing unless a claim waits.
func (p *Prover) see(ctx context.Context, a *account) error {
	if p.options.Unseen == nil || !p.options.Unseen() {
		clear(a.seen)
		return nil
	}
	list, err := p.node.SignaturesInTurn(ctx, a.address, rpc.Page{Until: a.cursor, Limit: MaxSeen}, rpc.Confirmed)
	if err != nil {
		return err
	}
	listed := make(map[solana.Signature]bool, len(list))
	for i := range list {
		s := &list[i]
		listed[s.Signature] = true
		if _, final := a.done[s.Signature]; final || s.Failed || s.Slot < a.floor || a.seen[s.Signature] {
			continue
		}
		if err := p.seeOne(ctx, s.Signature); err != nil {
			return err
		}
		a.seen[s.Signature] = true
	}
	for s := range a.seen {
		if !listed[s] {
			delete(a.seen, s)
		}
	}
	return nil
}

// seeOne reports a confirmed payment to the desk if it would pay an unproven claim.
func (p *Prover) seeOne(ctx context.Context, s solana.Signature) error {
	c, found, err := p.node.Transaction(ctx, s, rpc.Confirmed)
	if err != nil || !found || c.Failed {
		return err
	}
	if err := verifySignatures(c, s); err != nil {
		return err
	}
	e, err := p.effectsOf(c)
	if err != nil {
		return err
	}
	id, ok := p.wouldPay(e)
	if !ok {
		return nil
	}
	// The desk refuses it for a claim that has moved on meanwhile.
	if _, err := p.desk.Do(&rfq.SeePayment{Claim: id}); err != nil {
		return fmt.Errorf("payment %s: %w", s, err)
	}
	return nil
}

// wouldPay returns the unproven claim that a transaction pays once it is final.
func (p *Prover) wouldPay(e *effects) (market.ClaimID, bool) {
	list := e.claims()
	if len(list) != 1 {
		return 0, false
	}
	h, known, err := p.desk.Claim(list[0])
	if err != nil || !known || h.Claim.State != rfq.ClaimReserved || h.Claim.Mode != rfq.Modular || h.Claim.Proven {
		return 0, false
	}
	terms := &h.Claim.Terms
	at := slices.IndexFunc(p.destinations, func(x destination) bool { return x.rail == terms.Rail && x.wallet == terms.PayTo })
	return list[0], at >= 0 && payment.Decide(e.facts[at], p.termsOf(&h.Claim)).Reason == ""
}
