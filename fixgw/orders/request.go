package orders

import (
	"errors"
	"fmt"
	"strconv"

	"blockdesk/engine"
	"blockdesk/engine/book"
	"blockdesk/engine/rfq"
	"blockdesk/fixgw/reports"
	"blockdesk/fixgw/session"
	"blockdesk/fixgw/wire"
	"blockdesk/market"
)

// Order entry, on the session's goroutine. A request that is refused here is answered here.
// The reporter answers all others when their events are durable.

// Request handles a D, F, G, H or q. alone: no other message has been read from the
// connection. If it returns enqueued, the engine has the command but was not woken, and the
// caller must call RunInline.
func (s *Session) Request(msgType byte, r *wire.OrderRequest, alone bool) (enqueued bool, reject *wire.Reject) {
	s.alone, s.enqueued = alone, false
	switch msgType {
	case 'D':
		reject = s.newOrder(r)
	case 'F':
		reject = s.change(r, false)
	case 'G':
		reject = s.change(r, true)
	case 'H':
		reject = s.status(r)
	default:
		reject = s.massCancel(r)
	}
	return s.enqueued, reject
}

// newOrder handles a D.
func (s *Session) newOrder(r *wire.OrderRequest) *wire.Reject {
	content := r.Content('D')
	done, duplicate, err := s.Repeated(r.ClOrdID, content)
	if done {
		return err
	}
	order, in, refusal := r.DecodeNew(s.entry.Instruments, s.entry.Now())
	if refusal == nil {
		refusal = r.CheckClOrdID()
	}
	if duplicate {
		refusal = wire.RefuseDuplicate(wire.OrdRejDuplicate, "ClOrdID (11)", r.ClOrdID)
	}
	if refusal == nil && order.Flags&book.FlagMinQty != 0 && s.entry.Format1 {
		refusal = wire.Refuse(wire.OrdRejUnsupported, wire.CodeUnsupported, "MinQty (110): %s", rfq.ErrNotFinalized)
	}
	var onDisconnect wire.OnDisconnect
	if refusal == nil {
		onDisconnect, refusal = r.OnDisconnect()
	}
	if refusal == nil && onDisconnect != wire.AsLogon && s.entry.Format1 {
		refusal = wire.Refuse(wire.OrdRejUnsupported, wire.CodeUnsupported, "CancelOrdersOnDisconnect (8013): %s", rfq.ErrNotFinalized)
	}
	account := uint64(0)
	if refusal == nil {
		account, refusal = s.numberAccount(r)
	}
	if refusal != nil {
		return s.rejectNew(r, order, in, refusal)
	}
	order.ID = s.entry.Engine.NextOrderID()
	order.Participant = s.Participant.Number
	if order.STP == 0 {
		order.STP = s.Terms().STP
	}
	entry := &reports.Request{
		ClOrdID: string(r.ClOrdID), MsgType: 'D', ID: order.ID, Content: content, Instrument: in.ID, Side: order.Side,
		Terms: wire.AmendTarget{Type: order.Type, TIF: order.TIF, OrderTerms: wire.TermsOf(&order, string(r.Account))},
	}
	entry.Terms.OnDisconnect = onDisconnect
	if entry.Terms.Any() && !s.entry.Format1 { // the reports repeat them
		order.Flags |= book.FlagTerms
	}
	return s.submit(engine.NewOrder, in.ID, order, packTerms(account, onDisconnect), r, entry)
}

// The Arg of an order's command, and so Other of its event.Terms, has the number of its account,
// and its OnDisconnect in the two highest bits: book.Order has no field for them.
const onDisconnectShift = 62

func packTerms(account uint64, d wire.OnDisconnect) uint64 {
	return account | uint64(d)<<onDisconnectShift
}

func unpackTerms(arg uint64) (account uint64, d wire.OnDisconnect) {
	return arg &^ (3 << onDisconnectShift), wire.OnDisconnect(arg >> onDisconnectShift)
}

