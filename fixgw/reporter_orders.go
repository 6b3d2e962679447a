package fixgw

import (
	"bytes"
	"fmt"
	"strconv"

	"blockdesk/engine/book"
	"blockdesk/engine/event"
	"blockdesk/fixgw/wire"
	"blockdesk/market"
)

// An order's events: its state, and the reports and rejects of it.

func (f *reporter) accepted(e *event.Event) error {
	if f.command.blotter == nil {
		return nil
	}
	o := &order{owner: f.command.blotter, ClientOrder: wire.ClientOrder{
		ID: e.OrderID, ClOrdID: string(f.command.clOrdID()), Instrument: e.Instrument,
		Side: e.Side, Type: book.Type(e.Code & 0xff), TIF: book.TIF(e.Code >> 8), Status: wire.StatusNew,
		Price: e.Price, Total: e.Qty, Leaves: e.Qty, OrderTerms: f.orderTerms(),
	}}
	if quoteID := f.command.quoteID(); quoteID != nil {
		f.quoteAccepted(o, quoteID)
		return nil
	}
	f.orders[o.ID] = o
	f.markChanged(o)
	return f.report(e, o, wire.ExecutionReport{ExecType: wire.ExecNew}, true)
}

// rejected answers a D that the engine has refused, with an order that was never live.
func (f *reporter) rejected(e *event.Event) error {
	s := f.command.blotter
	if s == nil || !f.asked(e.OrderID) {
		return nil
	}
	o := &order{owner: s, ClientOrder: wire.ClientOrder{
		ID: e.OrderID, ClOrdID: string(f.command.clOrdID()), Instrument: e.Instrument,
		Side: e.Side, Status: wire.StatusRejected, Price: e.Price, Total: e.Qty,
		OrderTerms: f.orderTerms(),
	}}
	if !o.Side.Valid() {
		o.Side = market.Buy
	}
	f.markChanged(o)
	return f.report(e, o, wire.ExecutionReport{ExecType: wire.ExecRejected, OrdRej: wire.OrdRejOf(event.Reason(e.Code))}, true)
}

func (f *reporter) traded(e *event.Event) error {
	for i, id := range [...]market.OrderID{e.OrderID, market.OrderID(e.Other)} {
		o := f.orders[id]
		if o == nil || !o.Live() {
			continue
		}
		o.owner.mu.Lock()
		err := o.Trade(e.Price, e.Qty)
		o.owner.mu.Unlock()
		if err != nil {
			return err
		}
		f.markChanged(o)
		r := wire.ExecutionReport{ExecType: wire.ExecTrade, LastQty: e.Qty, LastPx: e.Price, Trade: market.TradeID(e.Aux), Maker: i == 1}
		if err := f.send(e, o, r, i == 1, false); err != nil {
			return err
		}
		if err := f.recordFill(e, o, &r); err != nil {
			return err
		}
		if err := f.copyFill(e, o, &r); err != nil {
			return err
		}
	}
	return nil
}

// cancelled ends an order: by its owner's F or G, or for another reason, which the text
// then names.
func (f *reporter) cancelled(e *event.Event) error {
	o := f.orders[e.OrderID]
	if o == nil || !o.Live() {
		return nil
	}
	if f.quoteChanged(e, o) {
		return nil
	}
	r := wire.ExecutionReport{ExecType: wire.ExecCancelled}
	status := wire.StatusCancelled
	reason := event.Reason(e.Code)
	if reason == event.ReasonExpired {
		r.ExecType, status = wire.ExecExpired, wire.StatusExpired
	}
	answers := f.asked(o.ID) && (reason == event.ReasonUser || reason == event.ReasonAmendedAway)
	if answers {
		r.ClOrdID, r.OrigClOrdID = f.command.clOrdID(), []byte(o.ClOrdID)
	}
	f.text = append(f.text[:0], reason.String()...)
	own := reason == event.ReasonUser || reason == event.ReasonQuoteReplaced // not of an earlier mass cancel or expiry
	if own && bytes.Equal(f.command.clOrdID(), []byte(disconnectClOrdID)) && f.command.blotter != nil {
		f.text = append(f.text[:0], "cancel_on_disconnect"...)
	}
	r.Text = f.text
	o.owner.mu.Lock()
	o.Status = status
	o.owner.mu.Unlock()
	f.markChanged(o)
	return f.report(e, o, r, answers)
}

