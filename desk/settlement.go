package desk

import (
	"errors"
	"fmt"
	"time"

	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/market"
)

// The vocabulary of settlement: package settle returns these types, and the
// gateways render them.

// FeePayer is the party that pays a transaction's fee.
type FeePayer uint8

const (
	// DeskPays: the desk pays and signs for it, a sponsored transaction.
	DeskPays  FeePayer = 1
	TakerPays FeePayer = 2
)

// BlockhashCommitment is the commitment of the blockhash in a [Package]: nodes with default
// settings accept it at once (their preflightCommitment is the same).
const BlockhashCommitment = "finalized"

// Package is an unsigned transaction that settles a claim, with the memo and
// reference that bind it to the claim. A claim has the same package until a fresh one
// is asked for.
type Package struct {
	Transaction []byte           // version 0, every signature zero; read-only
	Hash        [32]byte         // SHA-256 of the transaction's message
	Blockhash   [32]byte         // the recent blockhash in it
	LastValid   uint64           // the last block height at which it can land
	Signers     []market.Address // in the order of their signatures; the first pays the fee
	Reference   market.Address   // read-only account by which the payment is found
	Memo        string           // printable ASCII
}

// PaymentProof names the transaction that pays for a claim. A field that the
// client did not send is zero; the others must agree with the claim that the
// transaction names.
type PaymentProof struct {
	Ticket    market.TicketID
	Tranche   market.TrancheID
	Signature [64]byte
	Claim     market.ClaimID
	Fill      market.FillUSD
	Rail      market.Rail
	// Key is the idempotency key of the command that reports the payment to the desk.
	// Zero: none. The desk books a signature at most once in any case.
	Key rfq.IdempotencyKey
}

// Verdict is the outcome of a PaymentProof. The first of Pending and Refused that
// is not zero decides; if both are zero, the payment settles its claim.
type Verdict struct {
	// Pending: the payment is not found or not final yet; ask again after this.
	Pending time.Duration
	// Refused is the reason why the payment does not settle its claim. If it is
	// ReasonPaymentMismatch, Mismatch is the machine word (docs/specification.md C.4).
	Refused  event.Reason
	Mismatch string
	// Claim and Payment are the desk's records, read-only. Both are set if the
	// payment settles its claim; a refusal has those that exist.
	Claim   *rfq.Claim
	Payment *rfq.Payment
	// Delivery is the signature of the newest transaction that delivers what the
	// claim bought. Zero: the desk has signed none yet.
	Delivery [64]byte
	Replayed bool // this is the answer to an earlier request with the same Key
}

// Submission is the taker's half of an atomic transaction: either the whole
// transaction with the taker's signature in it, or the signature alone.
type Submission struct {
	Claim       market.ClaimID // a build has the id of its claim
	By          market.Address // the address that the access token was issued to
	Transaction []byte         // unchecked bytes; nil if Signature is given
	Signature   [64]byte       // zero if Transaction is given
}

// Submitted is an atomic transaction that the desk has signed.
type Submitted struct {
	Claim       market.ClaimID
	Transaction []byte     // signed by both parties; read-only
	Signature   [64]byte   // the transaction's first signature, its name on the chain
	Stage       BuildStage // BuildBroadcast at first, later its end; never BuildOpen
	Slot        uint64     // the slot of its block; 0 = unknown or none
}

// BuildStage is the progress of a build's transaction.
type BuildStage uint8

const (
	// BuildOpen: the build waits for its taker's signature.
	BuildOpen BuildStage = 1
	// BuildBroadcast: the desk has permitted or given its signature; the
	// transaction is being sent.
	BuildBroadcast BuildStage = 2
	// BuildFinalized: the transaction is in a finalized block and succeeded.
	BuildFinalized BuildStage = 3
	// BuildFailed: the transaction is in a finalized block and failed. No asset
	// has moved.
	BuildFailed BuildStage = 4
	// BuildExpired: the build was not submitted in time, or can never land.
	BuildExpired BuildStage = 5
)

// String returns the word on the wire: "broadcast" and "finalized" are those that
// docs/specification.md C.5 has, the others are our choice.
func (s BuildStage) String() string {
	words := [...]string{
		BuildOpen: "open", BuildBroadcast: "broadcast", BuildFinalized: "finalized",
		BuildFailed: "failed", BuildExpired: "expired",
	}
	if int(s) < len(words) && words[s] != "" {
		return words[s]
	}
	return "stage?"
}

// BuildState is the state of one build.
type BuildState struct {
	Claim     market.ClaimID
	Taker     market.Address
	Stage     BuildStage
	Hash      [32]byte // SHA-256 of the message
	Blockhash [32]byte
	LastValid uint64   // the last block height at which it can land
	Signature [64]byte // zero: the desk has not signed
	Slot      uint64   // the slot of its block; 0 = unknown or none
	BuiltAt   int64    // Unix nanoseconds
}

// ErrWallet means that an address cannot be a claim's wallet: nobody can sign with it, or
// it is one of the desk's own. The text says which.
var ErrWallet = errors.New("desk: this address cannot be a client's wallet")

// ErrUnknownBuild means that the build does not exist, or is not for submitting.
var ErrUnknownBuild = errors.New("desk: no transaction was built for the claim: request one first")

// RefusalReason is the reason of REFUS_DVP (docs/specification.md C.5): letters, digits
// and "_" in lower case. The words are on the wire: frozen.
type RefusalReason string

const (
	RefusalEmptyCounterparty RefusalReason = "empty_counterparty"
	RefusalMessageMismatch   RefusalReason = "message_mismatch"
	RefusalBadSignature      RefusalReason = "bad_signature"
	// RefusalTakerMismatch: the submitter is not the build's taker (our choice).
	RefusalTakerMismatch RefusalReason = "taker_mismatch"
	// RefusalExpired: the claim has ended, its blockhash expires too soon to land,
	// or the desk would not build the same transaction today. The client needs
	// another build.
	RefusalExpired          RefusalReason = "expired"
	RefusalLocked           RefusalReason = "locked"
	RefusalPriceCorridor    RefusalReason = "price_corridor"
	RefusalPriceStale       RefusalReason = "price_stale"
	RefusalPriceUnavailable RefusalReason = "price_unavailable"
	RefusalInventory        RefusalReason = "inventory"
	RefusalTakerFunds       RefusalReason = "taker_funds"
	RefusalAlreadySettled   RefusalReason = "already_settled"
	// RefusalUnbuildable: no transaction can settle this claim; for example, its
	// wallet is one of the desk's (our choice).
	RefusalUnbuildable RefusalReason = "unbuildable"
	// RefusalSimulationFailed: the transaction would fail on the chain for another
	// cause.
	RefusalSimulationFailed RefusalReason = "simulation_failed"
)

// Refusal is the error of a guard of settlement: the desk does not sign, and this
// request has caused no signature of the desk.
type Refusal struct {
	Claim  market.ClaimID
	Reason RefusalReason
}

// Error names the claim and the guard.
func (r *Refusal) Error() string {
	return fmt.Sprintf("settle: claim %s refused: %s", market.AppendClaimID(nil, r.Claim), r.Reason)
}
