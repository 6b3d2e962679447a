package engine

import (
	"runtime"
	"sync/atomic"
	"unsafe"
)

// Flags in the top bits of ingress.tail. Setting one makes every claim under way
// fail its compare-and-swap, so what tail counts is final: a Submit that races
// with the end is either processed or refused.
const (
	tailStopped uint64 = 1 << 63
	tailFailed  uint64 = 1 << 62
	tailFlags          = tailStopped | tailFailed
)

// ingress is the bounded ring of commands: many producers, then the matcher,
// then the journaler. Positions count from 0 for ever; position p lives in slot
// p modulo the size, and becomes the command Seq = firstSeq + p.
//
// A slot belongs to the producer that claimed its position until the slot's Seq
// is that position's, then to the matcher until stamped passes it, then to the
// matcher and the journaler as readers until applied and journaled have both
// passed it, then to the producers again.
//
// Seq itself says that a slot is filled, and it is stored last. An array of
// ready marks beside the slots was tried: it costs the matcher one more cache
// line from another core for a command that comes alone, a hundred nanoseconds.
type ingress struct {
	slots    []Command
	firstSeq uint64
	// prior[p modulo size], where a batch starts at p, is the digest of all
	// events before it. Written by the matcher before stamped.
	prior []uint64
	mask  uint64

	_    cacheLine
	tail atomic.Uint64 // next position to claim, and flags
	_    cacheLine
	// limit is a position that tail may grow to; perhaps not the largest such.
	limit atomic.Uint64
	_     cacheLine
	// stamped, applied: how far the matcher is. journaled: how far the
	// journaler is; the largest number where there is none.
	stamped   atomic.Uint64
	_         cacheLine
	applied   atomic.Uint64
	_         cacheLine
	journaled atomic.Uint64
	_         cacheLine
}

func (r *ingress) init(size int, firstSeq uint64) {
	r.slots, r.firstSeq = make([]Command, size), firstSeq
	r.prior = make([]uint64, size)
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
		case t >= r.limit.Load() && t >= r.freed():
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

// putAll copies cs, which are not empty, into neighbouring slots: all of them or
// none. Any goroutine. Errors: as put. A ring that has fewer slots is always
// full.
func (r *ingress) putAll(cs []Command) error {
	n := uint64(len(cs))
	for {
		t := r.tail.Load()
		switch {
		case t&tailFailed != 0:
			return ErrReadOnly
		case t&tailStopped != 0:
			return ErrStopped
		case t+n > r.limit.Load() && t+n > r.freed():
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

// afterSeq returns all of c but Seq, which comes first.
func afterSeq(c *Command) *[CommandSize - 8]byte {
	return (*[CommandSize - 8]byte)(unsafe.Add(unsafe.Pointer(c), 8))
}

// freed looks how far tail may grow now, and remembers it. Of two that store
// limit at once the smaller may win, which costs the next claim another look.
func (r *ingress) freed() uint64 {
	limit := min(r.applied.Load(), r.journaled.Load()) + uint64(len(r.slots))
	r.limit.Store(limit)
	return limit
}

// filled reports whether position p can be read.
func (r *ingress) filled(p uint64) bool {
	return atomic.LoadUint64(&r.slots[p&r.mask].Seq) == r.firstSeq+p
}

// run returns how many positions from p on are filled, at most limit.
func (r *ingress) run(p uint64, limit int) int {
	n := 0
	for n < limit && r.filled(p+uint64(n)) {
		n++
	}
	return n
}

// end returns the position after the last claimed one; final once a flag is set.
func (r *ingress) end() uint64 { return r.tail.Load() &^ tailFlags }

// awaitFilled waits for a producer that has claimed p and is about to fill it.
func (r *ingress) awaitFilled(p uint64) {
	for !r.filled(p) {
		runtime.Gosched()
	}
}

// segments returns the commands of positions a to b-1: two runs, the second one
// empty unless they wrap.
func (r *ingress) segments(a, b uint64) (first, second []Command) {
	i, j := a&r.mask, b&r.mask
	if i < j {
		return r.slots[i:j], nil
	}
	return r.slots[i:], r.slots[:j]
}

// cut returns the largest batch boundary in a+1 … min(b, a+limit). a and b are
// boundaries, and no batch is longer than limit.
func (r *ingress) cut(a, b uint64, limit int) uint64 {
	if b-a <= uint64(limit) {
		return b
	}
	b = a + uint64(limit)
	for !r.slots[b&r.mask].first {
		b--
	}
	return b
}
