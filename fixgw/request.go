package fixgw

import (
	"errors"
	"fmt"
	"strconv"

	"blockdesk/engine"
	"blockdesk/engine/book"
	"blockdesk/engine/rfq"
	"blockdesk/fixgw/session"
	"blockdesk/fixgw/wire"
	"blockdesk/market"
	"blockdesk/persist/leadership"
)

// Order entry, on the session's goroutine. A request that is refused here is answered here.
// The reporter answers all others when their events are durable.

// handleOrder handles a D, F, G, H or q.
func (s *blotter) handleOrder(msgType byte, r *wire.OrderRequest) *wire.Reject {
	switch msgType {
	case 'D':
		return s.newOrder(r)
	case 'F':
		return s.change(r, false)
	case 'G':
		return s.change(r, true)
	case 'H':
		return s.status(r)
	default:
		return s.massCancel(r)
	}
}

// newOrder handles a D.
func (s *blotter) newOrder(r *wire.OrderRequest) *wire.Reject {
	content := r.Content('D')
	done, duplicate, err := s.repeated(r.ClOrdID, content)
	if done {
		return err
	}
	order, in, refusal := r.DecodeNew(s.gateway.instruments, s.gateway.options.Now())
	if refusal == nil {
		refusal = r.CheckClOrdID()
	}
	if duplicate {
		refusal = wire.RefuseDuplicate(wire.OrdRejDuplicate, "ClOrdID (11)", r.ClOrdID)
	}
	if refusal == nil && order.Flags&book.FlagMinQty != 0 && s.gateway.options.Format1 {
		refusal = wire.Refuse(wire.OrdRejUnsupported, wire.CodeUnsupported, "MinQty (110): %s", rfq.ErrFormat)
	}
	account := uint64(0)
	if refusal == nil {
		account, refusal = s.numberAccount(r)
	}
	if refusal != nil {
		return s.rejectNew(r, order, in, refusal)
	}
	order.ID = s.gateway.engine.NextOrderID()
	order.Participant = s.Participant.Number
	if order.STP == 0 {
		order.STP = s.Terms().STP
	}
	entry := &request{
		clOrdID: string(r.ClOrdID), msgType: 'D', id: order.ID, content: content,
		instrument: in.ID, side: order.Side, typ: order.Type, tif: order.TIF, terms: wire.TermsOf(&order, string(r.Account)),
	}
	if entry.terms.Any() && !s.gateway.options.Format1 { // the reports repeat them
		order.Flags |= book.FlagTerms
	}
	return s.submit(engine.NewOrder, in.ID, order, account, r, entry)
}

// numberAccount returns the number of the Account of a D; 0 = it has none.
func (s *blotter) numberAccount(r *wire.OrderRequest) (uint64, *wire.Refusal) {
	number, err := s.accounts.number(r.Account)
	if errors.Is(err, errAccounts) {
		return 0, wire.Refuse(wire.OrdRejUnknownAccount, wire.CodeOverloaded, "Account (1): %s", err)
	}
	if err != nil {
		s.gateway.Fail(err)
		return 0, wire.Refuse(wire.OrdRejOther, wire.CodeReadOnly, "the store has failed")
	}
	return number, nil
}

// submit passes a command to the engine; account is that of a D.
func (s *blotter) submit(kind engine.Kind, in market.InstrumentID, o book.Order, account uint64, r *wire.OrderRequest, entry *request) *wire.Reject {
	c := engine.Command{Kind: kind, Instrument: in, Origin: s.Number, Order: o, Arg: account}
	if !c.SetRef(r.ClOrdID) {
		return wire.BusinessReject(wire.RejOther, r.ClOrdID, fmt.Sprintf("%s: ClOrdID (11): must be 1 to %d bytes", wire.CodeInvalidField, wire.MaxClOrdID))
	}
	if !s.register(entry) {
		s.gateway.overloaded.Add(1)
		return wire.BusinessReject(wire.RejNotAvailable, r.ClOrdID, fmt.Sprintf("%s: %d requests of this session wait for an answer", wire.CodeOverloaded, s.gateway.options.MaxPendingOrders))
	}
	hand := s.gateway.engine.Submit
	if s.alone {
		hand, s.placed = s.gateway.engine.Enqueue, true
	}
	err := hand(&c)
	if err == nil {
		return nil
	}
	s.unregister(entry)
	switch {
	case errors.Is(err, engine.ErrFull):
		s.gateway.overloaded.Add(1)
		return wire.BusinessReject(wire.RejNotAvailable, r.ClOrdID, wire.CodeOverloaded+": the engine's queue is full, try again")
	case errors.Is(err, engine.ErrReadOnly), errors.Is(err, engine.ErrStopped):
		return wire.BusinessReject(wire.RejNotAvailable, r.ClOrdID, s.gateway.UnavailableText(err.Error()))
	}
	return wire.BusinessReject(wire.RejOther, r.ClOrdID, s.gateway.UnavailableText("the engine did not accept the command"))
}

