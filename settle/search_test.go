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

// inventor lists a transaction that no node returns.
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

// TestListedNotFound: a transaction that is listed and that no node returns is a
// failure of the chain, after which the claim's job waits: it is not errLater, which
// would repeat it forty times a second.
func TestListedNotFound(t *testing.T) {
	s := &search{&env{node: inventor{}, desk: paidOnce{}}}
	if _, err := s.unrecordedDelivery(t.Context(), &rfq.Claim{ID: 1}, nil); !errors.Is(err, ErrChain) || errors.Is(err, errLater) {
		t.Errorf("%v", err)
	}
}
