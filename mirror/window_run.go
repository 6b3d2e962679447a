package mirror

import (
	"fmt"
	"math"
	"time"

	"blockdesk/internal/solana"
	"blockdesk/market"
)

// forEver is an unknown latest time.
const forEver = math.MaxInt64

// edge is an end of the run.
type edge struct {
	slot uint64
	// time is the block's. Nothing in the run is older than the oldest edge's, or newer
	// than the newest's.
	time int64
	// seen are the transactions of the slot.
	seen map[solana.Signature]struct{}
	// held is the vaults' balance at the edge, on the outer side of the run, as of
	// heldTime.
	held  [sides]market.Amount
	known [sides]bool
	// heldTime is the time of the transaction with that balance.
	heldTime [sides]int64
}

// covers reports whether a transaction belongs to the run.
func (w *Windows) covers(t *Trace) bool {
	if !w.begun {
		return false
	}
	_, atNewest := w.newest.seen[t.Signature]
	_, atOldest := w.oldest.seen[t.Signature]
	return atNewest || atOldest || t.Slot > w.oldest.slot && t.Slot < w.newest.slot
}

// begin starts the run with a transaction. One without a time happened between zero and
// forEver.
func (w *Windows) begin(t *Trace) {
	w.begun = true
	w.newest = edge{slot: t.Slot, time: max(t.Time, 0), seen: map[solana.Signature]struct{}{}}
	w.oldest = edge{slot: t.Slot, time: t.Time, seen: map[solana.Signature]struct{}{}}
	if t.Time <= 0 {
		w.oldest.time = forEver
	}
}

// moveEdge moves an edge to a transaction, which may also be in the other edge's slot.
func (w *Windows) moveEdge(e *edge, t *Trace) {
	if t.Slot != e.slot {
		e.slot = t.Slot
		clear(e.seen)
	}
	for _, e := range []*edge{&w.oldest, &w.newest} {
		if e.slot == t.Slot {
			e.seen[t.Signature] = struct{}{}
		}
	}
}

func (w *Windows) newerTrace(p *Progress) (bool, error) {
	t := &p.Trace
	if w.covers(t) {
		return false, nil
	}
	if !w.begun {
		w.begin(t)
	}
	e := &w.newest
	if t.Slot < e.slot {
		return false, fmt.Errorf("%w: %s of slot %d came after slot %d", ErrOrder, t.Signature, t.Slot, e.slot)
	}
	w.moveEdge(e, t)
	// Block times never decrease; an earlier time is invalid.
	timed := t.Time > 0 && t.Time >= e.time
	if timed {
		e.time = t.Time
		if w.untimed {
			w.untimed, w.doubted = false, max(w.doubted, e.time)
		}
	}
	joins := w.joinNewer(p)
	if p.Err != nil || !joins || !timed && t.swaps() > 0 {
		w.totals.Doubts++
		w.doubted = max(w.doubted, e.time)
		w.untimed = w.untimed || !timed
	}
	for i := range t.Movements {
		if f, ok := t.swap(i); ok && w.count(&f, timed) {
			w.newer = append(w.newer, f)
		}
	}
	w.finish(t)
	return true, nil
}

func (w *Windows) olderTrace(p *Progress) (bool, error) {
	t := &p.Trace
	if w.covers(t) {
		return false, nil
	}
	if !w.begun {
		w.begin(t)
	}
	e := &w.oldest
	if t.Slot > e.slot {
		return false, fmt.Errorf("%w: %s of slot %d came before slot %d", ErrOrder, t.Signature, t.Slot, e.slot)
	}
	w.moveEdge(e, t)
	timed := t.Time > 0 && t.Time <= e.time
	if timed {
		e.time = t.Time
	}
	if doubted, at := w.joinOlder(p); doubted {
		w.doubtOlder(at)
	}
	if p.Err != nil || !timed && t.swaps() > 0 {
		w.doubtOlder(e.time) // it is not newer than the transaction after it
	}
	for i := len(t.Movements) - 1; i >= 0; i-- {
		if f, ok := t.swap(i); ok && w.count(&f, timed) {
			w.older = append(w.older, f)
		}
	}
	w.finish(t)
	return true, nil
}

