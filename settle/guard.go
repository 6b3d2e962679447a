package settle

import (
	"context"
	"errors"
	"fmt"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/internal/solana/build"
	"blockdesk/internal/solana/rpc"
	"blockdesk/settle/cosign"
	"blockdesk/settle/store"
)

// guard checks the conditions for permission to sign with the desk's key. The engine
// checks the desk's own rules (price, locks, state) again with the permission.
type guard struct {
	*env
	builder       *builder
	blockhashLife uint64
}

// countersignature checks an atomic transaction that its taker has signed. Errors:
// *[desk.Refusal]; [ErrNotReady]; [ErrSigner]; [ErrChain]; errors of the desk.
func (g *guard) countersignature(ctx context.Context, b *store.Build, signed *cosign.Countersigned) error {
	claim, err := g.claimOf(b.Claim)
	switch {
	case err != nil:
		return err
	case claim == nil:
		return g.counts.refuse(b.Claim, desk.RefusalExpired)
	case claim.State == rfq.ClaimCosigned && claim.Proof == signed.Hash(): // permitted, but not signed
	case claim.State != rfq.ClaimReserved:
		return g.counts.refuse(b.Claim, refusalOfState(claim.State))
	}
	err = g.builder.checkCurrent(claim, signed.Summary())
	if errors.Is(err, errOutdated) {
		g.log.Warn("outdated transaction refused", "claim", claimText(b.Claim), "error", err)
		return g.counts.refuse(b.Claim, desk.RefusalExpired)
	}
	if err != nil {
		return claimError(b.Claim, err)
	}
	newest, err := g.builder.chain.blockhash(ctx)
	if err != nil {
		return claimError(b.Claim, err)
	}
	if b.LastValid+g.blockhashLife < newest.LastValidBlockHeight+MinLife {
		return g.counts.refuse(b.Claim, desk.RefusalExpired)
	}
	// The stored bytes are simulated, because the runtime checks no signature here.
	run, err := g.node.Simulate(ctx, b.Raw, rpc.SimulateOptions{})
	if err != nil {
		return chainError(b.Claim, err)
	}
	if !run.Failed {
		return nil
	}
	g.log.Debug("submitted transaction fails in simulation", "claim", claimText(b.Claim), "error", run.Error)
	reason := atomicRefusal(run.Error, takerPays(b))
	if reason == desk.RefusalExpired && run.Slot < newest.Slot { // a lagging node does not know the blockhash yet
		return chainError(b.Claim, fmt.Errorf("a node simulated it as of slot %d, behind slot %d", run.Slot, newest.Slot))
	}
	return g.counts.refuse(b.Claim, reason)
}

// delivery checks a delivery. Errors: *deliveryProblem, [ErrChain].
func (g *guard) delivery(ctx context.Context, c *rfq.Claim, u *build.Unsigned) error {
	run, err := g.node.Simulate(ctx, u.Bytes(), rpc.SimulateOptions{})
	if err != nil {
		return chainError(c.ID, err)
	}
	if run.Failed {
		return &deliveryProblem{problemOfSimulation(run.Error), claimError(c.ID, errors.New(run.Error))}
	}
	return nil
}

// refusalOfState returns the refusal to sign for a claim that is not in state
// reserved.
func refusalOfState(state rfq.ClaimState) desk.RefusalReason {
	if state == rfq.ClaimSettled || state == rfq.ClaimCosigned {
		return desk.RefusalAlreadySettled
	}
	return desk.RefusalExpired
}
