package orders

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"blockdesk/engine"
	"blockdesk/engine/book"
	"blockdesk/engine/event"
	"blockdesk/engine/lists"
	"blockdesk/engine/rfq"
	"blockdesk/fixgw/reports"
	"blockdesk/fixgw/wire"
	"blockdesk/market"
)

// Lists of orders: NewOrderList (E), answered by a ListStatus (N) and a report (8) of each
// order. The engine takes a list whole or not at all, in one command. The ListIDs are a name
// space of their own: wire.ListPrefix.

// listScratch lets lists be submitted with few allocations.
type listScratch struct {
	fields   []wire.OrderRequest
	list     lists.List
	requests []*reports.Request
	commands []engine.Command
	key      []byte
}

// OrderList handles an E.
func (s *Session) OrderList(frame []byte) *wire.Reject {
	r := wire.ScanList(frame, s.lists.fields)
	s.lists.fields = r.Orders
	if refusal := r.Check(); refusal != nil {
		return s.refuseList(&r, -1, refusal)
	}
	s.lists.key = append(append(s.lists.key[:0], wire.ListPrefix...), r.ListID...)
	content := r.Content()
	done, duplicate, reject := s.Repeated(s.lists.key, content)
	switch {
	case done:
		return reject
	case duplicate:
		return s.refuseList(&r, -1, wire.RefuseDuplicate(wire.OrdRejDuplicate, "ListID (66)", r.ListID))
	case s.entry.Format1:
		return s.refuseList(&r, -1, wire.Refuse(wire.OrdRejUnsupported, wire.CodeUnsupported, "NewOrderList (E): %s", rfq.ErrNotFinalized))
	}
	l := &s.lists.list
	*l = lists.List{Ref: s.lists.key, FirstID: s.entry.Engine.NextOrderIDs(len(r.Orders)), Entries: l.Entries[:0]}
	s.lists.requests = append(s.lists.requests[:0], &reports.Request{ClOrdID: string(s.lists.key), MsgType: 'E', Content: content})
	for i := range r.Orders {
		refusal, err := s.addListed(&r, i)
		if err != nil {
			return s.StoreFailed(r.ListID, err)
		}
		if refusal != nil {
			return s.refuseList(&r, i, refusal)
		}
	}
	return s.submitList(&r)
}

// addListed adds the order i of an E to the list.
func (s *Session) addListed(r *wire.ListRequest, i int) (*wire.Refusal, error) {
	l, request := &s.lists.list, &r.Orders[i]
	order, in, refusal := request.DecodeNew(s.entry.Instruments, s.entry.Now())
	if refusal == nil {
		refusal = request.CheckClOrdID()
	}
	if refusal != nil {
		return refusal, nil
	}
	used, err := s.Used(request.ClOrdID)
	for j := range i {
		used = used || bytes.Equal(r.Orders[j].ClOrdID, request.ClOrdID)
	}
	if err != nil || used {
		return wire.Refuse(wire.OrdRejDuplicate, wire.CodeDuplicate, "ClOrdID (11) %.40q: an earlier request has this id", request.ClOrdID), err
	}
	account, refusal := s.numberAccount(request)
	if refusal != nil {
		return refusal, nil
	}
	order.ID, order.STP = l.FirstID+market.OrderID(i), s.Terms().STP
	entry := &reports.Request{
		ClOrdID: string(request.ClOrdID), MsgType: 'D', ID: order.ID, Content: request.Content('D'), Instrument: in.ID, Side: order.Side,
		Terms: wire.AmendTarget{Type: order.Type, TIF: order.TIF, OrderTerms: wire.TermsOf(&order, string(request.Account))},
	}
	if entry.Terms.Any() { // the reports repeat them
		order.Flags |= book.FlagTerms
	}
	l.Entries = append(l.Entries, lists.Entry{Order: order, Arg: packTerms(account, wire.AsLogon), Instrument: in.ID, Ref: request.ClOrdID})
	s.lists.requests = append(s.lists.requests, entry)
	return nil, nil
}

// submitList passes the list to the engine, after all its requests are registered.
func (s *Session) submitList(r *wire.ListRequest) *wire.Reject {
	var err error
	if s.lists.commands, err = engine.ListCommands(s.lists.commands[:0], &s.lists.list); err != nil {
		return wire.BusinessReject(wire.RejOther, r.ListID, s.UnavailableText("the engine did not accept the list"))
	}
	last := &s.lists.commands[len(s.lists.commands)-1]
	last.Origin, last.Order.Participant = s.Number, s.Participant.Number
	registered := 0
	for ; registered < len(s.lists.requests) && err == nil; registered++ {
		err = s.Register(s.lists.requests[registered])
	}
	if err == nil {
		if err = s.entry.Engine.SubmitAll(s.lists.commands); err == nil {
			return nil
		}
	}
	for _, request := range s.lists.requests[:registered] {
		s.Unregister(request, err)
	}
	return wire.BusinessReject(wire.RejNotAvailable, r.ListID, s.RefusalText(err))
}

