package wire

import (
	"strconv"

	"blockdesk/market"
)

// Requests of a client that rebuilds its state: AF for its orders, AD for its fills, AN for
// its positions.

// Tags that the answers' bodies begin with.
const (
	TagTradeRequestID = 568
	TagPosMaintRptID  = 721
)

// Values of MassStatusReqType (585) that are served.
const (
	MassStatusSymbol  = "1"
	MassStatusProduct = "3"
	MassStatusAll     = "7"
	MassStatusParty   = "8"
)

// product is Product (460) of every instrument: other.
const product = "12"

// MassStatusRequest holds the raw values of an AF; nil = absent. They alias the message.
type MassStatusRequest struct {
	ID, Kind      []byte // 584 585
	Symbol, Party []byte // 55 448
	product, side []byte // 460 54
}

// ScanMassStatus reads the fields of an AF that has passed the dictionary.
func ScanMassStatus(frame []byte) (r MassStatusRequest) {
	readFields(frame, map[int]*[]byte{584: &r.ID, 585: &r.Kind, 55: &r.Symbol, 448: &r.Party, 460: &r.product, 54: &r.side})
	return r
}

// Check returns why a request cannot be served; in is the instrument that it is about, nil
// = all. The refusal's reason is an OrdRejReason.
func (r *MassStatusRequest) Check(set *market.Instruments) (in *market.Instrument, side market.Side, refusal *Refusal) {
	if len(r.ID) == 0 || len(r.ID) > MaxRequestID || !IsPrintable(r.ID) {
		return nil, 0, Refuse(OrdRejOther, CodeInvalidField, "MassStatusReqID (584) %.80q: must be 1 to %d printable ASCII characters", r.ID, MaxRequestID)
	}
	request := OrderRequest{Symbol: r.Symbol, Side: r.side}
	if r.side != nil {
		if side, refusal = request.ParseSide(); refusal != nil {
			return nil, 0, refusal
		}
	}
	switch string(r.Kind) {
	case MassStatusSymbol:
		in, refusal = request.Instrument(set)
	case MassStatusProduct:
		if string(r.product) != product {
			refusal = Refuse(OrdRejUnsupported, CodeUnsupported, "Product (460) %.20q: every instrument is %s", r.product, product)
		}
	case MassStatusAll, MassStatusParty:
	default:
		refusal = Refuse(OrdRejUnsupported, CodeUnsupported, "MassStatusReqType (585) %.20q: must be 1 (security), 3 (product), 7 (all) or 8 (party)", r.Kind)
	}
	return in, side, refusal
}

// AppendPart appends the fields of one of the reports that answer an AF.
func (r *MassStatusRequest) AppendPart(dst []byte, total int, last bool) []byte {
	dst = append(append(dst, "\x01584="...), r.ID...)
	dst = strconv.AppendInt(append(dst, "\x01911="...), int64(total), 10)
	return appendLast(dst, last)
}

func appendLast(dst []byte, last bool) []byte {
	if last {
		return append(dst, "\x01912=Y"...)
	}
	return append(dst, "\x01912=N"...)
}

// AppendNone appends, without "37=" and without the last SOH, the one report that answers
// an AF without an order: refusal is nil if there is none.
func (r *MassStatusRequest) AppendNone(dst, execID []byte, refusal *Refusal, at int64) []byte {
	dst = append(append(dst, "NONE\x0117="...), execID...)
	symbol := NoSymbol
	if len(r.Symbol) > 0 {
		symbol = string(r.Symbol)
	}
	dst = AppendText(append(dst, "\x01150=I\x0139=8\x0155="...), symbol)
	dst = AppendTime(append(dst, "\x0154=7\x01151=0\x0114=0\x016=0\x0160="...), at)
	text, reason := CodeUnknownOrder+": no order is open", OrdRejUnknownOrder
	if refusal != nil {
		text, reason = refusal.Text, refusal.Reason
	}
	dst = AppendText(append(dst, "\x0158="...), text)
	dst = strconv.AppendInt(append(dst, "\x01103="...), int64(reason), 10)
	if len(r.ID) > 0 {
		dst = AppendText(append(dst, "\x01584="...), string(r.ID))
	}
	return append(dst, "\x01911=0\x01912=Y"...)
}

// Values of TradeRequestResult (749).
const (
	TradeRequestUnknownInstrument = 1
	tradeRequestKind              = 8 // TradeRequestType not supported
	TradeRequestOther             = 99
)

// TradeRequest holds the values of an AD; nil = absent. They alias the message.
type TradeRequest struct {
	ID                       []byte // 568
	OrderID, ClOrdID, ExecID []byte // 37 11 17
	Symbol                   []byte // 55
	kind, subscription       []byte // 569 263
	side, trade              []byte // 54 880
	dates                    []byte // 580
	times                    []tradeTime
}

// tradeTime is an entry of an AD's group of dates; nil = absent.
type tradeTime struct{ date, time []byte }

