package ladder

import (
	"blockdesk/engine/book"
	"blockdesk/engine/event"
	"blockdesk/market"
)

// Amend changes a live order: rule 7 of package book.
func (b *Book) Amend(o *book.Order, at int64, seq uint64, out *event.Sink) {
	b.amend(o, false, command{at, seq, out, b.instrument})
}

// AmendGathered is Amend in a call: rule 11.
func (b *Book) AmendGathered(o *book.Order, at int64, seq uint64, out *event.Sink) {
	b.amend(o, true, command{at, seq, out, b.instrument})
}

func (b *Book) amend(o *book.Order, call bool, c command) {
	slot, pos := b.find(o.ID, hashOf(o.ID))
	x := &b.orders[slot]
	participant := x.participant()
	if slot == 0 || o.Participant != 0 && o.Participant != participant {
		c.amendRejected(o, o.Side, o.Participant, event.ReasonUnknownOrder, 0)
		return
	}
	if b.sweeping && b.takeOut(slot, pos, &c) {
		c.amendRejected(o, o.Side, o.Participant, event.ReasonUnknownOrder, 0)
		return
	}
	open, taken := b.openOf(slot), b.takenOf(slot)
	wanted := open
	if o.Qty != 0 {
		wanted = o.Qty
		if o.Flags&book.FlagOpenQty == 0 {
			wanted -= taken
		}
	}
	p := x.price()
	display := b.displayOf(slot)
	wantedDisplay := display
	if o.Flags&book.FlagAmendTerms != 0 {
		wantedDisplay = o.Amended(book.Order{Display: display}).Display
	}
	switch {
	case wanted <= 0:
		b.cancelOrder(slot, pos, event.ReasonAmendedAway, &c)
	case taken+wanted > market.MaxQty:
		c.amendRejected(o, x.side(), participant, event.ReasonMaxQty, int64(market.MaxQty))
	case book.TooManySlices(wanted, wantedDisplay):
		c.amendRejected(o, x.side(), participant, event.ReasonInvalidDisplay, book.MaxSlices)
	case b.waitsForTrigger(slot):
		b.amendStop(slot, o, wanted, call, &c)
	case (o.Price == 0 || o.Price == p) && wanted <= open && !book.ShowsMore(wantedDisplay, display):
		b.reduce(slot, o, open-wanted, &c)
	case call:
		if o.Price != 0 {
			p = o.Price
		}
		b.regather(slot, o, p, wanted, &c)
	default:
		if o.Price != 0 {
			p = o.Price
		}
		b.replace(slot, o, p, wanted, &c)
	}
}

// waitsForTrigger reports whether the live order in slot is a waiting stop.
func (b *Book) waitsForTrigger(slot int32) bool {
	return b.orders[slot].state&flagWaiting != 0 && b.cold[slot].stop != 0
}

func (b *Book) amendStop(slot int32, o *book.Order, wanted market.Qty, call bool, c *command) {
	b.withdrawStop(slot)
	x := &b.orders[slot]
	x.state = x.state&^qtyMask | uint64(wanted)
	b.amendTerms(slot, o)
	if o.Price != 0 && x.state&flagMarket == 0 {
		x.owner = ownerOf(o.Price, x.participant())
	}
	stop := b.cold[slot].stop
	if o.Stop != 0 {
		stop = o.Stop
	}
	c.ofOrder(&b.orders[slot], event.Amended, wanted, 0, event.ReasonNone)
	if call {
		b.placeStop(slot, stop, c.seq)
		return
	}
	b.wait(slot, stop, c)
}

