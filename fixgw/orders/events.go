package orders

import (
	"bytes"
	"fmt"
	"strconv"

	"blockdesk/engine/book"
	"blockdesk/engine/event"
	"blockdesk/fixgw/history"
	"blockdesk/fixgw/wire"
	"blockdesk/market"
)

// An order's events: its state, and the reports and rejects of it.

func (f *Reporter) accepted(e *event.Event) {
	s := f.session()
	if s == nil {
		return
	}
	o := &order{owner: s, ClientOrder: wire.ClientOrder{
		ID: e.OrderID, ClOrdID: string(f.out.Command.ClOrdID()), Instrument: e.Instrument,
		Side: e.Side, Type: book.Type(e.Code & 0xff), TIF: book.TIF(e.Code >> 8), Status: wire.StatusNew,
		Price: e.Price, Total: e.Qty, Leaves: e.Qty, OrderTerms: f.orderTerms(s),
	}}
	if quoteID := f.quoteID(); quoteID != nil {
		f.quoteAccepted(o, quoteID)
		return
	}
	f.orders[o.ID] = o
	f.markChanged(o)
	f.report(e, o, wire.ExecutionReport{ExecType: wire.ExecNew}, true)
}

// rejected answers a D that the engine has refused, with an order that was never live.
func (f *Reporter) rejected(e *event.Event) {
	s := f.session()
	if s == nil || !f.out.Command.Names(e.OrderID) {
		return
	}
	o := &order{owner: s, ClientOrder: wire.ClientOrder{
		ID: e.OrderID, ClOrdID: string(f.out.Command.ClOrdID()), Instrument: e.Instrument,
		Side: e.Side, Status: wire.StatusRejected, Price: e.Price, Total: e.Qty,
		OrderTerms: f.orderTerms(s),
	}}
	if !o.Side.Valid() {
		o.Side = market.Buy
	}
	f.markChanged(o)
	f.report(e, o, wire.ExecutionReport{ExecType: wire.ExecRejected, OrdRej: wire.OrdRejOf(event.Reason(e.Code))}, true)
}

func (f *Reporter) traded(e *event.Event) error {
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
		f.report(e, o, r, false)
		if err := f.recordFill(e, o, &r); err != nil {
			return err
		}
		f.copyFill(e, o, &r)
	}
	return nil
}

// cancelled ends an order: by its owner's F or G, or for another reason, which the text
// then names.
func (f *Reporter) cancelled(e *event.Event) {
	o := f.orders[e.OrderID]
	if o == nil || !o.Live() {
		return
	}
	if f.quoteChanged(e, o) {
		return
	}
	r := wire.ExecutionReport{ExecType: wire.ExecCancelled}
	status := wire.StatusCancelled
	reason := event.Reason(e.Code)
	if reason == event.ReasonExpired {
		r.ExecType, status = wire.ExecExpired, wire.StatusExpired
	}
	answers := f.out.Command.Names(o.ID) && (reason == event.ReasonUser || reason == event.ReasonAmendedAway)
	if answers {
		r.ClOrdID, r.OrigClOrdID = f.out.Command.ClOrdID(), []byte(o.ClOrdID)
	}
	f.text = append(f.text[:0], reason.String()...)
	own := reason == event.ReasonUser || reason == event.ReasonQuoteReplaced // not of an earlier mass cancel or expiry
	if own && string(f.out.Command.ClOrdID()) == disconnectClOrdID && f.out.Command.Session != nil {
		f.text = append(f.text[:0], "cancel_on_disconnect"...)
	}
	r.Text = f.text
	o.owner.mu.Lock()
	o.Status = status
	o.owner.mu.Unlock()
	f.markChanged(o)
	f.report(e, o, r, answers)
}