// ScanTradeRequest reads the fields of an AD that has passed the dictionary.
func ScanTradeRequest(frame []byte) (r TradeRequest) {
	readFields(frame, map[int]*[]byte{
		568: &r.ID, 569: &r.kind, 263: &r.subscription, 37: &r.OrderID, 11: &r.ClOrdID, 17: &r.ExecID,
		55: &r.Symbol, 54: &r.side, 880: &r.trade, 580: &r.dates,
	})
	EachField(frame, func(tag int, value []byte) {
		const limit = 3 // one more than are allowed
		switch {
		case tag == 75 && len(r.times) < limit:
			r.times = append(r.times, tradeTime{date: value})
		case tag == 60 && len(r.times) > 0:
			r.times[len(r.times)-1].time = value
		}
	})
	return r
}

// TradeFilter is what an AD selects; a zero field selects all.
type TradeFilter struct {
	Instrument *market.Instrument
	Side       market.Side
	Order      market.OrderID
	Trade      market.TradeID
	From, To   int64 // Unix nanoseconds, both included; To 0 = now
}

// Parse returns what the request selects. The refusal's reason is a TradeRequestResult.
func (r *TradeRequest) Parse(set *market.Instruments) (f TradeFilter, refusal *Refusal) {
	other := func(format string, args ...any) (TradeFilter, *Refusal) {
		return f, Refuse(TradeRequestOther, CodeInvalidField, format, args...)
	}
	switch {
	case len(r.ID) == 0 || len(r.ID) > MaxRequestID || !IsPrintable(r.ID):
		return other("TradeRequestID (568) %.80q: must be 1 to %d printable ASCII characters", r.ID, MaxRequestID)
	case string(r.kind) != "0" && string(r.kind) != "1":
		return f, Refuse(tradeRequestKind, CodeUnsupported, "TradeRequestType (569) %.20q: must be 0 (all trades) or 1 (those that match)", r.kind)
	case r.subscription != nil && string(r.subscription) != "0":
		return f, Refuse(TradeRequestOther, CodeUnsupported, "SubscriptionRequestType (263) %.20q: must be 0; new fills come by drop copy", r.subscription)
	}
	if r.Symbol != nil {
		if f.Instrument = set.Lookup(r.Symbol); f.Instrument == nil {
			return f, RefuseSymbol(TradeRequestUnknownInstrument, set, r.Symbol)
		}
	}
	if r.side != nil {
		request := OrderRequest{Side: r.side}
		if f.Side, refusal = request.ParseSide(); refusal != nil {
			refusal.Reason = TradeRequestOther
			return f, refusal
		}
	}
	if r.OrderID != nil {
		id, err := strconv.ParseUint(string(r.OrderID), 10, 64)
		if err != nil || id == 0 {
			return other("OrderID (37) %.40q: is not that of an order", r.OrderID)
		}
		f.Order = market.OrderID(id)
	}
	if r.trade != nil {
		id, err := strconv.ParseUint(string(r.trade), 10, 64)
		if err != nil || id == 0 {
			return other("TrdMatchID (880) %.40q: is not that of a trade", r.trade)
		}
		f.Trade = market.TradeID(id)
	}
	return r.parseTimes(f)
}

// parseTimes reads the group of dates: one is a day or the begin, two are begin and end.
func (r *TradeRequest) parseTimes(f TradeFilter) (TradeFilter, *Refusal) {
	if r.dates == nil {
		return f, nil
	}
	if len(r.times) < 1 || len(r.times) > 2 || string(r.dates) != strconv.Itoa(len(r.times)) {
		return f, Refuse(TradeRequestOther, CodeInvalidField, "NoDates (580) %.20q: 1 or 2 entries, each with TradeDate (75)", r.dates)
	}
	const day = 24 * 60 * 60 * 1_000_000_000
	for i, t := range r.times {
		at, ok := parseDate(t.date)
		end := at + day - 1
		if t.time != nil {
			at, ok = parseTimestamp(t.time)
			end = at
		}
		if !ok {
			return f, Refuse(TradeRequestOther, CodeInvalidField, "TradeDate (75) %.20q, TransactTime (60) %.40q: must be YYYYMMDD and YYYYMMDD-HH:MM:SS[.sss]", t.date, t.time)
		}
		if i == 0 {
			f.From = at
		}
		if i == 1 || t.time == nil { // a time alone is a begin
			f.To = end
		}
	}
	return f, nil
}

// AppendAck appends a TradeCaptureReportRequestAck (35=AQ) without "568=" and without the
// last SOH; refusal nil = total reports follow.
func (r *TradeRequest) AppendAck(dst []byte, total int, refusal *Refusal) []byte {
	dst = AppendText(dst, string(r.ID))
	kind := byte('0')
	if len(r.kind) == 1 {
		kind = r.kind[0]
	}
	dst = append(append(dst, "\x01569="...), kind)
	dst = strconv.AppendInt(append(dst, "\x01748="...), int64(total), 10)
	if refusal != nil {
		dst = strconv.AppendInt(append(dst, "\x01749="...), int64(refusal.Reason), 10)
		return AppendText(append(dst, "\x01750=2\x0158="...), refusal.Text)
	}
	if total == 0 {
		return append(dst, "\x01749=0\x01750=1"...) // completed
	}
	return append(dst, "\x01749=0\x01750=0"...)
}

