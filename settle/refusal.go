package settle

import (
	"errors"
	"fmt"

	"blockdesk/market"
)

// Errors, wrapped with what they concern.
var (
	// ErrOptions: options that cannot work.
	ErrOptions = errors.New("settle: invalid options")
	// ErrNotReady: no package can be built now; the text says what is missing.
	ErrNotReady = errors.New("settle: not ready")
	// ErrChain: the chain could not be asked. Nothing has been signed.
	ErrChain = errors.New("settle: the chain could not be asked")
	// ErrSigner: the signer gave no signature that is good. The desk's promise
	// stands, and the same submission again goes on from there.
	ErrSigner = errors.New("settle: the signer gave no signature")
	// ErrUnknownBuild: no such build, or one that is not for submitting.
	ErrUnknownBuild = errors.New("settle: no such build")
	// ErrNotDoubtful: no transaction of the claim waits for an operator's word.
	ErrNotDoubtful = errors.New("settle: nothing of the claim is in doubt")
	// ErrRefused: an operator's request that the desk's rules refuse; the text
	// has the reason's word.
	ErrRefused = errors.New("settle: refused by the desk")
)

// Reason says why a submission is refused: the reason of REFUS_DVP (contract,
// section E). The words are on the wire: frozen.
type Reason string

const (
	EmptyCounterparty Reason = "empty_counterparty"
	MessageMismatch   Reason = "message_mismatch"
	BadSignature      Reason = "bad_signature"
	// TakerMismatch: who submits is not the build's taker (our choice).
	TakerMismatch Reason = "taker_mismatch"
	// ClaimExpired: the claim has ended, its blockhash has too little life left to
	// land, or the desk would not build the same today: another build is needed.
	ClaimExpired     Reason = "expired"
	Locked           Reason = "locked"
	PriceCorridor    Reason = "price_corridor"
	PriceStale       Reason = "price_stale"
	PriceUnavailable Reason = "price_unavailable"
	Inventory        Reason = "inventory"
	TakerFunds       Reason = "taker_funds"
	AlreadySettled   Reason = "already_settled"
	// Unbuildable: no transaction can settle this claim: its wallet is one of
	// ours, say. Our choice.
	Unbuildable Reason = "unbuildable"
	// SimulationFailed: it would fail on the chain for another cause.
	SimulationFailed Reason = "simulation_failed"
)

// Refusal says that a guard has tripped: no signature of the desk exists for the
// claim by this submission.
type Refusal struct {
	Claim  market.ClaimID
	Reason Reason
}

func (r *Refusal) Error() string {
	return fmt.Sprintf("settle: claim %s refused: %s", market.AppendClaimID(nil, r.Claim), r.Reason)
}