// numberAccount returns the number of the Account of a D; 0 = it has none.
func (s *Session) numberAccount(r *wire.OrderRequest) (uint64, *wire.Refusal) {
	number, err := s.accounts.number(r.Account)
	if errors.Is(err, errAccounts) {
		return 0, wire.Refuse(wire.OrdRejUnknownAccount, wire.CodeOverloaded, "Account (1): %s", err)
	}
	if err != nil {
		s.Fail(err)
		return 0, wire.Refuse(wire.OrdRejOther, wire.CodeReadOnly, session.StoreFailedText)
	}
	return number, nil
}

// submit passes a command to the engine; arg is packTerms of a D.
func (s *Session) submit(kind engine.Kind, in market.InstrumentID, o book.Order, arg uint64, r *wire.OrderRequest, entry *reports.Request) *wire.Reject {
	c := engine.Command{Kind: kind, Instrument: in, Origin: s.Number, Order: o, Arg: arg}
	if !c.SetRef(r.ClOrdID) {
		return wire.BusinessReject(wire.RejOther, r.ClOrdID, fmt.Sprintf("%s: ClOrdID (11): must be 1 to %d bytes", wire.CodeInvalidField, wire.MaxClOrdID))
	}
	err := s.Register(entry)
	if err == nil {
		submit := s.entry.Engine.Submit
		if s.alone {
			submit, s.enqueued = s.entry.Engine.Enqueue, true
		}
		if err = submit(&c); err == nil {
			return nil
		}
		s.Unregister(entry, err)
	}
	if reports.IsOverload(err) {
		return wire.BusinessReject(wire.RejNotAvailable, r.ClOrdID, s.RefusalText(err))
	}
	return wire.BusinessReject(wire.RejOther, r.ClOrdID, s.UnavailableText("the engine did not accept the command"))
}

// rejectNew answers a D that is refused here. Its ClOrdID may be used again.
func (s *Session) rejectNew(r *wire.OrderRequest, o book.Order, in *market.Instrument, refusal *wire.Refusal) *wire.Reject {
	s.CountReject()
	s.reportNoOrder(r, wire.ExecRejected, o, in, refusal)
	return nil
}

// reportNoOrder sends an execution report without an order: in and o are the known parts of
// the requested one.
func (s *Session) reportNoOrder(r *wire.OrderRequest, execType byte, o book.Order, in *market.Instrument, refusal *wire.Refusal) {
	b := append(s.Out.Scratch[:0], "NONE"...)
	b = append(wire.AppendText(append(b, "\x0111="...), string(r.ClOrdID)), "\x0117="...)
	b = append(append(s.entry.Requests.IDs.Append(b), "\x01150="...), execType)
	b = r.AppendSymbol(append(b, "\x0139=8"...))
	side := byte('1')
	if len(r.Side) == 1 {
		side = r.Side[0]
	}
	b = append(append(b, "\x0154="...), side)
	if o.Qty > 0 {
		b = in.AppendQty(append(b, "\x0138="...), o.Qty)
	}
	if o.Price > 0 {
		b = in.AppendPrice(append(b, "\x0144="...), o.Price)
	}
	b = append(b, "\x01151=0\x0114=0\x016=0\x0160="...)
	b = wire.AppendTime(b, s.entry.Now().UnixNano())
	b = wire.AppendText(append(b, "\x0158="...), refusal.Text)
	s.Out.Scratch = strconv.AppendInt(append(b, "\x01103="...), int64(refusal.Reason), 10)
	s.SendReport("8", s.Out.Scratch)
}

// target is the order of an F, G or H, as far as the session knows it.
type target struct {
	wire.ClientOrder
	ended bool
	// pending: the request that OrigClOrdID names is not answered yet.
	pending bool
	byID    bool // found by OrderID, which wins over OrigClOrdID
}

func targetOf(o *wire.ClientOrder) target { return target{ClientOrder: *o, ended: !o.Live()} }

