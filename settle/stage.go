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

// Build returns the state of a claim's atomic build; ok is false if there is none,
// or no longer. It may ask a node which block the transaction is in. Errors: those
// of the desk and of package store.
func (p *packages) Build(ctx context.Context, id market.ClaimID) (state desk.BuildState, ok bool, err error) {
	b, ok, err := p.store.Build(id)
	if err != nil || !ok || b.Way != rfq.Atomic {
		return desk.BuildState{}, false, err
	}
	pack, err := packageOf(b)
	if err != nil {
		return desk.BuildState{}, false, err
	}
	claim, err := claimOf(p.desk, id)
	if err != nil {
		return desk.BuildState{}, false, err
	}
	state = desk.BuildState{
		Claim: id, Taker: b.Taker, Stage: desk.BuildExpired, Hash: pack.Hash, Blockhash: pack.Blockhash, LastValid: pack.LastValid, BuiltAt: b.BuiltAt,
	}
	t, signed, err := p.store.Transaction(id, pack.Hash)
	switch {
	case err != nil:
		return desk.BuildState{}, false, err
	case signed:
		state.Signature = t.Signature()
		state.Stage, state.Slot = p.stageOf(ctx, claim, &t)
	case claim != nil && claim.State == rfq.ClaimCosigned:
		state.Stage = desk.BuildBroadcast
	case claim != nil && claim.State == rfq.ClaimReserved:
		state.Stage = desk.BuildOpen
	}
	return state, true, nil
}

// stageOf returns the stage of a transaction that the desk has signed, and the slot
// of its block, 0 if that is unknown. claim is nil if the desk has forgotten it. The
// claim's state decides; the tracker and a node add the rest.
func (p *packages) stageOf(ctx context.Context, claim *rfq.Claim, t *store.Transaction) (desk.BuildStage, uint64) {
	if claim != nil && claim.State == rfq.ClaimCosigned {
		state, _ := p.tracker.State(t.Signature())
		return desk.BuildBroadcast, state.Slot
	}
	list, _, err := p.node.Statuses(ctx, []solana.Signature{t.Signature()}, true)
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
