package settle

import (
	"context"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
	"blockdesk/settle/store"
)

// Build tells where a claim's atomic build stands; ok is false where there is
// none, or no longer. It may ask the chain which block a transaction is in.
// Errors: those of the desk and of package store.
func (s *Settlement) Build(ctx context.Context, id market.ClaimID) (state desk.BuildState, ok bool, err error) {
	b, ok, err := s.store.Build(id)
	if err != nil || !ok || b.Way != rfq.Atomic {
		return desk.BuildState{}, false, err
	}
	p, err := packageOf(b)
	if err != nil {
		return desk.BuildState{}, false, err
	}
	claim, err := s.claim(id)
	if err != nil {
		return desk.BuildState{}, false, err
	}
	state = desk.BuildState{
		Claim: id, Taker: b.Taker, Stage: desk.BuildExpired, Hash: p.Hash, Blockhash: p.Blockhash, LastValid: p.LastValid, BuiltAt: b.BuiltAt,
	}
	kept, signed, err := s.store.Transaction(id, p.Hash)
	switch {
	case err != nil:
		return desk.BuildState{}, false, err
	case signed:
		state.Signature = kept.Signature()
		state.Stage, state.Slot = s.fate(ctx, claim, &kept)
	case claim != nil && claim.State == rfq.ClaimCosigned:
		state.Stage = desk.BuildBroadcast
	case claim != nil && claim.State == rfq.ClaimReserved:
		state.Stage = desk.BuildOpen
	}
	return state, true, nil
}

// fate tells what has become of a transaction that the desk has signed; claim is
// nil where it is not remembered. The claim's state decides; the tracker and the
// chain are asked for the rest, and where they do not tell it the slot is 0.
func (s *Settlement) fate(ctx context.Context, claim *rfq.Claim, k *store.Transaction) (desk.BuildStage, uint64) {
	if claim != nil && claim.State == rfq.ClaimCosigned {
		state, _ := s.tracker.State(k.Signature())
		return desk.BuildBroadcast, state.Slot
	}
	list, _, err := s.node.Statuses(ctx, []solana.Signature{k.Signature()}, true)
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

// Delivery returns what names the newest transaction that the desk signed to
// deliver what a claim bought, of either way; ok is false where it signed none.
// Errors: those of package store.
func (s *Settlement) Delivery(id market.ClaimID) (signature [64]byte, ok bool, err error) {
	list, err := s.store.Transactions(id)
	if err != nil || len(list) == 0 {
		return signature, false, err
	}
	return list[len(list)-1].Signature(), true, nil
}
