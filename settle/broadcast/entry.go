package broadcast

import (
	"container/heap"
	"time"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
	"blockdesk/settle/cosign"
)

// key names a transaction under way.
type key struct {
	claim market.ClaimID
	hash  solana.Hash
}

// entry is a transaction under way. Tracker.mu guards what changes; key, kind,
// reference and since do not.
type entry struct {
	key
	kind      cosign.Kind
	reference solana.Address
	since     time.Time
	// madeAt is when it was signed or allowed, in nanoseconds of Unix time.
	madeAt int64

	// raw are the bytes and own is their signature; both are zero while only the
	// message is known. signature is the one that is looked for: own, or the one
	// under which a search has found the message.
	raw            []byte
	own, signature solana.Signature
	// named: own is the desk's, which never signs a message otherwise, so that it
	// can land under no other name.
	named bool
	// lastValid is a bound by the nodes' words where it is guessed, 0 before the
	// first.
	lastValid uint64
	guessed   bool

	sent int
	// word is what looking meets, sendWord what sending does.
	word, sendWord string

	level rpc.Commitment
	slot  uint64
	past  bool
	// sending: it waits for a sender or has one. examining: the same of the
	// examiner.
	sending, examining bool
	// result is set when result.End is; pause is the one after the last failure
	// to tell it.
	result Result
	pause  time.Duration

	// due and place are its order and place in each queue; place is one more
	// than the index, 0 means that it is not there.
	due   [queues]int64
	place [queues]int
}

// The queues, and what they are ordered by.
const (
	bySend   = 0 // when to send again, or to tell again; Unix nanoseconds
	byLook   = 1 // when to look; Unix nanoseconds
	bySlot   = 2 // slot of its confirmed block
	byHeight = 3 // last valid height
	queues   = 4
)

// queue holds entries by entry.due[which], the lowest first.
type queue struct {
	which int
	list  []*entry
}

// set puts an entry at a place by its due, or moves it there.
func (q *queue) set(e *entry, due int64) {
	e.due[q.which] = due
	if at := e.place[q.which]; at > 0 {
		heap.Fix(q, at-1)
		return
	}
	heap.Push(q, e)
}

// remove takes an entry out, if it is there.
func (q *queue) remove(e *entry) {
	if at := e.place[q.which]; at > 0 {
		heap.Remove(q, at-1)
	}
}

// pop takes the first entry out, if it is due by limit.
func (q *queue) pop(limit int64) *entry {
	if len(q.list) == 0 || q.list[0].due[q.which] > limit {
		return nil
	}
	return heap.Pop(q).(*entry)
}

// Len, Less, Swap, Push and Pop are container/heap's.
func (q *queue) Len() int           { return len(q.list) }
func (q *queue) Less(i, j int) bool { return q.list[i].due[q.which] < q.list[j].due[q.which] }

func (q *queue) Swap(i, j int) {
	q.list[i], q.list[j] = q.list[j], q.list[i]
	q.list[i].place[q.which], q.list[j].place[q.which] = i+1, j+1
}

func (q *queue) Push(x any) {
	e := x.(*entry)
	q.list = append(q.list, e)
	e.place[q.which] = len(q.list)
}

func (q *queue) Pop() any {
	last := len(q.list) - 1
	e := q.list[last]
	q.list[last] = nil
	q.list = q.list[:last]
	e.place[q.which] = 0
	return e
}
