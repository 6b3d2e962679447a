package fixgw

import (
	"bytes"
	"fmt"
	"strconv"

	"blockdesk/engine/book"
	"blockdesk/engine/event"
	"blockdesk/market"
)

// What an order's events come to: its state here, and the reports and rejects that
// tell of it.

func (f *follower) accepted(e *event.Event) error {
	if f.ref.session == nil {
		return nil
	}
	o := &order{session: f.ref.session, clientOrder: clientOrder{
		id: e.OrderID, clOrdID: string(f.ref.clOrdID()), instrument: e.Instrument,
		side: e.Side, typ: book.Type(e.Code & 0xff), tif: book.TIF(e.Code >> 8), status: statusNew,
		price: e.Price, total: e.Qty, leaves: e.Qty,
	}}
	f.orders[o.id] = o
	f.touch(o)
	return f.report(e, o, report{execType: execNew}, true)
}

// rejected answers a refused D with an order that has never lived.
func (f *follower) rejected(e *event.Event) error {
	s := f.ref.session
	if s == nil || !f.asked(e.OrderID) {
		return nil
	}
	o := &order{session: s, clientOrder: clientOrder{
		id: e.OrderID, clOrdID: string(f.ref.clOrdID()), instrument: e.Instrument,
		side: e.Side, status: statusRejected, price: e.Price, total: e.Qty,
	}}
	if !o.side.Valid() {
		o.side = market.Buy
	}
	f.touch(o)
	return f.report(e, o, report{execType: execRejected, ordRej: ordRejOf(event.Reason(e.Code))}, true)
}

func (f *follower) traded(e *event.Event) error {
	for i, id := range [...]market.OrderID{e.OrderID, market.OrderID(e.Other)} {
		o := f.orders[id]
		if o == nil || !o.live() {
			continue
		}
		o.session.mu.Lock()
		err := o.trade(e.Price, e.Qty)
		o.session.mu.Unlock()
		if err != nil {
			return err
		}
		f.touch(o)
		r := report{execType: execTrade, lastQty: e.Qty, lastPx: e.Price}
		if err := f.send(e, o, r, i == 1, false); err != nil {
			return err
		}
		if err := f.copyFill(e, o, &r); err != nil {
			return err
		}
	}
	return nil
}

// cancelled ends an order: for its owner's F or G, or for another reason, which
// the text then names.
func (f *follower) cancelled(e *event.Event) error {
	o := f.orders[e.OrderID]
	if o == nil || !o.live() {
		return nil
	}
	r := report{execType: execCancelled}
	status := statusCancelled
	reason := event.Reason(e.Code)
	if reason == event.ReasonExpired {
		r.execType, status = execExpired, statusExpired
	}
	answers := f.asked(o.id) && (reason == event.ReasonUser || reason == event.ReasonAmendedAway)
	if answers {
		r.clOrdID, r.origClOrdID = f.ref.clOrdID(), []byte(o.clOrdID)
	}
	f.text = append(f.text[:0], reason.String()...)
	if bytes.Equal(f.ref.clOrdID(), []byte(disconnectRef)) && f.ref.session != nil {
		f.text = append(f.text[:0], "cancel_on_disconnect"...)
	}
	r.text = f.text
	o.session.mu.Lock()
	o.status = status
	o.session.mu.Unlock()
	f.touch(o)
	return f.report(e, o, r, answers)
}

// amended follows a change of price or quantity: by the owner's G, or by
// self-trade prevention, which is reported as a restatement.
func (f *follower) amended(e *event.Event) error {
	o := f.orders[e.OrderID]
	if o == nil || !o.live() {
		return nil
	}
	answers := f.asked(o.id) && event.Reason(e.Code) != event.ReasonSelfTrade
	r := report{execType: execReplaced}
	was := o.clOrdID
	o.session.mu.Lock()
	o.leaves = e.Qty
	o.total = o.cum + e.Qty
	if e.Kind == event.Amended {
		o.price = e.Price
	}
	if answers {
		o.clOrdID = string(f.ref.clOrdID())
		if old := o.session.refs[was]; old != nil {
			f.retired = append(f.retired, old)
			f.touch(o)
		}
	}
	o.session.mu.Unlock()
	f.touch(o)
	if answers {
		r.origClOrdID = []byte(was)
	} else {
		const partialDecline = 5
		r.execType, r.restated = execRestated, partialDecline
		f.text = append(f.text[:0], event.Reason(e.Code).String()...)
		r.text = f.text
	}
	return f.report(e, o, r, answers)
}