// repeated answers a repeated request with the first answer, or with nothing while the first
// answer is pending. key is that of s.requests: a ClOrdID, or a prefix and another id.
// duplicate means that the first request had other content: the caller refuses this one.
func (s *blotter) repeated(key []byte, content uint64) (done, duplicate bool, reject *wire.Reject) {
	if len(key) == 0 || len(key) > wire.MaxClOrdID {
		return false, false, nil
	}
	differs := func(first uint64) bool { return first != 0 && first != content }
	s.mu.Lock()
	known := s.requests[string(key)]
	waits := known != nil && known.answer == 0
	if known != nil && differs(known.content) {
		s.mu.Unlock()
		return false, true, nil
	}
	var first answer
	if known != nil && known.body != nil {
		first = answer{msgType: known.answer, body: known.body}
	}
	s.mu.Unlock()
	if known == nil || !waits && first.body == nil {
		stored, ok, err := s.stored(key)
		if err != nil {
			return true, false, s.storeFailed(wire.WithoutPrefix(key), err)
		}
		if known == nil && !ok {
			return false, false, nil
		}
		if differs(stored.content) {
			return false, true, nil
		}
		first = stored
	}
	s.gateway.duplicates.Add(1)
	if len(first.body) > 0 {
		msgType, tag := wire.AnswerForm(first.msgType)
		if !s.Custom.Load() { // the first answer may have had custom fields
			first.body = wire.WithoutCustom(first.body)
		}
		s.Send(msgType, tag, first.body, true)
	}
	return true, false, nil
}

// storeFailed ends the service with an error of the store, and rejects the request with
// that id.
func (s *blotter) storeFailed(id []byte, err error) *wire.Reject {
	s.gateway.Fail(err)
	return wire.BusinessReject(wire.RejNotAvailable, id, s.gateway.UnavailableText("the store has failed"))
}

// stored returns the first answer to a ClOrdID of today or yesterday.
func (s *blotter) stored(clOrdID []byte) (answer, bool, error) {
	today := dayOf(s.gateway.options.Now().UnixNano())
	for _, day := range [...]uint32{today, today - 1, today + 1} {
		if !s.gateway.answered.mayContain(day, s.Number, clOrdID) {
			continue
		}
		value, ok, err := s.gateway.store.Get(answerKey(nil, day, s.Number, clOrdID))
		if err != nil {
			return answer{}, false, err
		}
		if ok {
			a, err := parseAnswer(value)
			return a, err == nil, err
		}
	}
	return answer{}, false, nil
}

// storedOrder returns an order that has ended today or yesterday, or nil.
func (s *blotter) storedOrder(id market.OrderID) (*order, error) {
	today := dayOf(s.gateway.options.Now().UnixNano())
	for _, day := range [...]uint32{today, today - 1, today + 1} {
		value, ok, err := s.gateway.store.Get(closedKey(nil, day, id))
		if err != nil {
			return nil, err
		}
		if ok {
			return parseOrderRecord(id, value, s.gateway.blotterNumbered)
		}
	}
	return nil, nil
}

// send sends an application message whose first field is OrderID (37). The caller holds
// the session's lock.
func (s *blotter) send(msgType byte, body []byte, possResend bool) {
	s.Send(string(msgType), wire.TagOrderID, body, possResend)
}

