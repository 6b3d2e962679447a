package settle

import (
	"context"
	"errors"
	"testing"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/ledger"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
)

// inventor lists a transaction that no node tells of.
type inventor struct{ Node }

func (inventor) Signatures(context.Context, solana.Address, rpc.Page, rpc.Commitment) ([]rpc.SignatureInfo, error) {
	return []rpc.SignatureInfo{{Signature: solana.Signature{9}}}, nil
}

func (inventor) Transaction(context.Context, solana.Signature, rpc.Commitment) (*ledger.Confirmed, bool, error) {
	return nil, false, nil
}

// paidOnce knows a claim with one payment.
type paidOnce struct{ Desk }

func (paidOnce) Claim(id market.ClaimID) (*desk.History, bool, error) {
	return &desk.History{Claim: rfq.Claim{ID: id}, Payments: []rfq.Payment{{Claim: id}}}, true, nil
}

// TestForgottenUntold: a transaction that is listed and that no node tells of is a
// failure of the chain, after which the claim rests for a while: it is not asked
// for forty times a second.
func TestForgottenUntold(t *testing.T) {
	s := &Settlement{node: inventor{}, desk: paidOnce{}}
	if _, err := s.forgotten(t.Context(), &rfq.Claim{ID: 1}, nil); !errors.Is(err, ErrChain) || errors.Is(err, errLater) {
		t.Errorf("%v", err)
	}
}
