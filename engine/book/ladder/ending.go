package ladder

import (
	"math"
	"unsafe"

	"blockdesk/engine/book"
	"blockdesk/engine/event"
	"blockdesk/market"
)

// Ending orders (rule 10 of package book) are not marked one by one, because that would be the
// walk that they avoid. An order carries its account's generation of its side from when it
// entered; a mass cancel turns the account's, so every older order differs from it, and once
// the last of these is out, all agree again. The ExpireAt of an order shows that it is overdue.

// account is what a book knows of a participant.
type account struct {
	open   [2]int32 // live orders that are not ending by a mass cancel, by side-Buy
	ending [2]int32 // orders ending by a mass cancel
	// marks has the generation of each side, where an order's state has it, and below
	// them the event.Reason of each side's ending orders.
	marks uint64
}

var _ [24]byte = [unsafe.Sizeof(account{})]byte{}

const (
	// genShift is the position of the generations in an order's state and in marks: a bit for
	// each side, of which an order uses its own side's.
	genShift = 62
	genMask  = uint64(3) << genShift

	reasonBits = 16
	reasonMask = 1<<reasonBits - 1
)

// isMassCancelled reports whether the live order x is ending by a mass cancel.
func (b *Book) isMassCancelled(x *order) bool {
	return (x.state^b.accounts[x.participant()].marks)>>(genShift+x.state>>qtyBits&1)&1 != 0
}

// endReason returns why the live order in slot is ending, or event.ReasonNone.
func (b *Book) endReason(slot int32) event.Reason {
	x := &b.orders[slot]
	if b.isMassCancelled(x) {
		return event.Reason(b.accounts[x.participant()].marks >> (x.state >> qtyBits & 1 * reasonBits) & reasonMask)
	}
	if x.state&expires != 0 && b.cold[slot].expireAt <= *b.due {
		return event.ReasonExpired
	}
	return event.ReasonNone
}

// Open returns the participant's (0 = everybody's) live orders on side (0 = both) that are
// not ending by a mass cancel.
func (b *Book) Open(participant market.ParticipantID, side market.Side) int {
	n := 0
	if participant != 0 {
		if int(participant) < len(b.accounts) {
			n = b.accounts[participant].openOn(side)
		}
		return n
	}
	for i := range b.accounts {
		n += b.accounts[i].openOn(side)
	}
	return n
}

func (a *account) openOn(side market.Side) int {
	switch side {
	case market.Buy, market.Sell:
		return int(a.open[side-market.Buy])
	default:
		return int(a.open[0] + a.open[1])
	}
}

// EndLater makes the orders that Open counts ending, for the reason, and returns their number.
// If there are ending ones of the same participants and sides already, it takes all ending
// orders out first.
func (b *Book) EndLater(participant market.ParticipantID, side market.Side, reason event.Reason, at int64, seq uint64, out *event.Sink) int {
	first, end := int(participant), min(int(participant)+1, len(b.accounts))
	if participant == 0 {
		end = len(b.accounts)
	}
	for i := first; i < end; i++ {
		for s := market.Buy; s <= market.Sell; s++ {
			if a := &b.accounts[i]; (side == 0 || side == s) && a.open[s-market.Buy] > 0 && a.ending[s-market.Buy] > 0 {
				b.Sweep(at, math.MaxInt, seq, out)
			}
		}
	}
	n := 0
	for i := first; i < end; i++ {
		for s := market.Buy; s <= market.Sell; s++ {
			if side == 0 || side == s {
				n += b.accounts[i].end(s, reason)
			}
		}
	}
	if n > 0 {
		b.ending += n
		b.setSweeping(true)
		b.resetPlaces()
	}
	return n
}

// end makes all orders of side s ending and returns their number.
func (a *account) end(s market.Side, reason event.Reason) int {
	i := s - market.Buy
	n := a.open[i]
	if n == 0 {
		return 0
	}
	a.open[i], a.ending[i] = 0, n
	a.marks ^= 1 << (genShift + uint(i))
	a.setReason(i, reason)
	return int(n)
}

func (a *account) setReason(i market.Side, reason event.Reason) {
	shift := uint(i) * reasonBits
	a.marks = a.marks&^(reasonMask<<shift) | uint64(reason)<<shift
}

func (b *Book) resetPlaces() {
	for i := range b.places {
		b.places[i] = math.MaxInt64
	}
	b.stopPlaces = [4]int64{math.MaxInt64 - 1, 0, math.MaxInt64 - 1, 0}
}

func (b *Book) setSweeping(on bool) {
	b.sweeping = on
	b.general = on || b.growing != nil
}

// Sweeping reports whether there may be ending orders.
func (b *Book) Sweeping() bool { return b.sweeping }