// rejectNew answers a D that is refused here. Its ClOrdID may be used again.
func (s *blotter) rejectNew(r *wire.OrderRequest, o book.Order, in *market.Instrument, refusal *wire.Refusal) *wire.Reject {
	s.gateway.Rejects.Add(1)
	s.reportNoOrder(r, wire.ExecRejected, o, in, refusal)
	return nil
}

// reportNoOrder sends an execution report without an order: in and o are the known parts of
// the requested one.
func (s *blotter) reportNoOrder(r *wire.OrderRequest, execType byte, o book.Order, in *market.Instrument, refusal *wire.Refusal) {
	b := append(s.Out.Scratch[:0], "NONE"...)
	b = append(wire.AppendText(append(b, "\x0111="...), string(r.ClOrdID)), "\x0117="...)
	b = append(append(s.gateway.ids.Append(b), "\x01150="...), execType)
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
	b = wire.AppendTime(b, s.gateway.options.Now().UnixNano())
	b = wire.AppendText(append(b, "\x0158="...), refusal.Text)
	s.Out.Scratch = strconv.AppendInt(append(b, "\x01103="...), int64(refusal.Reason), 10)
	s.send('8', s.Out.Scratch, false)
}

// target is the order of an F, G or H, or the claim.
type target struct {
	claim      market.ClaimID // then only status is set
	id         market.OrderID
	clOrdID    string
	instrument market.InstrumentID
	side       market.Side
	wire.AmendTarget
	status byte
	ended  bool
	// pending: the request that OrigClOrdID names is not answered yet.
	pending bool
	byID    bool // found by OrderID, which wins over OrigClOrdID
	quote   bool
}

// find returns the order with an OrderID (37) or with a ClOrdID.
func (s *blotter) find(orderID, clOrdID []byte) (target, bool, error) {
	s.mu.Lock()
	o, r := (*order)(nil), s.requests[string(clOrdID)]
	if id, err := strconv.ParseUint(string(orderID), 10, 64); err == nil {
		o = s.orders[market.OrderID(id)]
	}
	byID := o != nil
	if o == nil && r != nil && r.order != nil {
		o = r.order
	}
	if o != nil {
		t := targetOfOrder(o)
		t.byID = byID
		t.pending = r != nil && r.answer == 0 && r.id == o.ID
		s.mu.Unlock()
		return t, true, nil
	}
	if r != nil && r.answer == 0 && r.side.Valid() { // a D or G on its way
		t := target{
			id: r.id, clOrdID: r.clOrdID, instrument: r.instrument, side: r.side, status: wire.StatusNew,
			AmendTarget: wire.AmendTarget{Type: r.typ, TIF: r.tif, OrderTerms: r.terms},
		}
		if o := s.orders[r.id]; o != nil {
			t = targetOfOrder(o)
		}
		t.pending = true
		s.mu.Unlock()
		return t, true, nil
	}
	s.mu.Unlock()
	return s.findStored(clOrdID)
}

// statusOf returns the status of an order that may have ended, StatusRejected if the
// session does not know it. clOrdID is one of its ClOrdIDs.
func (s *blotter) statusOf(id market.OrderID, clOrdID []byte) (byte, error) {
	s.mu.Lock()
	o := s.orders[id]
	if r := s.requests[string(clOrdID)]; o == nil && r != nil && r.order != nil && r.order.ID == id {
		o = r.order
	}
	if o != nil {
		defer s.mu.Unlock()
		return o.Status, nil
	}
	s.mu.Unlock()
	o, err := s.storedOrder(id)
	if err != nil || o == nil || o.owner != s {
		return wire.StatusRejected, err
	}
	return o.Status, nil
}

func targetOfOrder(o *order) target {
	return target{
		id: o.ID, clOrdID: o.ClOrdID, instrument: o.Instrument, side: o.Side, quote: o.QuoteSet != 0,
		AmendTarget: wire.AmendTarget{Type: o.Type, TIF: o.TIF, OrderTerms: o.OrderTerms}, status: o.Status, ended: !o.Live(),
	}
}

