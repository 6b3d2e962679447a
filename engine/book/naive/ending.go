package naive

import (
	"math"

	"blockdesk/engine/book"
	"blockdesk/engine/event"
	"blockdesk/market"
)

// endReason returns why the live order m is ending, or event.ReasonNone: rule 10.
func (b *Book) endReason(m *order) event.Reason {
	switch {
	case m.ending != event.ReasonNone:
		return m.ending
	case b.sweeping && m.ExpireAt > 0 && m.ExpireAt <= *b.opt.Due:
		return event.ReasonExpired
	}
	return event.ReasonNone
}

// Open returns the participant's (0 = everybody's) live orders on side (0 = both) that are
// not ending by a mass cancel.
func (b *Book) Open(participant market.ParticipantID, side market.Side) int {
	n := 0
	for _, m := range b.all() {
		if covers(participant, side, m) && m.ending == event.ReasonNone {
			n++
		}
	}
	return n
}

func covers(participant market.ParticipantID, side market.Side, m *order) bool {
	return (participant == 0 || m.Participant == participant) && (side == 0 || m.Side == side)
}

// EndLater makes the orders that Open counts ending, for the reason, and returns their number.
// If there are ending ones of the same participants and sides already, it takes all ending
// orders out first.
func (b *Book) EndLater(participant market.ParticipantID, side market.Side, reason event.Reason, at int64, seq uint64, out *event.Sink) int {
	if b.endsAgain(participant, side) {
		b.Sweep(at, math.MaxInt, seq, out)
	}
	n := 0
	for _, m := range b.all() {
		if covers(participant, side, m) && m.ending == event.ReasonNone {
			m.ending = reason
			n++
		}
	}
	b.sweeping = b.sweeping || n > 0
	return n
}

// endsAgain reports whether a participant has both ending and other orders on one of the sides.
func (b *Book) endsAgain(participant market.ParticipantID, side market.Side) bool {
	for _, m := range b.all() {
		for _, other := range b.all() {
			if covers(participant, side, m) && m.ending == event.ReasonNone && other.ending != event.ReasonNone &&
				other.Participant == m.Participant && other.Side == m.Side {
				return true
			}
		}
	}
	return false
}

// Sweeping reports whether there may be ending orders.
func (b *Book) Sweeping() bool { return b.sweeping }

// Sweep makes what is overdue at time at ending, and takes the first n ending orders in
// canonical order out, with an event each. It returns their number; if it is less than n, none is left.
func (b *Book) Sweep(at int64, n int, seq uint64, out *event.Sink) int {
	b.begin(at, seq, out)
	*b.opt.Due = at
	if next := b.NextExpiry(); next != 0 && next <= at {
		b.sweeping = true
	}
	done, left := 0, false
	for _, m := range b.all() {
		reason := b.endReason(m)
		switch {
		case reason == event.ReasonNone:
		case done == n:
			left = true
		default:
			b.cancel(m, reason)
			done++
		}
	}
	if !left {
		b.sweeping = false
	}
	return done
}

// TakeOut takes the order id out if it is ending.
func (b *Book) TakeOut(id market.OrderID, at int64, seq uint64, out *event.Sink) {
	b.begin(at, seq, out)
	b.takeOut(b.live[id])
}

// takeOut takes m out if it is ending, and reports whether it was. m may be nil.
func (b *Book) takeOut(m *order) bool {
	if m == nil || b.endReason(m) == event.ReasonNone {
		return false
	}
	b.cancel(m, b.endReason(m))
	return true
}

// clearTop takes ending orders of the side that n would trade with out, best first, up to the
// first order that is not ending or that n does not reach.
func (b *Book) clearTop(n *order) {
	for b.crosses(n) && b.takeOut((*b.side(n.Side.Opposite()))[0]) {
		continue
	}
}

// standing returns the orders that are not ending.
func (b *Book) standing(orders []*order) []*order {
	var list []*order
	for _, m := range orders {
		if b.endReason(m) == event.ReasonNone {
			list = append(list, m)
		}
	}
	return list
}

// endingFlag returns the flag of m in a LiveOrder, and reasonOf the reason of flags.
func endingFlag(m *order) book.Flag {
	switch m.ending {
	case event.ReasonNone:
		return 0
	case event.ReasonKilled:
		return book.FlagKilled
	default:
		return book.FlagMassCancelled
	}
}

func reasonOf(flags book.Flag) event.Reason {
	switch {
	case flags&book.FlagKilled != 0:
		return event.ReasonKilled
	case flags&book.FlagMassCancelled != 0:
		return event.ReasonMassCancel
	default:
		return event.ReasonNone
	}
}
