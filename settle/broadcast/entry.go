package broadcast

import (
	"time"

	"blockdesk/internal/schedule"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
	"blockdesk/settle/cosign"
)

// key identifies a tracked transaction.
type key struct {
	claim market.ClaimID
	hash  solana.Hash
}

// entry is a tracked transaction. Tracker.mu guards what changes; key, kind, reference
// and since do not.
type entry struct {
	key
	kind      cosign.Kind
	reference solana.Address
	since     time.Time
	// madeAt is when it was signed or allowed, in Unix nanoseconds.
	madeAt int64

	// raw are the bytes and own is their signature; both are zero while only the
	// message is known. signature is the signature to look for:
	// firstSignature, or the one under which a search has found the message.
	raw                       []byte
	firstSignature, signature solana.Signature
	// deskPaysFee: firstSignature is the desk's. The desk always signs a message with
	// the same signature, so the transaction can land under no other.
	deskPaysFee bool
	// lastValid is a bound by the nodes' heights if it is estimated, 0 before the first
	// estimate.
	lastValid          uint64
	lastValidEstimated bool

	sent int
	// problem is the problem of polls and examinations, sendProblem that of sends.
	problem, sendProblem string

	level rpc.Commitment
	slot  uint64
	// expired: no block that can contain it is still to come, as one node says; past: as
	// enough nodes said in the last examination.
	expired, past bool
	// sending: a sender has the entry, or it waits for one. examining: the same for
	// the examiner.
	sending, examining bool
	// result is set if result.End is; pause is the one after the last failure to
	// report it.
	result Result
	pause  time.Duration

	index [queues]int // in each queue; 0 = not there
}

// The queues and their order.
const (
	bySend   = 0 // when to send or report again; Unix nanoseconds
	byPoll   = 1 // when to poll; Unix nanoseconds
	bySlot   = 2 // slot of its confirmed block
	byHeight = 3 // last valid height
	queues   = 4
)

// newQueues returns the queues in the order of their numbers.
func newQueues() (all [queues]schedule.Queue[*entry]) {
	for which := range all {
		all[which] = schedule.New(func(e *entry) *int { return &e.index[which] })
	}
	return all
}