// find returns the order with an OrderID (37) or with a ClOrdID.
func (s *Session) find(orderID, clOrdID []byte) (target, bool, error) {
	r, known := s.Find(string(clOrdID))
	if id, err := strconv.ParseUint(string(orderID), 10, 64); err == nil {
		if o, ok := s.live(market.OrderID(id)); ok {
			t := targetOf(&o)
			t.byID = true
			t.pending = known && r.Pending() && r.ID == o.ID
			return t, true, nil
		}
	}
	if subject, ok := r.Subject.(*order); ok {
		o := s.copyOf(subject)
		t := targetOf(&o)
		t.pending = r.Pending() && r.ID == o.ID
		return t, true, nil
	}
	if known && r.Pending() && r.Side.Valid() { // a D or G on its way
		t := target{ClientOrder: wire.ClientOrder{
			ID: r.ID, ClOrdID: r.ClOrdID, Instrument: r.Instrument, Side: r.Side, Status: wire.StatusNew,
			Type: r.Terms.Type, TIF: r.Terms.TIF, OrderTerms: r.Terms.OrderTerms,
		}}
		if o, ok := s.live(r.ID); ok {
			t = targetOf(&o)
		}
		t.pending = true
		return t, true, nil
	}
	return s.findStored(clOrdID)
}

func (s *Session) findStored(clOrdID []byte) (target, bool, error) {
	if len(clOrdID) == 0 || len(clOrdID) > wire.MaxClOrdID {
		return target{}, false, nil
	}
	id, ok, err := s.StoredID(clOrdID)
	if err != nil || !ok {
		return target{}, false, err
	}
	if o, ok := s.live(id); ok { // under another ClOrdID by now
		return targetOf(&o), true, nil
	}
	o, err := s.stored(id)
	if err != nil || o == nil {
		return target{}, false, err
	}
	return targetOf(&o.ClientOrder), true, nil
}

// statusOf returns the status of an order that may have ended, StatusRejected if the
// session does not know it. clOrdID is one of its ClOrdIDs.
func (s *Session) statusOf(id market.OrderID, clOrdID []byte) (byte, error) {
	if o, ok := s.live(id); ok {
		return o.Status, nil
	}
	if r, _ := s.Find(string(clOrdID)); r.Subject != nil {
		if known, ok := r.Subject.(*order); ok && known.ID == id {
			return s.copyOf(known).Status, nil
		}
	}
	o, err := s.stored(id)
	if err != nil || o == nil || o.owner != s {
		return wire.StatusRejected, err
	}
	return o.Status, nil
}