// Sweep makes what is overdue at time at ending, and takes the first n ending orders in
// canonical order out, with an event each. It returns their number; if it is less than n, none is left.
func (b *Book) Sweep(at int64, n int, seq uint64, out *event.Sink) int {
	*b.due = at
	if b.next != 0 && b.next <= at {
		if overdue, li := b.expiries.ceil(b.sweptTo + 1); li != none && overdue <= at {
			b.resetPlaces()
		}
		b.sweptTo = at
		b.setSweeping(true)
	}
	c := command{at, seq, out, b.instrument}
	left := n
	for s := market.Buy; s <= market.Sell && left > 0 && b.unswept(); s++ {
		left = b.sweepSide(s, left, &c)
	}
	for _, list := range waitingLists {
		if left > 0 && b.unswept() {
			left = b.sweepStops(list, left, &c)
		}
	}
	if !b.unswept() {
		b.sweptTo = 0
		b.setSweeping(false)
	}
	return n - left
}

// unswept reports whether there are ending orders.
func (b *Book) unswept() bool { return b.ending > 0 || b.next != 0 && b.next <= *b.due }

func (b *Book) sweepSide(s market.Side, left int, c *command) int {
	for key := min(b.places[s], b.best[s]); key != noBest; {
		p := market.Price(key * sign(s))
		b.places[s] = key
		if li := b.peek(p); li != none && b.levels[li].head != 0 {
			if left = b.sweepQueue(li, left, c); left == 0 || !b.unswept() {
				return left
			}
		}
		key = b.after(p, s)
	}
	b.places[s] = noBest
	return left
}

func (b *Book) sweepStops(list market.Side, left int, c *command) int {
	for stop, li := b.nextStop(list, b.stopPlaces[list&3]-direction(list)); li != none; stop, li = b.nextStop(list, stop) {
		b.stopPlaces[list&3] = stop
		if left = b.sweepQueue(li, left, c); left == 0 || !b.unswept() {
			return left
		}
	}
	return left
}

// sweepQueue takes ending orders of a queue out, at most left, and returns how many more it may.
func (b *Book) sweepQueue(li int32, left int, c *command) int {
	for slot := b.levels[li].head; slot != 0 && left > 0; {
		next := b.orders[slot].next
		if reason := b.endReason(slot); reason != event.ReasonNone {
			_, pos := b.find(b.orders[slot].id, hashOf(b.orders[slot].id))
			b.cancelOrder(slot, pos, reason, c)
			left--
		}
		slot = next
	}
	return left
}

// TakeOut takes the order id out if it is ending.
func (b *Book) TakeOut(id market.OrderID, at int64, seq uint64, out *event.Sink) {
	if slot, pos := b.find(id, hashOf(id)); slot != 0 {
		b.takeOut(slot, pos, &command{at, seq, out, b.instrument})
	}
}

// takeOut takes the live order in slot out if it is ending, and reports whether it was.
func (b *Book) takeOut(slot int32, pos uint64, c *command) bool {
	reason := b.endReason(slot)
	if reason == event.ReasonNone {
		return false
	}
	b.cancelOrder(slot, pos, reason, c)
	return true
}

// clearTop takes ending orders of side s out, best first, up to the first order that is not
// ending or that an order with the reach does not reach. The best order that it reaches is
// then a live one.
func (b *Book) clearTop(s market.Side, reach int64, c *command) {
	for reach+b.best[s&3] >= 0 {
		slot := b.levels[b.levelAt(market.Price(b.best[s&3]*sign(s)))].head
		_, pos := b.find(b.orders[slot].id, hashOf(b.orders[slot].id))
		if !b.takeOut(slot, pos, c) {
			return
		}
	}
}

// bestLive is Best while there are ending orders.
func (b *Book) bestLive(s market.Side) (market.Price, market.Qty) {
	for key := b.best[s]; key != noBest; {
		p := market.Price(key * sign(s))
		var shown market.Qty
		for slot := b.levels[b.peek(p)].head; slot != 0; slot = b.orders[slot].next {
			if b.endReason(slot) == event.ReasonNone {
				shown += b.orders[slot].qty()
			}
		}
		if shown > 0 {
			return p, shown
		}
		key = b.after(p, s)
	}
	return 0, 0
}

// markedFlag returns the flag with which a snapshot has an order that ends for the reason.
func markedFlag(reason event.Reason) book.Flag {
	if reason == event.ReasonKilled {
		return book.FlagKilled
	}
	return book.FlagMassCancelled
}

// importMark makes the order in slot, just imported and so counted as open, ending as its
// flags say.
func (b *Book) importMark(slot int32, flags book.Flag) {
	reason := event.ReasonMassCancel
	switch {
	case flags&book.FlagKilled != 0:
		reason = event.ReasonKilled
	case flags&book.FlagMassCancelled == 0:
		return
	}
	x := &b.orders[slot]
	i := x.side() - market.Buy
	a := &b.accounts[x.participant()]
	a.open[i]--
	a.ending[i]++
	a.setReason(i, reason)
	x.state ^= 1 << (genShift + uint(i))
	b.ending++
	b.setSweeping(true)
	b.resetPlaces()
}

// OpenOrders returns the participant's number of orders that are not ending by a mass cancel.
func (b *Book) OpenOrders(participant market.ParticipantID) int {
	if int(participant) >= len(b.accounts) {
		return 0
	}
	return b.accounts[participant].openOn(0)
}