// reduce reduces a resting order, hidden quantity first, and hides what a smaller display no
// longer shows; or it reduces a gathered one. The order keeps its place in the queue.
func (b *Book) reduce(slot int32, o *book.Order, less market.Qty, c *command) {
	x := &b.orders[slot]
	if x.state&flagWaiting != 0 {
		b.amendTerms(slot, o)
		b.lessGathered(slot, less)
		x.state -= uint64(less)
		c.ofOrder(x, event.Reduced, x.qty(), 0, event.ReasonAmend)
		return
	}
	fromHidden := min(less, b.hidden(slot))
	lost := less - fromHidden
	b.amendTerms(slot, o)
	if display := b.displayOf(slot); display != 0 {
		hide := max(0, x.qty()-lost-display)
		lost += hide
		fromHidden -= hide
	}
	if lost > 0 || fromHidden != 0 {
		lv := &b.levels[b.levelAt(x.price())]
		lv.hidden -= fromHidden
		lv.shown -= lost
		x.state -= uint64(lost)
		if fromHidden != 0 {
			b.cold[slot].hidden -= fromHidden
		}
	}
	c.ofOrder(&b.orders[slot], event.Reduced, b.openOf(slot), lost, event.ReasonAmend)
}

// replace removes a resting order and matches it with its new terms, at the back of the queue.
func (b *Book) replace(slot int32, o *book.Order, p market.Price, wanted market.Qty, c *command) {
	t := b.takerOf(slot)
	x := &b.orders[slot]
	open, shown := t.rem, x.qty()
	if b.sweeping {
		b.clearTop(t.side.Opposite(), sign(t.side)*int64(p), c)
	}
	if reason, limit := b.amendRejectReason(&t, p, wanted); reason != event.ReasonNone {
		c.amendRejected(o, t.side, t.participant, reason, limit)
		return
	}
	c.ofOrder(&b.orders[slot], event.Unrested, open, shown, event.ReasonNone)
	b.withdraw(slot)
	b.amendTerms(slot, o)
	t.display, t.state = b.displayOf(slot), b.orders[slot].state&^qtyMask
	t.limit, t.reach, t.rem = p, sign(t.side)*int64(p), wanted
	quiet := !b.crosses(&t)
	shown = 0
	if quiet {
		shown = t.slice()
	}
	c.ofTaker(&t, event.Amended, shown, 0)
	b.process(&t, quiet, c)
	b.elect(&t, c)
}

// displayOf returns the display of a live order; 0 = all.
func (b *Book) displayOf(slot int32) market.Qty {
	if b.orders[slot].state&hasDisplay != 0 {
		return b.cold[slot].display
	}
	return 0
}

// amendTerms changes TIF, expiry and display of the live order in slot as o wants. The caller
// changes the quantity that is displayed now.
func (b *Book) amendTerms(slot int32, o *book.Order) {
	if o.Flags&book.FlagAmendTerms == 0 {
		return
	}
	x, d := &b.orders[slot], &b.cold[slot]
	if o.TIF != 0 {
		if x.state&expires != 0 {
			b.dropExpiry(slot)
		}
		x.state = x.state&^(expires|7<<tifShift) | uint64(o.TIF)<<tifShift
		if o.ExpireAt != 0 {
			b.addExpiry(slot, o.ExpireAt)
			x.state |= expires
		}
	}
	switch o.Display {
	case 0:
	case market.MaxQty:
		x.state &^= hasDisplay
	default:
		if x.state&hasDisplay == 0 {
			d.hidden = 0
		}
		d.display = o.Display
		x.state |= hasDisplay
	}
}

// amendRejectReason is rejectReason for t, which still rests, at price p with open quantity
// wanted.
func (b *Book) amendRejectReason(t *taker, p market.Price, wanted market.Qty) (event.Reason, int64) {
	sum := b.levelSum(p) + wanted
	if p == t.limit {
		sum -= t.rem
	}
	if sum > book.MaxLevelQty {
		return event.ReasonLevelFull, int64(book.MaxLevelQty)
	}
	opposite := b.best[t.side.Opposite()&3]
	if t.state&flagPostOnly != 0 && sign(t.side)*int64(p)+opposite >= 0 {
		return event.ReasonPostOnly, opposite * -sign(t.side)
	}
	return event.ReasonNone, 0
}
