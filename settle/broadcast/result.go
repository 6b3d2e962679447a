package broadcast

import (
	"time"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
	"blockdesk/settle/cosign"
)

// End is how a transaction ended. All three are for ever.
type End uint8

const (
	// Finalized: it is in a finalized block and did what it says.
	Finalized End = 1
	// Failed: it is in a finalized block and did nothing but pay its fee.
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
	// Signature is the one under which it landed. Where the taker pays the fee
	// that may be another than the one that was sent: he can sign the same
	// message again. Zero for a [Missing] that expired.
	Signature solana.Signature
	End       End
	// Slot is that of its block, 0 where it expired.
	Slot uint64
	// Error is the runtime's, as JSON, where it failed.
	Error string
}

// Missing is a transaction that the desk has allowed and whose signed bytes are
// not there: a crash came before they were kept, or a backup is older than they
// are. Nobody can send it from here; it may have been sent.
type Missing struct {
	Claim market.ClaimID
	Kind  cosign.Kind
	Hash  solana.Hash
	// Reference is an account that the message names.
	Reference solana.Address
	// LastValid is the height of the last block that it can be in. 0 means that
	// this is not known: then it is taken to have been made just now, of the
	// newest blockhash that any node has.
	LastValid uint64
	// AllowedAt is when the desk allowed it, in nanoseconds of Unix time: it may
	// be on the chain since. 0 means that this is not known; then it expires only
	// by nodes that have all blocks.
	AllowedAt int64
}

// State is how far a transaction is.
type State struct {
	Claim     market.ClaimID
	Kind      cosign.Kind
	Hash      solana.Hash
	Signature solana.Signature
	LastValid uint64
	// Since is when it was given to the tracker.
	Since time.Time
	// Sent counts sends. Word says what is in the way, empty if nothing is: the
	// kind of an rpc.Error, or one of the words of this package.
	Sent    int
	Problem string
	// Level is how settled its block is, as was seen last; 0 is not at all. Slot
	// is the block's.
	Level rpc.Commitment
	Slot  uint64
	// Past: some node has told that a block above LastValid is finalized.
	Past bool
	// Stands: the nodes cannot end it, and [Tracker.GiveUp] may.
	OutcomeUnknown bool
	// End is set when it has ended and that is still to be told.
	End End
}

// The words of [State] beside those of rpc.Kind.
const (
	ProblemNodesDown     = "nodes_down"       // too few answer
	ProblemNodesBehind   = "nodes_behind"     // one that answers is not far enough
	ProblemNodesDisagree = "nodes_disagree"   // about whether it is final, where, or whether it failed
	ProblemLanding       = "landing"          // a node has it in a block that is not final
	ProblemTooOld        = "too_old"          // a node may have forgotten it
	ProblemHistoryLong   = "history_too_long" // MaxHistory
	ProblemUnread        = "history_unread"   // a transaction of the history could not be read
	ProblemError         = "error"            // a call failed without a kind
)

// Stats counts.
type Stats struct {
	// Tracked are under way, Landed of them in a block that is confirmed, Past of
	// them past their last block by some node's word, Reporting of them ended and
	// not taken yet.
	Tracked, Landed, Past, Reporting int
	// Missing are those of the tracked whose bytes are not there.
	Missing int
	// Since the start.
	Sends, SendErrors, Finalized, Failed, Expired, GivenUp uint64
	// Position is what was told last as finalized.
	Position rpc.Position
}