// amended follows a change of price or quantity: by the owner's G, or by self-trade
// prevention, which is reported as a restatement.
func (f *reporter) amended(e *event.Event) error {
	o := f.orders[e.OrderID]
	if o == nil || !o.Live() {
		return nil
	}
	if f.quoteChanged(e, o) {
		return nil
	}
	answers := f.asked(o.ID) && event.Reason(e.Code) != event.ReasonSelfTrade
	r := wire.ExecutionReport{ExecType: wire.ExecReplaced}
	was, orig := o.ClOrdID, []byte(nil)
	if answers {
		orig = []byte(o.ClOrdID)
	}
	o.owner.mu.Lock()
	o.Leaves = e.Qty
	o.Total = o.Cum + e.Qty
	if e.Kind == event.Amended {
		o.Price = e.Price
	}
	if stop := f.command.terms.Price; answers && f.command.terms.Kind != 0 && stop != 0 {
		o.Stop = stop
	}
	if answers {
		o.ClOrdID = string(f.command.clOrdID())
		if old := o.owner.requests[was]; old != nil {
			f.replaced = append(f.replaced, old)
			f.markChanged(o)
		}
	}
	o.owner.mu.Unlock()
	f.markChanged(o)
	if answers {
		r.OrigClOrdID = orig
	} else {
		r.ExecType, r.Restated = wire.ExecRestated, restatedPartialDecline
		f.text = append(f.text[:0], event.Reason(e.Code).String()...)
		r.Text = f.text
	}
	return f.report(e, o, r, answers)
}

// orderTerms returns the terms of the command's order.
func (f *reporter) orderTerms() (t wire.OrderTerms) {
	e := &f.command.terms
	if e.Kind == 0 {
		return t
	}
	flags := book.Flag(e.Code & 0xff)
	t.Stop, t.PostOnly = e.Price, flags&book.FlagPostOnly != 0
	if book.TIF(e.Code>>8) == book.GTD {
		t.ExpireAt = e.Aux
	}
	if flags&book.FlagMinQty != 0 {
		t.MinQty = e.Qty
	} else {
		t.Display = e.Qty
	}
	if e.Other != 0 {
		var err error
		if t.Account, err = f.command.blotter.accounts.text(e.Other); err != nil {
			f.gateway.Fail(err)
		}
	}
	return t
}

// triggered reports that a stop has become an active order. FIX 4.4 has no ExecType for it,
// so it is a restatement (our choice).
func (f *reporter) triggered(e *event.Event) error {
	o := f.orders[e.OrderID]
	if o == nil || !o.Live() {
		return nil
	}
	f.text = append(f.text[:0], "triggered"...)
	return f.report(e, o, wire.ExecutionReport{ExecType: wire.ExecRestated, Restated: restatedOther, Text: f.text}, false)
}

// Values of ExecRestatementReason (378).
const (
	restatedPartialDecline = 5
	restatedOther          = 99
)

// refused answers an F or G that the engine has refused. If only the gateway still knows
// the order, it has ended before the request.
func (f *reporter) refused(e *event.Event) error {
	s := f.command.blotter
	if s == nil || !f.asked(e.OrderID) {
		return nil
	}
	r := wire.CancelReject{
		OrderID: e.OrderID, ClOrdID: f.command.clOrdID(), Status: wire.StatusRejected,
		Amend: e.Kind == event.AmendRejected, Reason: wire.CxlRejOther, At: e.At,
	}
	o := f.orders[e.OrderID]
	if o != nil {
		r.Status, r.OrigClOrdID = o.Status, []byte(o.ClOrdID)
	}
	if target := s.targetOf(f.command.clOrdID()); target != "" {
		r.OrigClOrdID = []byte(target)
	}
	if o == nil {
		var err error
		if r.Status, err = s.statusOf(e.OrderID, r.OrigClOrdID); err != nil {
			return err
		}
	}
	if r.OrigClOrdID == nil { // a crash came after the request
		r.OrigClOrdID = r.ClOrdID
	}
	f.text = f.text[:0]
	unknown := event.Reason(e.Code) == event.ReasonUnknownOrder
	switch in := f.gateway.instruments.Get(e.Instrument); {
	case unknown && r.Status != wire.StatusRejected:
		r.Reason = wire.CxlRejTooLate
		f.text = fmt.Appendf(f.text, "%s: order %d has ended", wire.CodeTooLate, e.OrderID)
	case unknown:
		r.Reason = wire.CxlRejUnknownOrder
		f.text = append(f.text, event.ReasonUnknownOrder.String()...)
	case in != nil:
		f.text = wire.AppendReason(f.text, in, e)
	default:
		f.text = append(f.text, event.Reason(e.Code).String()...)
	}
	r.Text = f.text
	f.out.Scratch = r.AppendBody(f.out.Scratch[:0])
	return f.answer(s, '9', f.out.Scratch, nil)
}

func (f *reporter) massCancelled(e *event.Event) error {
	s := f.command.blotter
	if s == nil || f.command.size == 0 || f.command.text[0] == wire.InternalPrefix {
		return nil
	}
	f.setExecID(e)
	r := wire.MassCancelReport{ID: f.execID, ClOrdID: f.command.clOrdID(), Kind: '7', Side: e.Side, Rejected: -1, Orders: int64(e.Qty), At: e.At}
	if in := f.gateway.instruments.Get(e.Instrument); in != nil {
		r.Symbol, r.Kind = in.Symbol, '1'
	}
	f.out.Scratch = r.AppendBody(f.out.Scratch[:0])
	return f.answer(s, 'r', f.out.Scratch, nil)
}

