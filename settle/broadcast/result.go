package broadcast

import (
	"time"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
	"blockdesk/settle/cosign"
)

// End is how a transaction ended. No end changes.
type End uint8

const (
	// Finalized: it is in a finalized block and succeeded.
	Finalized End = 1
	// Failed: it is in a finalized block and failed. Only the fee was paid.
	Failed End = 2
	// Expired: it is in no block, and never will be.
	Expired End = 3
)

// String returns the word that logs and metrics use.
func (e End) String() string {
	switch e {
	case Finalized:
		return "finalized"
	case Failed:
		return "failed"
	case Expired:
		return "expired"
	default:
		return "end?"
	}
}

// Result is the end of a transaction.
type Result struct {
	Claim market.ClaimID
	Kind  cosign.Kind
	// Hash is the SHA-256 of the message.
	Hash solana.Hash
	// Signature is the signature under which it landed. If the taker pays the fee it
	// may differ from the one that was sent, because the taker can sign the same
	// message again. Zero for a [Missing] that expired.
	Signature solana.Signature
	End       End
	// Slot is the slot of its block, 0 if it expired.
	Slot uint64
	// Error is the runtime's error as JSON, if it failed.
	Error string
}

// Missing is a transaction that the desk has allowed and whose signed bytes are lost:
// a crash came before they were stored, or the store is from an older backup. It
// cannot be sent from here, but it may have been sent.
type Missing struct {
	Claim market.ClaimID
	Kind  cosign.Kind
	Hash  solana.Hash
	// Reference is an account that the message names.
	Reference solana.Address
	// LastValid is the height of the last block in which it can land. 0 means unknown:
	// then it is assumed to have been made just now, with the newest blockhash that
	// any node has.
	LastValid uint64
	// AllowedAt is when the desk allowed it, in Unix nanoseconds: it may be on the
	// chain since then. 0 means unknown: then it expires only if the nodes have all
	// blocks.
	AllowedAt int64
}

// State is the progress of a transaction.
type State struct {
	Claim     market.ClaimID
	Kind      cosign.Kind
	Hash      solana.Hash
	Signature solana.Signature
	LastValid uint64
	// Since is when it was given to the tracker.
	Since time.Time
	// Sent counts sends. Problem is what prevents the end, empty if nothing does: the
	// kind of an rpc.Error, or one of the words of this package.
	Sent    int
	Problem string
	// Level is the commitment of its block, as of the last poll; 0 = in no block. Slot
	// is the block's.
	Level rpc.Commitment
	Slot  uint64
	// Past: a node has said that a block above LastValid is finalized.
	Past bool
	// OutcomeUnknown: the nodes cannot decide whether it landed, and
	// [Tracker.GiveUp] may end it.
	OutcomeUnknown bool
	// End is set if it has ended and that is still to be reported.
	End End
}

// The values of State.Problem besides those of rpc.Kind.
const (
	ProblemNodesDown     = "nodes_down"       // too few answer
	ProblemNodesBehind   = "nodes_behind"     // a node that answers lags
	ProblemNodesDisagree = "nodes_disagree"   // about whether it is final, where, or whether it failed
	ProblemLanding       = "landing"          // a node has it in a block that is not final
	ProblemTooOld        = "too_old"          // a node may have pruned it
	ProblemHistoryLong   = "history_too_long" // MaxHistory
	ProblemUnread        = "history_unread"   // a transaction of the history could not be read
	ProblemError         = "error"            // a call failed without a kind
)

// Stats are counts of a tracker.
type Stats struct {
	// Tracked are all; Landed of them are in a confirmed block, Past are past their
	// last block according to at least one node, Reporting have ended and are still
	// to be reported.
	Tracked, Landed, Past, Reporting int
	// Missing are the tracked ones whose bytes are lost.
	Missing int
	// Since the start.
	Sends, SendErrors, Finalized, Failed, Expired, GivenUp uint64
	// Position is the newest finalized position.
	Position rpc.Position
}
