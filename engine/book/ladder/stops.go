package ladder

import (
	"blockdesk/engine/book"
	"blockdesk/engine/event"
	"blockdesk/market"
)

// submitStop accepts a stop order.
func (b *Book) submitStop(o *book.Order, c *command) {
	c.accept(o, 0)
	b.wait(b.enterStop(o, o.Qty), o.Stop, c)
}

// enterStop allocates the slot of a stop, which is in no list yet.
func (b *Book) enterStop(o *book.Order, open market.Qty) int32 {
	slot := b.addOrder(o.ID, o.Participant, o.Side, o.ExpireAt)
	x, d := &b.orders[slot], &b.cold[slot]
	x.owner = ownerOf(o.Price, o.Participant)
	x.state = flagsOf(o) | b.accounts[o.Participant].marks&genMask | flagWaiting | uint64(open)
	if o.Type == book.Stop {
		x.state |= flagMarket
	}
	if o.Display != 0 {
		d.display, d.hidden = o.Display, 0
		x.state |= hasDisplay
	}
	if o.ExpireAt != 0 {
		x.state |= expires
	}
	return slot
}

// wait puts the stop in slot behind its equals, or triggers it at once if the last trade
// satisfies it.
func (b *Book) wait(slot int32, stop market.Price, c *command) {
	s := b.orders[slot].side()
	if b.last != 0 && sign(s)*int64(b.last) >= sign(s)*int64(stop) {
		b.cold[slot].stop = b.last
		b.pushElected(slot, slot)
		b.runElected(c)
		return
	}
	b.placeStop(slot, stop, c.seq)
}

func (b *Book) placeStop(slot int32, stop market.Price, entered uint64) {
	b.cold[slot].stop, b.cold[slot].enteredSeq = stop, entered
	t := &b.stops[b.orders[slot].side()&3]
	li := t.find(int64(stop))
	if li == none {
		li = b.newLevel()
		t.insert(int64(stop), li)
	}
	b.append(li, slot)
	b.waiting++
}

// elect processes the stops that t's trades trigger, with all that they trigger in turn:
// rule 6.
func (b *Book) elect(t *taker, c *command) {
	if t.first == 0 || b.waiting == 0 {
		return
	}
	b.collect(t)
	b.runElected(c)
}

// collect appends the stops that t's trades trigger to elected.
func (b *Book) collect(t *taker) {
	low, high := min(t.first, t.final), max(t.first, t.final)
	for buys := &b.stops[market.Buy]; buys.size > 0; {
		stop, li := buys.min()
		if market.Price(stop) > high {
			break
		}
		buys.remove(stop)
		b.splice(li, high)
	}
	for sells := &b.stops[market.Sell]; sells.size > 0; {
		stop, li := sells.max()
		if market.Price(stop) < low {
			break
		}
		sells.remove(stop)
		b.splice(li, low)
	}
}

// splice appends the queue of one trigger to elected; trade is the price that triggered it.
func (b *Book) splice(li int32, trade market.Price) {
	for slot := b.levels[li].head; slot != 0; slot = b.orders[slot].next {
		b.cold[slot].stop = trade
		b.waiting--
	}
	b.pushElected(b.levels[li].head, b.levels[li].tail)
	b.freeLevel(li)
}

// pushElected appends the linked stops head to tail to elected.
func (b *Book) pushElected(head, tail int32) {
	b.orders[tail].next = 0
	if b.elected.tail == 0 {
		b.elected.head = head
	} else {
		b.orders[b.elected.tail].next = head
	}
	b.elected.tail = tail
}

// runElected processes the triggered stops, FIFO.
func (b *Book) runElected(c *command) {
	for b.elected.head != 0 {
		slot := b.elected.head
		b.elected.head = b.orders[slot].next
		if b.elected.head == 0 {
			b.elected.tail = 0
		}
		b.activate(slot, c)
	}
}

// activate turns a triggered stop into an active order and processes it. The stops that it
// triggers are appended to elected.
func (b *Book) activate(slot int32, c *command) {
	if b.sweeping {
		if reason := b.endReason(slot); reason != event.ReasonNone {
			x := &b.orders[slot]
			c.ofOrder(x, event.Cancelled, x.qty(), 0, reason)
			_, pos := b.find(x.id, hashOf(x.id))
			b.release(slot, pos)
			return
		}
	}
	t := b.takerOf(slot)
	c.ofOrder(&b.orders[slot], event.Triggered, t.rem, market.Qty(b.cold[slot].stop), event.ReasonNone)
	if b.sweeping {
		b.clearTop(t.side.Opposite(), t.reach, c)
	}
	if reason, _ := b.rejectReason(&t); reason != event.ReasonNone {
		if reason == event.ReasonFOKUnfillable {
			reason = event.ReasonFOK
		}
		c.ofTaker(&t, event.Cancelled, 0, reason)
		b.freeSlot(&t)
		return
	}
	b.process(&t, false, c)
	if t.first != 0 && b.waiting > 0 {
		b.collect(&t)
	}
}

// takerOf returns the live order in slot, which must be in no list, as an active order that
// keeps its slot.
func (b *Book) takerOf(slot int32) taker {
	x := &b.orders[slot]
	state := x.state &^ qtyMask
	s := sideOf(state)
	tif := tifOf(state)
	t := taker{
		id: x.id, limit: x.price(), reach: sign(s) * int64(x.price()), rem: b.openOf(slot), taken: b.takenOf(slot),
		state: state &^ (flagWaiting | flagMarket), slot: slot, participant: x.participant(), side: s, stp: stpOf(state),
		rests: state&flagMarket == 0 && tif != book.IOC && tif != book.FOK,
	}
	if state&hasDisplay != 0 {
		t.display = b.cold[slot].display
	}
	if state&flagMarket != 0 {
		t.reach = marketReach
	}
	return t
}

func (b *Book) massCancelStops(participant market.ParticipantID, list market.Side, reason event.Reason, c *command) {
	for stop, li := b.firstStop(list); li != none; stop, li = b.nextStop(list, stop) {
		if b.cancelLevel(li, participant, reason, c) {
			return
		}
	}
}