// amended applies a change of price or quantity: by the owner's G, or by self-trade
// prevention, which is reported as a restatement.
func (f *Reporter) amended(e *event.Event) {
	o := f.orders[e.OrderID]
	if o == nil || !o.Live() {
		return
	}
	if f.quoteChanged(e, o) {
		return
	}
	answers := f.out.Command.Names(o.ID) && event.Reason(e.Code) != event.ReasonSelfTrade
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
	if answers {
		f.amendTerms(o)
		o.ClOrdID = string(f.out.Command.ClOrdID())
		f.replaced = append(f.replaced, replaced{o.owner, was})
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
	f.report(e, o, r, answers)
}

// amendTerms gives o the terms that the command, which amends it, asks for.
func (f *Reporter) amendTerms(o *order) {
	e := &f.terms
	if e.Kind == 0 {
		return
	}
	if e.Price != 0 {
		o.Stop = e.Price
	}
	wanted := book.Order{Flags: book.Flag(e.Code & 0xff), TIF: book.TIF(e.Code >> 8), Display: e.Qty, ExpireAt: e.Aux}
	now := wanted.Amended(book.Order{TIF: o.TIF, Display: o.Display, ExpireAt: o.ExpireAt})
	o.TIF, o.Display, o.ExpireAt = now.TIF, now.Display, now.ExpireAt
	if o.TIF != book.GTD {
		o.ExpireAt = 0
	}
}

// orderTerms returns the terms of the command's order; s has sent it.
func (f *Reporter) orderTerms(s *Session) (t wire.OrderTerms) {
	e := &f.terms
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
	account, onDisconnect := unpackTerms(e.Other)
	t.OnDisconnect = onDisconnect
	if account != 0 {
		var err error
		if t.Account, err = s.accounts.text(account); err != nil {
			s.Fail(err)
		}
	}
	return t
}

// triggered reports that a stop has become an active order. FIX 4.4 has no ExecType for it,
// so it is a restatement (our choice).
func (f *Reporter) triggered(e *event.Event) {
	o := f.orders[e.OrderID]
	if o == nil || !o.Live() {
		return
	}
	f.text = append(f.text[:0], "triggered"...)
	f.report(e, o, wire.ExecutionReport{ExecType: wire.ExecRestated, Restated: restatedOther, Text: f.text}, false)
}

// Values of ExecRestatementReason (378).
const (
	restatedPartialDecline = 5
	restatedOther          = 99
)

// changeRefused answers an F or G that the engine has refused. If only the gateway still knows
// the order, it has ended before the request.
func (f *Reporter) changeRefused(e *event.Event) error {
	s := f.session()
	if s == nil || !f.out.Command.Names(e.OrderID) {
		return nil
	}
	r := wire.CancelReject{
		OrderID: e.OrderID, ClOrdID: f.out.Command.ClOrdID(), Status: wire.StatusRejected,
		Amend: e.Kind == event.AmendRejected, Reason: wire.CxlRejOther, At: e.At,
	}
	o := f.orders[e.OrderID]
	if o != nil {
		r.Status, r.OrigClOrdID = o.Status, []byte(o.ClOrdID)
	}
	if request, ok := s.Find(string(f.out.Command.ClOrdID())); ok && request.Target != "" {
		r.OrigClOrdID = wire.AppendText(nil, request.Target)
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
	switch in := f.instruments.Get(e.Instrument); {
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
	f.body = r.AppendBody(f.body[:0])
	f.out.Answer(s.Session, '9', f.body, nil)
	return nil
}

func (f *Reporter) massCancelled(e *event.Event) {
	s := f.session()
	if s == nil || !f.out.Command.IsRequest() {
		return
	}
	cancelled := f.countCancelled(e)
	if e.Code == event.MoreCancels {
		return
	}
	f.execID = f.out.AppendExecID(f.execID[:0], e)
	r := wire.MassCancelReport{ID: f.execID, ClOrdID: f.out.Command.ClOrdID(), Kind: '7', Side: e.Side, Rejected: -1, Orders: cancelled, At: e.At}
	if in := f.instruments.Get(e.Instrument); in != nil {
		r.Symbol, r.Kind = in.Symbol, '1'
	}
	f.body = r.AppendBody(f.body[:0])
	f.out.Answer(s.Session, 'r', f.body, nil)
}

// report sends an execution report to its order's session; answers reports whether it is
// the first answer to the command's ClOrdID. r is completed from o and the event.
func (f *Reporter) report(e *event.Event, o *order, r wire.ExecutionReport, answers bool) {
	r.Instrument = f.instruments.Get(e.Instrument)
	if r.Instrument == nil { // not configured any more
		f.out.OrphanedEvents.Add(1)
		return
	}
	f.execID = f.out.AppendExecID(f.execID[:0], e)
	if r.Maker { // distinguishes the two reports of one trade
		f.execID = append(f.execID, 'M')
	}
	r.Order, r.ExecID, r.At = &o.ClientOrder, f.execID, e.At
	if r.ExecType == wire.ExecRejected {
		f.text = wire.AppendReason(f.text[:0], r.Instrument, e)
		r.Text = f.text
	}
	f.body = r.AppendBody(f.body[:0])
	if !answers {
		f.out.Emit(o.owner.Session, "8", wire.TagOrderID, f.body)
		return
	}
	if o.Live() {
		o.owner.add(o)
	}
	f.out.Answer(o.owner.Session, '8', f.body, o)
}

// copyFill sends the drop copies of the fill of o that r has reported, under the ExecID
// of r.
func (f *Reporter) copyFill(e *event.Event, o *order, r *wire.ExecutionReport) {
	in := f.instruments.Get(e.Instrument)
	if in == nil || f.out.Copies.None() { // without the instrument r was not sent either
		return
	}
	body := wire.AppendCaptureHead(f.side[:0], f.execID, o.Status, in.Symbol)
	body = strconv.AppendInt(append(body, "\x01880="...), e.Aux, 10)
	body = in.AppendQty(append(body, "\x0132="...), r.LastQty)
	body = in.AppendPrice(append(body, "\x0131="...), r.LastPx)
	f.text = strconv.AppendUint(f.text[:0], uint64(o.ID), 10)
	f.side = (&wire.CaptureSide{
		At: e.At, Side: '0' + byte(o.Side), OrderID: f.text, ClOrdID: o.ClOrdID, CompID: o.owner.CompID(), Account: o.Account,
	}).Append(body)
	f.out.Copy(o.owner.Session, f.side, nil)
}

// recordFill keeps the fill of o that r has reported, for AD and AN.
func (f *Reporter) recordFill(e *event.Event, o *order, r *wire.ExecutionReport) error {
	return f.history.Record(&history.Fill{
		Session: o.owner.Number, Participant: o.owner.Participant.Number, Instrument: o.Instrument, Side: o.Side, Maker: r.Maker,
		Order: o.ID, Trade: r.Trade, Price: r.LastPx, Qty: r.LastQty, At: e.At,
		Seq: e.Seq, Index: f.out.Index(), Epoch: uint32(f.out.Epoch()), Status: o.Status, ClOrdID: o.ClOrdID, Account: o.Account,
	})
}

// quoteID returns the QuoteID of the mass quote being processed; nil = the command is none.
func (f *Reporter) quoteID() []byte {
	id, ok := bytes.CutPrefix(f.out.Command.ClOrdID(), []byte(wire.MassQuotePrefix))
	if !ok || f.out.Command.Session == nil {
		return nil
	}
	return id
}

// quoteAccepted applies a new order of a quote. No report is made of it: b answers the mass
// quote.
func (f *Reporter) quoteAccepted(o *order, quoteID []byte) {
	o.ClOrdID, o.QuoteSet = string(quoteID), f.quoteSet
	f.orders[o.ID] = o
	f.markChanged(o)
	o.owner.add(o)
}

// quoteChanged applies what a mass quote of its owner changes of a quote's order. It reports
// false if the event is something else, of which a report is made.
func (f *Reporter) quoteChanged(e *event.Event, o *order) bool {
	quoteID := f.quoteID()
	if o.QuoteSet == 0 || quoteID == nil || o.owner != f.session() {
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

// quoteRefused stores a refused entry for the answer at the end of the mass quote.
func (f *Reporter) quoteRefused(e *event.Event) {
	f.refused = append(f.refused, wire.QuoteRefusal{
		Set: uint16(e.Other), Number: uint16(e.Qty), Instrument: e.Instrument, Reason: event.Reason(e.Code),
	})
}

// massQuoted answers a mass quote as its QuoteResponseLevel requires.
func (f *Reporter) massQuoted(e *event.Event) {
	quoteID := f.quoteID()
	if quoteID == nil {
		return
	}
	ack := wire.MassQuoteAck{QuoteID: quoteID, Cancels: e.Code, Response: uint8(e.Other), Accepted: int64(e.Qty), Refused: f.refused}
	f.body = ack.AppendBody(f.body[:0], f.instruments)
	s := f.session()
	f.out.KeepAnswer(s.Session, wire.AnswerMassQuote, f.body, nil)
	if ack.Response == wire.ResponseNone || ack.Response == wire.ResponseRefused && len(ack.Refused) == 0 {
		return
	}
	f.out.Emit(s.Session, "b", wire.TagQuoteID, f.body)
}

// Apply processes one event. For an event that the store already has, it sets only the
// state that later events of the same command need.
func (f *Reporter) Apply(e *event.Event) error {
	if e.Seq != f.seq {
		f.seq, f.quoteSet, f.refused, f.refusedListed = e.Seq, 0, f.refused[:0], f.refusedListed[:0]
		f.terms.Kind = 0
	}
	switch e.Kind {
	case event.Reference:
		f.terms.Kind = 0 // of an order of a list
		return nil
	case event.Rejected:
		f.refusedListed = append(f.refusedListed, *e)
	case event.Terms:
		f.terms = *e
		return nil
	case event.Quoted:
		f.quoteSet = uint16(e.Other)
		return nil
	case event.QuoteRejected:
		f.quoteRefused(e)
		return nil
	}
	if f.out.Stored() {
		if f.answersRequest(e) {
			f.out.Answered()
		}
		return nil
	}
	f.out.At = e.At
	switch e.Kind {
	case event.Accepted:
		f.accepted(e)
	case event.Rejected:
		f.rejected(e)
	case event.Traded, event.AuctionTraded:
		return f.traded(e)
	case event.Cancelled:
		f.cancelled(e)
	case event.Reduced, event.Amended:
		if event.Reason(e.Code) != event.ReasonAuctionTrade { // its trade is reported
			f.amended(e)
		}
	case event.AmendRejected, event.CancelRejected:
		return f.changeRefused(e)
	case event.MassCancelled:
		f.massCancelled(e)
	case event.Listed:
		return f.listed(e)
	case event.MassQuoted:
		f.massQuoted(e)
	case event.Triggered:
		f.triggered(e)
	}
	return nil
}

// answersRequest reports whether an event is the first answer to the command's own
// request, and not an expiry that was due before it.
func (f *Reporter) answersRequest(e *event.Event) bool {
	switch e.Kind {
	case event.MassCancelled:
		return e.Code != event.MoreCancels
	case event.MassQuoted, event.Listed:
		return true
	case event.Accepted, event.Rejected, event.AmendRejected, event.CancelRejected:
		return f.out.Command.Names(e.OrderID)
	case event.Reduced, event.Amended:
		reason := event.Reason(e.Code)
		return f.out.Command.Names(e.OrderID) && reason != event.ReasonSelfTrade && reason != event.ReasonAuctionTrade
	case event.Cancelled:
		reason := event.Reason(e.Code)
		return f.out.Command.Names(e.OrderID) && (reason == event.ReasonUser || reason == event.ReasonAmendedAway)
	}
	return false
}
