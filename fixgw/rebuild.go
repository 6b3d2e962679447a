package fixgw

import (
	"errors"
	"fmt"
	"slices"

	"blockdesk/fixgw/history"
	"blockdesk/fixgw/wire"
	"blockdesk/market"
)

// Requests of a client that rebuilds its state, on the session's goroutine: the open orders
// and claims (AF), the fills (AD), the positions (AN). Each answer may be long, so a
// session may ask for few of them: rebuildRate.

// rebuild handles an AF, AD or AN.
func (h *handler) rebuild(msgType, frame []byte) *wire.Reject {
	g := h.gateway
	now := g.options.Now().UnixNano()
	if !h.rebuilds.Take(now, g.rebuildRate) {
		g.RateLimited.Add(1)
		return wire.BusinessReject(wire.RejNotAvailable, wire.BusinessIDOf(frame),
			fmt.Sprintf("%s: at most %d requests for orders, trades or positions at once and one a second", wire.CodeRateLimited, maxRebuilds))
	}
	if g.options.Leadership.Confirm() != nil {
		return wire.BusinessReject(wire.RejNotAvailable, wire.BusinessIDOf(frame), h.NoLeaderText())
	}
	switch string(msgType) {
	case "AF":
		return h.massStatus(frame, now)
	case "AD":
		return h.tradeRequest(frame, now)
	default:
		h.positionRequest(frame)
		return nil
	}
}

// maxRebuilds is how many AF, AD and AN a session may send at once; one more every second.
const maxRebuilds = 5

// massStatus handles an AF: an ExecutionReport (150=I) of each open order and claim, as of
// the last durable event.
func (h *handler) massStatus(frame []byte, now int64) *wire.Reject {
	r := wire.ScanMassStatus(frame)
	in, side, refusal := r.Check(h.gateway.instruments)
	owner := h
	if refusal == nil && string(r.Kind) == wire.MassStatusParty {
		other := h.gateway.SessionNamed(string(r.Party))
		if other == nil || other.Participant.Number != h.Participant.Number {
			refusal = wire.Refuse(wire.OrdRejUnknownOrder, wire.CodeUnknownOrder, "PartyID (448) %.40q: must be a CompID of your participant", r.Party)
		} else {
			owner = handlerOf(other)
		}
	}
	if refusal != nil {
		h.CountReject()
		h.Out.Scratch = r.AppendNone(h.Out.Scratch[:0], h.gateway.ids.Append(nil), refusal, now)
		h.requests.SendReport("8", h.Out.Scratch)
		return nil
	}
	matches := func(instrument market.InstrumentID, of market.Side) bool {
		return (in == nil || in.ID == instrument) && (side == 0 || side == of) && h.gateway.instruments.Get(instrument) != nil
	}
	orders, claims := owner.orders.Open(matches), owner.quotes.Open(matches)
	total, sent := len(orders)+len(claims), 0
	part := func(body []byte) {
		sent++
		h.Out.Scratch = r.AppendPart(body, total, sent == total)
		h.requests.SendReport("8", h.Out.Scratch)
	}
	for i := range orders {
		report := wire.ExecutionReport{
			Order: &orders[i], Instrument: h.gateway.instruments.Get(orders[i].Instrument), ExecType: wire.ExecStatus,
			ExecID: h.gateway.ids.Append(nil), At: now,
		}
		part(report.AppendBody(h.Out.Scratch[:0]))
	}
	for i := range claims {
		part(h.quotes.AppendStatus(h.Out.Scratch[:0], &claims[i], h.gateway.instruments.Get(claims[i].Terms.Instrument).Symbol, now))
	}
	if total == 0 {
		h.Out.Scratch = r.AppendNone(h.Out.Scratch[:0], h.gateway.ids.Append(nil), nil, now)
		h.requests.SendReport("8", h.Out.Scratch)
	}
	return nil
}

// tradeRequest handles an AD: an AQ, then a TradeCaptureReport (AE) of each fill of the
// session's orders yesterday and today.
func (h *handler) tradeRequest(frame []byte, now int64) *wire.Reject {
	r := wire.ScanTradeRequest(frame)
	f, refusal := r.Parse(h.gateway.instruments)
	var fills []history.Fill
	if refusal == nil {
		q := history.Filter{
			Order: f.Order, ClOrdID: string(r.ClOrdID), ExecID: string(r.ExecID), Trade: f.Trade, Side: f.Side, From: f.From, To: f.To,
		}
		if f.Instrument != nil {
			q.Instrument = &f.Instrument.ID
		}
		var err error
		fills, err = h.gateway.history.Fills(h.Number, &q, now)
		if errors.Is(err, history.ErrTooMany) {
			refusal = wire.Refuse(wire.TradeRequestOther, wire.CodeOverloaded, "%s: ask for a shorter time", err)
		} else if err != nil {
			return h.requests.StoreFailed(r.ID, err)
		}
	}
	fills = slices.DeleteFunc(fills, func(f history.Fill) bool { return h.gateway.instruments.Get(f.Instrument) == nil })
	if refusal != nil {
		h.CountReject()
	}
	h.Out.Scratch = r.AppendAck(h.Out.Scratch[:0], len(fills), refusal)
	h.Send("AQ", wire.TagTradeRequestID, h.Out.Scratch, false)
	var execID, orderID []byte
	for i := range fills {
		f := &fills[i]
		in := h.gateway.instruments.Get(f.Instrument)
		execID = f.AppendExecID(execID[:0])
		b := wire.AppendCaptureHead(h.Out.Scratch[:0], execID, f.Status, in.Symbol)
		b = r.AppendPart(b, len(fills), i == len(fills)-1)
		orderID = fmt.Append(orderID[:0], uint64(f.Order))
		h.Out.Scratch = appendCapture(b, in, f, orderID, h.CompID())
		h.Send("AE", wire.TagTradeReportID, h.Out.Scratch, false)
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
func (h *handler) positionRequest(frame []byte) {
	r := wire.ScanPositionRequest(frame)
	only, refusal := r.Check(h.gateway.instruments)
	var list []wire.Position
	if refusal == nil {
		for _, p := range h.gateway.history.Positions(h.Participant.Number) {
			if in := h.gateway.instruments.Get(p.Instrument); in != nil && (only == nil || only == in) {
				list = append(list, wire.Position{Instrument: in, Bought: p.Bought, Sold: p.Sold, Last: p.Last})
			}
		}
	} else {
		h.CountReject()
	}
	h.Out.Scratch = r.AppendAck(h.Out.Scratch[:0], h.gateway.ids.Append(nil), len(list), refusal)
	h.Send("AO", wire.TagPosMaintRptID, h.Out.Scratch, false)
	for i := range list {
		h.Out.Scratch = r.AppendReport(h.Out.Scratch[:0], h.gateway.ids.Append(nil), &list[i], len(list))
		h.Send("AP", wire.TagPosMaintRptID, h.Out.Scratch, false)
	}
}