// change handles an F, and with amend a G.
func (s *Session) change(r *wire.OrderRequest, amend bool) *wire.Reject {
	msgType, kind := byte('F'), engine.CancelOrder
	if amend {
		msgType, kind = 'G', engine.AmendOrder
	}
	content := r.Content(msgType)
	done, duplicate, reject := s.Repeated(r.ClOrdID, content)
	if done {
		return reject
	}
	t, found, err := s.find(r.OrderID, r.OrigClOrdID)
	if err != nil {
		return s.StoreFailed(r.ClOrdID, err)
	}
	if !found {
		if handled, reject := s.claims.ChangeClaim(r, amend); handled {
			return reject
		}
	}
	refusal := r.CheckClOrdID()
	switch {
	case refusal != nil:
	case duplicate:
		refusal = wire.RefuseDuplicate(wire.CxlRejDuplicate, "ClOrdID (11)", r.ClOrdID)
	case !found:
		t.Status = wire.StatusRejected
		refusal = wire.Refuse(wire.CxlRejUnknownOrder, wire.CodeUnknownOrder, "OrigClOrdID (41) %.40q", r.OrigClOrdID)
	case t.ended:
		refusal = wire.Refuse(wire.CxlRejTooLate, wire.CodeTooLate, "order %d has ended", t.ID)
	case t.QuoteSet != 0:
		refusal = refuseQuoteOrder(t.ID)
	case !t.pending && !t.byID && t.ClOrdID != string(r.OrigClOrdID):
		refusal = wire.Refuse(wire.CxlRejUnknownOrder, wire.CodeUnknownOrder, "OrigClOrdID (41) %.40q: the order's ClOrdID is %.40q", r.OrigClOrdID, t.ClOrdID)
	}
	terms := wire.AmendTarget{Type: t.Type, TIF: t.TIF, OrderTerms: t.OrderTerms}
	o := book.Order{ID: t.ID, Participant: s.Participant.Number, Side: t.Side}
	if refusal == nil {
		refusal = s.checkTarget(r, &t)
	}
	if refusal == nil && amend {
		refusal = r.DecodeAmend(&o, &terms, s.entry.Instruments.Get(t.Instrument), s.entry.Now())
		if refusal == nil && s.entry.Format1 {
			refusal = sameTerms(&o, &t)
		}
	}
	if refusal != nil {
		s.RejectChange(r, wire.CancelReject{OrderID: t.ID, Status: t.Status}, amend, refusal)
		return nil
	}
	if (o.Stop != 0 || o.Flags&book.FlagAmendTerms != 0) && !s.entry.Format1 { // the reports repeat it
		o.Flags |= book.FlagTerms
	}
	return s.submit(kind, t.Instrument, o, 0, r, &reports.Request{
		ClOrdID: string(r.ClOrdID), MsgType: msgType, ID: t.ID, Target: string(r.OrigClOrdID), Content: content,
		Instrument: t.Instrument, Side: t.Side, Terms: terms,
	})
}

// sameTerms takes the terms from an amend of t, and refuses it if it changes them: release 0.1.0
// does not read it.
func sameTerms(o *book.Order, t *target) *wire.Refusal {
	was := book.Order{TIF: t.TIF, ExpireAt: t.ExpireAt, Display: t.Display}
	if t.TIF != book.GTD {
		was.ExpireAt = o.ExpireAt // the end of a day
	}
	if o.Amended(was) != was {
		return wire.Refuse(wire.CxlRejOther, wire.CodeUnsupported, "TimeInForce (59), ExpireTime (126), ExpireDate (432), MaxFloor (111): %s", rfq.ErrNotFinalized)
	}
	o.Flags &^= book.FlagAmendTerms
	o.TIF, o.ExpireAt, o.Display = 0, 0, 0
	return nil
}

// checkTarget checks that Symbol and Side, if given, are the order's.
func (s *Session) checkTarget(r *wire.OrderRequest, t *target) *wire.Refusal {
	in := s.entry.Instruments.Get(t.Instrument)
	if in == nil || r.Symbol != nil && string(r.Symbol) != in.Symbol {
		return wire.Refuse(wire.CxlRejOther, wire.CodeInvalidField, "Symbol (55) %.40q: not the order's", r.Symbol)
	}
	if r.Side != nil && (len(r.Side) != 1 || r.Side[0] != '0'+byte(t.Side)) {
		return wire.Refuse(wire.CxlRejOther, wire.CodeInvalidField, "Side (54) %.20q: not the order's", r.Side)
	}
	return nil
}

