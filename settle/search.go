package settle

import (
	"context"
	"fmt"

	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/ledger"
	"blockdesk/internal/solana/rpc"
	"blockdesk/settle/binding"
	"blockdesk/settle/cosign"
	"blockdesk/settle/store"
)

// maxSearched bounds the transactions that are read to find a delivery that the
// store lacks.
const maxSearched = 32

// search finds a claim's deliveries on the chain.
type search struct{ *env }

// unrecordedDelivery searches the chain for a delivery of the claim that is not
// among known; nil if there is none. A stranger may name the claim's reference as
// often as it likes, so only the newest transactions are read: the search is for
// restored backups, not for defence against strangers. Errors: errLater,
// [ErrChain], errors of the desk.
func (s *search) unrecordedDelivery(ctx context.Context, c *rfq.Claim, known []store.Transaction) (*ledger.Confirmed, error) {
	h, ok, err := s.desk.Claim(c.ID)
	switch {
	case err != nil:
		return nil, claimError(c.ID, err)
	case !ok || len(h.Payments) == 0:
		return nil, errLater // the desk's store is behind our consumer
	}
	page := rpc.Page{Limit: maxSearched + len(h.Payments) + len(known)}
	infos, err := s.node.Signatures(ctx, binding.Reference(c.ID), page, rpc.Confirmed)
	if err != nil {
		return nil, chainError(c.ID, err)
	}
	skip := map[solana.Signature]bool{}
	for i := range h.Payments {
		skip[h.Payments[i].Signature] = true
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
			return nil, chainError(c.ID, err)
		case !ok: // another node has listed it, or the node lies
			return nil, chainError(c.ID, fmt.Errorf("a node lists transaction %s, but does not return it", infos[i].Signature))
		}
		if shape, err := cosign.CheckDelivery(t.Tx.Signed, s.signer.Address()); err == nil && shape.Claim == c.ID && !t.Failed {
			return t, nil
		}
	}
	return nil, nil
}

// landedDelivery returns the first delivery of the list that is in a confirmed block
// and has not failed. Errors: [ErrChain], also while one may still land.
func (s *search) landedDelivery(ctx context.Context, list []store.Transaction) (signature solana.Signature, slot uint64, found bool, err error) {
	var signatures []solana.Signature
	lastValid := uint64(0)
	for i := range list {
		if list[i].Kind() == cosign.Deliver {
			signatures = append(signatures, list[i].Signature())
			lastValid = max(lastValid, list[i].LastValid())
		}
	}
	if len(signatures) == 0 {
		return signature, 0, false, nil
	}
	claim := list[0].Claim()
	// The position comes first, so that a transaction which is unknown after it
	// cannot land.
	reached, err := s.node.Position(ctx, rpc.Finalized)
	if err != nil {
		return signature, 0, false, chainError(claim, err)
	}
	statuses, _, err := s.node.Statuses(ctx, signatures, true)
	if err != nil {
		return signature, 0, false, chainError(claim, err)
	}
	for i := range statuses {
		if statuses[i].Known && !statuses[i].Failed && statuses[i].Level != rpc.Processed {
			return signatures[i], statuses[i].Slot, true, nil
		}
	}
	if reached.Height <= lastValid {
		return signature, 0, false, chainError(claim, fmt.Errorf("an earlier delivery may still land: waiting for block height %d", lastValid+1))
	}
	return signature, 0, false, nil
}