// report sends an execution report to its order's session; answers reports whether it is
// the first answer to the command's ClOrdID.
func (f *reporter) report(e *event.Event, o *order, r wire.ExecutionReport, answers bool) error {
	return f.send(e, o, r, false, answers)
}

// send completes r from o and the event, and sends it. maker distinguishes the two
// reports of one trade.
func (f *reporter) send(e *event.Event, o *order, r wire.ExecutionReport, maker, answers bool) error {
	r.Instrument = f.gateway.instruments.Get(e.Instrument)
	if r.Instrument == nil { // not configured any more
		f.orphanedEvents.Add(1)
		return nil
	}
	f.setExecID(e)
	if maker {
		f.execID = append(f.execID, 'M')
	}
	r.Order, r.ExecID, r.At = &o.ClientOrder, f.execID, e.At
	if r.ExecType == wire.ExecRejected {
		f.text = wire.AppendReason(f.text[:0], r.Instrument, e)
		r.Text = f.text
	}
	f.out.Scratch = r.AppendBody(f.out.Scratch[:0])
	if answers {
		return f.answer(o.owner, '8', f.out.Scratch, o)
	}
	return f.emit(o.owner, '8', f.out.Scratch)
}

// setExecID sets the ExecID of e, which is being followed.
func (f *reporter) setExecID(e *event.Event) {
	f.execID = strconv.AppendUint(f.execID[:0], e.Seq, 10)
	f.execID = strconv.AppendUint(append(f.execID, '-'), uint64(f.next.index), 10)
	f.execID = strconv.AppendUint(append(f.execID, '-'), f.epoch, 10)
}

// quoteID returns the QuoteID of the mass quote being followed; nil = the command is none.
func (r *commandRef) quoteID() []byte {
	id, ok := bytes.CutPrefix(r.clOrdID(), []byte(wire.MassQuotePrefix))
	if !ok || r.blotter == nil {
		return nil
	}
	return id
}

// quoteAccepted follows a new order of a quote. No report is made of it: b answers the mass
// quote.
func (f *reporter) quoteAccepted(o *order, quoteID []byte) {
	o.ClOrdID, o.QuoteSet = string(quoteID), f.command.quoteSet
	f.orders[o.ID] = o
	f.markChanged(o)
	o.owner.mu.Lock()
	o.owner.orders[o.ID] = o
	o.owner.mu.Unlock()
}

// quoteChanged follows what a mass quote of its owner changes of a quote's order. It reports
// false if the event is something else, of which a report is made.
func (f *reporter) quoteChanged(e *event.Event, o *order) bool {
	quoteID := f.command.quoteID()
	if o.QuoteSet == 0 || quoteID == nil || o.owner != f.command.blotter {
		return false
	}
	reason := event.Reason(e.Code)
	switch {
	case e.Kind == event.Cancelled && reason != event.ReasonQuoteReplaced, reason == event.ReasonSelfTrade:
		return false
	}
	o.owner.mu.Lock()
	if e.Kind == event.Cancelled {
		o.Status = wire.StatusCancelled
	} else {
		o.ClOrdID = string(quoteID)
		o.Leaves, o.Total = e.Qty, o.Cum+e.Qty
		if e.Kind == event.Amended {
			o.Price = e.Price
		}
	}
	o.owner.mu.Unlock()
	f.markChanged(o)
	return true
}

// quoteRefused keeps a refused entry for the answer at the end of the mass quote.
func (f *reporter) quoteRefused(e *event.Event) {
	f.command.refused = append(f.command.refused, wire.QuoteRefusal{
		Set: uint16(e.Other), Number: uint16(e.Qty), Instrument: e.Instrument, Reason: event.Reason(e.Code),
	})
}

// massQuoted answers a mass quote as its QuoteResponseLevel asks.
func (f *reporter) massQuoted(e *event.Event) error {
	quoteID := f.command.quoteID()
	if quoteID == nil {
		return nil
	}
	ack := wire.MassQuoteAck{QuoteID: quoteID, Cancels: e.Code, Response: uint8(e.Other), Accepted: int64(e.Qty), Refused: f.command.refused}
	f.out.Scratch = ack.AppendBody(f.out.Scratch[:0], f.gateway.instruments)
	s := f.command.blotter
	f.keepAnswer(s, wire.AnswerMassQuote, f.out.Scratch, nil, nil)
	if ack.Response == wire.ResponseNone || ack.Response == wire.ResponseRefused && len(ack.Refused) == 0 {
		return nil
	}
	return f.emitType(s, "b", wire.TagQuoteID, f.out.Scratch)
}
