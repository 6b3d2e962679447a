package fixgw

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"blockdesk/fixgw/history"
	"blockdesk/fixgw/session"
	"blockdesk/fixgw/wire"
	"blockdesk/market"
	"blockdesk/persist/leadership"
)

// Requests of a client that rebuilds its state, on the session's goroutine: the open orders
// and claims (AF), the fills (AD), the positions (AN). Each answer may be long, so a
// session may ask for few of them: rebuildRate.

// rebuild handles an AF, AD or AN.
func (s *blotter) rebuild(msgType, frame []byte) *wire.Reject {
	g := s.gateway
	now := g.options.Now().UnixNano()
	if !s.rebuilds.Take(now, g.rebuildRate) {
		g.RateLimited.Add(1)
		return wire.BusinessReject(wire.RejNotAvailable, wire.BusinessIDOf(frame),
			fmt.Sprintf("%s: at most %d requests for orders, trades or positions at once and one a second", wire.CodeRateLimited, maxRebuilds))
	}
	if g.options.Leadership.Confirm() != nil {
		return wire.BusinessReject(wire.RejNotAvailable, wire.BusinessIDOf(frame), g.LeaderTextOr(session.LeaderText(leadership.Leader{})))
	}
	switch string(msgType) {
	case "AF":
		return s.massStatus(frame, now)
	case "AD":
		return s.tradeRequest(frame, now)
	default:
		s.positionRequest(frame)
		return nil
	}
}

// maxRebuilds is how many AF, AD and AN a session may send at once; one more every second.
const maxRebuilds = 5

// massStatus handles an AF: an ExecutionReport (150=I) of each open order and claim, as of
// the last durable event.
func (s *blotter) massStatus(frame []byte, now int64) *wire.Reject {
	r := wire.ScanMassStatus(frame)
	in, side, refusal := r.Check(s.gateway.instruments)
	owner := s
	if refusal == nil && string(r.Kind) == wire.MassStatusParty {
		other := s.gateway.SessionNamed(string(r.Party))
		if other == nil || other.Participant.Number != s.Participant.Number {
			refusal = wire.Refuse(wire.OrdRejUnknownOrder, wire.CodeUnknownOrder, "PartyID (448) %.40q: must be a CompID of your participant", r.Party)
		} else {
			owner = s.gateway.blotterOf(other)
		}
	}
	if refusal != nil {
		s.gateway.Rejects.Add(1)
		s.Out.Scratch = r.AppendNone(s.Out.Scratch[:0], s.gateway.ids.Append(nil), refusal, now)
		s.send('8', s.Out.Scratch, false)
		return nil
	}
	matches := func(instrument market.InstrumentID, of market.Side) bool {
		return (in == nil || in.ID == instrument) && (side == 0 || side == of) && s.gateway.instruments.Get(instrument) != nil
	}
	orders, claims := owner.open(matches)
	total, sent := len(orders)+len(claims), 0
	part := func(body []byte) {
		sent++
		s.Out.Scratch = r.AppendPart(body, total, sent == total)
		s.send('8', s.Out.Scratch, false)
	}
	for i := range orders {
		report := wire.ExecutionReport{
			Order: &orders[i], Instrument: s.gateway.instruments.Get(orders[i].Instrument), ExecType: wire.ExecStatus,
			ExecID: s.gateway.ids.Append(nil), At: now,
		}
		part(report.AppendBody(s.Out.Scratch[:0]))
	}
	for i := range claims {
		part(s.desk.appendClaimStatus(s.Out.Scratch[:0], &claims[i], s.gateway.instruments.Get(claims[i].Terms.Instrument).Symbol, now))
	}
	if total == 0 {
		s.Out.Scratch = r.AppendNone(s.Out.Scratch[:0], s.gateway.ids.Append(nil), nil, now)
		s.send('8', s.Out.Scratch, false)
	}
	return nil
}

