package ladder

import (
	"blockdesk/engine/book"
	"blockdesk/engine/event"
	"blockdesk/market"
)

// command is the common part of all events of a command.
//
// Events are written field by field into the sink's slot, here and where the most frequent
// three (Accepted, Cancelled, Traded) happen: a composite literal would be built on the
// stack first and copied with wide loads that must wait for its narrow stores.
type command struct {
	at         int64
	seq        uint64
	out        *event.Sink
	instrument market.InstrumentID
}

// write writes an event, with Other 0.
func (c *command) write(kind event.Kind, id market.OrderID, s market.Side, participant market.ParticipantID,
	p market.Price, qty market.Qty, aux int64, code uint16,
) {
	e := c.out.Next()
	e.Seq, e.At, e.OrderID, e.Other = c.seq, c.at, id, 0
	e.Price, e.Qty, e.Aux = p, qty, aux
	e.Kind, e.Side, e.Instrument = kind, s, c.instrument
	e.Participant, e.Code = participant, code
}

// accept writes the Accepted of a new order.
func (c *command) accept(o *book.Order, shown market.Qty) {
	c.write(event.Accepted, o.ID, o.Side, o.Participant, o.Price, o.Qty, int64(shown), uint16(o.Type)|uint16(o.TIF)<<8)
}

// reject writes the Rejected of a new order.
func (c *command) reject(o *book.Order, reason event.Reason, limit int64) {
	c.write(event.Rejected, o.ID, o.Side, o.Participant, o.Price, o.Qty, limit, uint16(reason))
}

// amendRejected writes the AmendRejected of the amend o.
func (c *command) amendRejected(o *book.Order, s market.Side, participant market.ParticipantID, reason event.Reason, limit int64) {
	c.write(event.AmendRejected, o.ID, s, participant, o.Price, o.Qty, limit, uint16(reason))
}

// ofOrder writes an event about the live order x.
func (c *command) ofOrder(x *order, kind event.Kind, qty, aux market.Qty, reason event.Reason) {
	c.write(kind, x.id, x.side(), x.participant(), x.price(), qty, int64(aux), uint16(reason))
}

// ofTaker writes an event about t.
func (c *command) ofTaker(t *taker, kind event.Kind, aux market.Qty, reason event.Reason) {
	c.write(kind, t.id, t.side, t.participant, t.limit, t.rem, int64(aux), uint16(reason))
}