// finish ends the reading of a transaction. Before a vault was created there were no
// swaps.
func (w *Windows) finish(t *Trace) {
	w.totals.Complete = w.totals.Complete || t.Base.Created || t.Quote.Created
	w.trim()
}

// joinNewer reports whether the vaults held at least as much before p as they last held.
// A missing swap would have paid out; a gift only adds.
func (w *Windows) joinNewer(p *Progress) bool {
	e, joins := &w.newest, true
	if p.Err != nil {
		e.known = [sides]bool{}
		return joins
	}
	for side, b := range [sides]*Balance{&p.Trace.Base, &p.Trace.Quote} {
		if !b.Named {
			continue
		}
		joins = joins && (!e.known[side] || b.Before >= e.held[side])
		e.setBalance(side, b.After, e.time)
		if !w.named[side] {
			w.oldest.setBalance(side, b.Before, e.time)
			w.named[side] = true
		}
	}
	return joins
}

// joinOlder reports whether the vaults held less in the next transaction than after p,
// and the time of that transaction.
func (w *Windows) joinOlder(p *Progress) (doubted bool, at int64) {
	e := &w.oldest
	if p.Err != nil {
		e.known = [sides]bool{}
		return false, 0
	}
	for side, b := range [sides]*Balance{&p.Trace.Base, &p.Trace.Quote} {
		if !b.Named {
			continue
		}
		if e.known[side] && b.After > e.held[side] {
			doubted, at = true, max(at, e.heldTime[side])
		}
		e.setBalance(side, b.Before, e.time)
		if !w.named[side] {
			w.newest.setBalance(side, b.After, e.time)
			w.named[side] = true
		}
	}
	return doubted, at
}

// setBalance sets a vault's balance at the edge.
func (e *edge) setBalance(side int, atoms market.Amount, at int64) {
	e.held[side], e.known[side], e.heldTime[side] = atoms, true, at
}

// doubtOlder records that something is missing at a time, which may be forEver.
func (w *Windows) doubtOlder(at int64) {
	w.totals.Doubts++
	if at == forEver {
		w.untimed = true
		return
	}
	w.doubted = max(w.doubted, at)
}

// swaps returns the number of swaps.
func (t *Trace) swaps() (n int) {
	for i := range t.Movements {
		if t.Movements[i].Kind == Swap {
			n++
		}
	}
	return n
}

// swap returns movement i, and whether it is a swap.
func (t *Trace) swap(i int) (CountedSwap, bool) {
	m := &t.Movements[i]
	return CountedSwap{m.Key, t.Slot, t.Time, m.Side(), m.Calls, m.Base.Atoms, m.Quote.Atoms}, m.Kind == Swap
}

// count adds a swap to the totals and reports whether to hold it: without a time it is in
// no window.
func (w *Windows) count(f *CountedSwap, timed bool) bool {
	w.totals.Swaps += uint64(f.Calls)
	add(&w.totals.Base, f.Base)
	add(&w.totals.Quote, f.Quote)
	return timed
}

// resume sets the totals to the stored ones, after the stored transactions were applied,
// because those do not go back to the beginning.
func (w *Windows) resume(t Totals) { w.totals = t }

func (w *Windows) len() int { return len(w.older) + len(w.newer) }

// at returns swap i, oldest first.
func (w *Windows) at(i int) *CountedSwap {
	if i < len(w.older) {
		return &w.older[len(w.older)-1-i]
	}
	return &w.newer[i-len(w.older)]
}

// trim drops the swaps that no window needs and those beyond MaxSwaps, but never the
// newest one. The newest swap before the week stays: it is the week's reference.
func (w *Windows) trim() {
	past := w.newest.time - int64((Week+w.o.MaxAhead)/time.Second)
	for w.len() > 1 && (w.len() > w.o.MaxSwaps || w.at(1).Time <= past) {
		w.dropped = max(w.dropped, w.at(0).Time)
		if n := len(w.older); n > 0 {
			w.older = w.older[:n-1]
		} else {
			w.newer = w.newer[1:]
		}
	}
}
