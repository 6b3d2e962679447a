package naive

import (
	"blockdesk/engine/book"
	"blockdesk/engine/event"
	"blockdesk/market"
)

// Amend changes a live order: rule 7.
func (b *Book) Amend(o *book.Order, at int64, seq uint64, out *event.Sink) {
	b.begin(at, seq, out)
	b.amend(o, false)
}

// AmendGathered is Amend in a call: rule 11.
func (b *Book) AmendGathered(o *book.Order, at int64, seq uint64, out *event.Sink) {
	b.begin(at, seq, out)
	b.amend(o, true)
}

func (b *Book) amend(o *book.Order, call bool) {
	m := b.live[o.ID]
	if m == nil || !mayChange(o.Participant, m) {
		b.amendRejected(o, o.Side, o.Participant, event.ReasonUnknownOrder, 0)
		return
	}
	if b.takeOut(m) {
		b.amendRejected(o, o.Side, o.Participant, event.ReasonUnknownOrder, 0)
		return
	}
	open := wantedOpen(m, o)
	total := m.Qty - m.open + open
	terms := o.Amended(m.Order)
	switch {
	case open <= 0:
		b.cancel(m, event.ReasonAmendedAway)
	case total > market.MaxQty:
		b.amendRejected(o, m.Side, m.Participant, event.ReasonMaxQty, int64(market.MaxQty))
	case book.TooManySlices(open, terms.Display):
		b.amendRejected(o, m.Side, m.Participant, event.ReasonInvalidDisplay, book.MaxSlices)
	case m.waiting && !isGathered(m):
		b.amendStop(m, o, open, call)
	case (o.Price == 0 || o.Price == m.Price) && open <= m.open && !book.ShowsMore(terms.Display, m.Display):
		b.reduce(m, o, open)
	case call:
		b.regather(m, o, open)
	default:
		b.replace(m, o, open)
	}
}

// wantedOpen returns the open quantity that o wants; it may be negative.
func wantedOpen(m *order, o *book.Order) market.Qty {
	switch {
	case o.Qty == 0:
		return m.open
	case o.Flags&book.FlagOpenQty != 0:
		return o.Qty
	default:
		return o.Qty - (m.Qty - m.open)
	}
}

func setOpen(m *order, open market.Qty) {
	m.Qty += open - m.open
	m.open = open
}

func (b *Book) amendStop(m *order, o *book.Order, open market.Qty, call bool) {
	m.Order = o.Amended(m.Order)
	setOpen(m, open)
	if o.Price != 0 && m.Type == book.StopLimit {
		m.Price = o.Price
	}
	b.unlink(m)
	if o.Stop != 0 {
		m.Stop = o.Stop
	}
	b.emitFor(m, event.Event{Kind: event.Amended})
	if call {
		b.park(m)
		return
	}
	b.wait(m)
}

func (b *Book) reduce(m *order, o *book.Order, open market.Qty) {
	m.Order = o.Amended(m.Order)
	shown := min(m.shown, open)
	if m.Display != 0 {
		shown = min(shown, m.Display)
	}
	lost := m.shown - shown
	setOpen(m, open)
	m.shown = shown
	b.emitFor(m, event.Event{Kind: event.Reduced, Aux: int64(lost), Code: uint16(event.ReasonAmend)})
}

// replace removes m and matches it with its new terms, at the back of the queue.
func (b *Book) replace(m *order, o *book.Order, open market.Qty) {
	changed := *m
	changed.Order = o.Amended(m.Order)
	setOpen(&changed, open)
	if o.Price != 0 {
		changed.Price = o.Price
	}
	b.clearTop(&changed)
	place := b.unlink(m)
	if reason, limit := b.restRejectReason(&changed); reason != event.ReasonNone {
		insert(b.side(m.Side), place, m)
		b.amendRejected(o, m.Side, m.Participant, reason, limit)
		return
	}
	b.emitFor(m, event.Event{Kind: event.Unrested, Aux: int64(m.shown)})
	*m = changed
	m.shown = 0
	amended := event.Event{Kind: event.Amended}
	quiet := !b.crosses(m)
	if quiet {
		amended.Aux = int64(slice(m))
	}
	b.emitFor(m, amended)
	b.process(m, quiet)
	b.electAll(b.elect())
}

func (b *Book) amendRejected(o *book.Order, side market.Side, participant market.ParticipantID, reason event.Reason, limit int64) {
	b.emit(event.Event{
		Kind: event.AmendRejected, OrderID: o.ID, Side: side, Participant: participant,
		Price: o.Price, Qty: o.Qty, Aux: limit, Code: uint16(reason),
	})
}
