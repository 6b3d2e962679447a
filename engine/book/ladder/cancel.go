package ladder

import (
	"blockdesk/engine/event"
	"blockdesk/market"
)

// cancelOrder cancels the live order in slot, resting or waiting; pos is its position in
// the id table.
func (b *Book) cancelOrder(slot int32, pos uint64, reason event.Reason, c *command) {
	x := &b.orders[slot]
	if x.state&flagWaiting != 0 {
		b.withdrawStop(slot)
		c.ofOrder(x, event.Cancelled, x.qty(), 0, reason)
	} else {
		shown := x.qty()
		hidden := b.withdraw(slot)
		c.ofOrder(x, event.Cancelled, shown+hidden, shown, reason)
	}
	b.release(slot, pos)
}

// withdraw removes a resting order from its level, and the level if it is empty, and
// returns the hidden quantity.
func (b *Book) withdraw(slot int32) (hidden market.Qty) {
	x := &b.orders[slot]
	hidden = b.hidden(slot)
	li := b.levelAt(x.price())
	lv := &b.levels[li]
	lv.shown -= x.qty()
	lv.hidden -= hidden
	b.unlink(li, slot)
	if lv.head == 0 {
		b.emptied(li, x.side())
	}
	return hidden
}

// withdrawStop removes a waiting stop from its trigger's queue, or a gathered order from its
// limit's.
func (b *Book) withdrawStop(slot int32) {
	x := &b.orders[slot]
	list, key := x.side(), int64(b.cold[slot].stop)
	if key == 0 {
		b.lessGathered(slot, x.qty())
		list, key = gathered(list), int64(x.price())
	} else {
		b.waiting--
	}
	t := &b.stops[list&3]
	li := t.find(key)
	b.unlink(li, slot)
	if b.levels[li].head == 0 {
		t.remove(key)
		b.freeLevel(li)
	}
}

// cancelLevel cancels the participant's orders (0 = everybody's) at one level. It reports
// whether the participant has no open order left.
func (b *Book) cancelLevel(li int32, participant market.ParticipantID, reason event.Reason, c *command) bool {
	for slot := b.levels[li].head; slot != 0; {
		x := &b.orders[slot]
		next := x.next
		if (participant == 0 || x.participant() == participant) && (b.ending == 0 || !b.isMassCancelled(x)) {
			_, pos := b.find(x.id, hashOf(x.id))
			b.cancelOrder(slot, pos, reason, c)
			if participant != 0 && b.OpenOrders(participant) == 0 {
				return true
			}
		}
		slot = next
	}
	return false
}
