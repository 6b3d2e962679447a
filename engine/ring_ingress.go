package engine

import (
	"errors"
	"runtime"
	"sync/atomic"
	"unsafe"
)

// Errors of Submit and SubmitAll, beside ErrCommandCount. A command that they refuse has no effect.
var (
	// ErrFull: the ingress ring has no free slot.
	ErrFull = errors.New("engine: the ingress ring is full")
	// ErrReadOnly: the journal has failed, or the Admission does not admit the command.
	ErrReadOnly = errors.New("engine: read-only: the journal failed or admission is restricted")
	// ErrStopped: the context of Run has ended.
	ErrStopped = errors.New("engine: stopped")
)

// Flags in the top bits of ingress.tail. Setting one makes every claim under way fail its
// compare-and-swap, so the count in tail is final: a Submit that races with shutdown is
// either processed or refused.
const (
	tailStopped uint64 = 1 << 63
	tailFailed  uint64 = 1 << 62
	tailFlags          = tailStopped | tailFailed
)

// ingress is the bounded ring of commands: many producers, then the matcher, then the
// journaler. Positions count from 0 without end; position p is in slot p modulo the size
// and becomes the command with Seq = firstSeq + p.
//
// A slot belongs to the producer that claimed its position until the slot's Seq is that of
// the position; then to the matcher until stamped passes it; then to the matcher and the
// journaler as readers until applied and journaled have both passed it; then to the
// producers again.
//
// A slot's Seq is stored last and marks it as filled. A separate array of flags was
// measured and rejected: the matcher reads one more cache line of another core, which costs
// a lone command a hundred nanoseconds.
type ingress struct {
	slots    []Command
	firstSeq uint64
	// priorDigest[p modulo size] is the digest of all events before the batch that starts
	// at p. The matcher writes it before stamped.
	priorDigest []uint64
	mask        uint64

	_    cacheLine
	tail atomic.Uint64 // next position to claim, and flags
	_    cacheLine
	// limit is a position up to which tail may grow, perhaps not the highest.
	limit atomic.Uint64
	_     cacheLine
	// stamped and applied are the progress of the matcher, journaled that of the
	// journaler (math.MaxUint64 without one).
	stamped   atomic.Uint64
	_         cacheLine
	applied   atomic.Uint64
	_         cacheLine
	journaled atomic.Uint64
	_         cacheLine
}

func (r *ingress) init(size int, firstSeq uint64) {
	r.slots, r.firstSeq = make([]Command, size), firstSeq
	r.priorDigest = make([]uint64, size)
	r.mask = uint64(size - 1)
	r.limit.Store(uint64(size))
}

// put copies c into the next slot. Any goroutine. Errors: ErrFull, ErrReadOnly,
// ErrStopped.
func (r *ingress) put(c *Command) error {
	for {
		t := r.tail.Load()
		switch {
		case t&tailFailed != 0:
			return ErrReadOnly
		case t&tailStopped != 0:
			return ErrStopped
		case t >= r.limit.Load() && t >= r.updateLimit():
			return ErrFull
		}
		if r.tail.CompareAndSwap(t, t+1) {
			slot := &r.slots[t&r.mask]
			*afterSeq(slot) = *afterSeq(c)
			atomic.StoreUint64(&slot.Seq, r.firstSeq+t)
			return nil
		}
	}
}

// putAll copies cs, which must not be empty, into consecutive slots: all or none. Any
// goroutine. Errors: those of put. A ring with fewer slots is always full.
func (r *ingress) putAll(cs []Command) error {
	n := uint64(len(cs))
	for {
		t := r.tail.Load()
		switch {
		case t&tailFailed != 0:
			return ErrReadOnly
		case t&tailStopped != 0:
			return ErrStopped
		case t+n > r.limit.Load() && t+n > r.updateLimit():
			return ErrFull
		}
		if r.tail.CompareAndSwap(t, t+n) {
			for i := range cs {
				p := t + uint64(i)
				slot := &r.slots[p&r.mask]
				*afterSeq(slot) = *afterSeq(&cs[i])
				atomic.StoreUint64(&slot.Seq, r.firstSeq+p)
			}
			return nil
		}
	}
}

// afterSeq returns all of c but Seq, its first field.
func afterSeq(c *Command) *[CommandSize - 8]byte {
	return (*[CommandSize - 8]byte)(unsafe.Add(unsafe.Pointer(c), 8))
}

// updateLimit recomputes and returns limit. If two callers store it at once, the smaller
// value may win, which only costs the next claim another update.
func (r *ingress) updateLimit() uint64 {
	limit := min(r.applied.Load(), r.journaled.Load()) + uint64(len(r.slots))
	r.limit.Store(limit)
	return limit
}

// filled reports whether the command at position p is complete.
func (r *ingress) filled(p uint64) bool {
	return atomic.LoadUint64(&r.slots[p&r.mask].Seq) == r.firstSeq+p
}

// countFilled returns how many positions from p on are filled, at most limit.
func (r *ingress) countFilled(p uint64, limit int) int {
	n := 0
	for n < limit && r.filled(p+uint64(n)) {
		n++
	}
	return n
}

// end returns the position after the last claimed one. It is final once a flag is set.
func (r *ingress) end() uint64 { return r.tail.Load() &^ tailFlags }

// awaitFilled waits for the producer that has claimed p to fill it.
func (r *ingress) awaitFilled(p uint64) {
	for !r.filled(p) {
		runtime.Gosched()
	}
}

// segments returns the commands at positions a to b-1 in two slices; the second is empty
// unless they wrap around.
func (r *ingress) segments(a, b uint64) (first, second []Command) {
	i, j := a&r.mask, b&r.mask
	if i < j {
		return r.slots[i:j], nil
	}
	return r.slots[i:], r.slots[:j]
}

// frameEnd returns the last batch boundary in a+1 … min(b, a+limit). a and b are batch
// boundaries, and no batch is longer than limit.
func (r *ingress) frameEnd(a, b uint64, limit int) uint64 {
	if b-a <= uint64(limit) {
		return b
	}
	b = a + uint64(limit)
	for !r.slots[b&r.mask].first {
		b--
	}
	return b
}