// massCancel handles a q: all orders of the participant, from any of its sessions, or those of
// this session, on one instrument or all, on one side or both.
func (s *Session) massCancel(r *wire.OrderRequest) *wire.Reject {
	content := r.Content('q')
	done, duplicate, reject := s.Repeated(r.ClOrdID, content)
	if done {
		return reject
	}
	refusal := r.CheckClOrdID()
	if duplicate {
		refusal = wire.RefuseDuplicate(0, "ClOrdID (11)", r.ClOrdID)
	}
	in, side := engine.AllInstruments, market.Side(0)
	const notSupported, invalidSecurity, other = 0, 1, 99
	switch {
	case refusal != nil:
		refusal.Reason = other
	case string(r.MassType) == "1":
		var instrument *market.Instrument
		if instrument, refusal = r.Instrument(s.entry.Instruments); refusal != nil {
			refusal.Reason = invalidSecurity
		} else {
			in = instrument.ID
		}
	case string(r.MassType) != "7":
		refusal = wire.Refuse(notSupported, wire.CodeUnsupported, "MassCancelRequestType (530) %.20q: must be 1 (security) or 7 (all)", r.MassType)
	}
	if refusal == nil && r.Side != nil {
		if side, refusal = r.ParseSide(); refusal != nil {
			refusal.Reason = other
		}
	}
	ownOnly := false
	if refusal == nil {
		if ownOnly, refusal = r.SessionOnly(); refusal != nil {
			refusal.Reason = other
		}
	}
	if refusal == nil && ownOnly && s.entry.Format1 {
		refusal = wire.Refuse(notSupported, wire.CodeUnsupported, "MassCancelSession (5620): %s", rfq.ErrNotFinalized)
	}
	if refusal != nil {
		s.CountReject()
		report := wire.MassCancelReport{
			ID: []byte("NONE"), ClOrdID: wire.AppendText(nil, string(r.ClOrdID)), Kind: r.MassKind(), Rejected: refusal.Reason,
			At: s.entry.Now().UnixNano(), Text: wire.AppendText(nil, refusal.Text),
		}
		s.Out.Scratch = report.AppendBody(s.Out.Scratch[:0])
		s.SendReport("r", s.Out.Scratch)
		return nil
	}
	if ownOnly {
		return s.cancelOwn(r, in, side, content)
	}
	o := book.Order{Participant: s.Participant.Number, Side: side}
	return s.submit(engine.MassCancel, in, o, 0, r, &reports.Request{ClOrdID: string(r.ClOrdID), MsgType: 'q', Content: content})
}

// status handles an H: the order as of the last durable event.
func (s *Session) status(r *wire.OrderRequest) *wire.Reject {
	if s.entry.Leadership.Confirm() != nil {
		return wire.BusinessReject(wire.RejNotAvailable, r.ClOrdID, s.NoLeaderText())
	}
	t, found, err := s.find(r.OrderID, r.ClOrdID)
	if err != nil {
		return s.StoreFailed(r.ClOrdID, err)
	}
	now := s.entry.Now()
	if !found {
		if handled, reject := s.claims.ClaimStatus(r); handled {
			return reject
		}
		refusal := wire.Refuse(wire.OrdRejUnknownOrder, wire.CodeUnknownOrder, "ClOrdID (11) %.40q", r.ClOrdID)
		s.reportNoOrder(r, wire.ExecStatus, book.Order{}, nil, refusal)
		return nil
	}
	copied, live := s.live(t.ID)
	if !live {
		stored, err := s.stored(t.ID)
		if err != nil {
			s.Fail(err)
		}
		if stored != nil {
			copied = stored.ClientOrder
		} else { // not accepted yet, or ended a moment ago
			copied = wire.ClientOrder{ID: t.ID, ClOrdID: t.ClOrdID, Instrument: t.Instrument, Side: t.Side, Type: t.Type, TIF: t.TIF, OrderTerms: t.OrderTerms, Status: 'A'}
			if t.ended {
				copied.Status = t.Status
			}
		}
	}
	report := wire.ExecutionReport{
		Order: &copied, Instrument: s.entry.Instruments.Get(copied.Instrument), ExecType: wire.ExecStatus,
		ExecID: s.entry.Requests.IDs.Append(nil), At: now.UnixNano(),
	}
	if report.Instrument == nil {
		return wire.BusinessReject(wire.RejOther, r.ClOrdID, wire.CodeUnknownSymbol+": the order's instrument is not configured")
	}
	s.Out.Scratch = report.AppendBody(s.Out.Scratch[:0])
	s.SendReport("8", s.Out.Scratch)
	return nil
}
