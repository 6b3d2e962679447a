package settle

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/ledger"
	"blockdesk/internal/solana/rpc"
	"blockdesk/settle/binding"
	"blockdesk/settle/cosign"
	"blockdesk/settle/search"
	"blockdesk/settle/store"
)

var (
	errMayLand = errors.New("an earlier delivery can still land")
	// errDisagree: some nodes have a delivery that others deny.
	errDisagree = errors.New("the nodes disagree about an earlier delivery")
)

// deliverySearch finds a claim's deliveries on the chain.
type deliverySearch struct {
	*env
	blockhashLife uint64
}

// unrecordedDelivery searches the chain for a delivery of the claim that is not
// among known; nil if there is none. A stranger may name the claim's reference as
// often as it likes, so only the newest transactions are read: the search is for
// restored backups, not for defence against strangers. Errors: errLater,
// [ErrChain], errors of the desk.
func (s *deliverySearch) unrecordedDelivery(ctx context.Context, c *rfq.Claim, known []store.Transaction) (*ledger.Confirmed, error) {
	h, ok, err := s.desk.Claim(c.ID)
	switch {
	case err != nil:
		return nil, claimError(c.ID, err)
	case !ok || len(h.Payments) == 0:
		return nil, errLater // the desk's store is behind our consumer
	}
	query := search.Search{Reference: binding.Reference(c.ID), Since: firstPaid(h.Payments), Ours: func(message []byte) bool {
		shape, err := cosign.CheckDelivery(message, s.signer.Address())
		return err == nil && shape.Claim == c.ID
	}}
	for i := range h.Payments {
		query.Known = append(query.Known, h.Payments[i].Signature)
	}
	for i := range known {
		query.Known = append(query.Known, known[i].Signature())
	}
	result, err := query.Run(ctx, s.node)
	if err != nil {
		return nil, chainError(c.ID, err)
	}
	return result.Found, nil
}

// firstPaid returns the slot of the first payment that is applied to a claim, or of the
// first one if none is: no delivery of the claim is in an older block.
func firstPaid(list []rfq.Payment) uint64 {
	slot, applied := list[0].Slot, false
	for i := range list {
		p := &list[i]
		is := p.State == rfq.PaymentApplied || p.AppliedAtoms() > 0
		if is && !applied || is == applied && p.Slot < slot {
			slot, applied = p.Slot, is
		}
	}
	return slot
}

// landedDelivery returns the first delivery of the list that is in a confirmed block
// and has not failed, as a majority of the configured nodes reports. Errors: [ErrChain],
// also while one may still land or the nodes disagree.
func (s *deliverySearch) landedDelivery(ctx context.Context, list []store.Transaction) (signature solana.Signature, slot uint64, found bool, err error) {
	var signatures []solana.Signature
	var heights []uint64
	for i := range list {
		if list[i].Kind() == cosign.Deliver {
			signatures = append(signatures, list[i].Signature())
			heights = append(heights, list[i].LastValid())
		}
	}
	if len(signatures) == 0 {
		return signature, 0, false, nil
	}
	claim := list[0].Claim()
	views, err := s.node.StatusesFromEach(ctx, signatures)
	if err != nil {
		return signature, 0, false, chainError(claim, err)
	}
	at, slot, err := landed(views, heights, s.blockhashLife)
	switch {
	case err != nil:
		return signature, 0, false, chainError(claim, err)
	case at < 0:
		return signature, 0, false, nil
	}
	return signatures[at], slot, true, nil
}

// landed returns the index and slot of the first of the transactions with some last valid
// heights that a majority of the nodes has in a confirmed block, and -1 if a majority says
// that each has failed or can never land: a node's statuses are newer than its position, and
// it still has every block in which one of them can be. Errors: [search.ErrNodes],
// [search.ErrHistory], errMayLand, errDisagree.
func landed(views []rpc.NodeStatuses, heights []uint64, life uint64) (at int, slot uint64, err error) {
	majority := len(views)/2 + 1
	answered, past, pruned, seen := 0, 0, 0, false
	var failure error
	n, oldest, newest := len(heights), slices.Min(heights), slices.Max(heights)
	has := make([]int, n)
	for i := range views {
		v := &views[i]
		if v.Err != nil || len(v.Statuses) != n {
			failure = v.Err
			continue
		}
		answered++
		switch {
		case !v.First.HasLife(oldest, life):
			pruned++
		case v.Finalized.Height > newest && v.Slot >= v.Finalized.Slot:
			past++
		}
		for k := range v.Statuses {
			if x := &v.Statuses[k]; x.Known && !x.Failed && x.Level != rpc.Processed {
				seen = true
				if has[k]++; has[k] >= majority {
					return k, x.Slot, nil
				}
			}
		}
	}
	switch {
	case answered < majority:
		return -1, 0, errors.Join(fmt.Errorf("%w: %d of %d nodes returned statuses", search.ErrNodes, answered, len(views)), failure)
	case seen:
		return -1, 0, errDisagree
	case answered-pruned < majority:
		return -1, 0, fmt.Errorf("%w: %d of %d", search.ErrHistory, answered-pruned, len(views))
	case past < majority:
		return -1, 0, fmt.Errorf("%w: waiting for block height %d", errMayLand, newest+1)
	}
	return -1, 0, nil
}