// refuseList answers an E of which nothing is carried out; at is the order that is refused,
// -1 = the list. Its ids may be used again.
func (s *Session) refuseList(r *wire.ListRequest, at int, refusal *wire.Refusal) *wire.Reject {
	if len(r.Orders) == 0 || len(r.ListID) == 0 {
		return wire.BusinessReject(wire.RejOther, r.ListID, refusal.Text)
	}
	s.CountReject()
	status := wire.ListStatus{ListID: r.ListID, Refused: true, Text: []byte(refusal.Text), At: s.entry.Now().UnixNano()}
	for i := range r.Orders {
		o := wire.ListedOrder{ClOrdID: string(r.Orders[i].ClOrdID), Reason: wire.OrdRejOther, Text: []byte(event.ReasonListRefused.String())}
		if at < 0 || at == i {
			o.Reason, o.Text = refusal.Reason, status.Text
		}
		status.Orders = append(status.Orders, o)
	}
	s.Out.Scratch = status.AppendBody(s.Out.Scratch[:0])
	s.Send("N", wire.TagListID, s.Out.Scratch, false)
	return nil
}

// cancelOwn cancels the session's orders, accepted or on their way to the engine. A book does not
// know the sessions of its orders, so lists of cancels name them, each in one command.
func (s *Session) cancelOwn(r *wire.OrderRequest, on market.InstrumentID, side market.Side, content uint64) *wire.Reject {
	entries := s.ownOrders(on, side)
	request := &reports.Request{ClOrdID: string(r.ClOrdID), MsgType: 'q', Content: content}
	if err := s.Register(request); err != nil {
		return wire.BusinessReject(wire.RejNotAvailable, r.ClOrdID, s.RefusalText(err))
	}
	for total := len(entries); ; {
		n := min(len(entries), lists.MaxCancels)
		l := lists.List{Ref: r.ClOrdID, Cancel: true, More: n < len(entries), On: on, Side: side, Entries: entries[:n]}
		commands, err := engine.ListCommands(s.lists.commands[:0], &l)
		if err == nil {
			s.lists.commands = commands
			last := &commands[len(commands)-1]
			last.Origin, last.Order.Participant = s.Number, s.Participant.Number
			err = s.entry.Engine.SubmitAll(commands)
		}
		if err != nil {
			s.Unregister(request, err)
			text := s.RefusalText(err)
			if len(entries) < total {
				text += fmt.Sprintf(": %d of %d orders are being cancelled", total-len(entries), total)
			}
			return wire.BusinessReject(wire.RejNotAvailable, r.ClOrdID, text)
		}
		if entries = entries[n:]; len(entries) == 0 {
			return nil
		}
	}
}

// ownOrders returns the session's orders on an instrument or all, of a side or both (0), by their
// ids.
func (s *Session) ownOrders(on market.InstrumentID, side market.Side) (entries []lists.Entry) {
	matches := func(in market.InstrumentID, of market.Side) bool {
		return (on == engine.AllInstruments || on == in) && (side == 0 || side == of)
	}
	add := func(id market.OrderID, in market.InstrumentID, of market.Side) {
		if matches(in, of) {
			e := lists.Entry{Instrument: in}
			e.Order.ID = id
			entries = append(entries, e)
		}
	}
	// Requests first: one that is accepted meanwhile is an order afterwards.
	s.Pending(func(r *reports.Request) {
		if r.MsgType == 'D' {
			add(r.ID, r.Instrument, r.Side)
		}
	})
	s.mu.Lock()
	for id, o := range s.orders {
		if o.Live() {
			add(id, o.Instrument, o.Side)
		}
	}
	s.mu.Unlock()
	slices.SortFunc(entries, func(a, b lists.Entry) int { return cmp.Compare(a.Order.ID, b.Order.ID) })
	return slices.CompactFunc(entries, func(a, b lists.Entry) bool { return a.Order.ID == b.Order.ID })
}

// listed answers a list: e is its last event.
func (f *Reporter) listed(e *event.Event) error {
	s := f.session()
	id, ok := bytes.CutPrefix(f.out.Command.ClOrdID(), []byte(wire.ListPrefix))
	if s == nil || !ok {
		return nil
	}
	status := wire.ListStatus{ListID: id, Refused: e.Code != 0, At: e.At}
	if status.Refused {
		status.Text = []byte(event.Reason(e.Code).String())
	}
	for i := range int(e.Qty) {
		o, err := f.listedOrder(s, e.OrderID+market.OrderID(i))
		if err != nil {
			return err
		}
		if o != nil {
			status.Orders = append(status.Orders, *o)
		}
	}
	for _, r := range f.refusedListed {
		if i := int(r.OrderID - e.OrderID); i >= 0 && i < len(status.Orders) {
			status.Orders[i].Reason = wire.OrdRejOf(event.Reason(r.Code))
			status.Orders[i].Text = fmt.Append(nil, event.Reason(r.Code))
		}
	}
	f.body = status.AppendBody(f.body[:0])
	f.out.KeepAnswer(s.Session, wire.AnswerList, f.body, nil)
	f.out.Emit(s.Session, "N", wire.TagListID, f.body)
	return nil
}

// listedOrder returns an order of a list as its client sees it, also if it has ended, nil if its
// instrument is not configured any more.
func (f *Reporter) listedOrder(s *Session, id market.OrderID) (*wire.ListedOrder, error) {
	o := f.orders[id]
	for _, ended := range f.changed { // not committed yet; a refused order is only there
		if o == nil && ended.ID == id {
			o = ended
		}
	}
	if o == nil {
		var err error
		if o, err = s.stored(id); err != nil || o == nil {
			return nil, err
		}
	}
	return &wire.ListedOrder{ClOrdID: o.ClOrdID, Order: &o.ClientOrder, Instrument: f.instruments.Get(o.Instrument), Reason: -1}, nil
}