func (s *blotter) findStored(clOrdID []byte) (target, bool, error) {
	if len(clOrdID) == 0 || len(clOrdID) > wire.MaxClOrdID {
		return target{}, false, nil
	}
	a, ok, err := s.stored(clOrdID)
	if err != nil || !ok {
		return target{}, false, err
	}
	s.mu.Lock()
	if o := s.orders[a.id]; o != nil { // live, under another ClOrdID by now
		t := targetOfOrder(o)
		s.mu.Unlock()
		return t, true, nil
	}
	s.mu.Unlock()
	o, err := s.storedOrder(a.id)
	if err != nil || o == nil {
		return target{}, false, err
	}
	return targetOfOrder(o), true, nil
}

// change handles an F, and with amend a G.
func (s *blotter) change(r *wire.OrderRequest, amend bool) *wire.Reject {
	msgType, kind := byte('F'), engine.CancelOrder
	if amend {
		msgType, kind = 'G', engine.AmendOrder
	}
	content := r.Content(msgType)
	done, duplicate, reject := s.repeated(r.ClOrdID, content)
	if done {
		return reject
	}
	t, found, err := s.find(r.OrderID, r.OrigClOrdID)
	if err != nil {
		return s.storeFailed(r.ClOrdID, err)
	}
	if !found {
		if c, ok, err := s.desk.claimNamed(r.OrderID, r.OrigClOrdID); ok || err != nil {
			return s.desk.rejectClaimChange(r, &c, amend, err)
		}
	}
	refusal := r.CheckClOrdID()
	switch {
	case refusal != nil:
	case duplicate:
		refusal = wire.RefuseDuplicate(wire.CxlRejDuplicate, "ClOrdID (11)", r.ClOrdID)
	case !found:
		t.status = wire.StatusRejected
		refusal = wire.Refuse(wire.CxlRejUnknownOrder, wire.CodeUnknownOrder, "OrigClOrdID (41) %.40q", r.OrigClOrdID)
	case t.ended:
		refusal = wire.Refuse(wire.CxlRejTooLate, wire.CodeTooLate, "order %d has ended", t.id)
	case t.quote:
		refusal = refuseQuoteOrder(t.id)
	case !t.pending && !t.byID && t.clOrdID != string(r.OrigClOrdID):
		refusal = wire.Refuse(wire.CxlRejUnknownOrder, wire.CodeUnknownOrder, "OrigClOrdID (41) %.40q: the order's ClOrdID is %.40q", r.OrigClOrdID, t.clOrdID)
	}
	o := book.Order{ID: t.id, Participant: s.Participant.Number, Side: t.side}
	if refusal == nil {
		refusal = s.checkTarget(r, &t)
	}
	if refusal == nil && amend {
		refusal = r.DecodeAmend(&o, &t.AmendTarget, s.gateway.instruments.Get(t.instrument))
	}
	if refusal != nil {
		return s.rejectChange(r, &t, amend, refusal)
	}
	if o.Stop != 0 && !s.gateway.options.Format1 { // the reports repeat it
		o.Flags |= book.FlagTerms
	}
	return s.submit(kind, t.instrument, o, 0, r, &request{
		clOrdID: string(r.ClOrdID), msgType: msgType, id: t.id, target: string(r.OrigClOrdID), content: content,
		instrument: t.instrument, side: t.side, typ: t.Type, tif: t.TIF, terms: t.OrderTerms,
	})
}

// checkTarget checks that Symbol and Side, if given, are the order's.
func (s *blotter) checkTarget(r *wire.OrderRequest, t *target) *wire.Refusal {
	in := s.gateway.instruments.Get(t.instrument)
	if in == nil || r.Symbol != nil && string(r.Symbol) != in.Symbol {
		return wire.Refuse(wire.CxlRejOther, wire.CodeInvalidField, "Symbol (55) %.40q: not the order's", r.Symbol)
	}
	if r.Side != nil && (len(r.Side) != 1 || r.Side[0] != '0'+byte(t.side)) {
		return wire.Refuse(wire.CxlRejOther, wire.CodeInvalidField, "Side (54) %.20q: not the order's", r.Side)
	}
	return nil
}