// open returns copies of the session's live orders and claims that match, by their ids.
func (s *blotter) open(matches func(market.InstrumentID, market.Side) bool) (orders []wire.ClientOrder, claims []claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.orders {
		if o.Live() && matches(o.Instrument, o.Side) {
			orders = append(orders, o.ClientOrder)
		}
	}
	for _, c := range s.desk.claims {
		if matches(c.Terms.Instrument, market.Buy) {
			claims = append(claims, c.snapshot())
		}
	}
	slices.SortFunc(orders, func(a, b wire.ClientOrder) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(claims, func(a, b claim) int { return cmp.Compare(a.ID, b.ID) })
	return orders, claims
}

// tradeRequest handles an AD: an AQ, then a TradeCaptureReport (AE) of each fill of the
// session's orders yesterday and today.
func (s *blotter) tradeRequest(frame []byte, now int64) *wire.Reject {
	r := wire.ScanTradeRequest(frame)
	f, refusal := r.Parse(s.gateway.instruments)
	var fills []history.Fill
	if refusal == nil {
		q := history.Filter{
			Order: f.Order, ClOrdID: string(r.ClOrdID), ExecID: string(r.ExecID), Trade: f.Trade, Side: f.Side, From: f.From, To: f.To,
		}
		if f.Instrument != nil {
			q.Instrument = &f.Instrument.ID
		}
		var err error
		fills, err = s.gateway.history.Fills(s.Number, &q, now)
		if errors.Is(err, history.ErrTooMany) {
			refusal = wire.Refuse(wire.TradeRequestOther, wire.CodeOverloaded, "%s: ask for a shorter time", err)
		} else if err != nil {
			return s.storeFailed(r.ID, err)
		}
	}
	fills = slices.DeleteFunc(fills, func(f history.Fill) bool { return s.gateway.instruments.Get(f.Instrument) == nil })
	if refusal != nil {
		s.gateway.Rejects.Add(1)
	}
	s.Out.Scratch = r.AppendAck(s.Out.Scratch[:0], len(fills), refusal)
	s.Send("AQ", wire.TagTradeRequestID, s.Out.Scratch, false)
	var execID, orderID []byte
	for i := range fills {
		f := &fills[i]
		in := s.gateway.instruments.Get(f.Instrument)
		execID = f.AppendExecID(execID[:0])
		b := wire.AppendCaptureHead(s.Out.Scratch[:0], execID, f.Status, in.Symbol)
		b = r.AppendPart(b, len(fills), i == len(fills)-1)
		orderID = fmt.Append(orderID[:0], uint64(f.Order))
		s.Out.Scratch = appendCapture(b, in, f, orderID, s.CompID())
		s.Send("AE", wire.TagTradeReportID, s.Out.Scratch, false)
	}
	return nil
}

// appendCapture appends the fields of a TradeCaptureReport (35=AE) after its head.
func appendCapture(b []byte, in *market.Instrument, f *history.Fill, orderID []byte, compID string) []byte {
	b = fmt.Appendf(b, "\x01880=%d", f.Trade)
	b = in.AppendQty(append(b, "\x0132="...), f.Qty)
	b = in.AppendPrice(append(b, "\x0131="...), f.Price)
	side := wire.CaptureSide{At: f.At, Side: '0' + byte(f.Side), OrderID: orderID, ClOrdID: f.ClOrdID, CompID: compID, Account: f.Account}
	return side.Append(b)
}

// positionRequest handles an AN: an AO, then a PositionReport (AP) of each instrument that
// the participant has traded.
func (s *blotter) positionRequest(frame []byte) {
	r := wire.ScanPositionRequest(frame)
	only, refusal := r.Check(s.gateway.instruments)
	var list []wire.Position
	if refusal == nil {
		for _, p := range s.gateway.history.Positions(s.Participant.Number) {
			if in := s.gateway.instruments.Get(p.Instrument); in != nil && (only == nil || only == in) {
				list = append(list, wire.Position{Instrument: in, Bought: p.Bought, Sold: p.Sold, Last: p.Last})
			}
		}
	} else {
		s.gateway.Rejects.Add(1)
	}
	s.Out.Scratch = r.AppendAck(s.Out.Scratch[:0], s.gateway.ids.Append(nil), len(list), refusal)
	s.Send("AO", wire.TagPosMaintRptID, s.Out.Scratch, false)
	for i := range list {
		s.Out.Scratch = r.AppendReport(s.Out.Scratch[:0], s.gateway.ids.Append(nil), &list[i], len(list))
		s.Send("AP", wire.TagPosMaintRptID, s.Out.Scratch, false)
	}
}
