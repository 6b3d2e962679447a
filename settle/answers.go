package settle

import (
	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/market"
)

// Package is what a client signs to settle a claim: the same for one claim for
// ever.
type Package struct {
	// Raw is the whole unsigned version 0 transaction, every signature zero. Not
	// to be written to.
	Raw []byte
	// Hash is the SHA-256 of the message in it, Blockhash what it lives by, and
	// LastValid the height of the last block that it can be in.
	Hash, Blockhash solana.Hash
	LastValid       uint64
	// Reference and Memo bind it to the claim.
	Reference solana.Address
	Memo      string
	// Signers must sign, in the order of the slots; the first pays the fee.
	Signers []solana.Address
}

// Stage says how far a build's transaction is.
type Stage uint8

const (
	// Open: nobody has submitted it with its taker's signature; that may still be
	// done.
	Open Stage = 1
	// Broadcast: the desk has promised or given its signature; the transaction
	// is on its way, or soon will be.
	Broadcast Stage = 2
	// Finalized: it is in a finalized block, and succeeded.
	Finalized Stage = 3
	// Failed: it is in a finalized block, and failed. Nothing has changed hands.
	Failed Stage = 4
	// Expired: it was not submitted in time, or can never land any more.
	Expired Stage = 5
)

// String returns the wire's word: "broadcast" and "finalized" are the contract's
// (section E), the others our choice.
func (s Stage) String() string {
	switch s {
	case Open:
		return "open"
	case Broadcast:
		return "broadcast"
	case Finalized:
		return "finalized"
	case Failed:
		return "failed"
	case Expired:
		return "expired"
	default:
		return "stage?"
	}
}

// Submitted is the answer to a submission that was taken.
type Submitted struct {
	Claim market.ClaimID
	// Signature names the transaction on the chain; Raw is the whole of it,
	// signed by both. Not to be written to.
	Signature solana.Signature
	Raw       []byte
	// Stage is Broadcast at first, and later what has become of it; never Open.
	Stage Stage
	// Slot of its block, 0 where it is not known here.
	Slot uint64
}

// BuildState tells of one build.
type BuildState struct {
	Package
	ClaimID market.ClaimID
	// Claim is as it is now; nil where it is not remembered. Not to be written to.
	Claim   *rfq.Claim
	Taker   solana.Address
	BuiltAt int64 // Unix ns
	Stage   Stage
	// Signature and Slot: as in Submitted; zero before the desk has signed.
	Signature solana.Signature
	Slot      uint64
}