func (s *blotter) rejectChange(r *wire.OrderRequest, t *target, amend bool, refusal *wire.Refusal) *wire.Reject {
	s.gateway.Rejects.Add(1)
	reason := refusal.Reason
	if reason != wire.CxlRejTooLate && reason != wire.CxlRejUnknownOrder && reason != wire.CxlRejDuplicate {
		reason = wire.CxlRejOther
	}
	reject := wire.CancelReject{
		OrderID: t.id, ClaimID: t.claim, ClOrdID: wire.AppendText(nil, string(r.ClOrdID)), OrigClOrdID: wire.AppendText(nil, string(r.OrigClOrdID)),
		Status: t.status, Amend: amend, Reason: reason, Text: wire.AppendText(nil, refusal.Text),
		At: s.gateway.options.Now().UnixNano(),
	}
	if len(reject.OrigClOrdID) == 0 {
		reject.OrigClOrdID = reject.ClOrdID
	}
	s.Out.Scratch = reject.AppendBody(s.Out.Scratch[:0])
	s.send('9', s.Out.Scratch, false)
	return nil
}

// massCancel handles a q: all orders of the participant, from any of its sessions, on one
// instrument or all, on one side or both.
func (s *blotter) massCancel(r *wire.OrderRequest) *wire.Reject {
	content := r.Content('q')
	done, duplicate, reject := s.repeated(r.ClOrdID, content)
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
		if instrument, refusal = r.Instrument(s.gateway.instruments); refusal != nil {
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
	if refusal != nil {
		s.gateway.Rejects.Add(1)
		report := wire.MassCancelReport{
			ID: []byte("NONE"), ClOrdID: wire.AppendText(nil, string(r.ClOrdID)), Kind: r.MassKind(), Rejected: refusal.Reason,
			At: s.gateway.options.Now().UnixNano(), Text: wire.AppendText(nil, refusal.Text),
		}
		s.Out.Scratch = report.AppendBody(s.Out.Scratch[:0])
		s.send('r', s.Out.Scratch, false)
		return nil
	}
	o := book.Order{Participant: s.Participant.Number, Side: side}
	return s.submit(engine.MassCancel, in, o, 0, r, &request{clOrdID: string(r.ClOrdID), msgType: 'q', content: content})
}

// status handles an H: the order as of the last durable event.
func (s *blotter) status(r *wire.OrderRequest) *wire.Reject {
	if s.gateway.options.Leadership.Confirm() != nil {
		return wire.BusinessReject(wire.RejNotAvailable, r.ClOrdID, s.gateway.LeaderTextOr(session.LeaderText(leadership.Leader{})))
	}
	t, found, err := s.find(r.OrderID, r.ClOrdID)
	if err != nil {
		return s.storeFailed(r.ClOrdID, err)
	}
	now := s.gateway.options.Now()
	if !found {
		if c, ok, err := s.desk.claimNamed(r.OrderID, r.ClOrdID); ok || err != nil {
			return s.desk.reportClaimStatus(r, &c, now, err)
		}
		refusal := wire.Refuse(wire.OrdRejUnknownOrder, wire.CodeUnknownOrder, "ClOrdID (11) %.40q", r.ClOrdID)
		s.reportNoOrder(r, wire.ExecStatus, book.Order{}, nil, refusal)
		return nil
	}
	s.mu.Lock()
	o := s.orders[t.id]
	var copied wire.ClientOrder
	if o != nil {
		copied = o.ClientOrder
	}
	s.mu.Unlock()
	if o == nil {
		stored, err := s.storedOrder(t.id)
		if err != nil {
			s.gateway.Fail(err)
		}
		if stored != nil {
			copied = stored.ClientOrder
		} else { // not accepted yet, or ended a moment ago
			copied = wire.ClientOrder{ID: t.id, ClOrdID: t.clOrdID, Instrument: t.instrument, Side: t.side, Type: t.Type, TIF: t.TIF, OrderTerms: t.OrderTerms, Status: 'A'}
			if t.ended {
				copied.Status = t.status
			}
		}
	}
	report := wire.ExecutionReport{
		Order: &copied, Instrument: s.gateway.instruments.Get(copied.Instrument), ExecType: wire.ExecStatus,
		ExecID: s.gateway.ids.Append(nil), At: now.UnixNano(),
	}
	if report.Instrument == nil {
		return wire.BusinessReject(wire.RejOther, r.ClOrdID, wire.CodeUnknownSymbol+": the order's instrument is not configured")
	}
	s.Out.Scratch = report.AppendBody(s.Out.Scratch[:0])
	s.send('8', s.Out.Scratch, false)
	return nil
}