// AppendPart appends the fields of one of the reports that answer an AD.
func (r *TradeRequest) AppendPart(dst []byte, total int, last bool) []byte {
	dst = append(append(dst, "\x01568="...), r.ID...)
	dst = strconv.AppendInt(append(dst, "\x01748="...), int64(total), 10)
	return appendLast(dst, last)
}

// Values of PosReqResult (728).
const (
	posReqInvalid     = 1
	posReqNone        = 2
	posReqUnsupported = 4
)

// PositionRequest holds the raw values of an AN; nil = absent. They alias the message.
type PositionRequest struct {
	ID            []byte // 710
	Symbol        []byte // 55
	account, kind []byte // 1 581
	request, date []byte // 724 715
	subscription  []byte // 263
}

// ScanPositionRequest reads the fields of an AN that has passed the dictionary.
func ScanPositionRequest(frame []byte) (r PositionRequest) {
	readFields(frame, map[int]*[]byte{
		710: &r.ID, 55: &r.Symbol, 1: &r.account, 581: &r.kind, 724: &r.request, 715: &r.date, 263: &r.subscription,
	})
	return r
}

// Check returns why the request cannot be served, with a PosReqResult as its reason; in is
// the instrument that it is about, nil = all.
func (r *PositionRequest) Check(set *market.Instruments) (in *market.Instrument, refusal *Refusal) {
	switch {
	case len(r.ID) == 0 || len(r.ID) > MaxRequestID || !IsPrintable(r.ID):
		return nil, Refuse(posReqInvalid, CodeInvalidField, "PosReqID (710) %.80q: must be 1 to %d printable ASCII characters", r.ID, MaxRequestID)
	case string(r.request) != "0":
		return nil, Refuse(posReqUnsupported, CodeUnsupported, "PosReqType (724) %.20q: must be 0 (positions)", r.request)
	case r.subscription != nil && string(r.subscription) != "0":
		return nil, Refuse(posReqUnsupported, CodeUnsupported, "SubscriptionRequestType (263) %.20q: must be 0", r.subscription)
	}
	if r.Symbol != nil {
		if in = set.Lookup(r.Symbol); in == nil {
			return nil, RefuseSymbol(posReqInvalid, set, r.Symbol)
		}
	}
	return in, nil
}

// appendParty appends the fields that both answers repeat.
func (r *PositionRequest) appendParty(dst []byte) []byte {
	dst = AppendText(append(dst, "\x011="...), string(r.account[:min(len(r.account), MaxAccount)]))
	return AppendText(append(dst, "\x01581="...), string(r.kind[:min(len(r.kind), 1)]))
}

// AppendAck appends a RequestForPositionsAck (35=AO) without "721=" and without the last
// SOH; refusal nil = total reports follow.
func (r *PositionRequest) AppendAck(dst, id []byte, total int, refusal *Refusal) []byte {
	dst = append(dst, id...)
	dst = AppendText(append(dst, "\x01710="...), string(r.ID[:min(len(r.ID), MaxRequestID)]))
	dst = strconv.AppendInt(append(dst, "\x01727="...), int64(total), 10)
	result, status := 0, byte('0')
	switch {
	case refusal != nil:
		result, status = refusal.Reason, '2'
	case total == 0:
		result = posReqNone
	}
	dst = strconv.AppendInt(append(dst, "\x01728="...), int64(result), 10)
	dst = r.appendParty(append(append(dst, "\x01729="...), status))
	if refusal != nil {
		dst = AppendText(append(dst, "\x0158="...), refusal.Text)
	}
	return dst
}

// Position is what a participant has traded on an instrument.
type Position struct {
	Instrument   *market.Instrument
	Bought, Sold market.Uint128 // lots
	Last         market.Price   // of the newest trade; 0 = none
}

// AppendReport appends a PositionReport (35=AP) without "721=" and without the last SOH.
func (r *PositionRequest) AppendReport(dst, id []byte, p *Position, total int) []byte {
	dst = append(append(append(dst, id...), "\x01710="...), r.ID...)
	dst = strconv.AppendInt(append(dst, "\x01724=0\x01727="...), int64(total), 10)
	dst = append(append(dst, "\x01728=0\x01715="...), r.date...)
	dst = r.appendParty(dst)
	dst = append(append(dst, "\x0155="...), p.Instrument.Symbol...)
	dst = append(append(dst, "\x0115="...), p.Instrument.Quote...)
	dst = p.Instrument.AppendPrice(append(dst, "\x01730="...), p.Last)
	dst = append(dst, "\x01731=1\x01734=0\x01702=1\x01703=TQ\x01704="...)
	dst = p.Instrument.AppendLots(dst, p.Bought)
	return append(p.Instrument.AppendLots(append(dst, "\x01705="...), p.Sold), "\x01706=0"...)
}