// refused answers an F or G that the engine has refused. An order that it does
// not know any more while we do has ended before the request came to it.
func (f *follower) refused(e *event.Event) error {
	s := f.ref.session
	if s == nil || !f.asked(e.OrderID) {
		return nil
	}
	r := cancelReject{
		orderID: e.OrderID, clOrdID: f.ref.clOrdID(), status: statusRejected,
		amend: e.Kind == event.AmendRejected, reason: cxlRejOther, at: e.At,
	}
	o := f.orders[e.OrderID]
	if o != nil {
		r.status, r.origClOrdID = o.status, []byte(o.clOrdID)
	}
	if target := s.targetOf(f.ref.clOrdID()); target != "" {
		r.origClOrdID = []byte(target)
	}
	if o == nil {
		var err error
		if r.status, err = s.statusOf(e.OrderID, r.origClOrdID); err != nil {
			return err
		}
	}
	if r.origClOrdID == nil { // the request was followed by a crash
		r.origClOrdID = r.clOrdID
	}
	f.text = f.text[:0]
	unknown := event.Reason(e.Code) == event.ReasonUnknownOrder
	switch in := f.gateway.instruments.Get(e.Instrument); {
	case unknown && r.status != statusRejected:
		r.reason = cxlRejTooLate
		f.text = fmt.Appendf(f.text, "%s: order %d has ended", codeTooLate, e.OrderID)
	case unknown:
		r.reason = cxlRejUnknownOrder
		f.text = append(f.text, event.ReasonUnknownOrder.String()...)
	case in != nil:
		f.text = appendReason(f.text, in, e)
	default:
		f.text = append(f.text, event.Reason(e.Code).String()...)
	}
	r.text = f.text
	f.out.scratch = r.appendBody(f.out.scratch[:0])
	return f.answer(s, '9', f.out.scratch, nil)
}

func (f *follower) massCancelled(e *event.Event) error {
	s := f.ref.session
	if s == nil || f.ref.size == 0 || f.ref.text[0] == internalMark {
		return nil
	}
	f.setExecID(e)
	r := massReport{id: f.execID, clOrdID: f.ref.clOrdID(), side: e.Side, rejected: -1, orders: int64(e.Qty), at: e.At}
	if in := f.gateway.instruments.Get(e.Instrument); in != nil {
		r.symbol = in.Symbol
	}
	f.out.scratch = r.appendBody(f.out.scratch[:0])
	return f.answer(s, 'r', f.out.scratch, nil)
}

// report sends an execution report to its order's session; answers says that it
// is the first answer to the command's ClOrdID.
func (f *follower) report(e *event.Event, o *order, r report, answers bool) error {
	return f.send(e, o, r, false, answers)
}

// send fills in what o and the event say and sends r. maker tells the two reports of
// one trade apart.
func (f *follower) send(e *event.Event, o *order, r report, maker, answers bool) error {
	r.in = f.gateway.instruments.Get(e.Instrument)
	if r.in == nil { // configured no more
		f.lost.Add(1)
		return nil
	}
	f.setExecID(e)
	if maker {
		f.execID = append(f.execID, 'M')
	}
	r.order, r.execID, r.at = &o.clientOrder, f.execID, e.At
	if r.execType == execRejected {
		f.text = appendReason(f.text[:0], r.in, e)
		r.text = f.text
	}
	f.out.scratch = r.appendBody(f.out.scratch[:0])
	if answers {
		return f.answer(o.session, '8', f.out.scratch, o)
	}
	return f.emit(o.session, '8', f.out.scratch)
}

// setExecID makes the ExecID of e, which is being followed.
func (f *follower) setExecID(e *event.Event) {
	f.execID = strconv.AppendUint(f.execID[:0], e.Seq, 10)
	f.execID = strconv.AppendUint(append(f.execID, '-'), uint64(f.place.index), 10)
	f.execID = strconv.AppendUint(append(f.execID, '-'), f.epoch, 10)
}
