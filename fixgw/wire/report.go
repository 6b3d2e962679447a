package wire

import (
	"strconv"

	"blockdesk/engine/event"
	"blockdesk/market"
)

// Values of ExecType (150). Fills are 'F': FIX 4.4 has no '1' and '2' here.
const (
	ExecNew       byte = '0'
	ExecCancelled byte = '4'
	ExecReplaced  byte = '5'
	ExecRejected  byte = '8'
	ExecExpired   byte = 'C'
	ExecRestated  byte = 'D'
	ExecTrade     byte = 'F'
	ExecStatus    byte = 'I'
)

// Tags that bodies begin with.
const (
	TagOrderID = 37
	TagMDReqID = 262

	TagSecurityReqID = 320
	TagStatusReqID   = 324
	TagTradSesReqID  = 335
)

// AvgPxDigits is the number of digits that an inexact average price has beyond the
// instrument's.
const AvgPxDigits = 6

// ExecutionReport is one ExecutionReport (35=8).
type ExecutionReport struct {
	Order       *ClientOrder
	Instrument  *market.Instrument
	ExecID      []byte
	ExecType    byte
	ClOrdID     []byte // nil = the order's
	OrigClOrdID []byte
	LastQty     market.Qty // 0 = no fill
	LastPx      market.Price
	Trade       market.TradeID // the public number of the fill; SecondaryExecID (527)
	Maker       bool           // of the fill: the order rested
	At          int64          // TransactTime, Unix nanoseconds
	Text        []byte
	OrdRej      int // OrdRejReason; only when execType is ExecRejected
	Restated    int // ExecRestatementReason; 0 = none
}

// AppendBody appends the report's body without "37=" and without the last SOH. The order
// of the fields is free in FIX.
func (r *ExecutionReport) AppendBody(dst []byte) []byte {
	o := r.Order
	dst = strconv.AppendUint(dst, uint64(o.ID), 10)
	clOrdID := r.ClOrdID
	if clOrdID == nil {
		clOrdID = []byte(o.ClOrdID)
	}
	dst = append(append(dst, "\x0111="...), clOrdID...)
	if r.OrigClOrdID != nil {
		dst = append(append(dst, "\x0141="...), r.OrigClOrdID...)
	}
	dst = append(append(dst, "\x0117="...), r.ExecID...)
	dst = append(append(dst, "\x01150="...), r.ExecType)
	dst = append(append(dst, "\x0139="...), o.Status)
	dst = append(append(dst, "\x0155="...), r.Instrument.Symbol...)
	dst = append(append(dst, "\x0154="...), '0'+byte(o.Side))
	dst = r.Instrument.AppendQty(append(dst, "\x0138="...), o.Total)
	if c := ordTypeOf(o.Type); c != 0 {
		dst = append(append(dst, "\x0140="...), c)
	}
	if o.Price > 0 {
		dst = r.Instrument.AppendPrice(append(dst, "\x0144="...), o.Price)
	}
	if c := tifOf(o.TIF); c != 0 {
		dst = append(append(dst, "\x0159="...), c)
	}
	dst = append(append(dst, "\x0115="...), r.Instrument.Quote...)
	if o.Any() {
		dst = o.append(dst, r.Instrument)
	}
	if o.QuoteSet > 0 {
		dst = strconv.AppendUint(append(dst, "\x01583="...), uint64(o.QuoteSet), 10)
	}
	if r.LastQty > 0 {
		liquidity := byte('2') // removed
		if r.Maker {
			liquidity = '1'
		}
		dst = append(append(dst, "\x01851="...), liquidity)
		dst = strconv.AppendUint(append(dst, "\x01527="...), uint64(r.Trade), 10)
		dst = r.Instrument.AppendQty(append(dst, "\x0132="...), r.LastQty)
		dst = r.Instrument.AppendPrice(append(dst, "\x0131="...), r.LastPx)
	}
	leaves := o.Leaves
	if !o.Live() {
		leaves = 0
	}
	dst = r.Instrument.AppendQty(append(dst, "\x01151="...), leaves)
	dst = r.Instrument.AppendQty(append(dst, "\x0114="...), o.Cum)
	dst = appendAvgPx(append(dst, "\x016="...), r.Instrument, o.Notional, o.Cum)
	dst = AppendTime(append(dst, "\x0160="...), r.At)
	if len(r.Text) > 0 {
		dst = append(append(dst, "\x0158="...), r.Text...)
	}
	if r.ExecType == ExecRejected {
		dst = strconv.AppendInt(append(dst, "\x01103="...), int64(r.OrdRej), 10)
	}
	if r.Restated != 0 {
		dst = strconv.AppendInt(append(dst, "\x01378="...), int64(r.Restated), 10)
	}
	return dst
}

// appendAvgPx appends notional ÷ cum as a decimal price, rounded down: with the
// instrument's digits where that is exact, else with AvgPxDigits more. "0" when
// nothing has traded.
func appendAvgPx(dst []byte, in *market.Instrument, notional market.Uint128, cum market.Qty) []byte {
	if cum <= 0 {
		return append(dst, '0')
	}
	lots := uint64(cum)
	ticks, err := notional.DivFloor(lots)
	if err != nil { // no valid trades have an average above 64 bits
		return append(dst, '0')
	}
	// The remainder is below lots, so the low words alone give it.
	rest := market.Mul(notional.Lo-ticks*lots, in.Tick)
	units, err := rest.DivFloor(lots)
	if err != nil {
		return append(dst, '0')
	}
	left := rest.Lo - units*lots
	whole, err := market.Mul(ticks, in.Tick).Add(market.Uint128{Lo: units})
	if err != nil {
		return append(dst, '0')
	}
	dst = whole.AppendDecimal(dst, int(in.PriceDecimals))
	if left == 0 {
		return dst
	}
	if in.PriceDecimals == 0 {
		dst = append(dst, '.')
	}
	// MaxQty is far below 2^60: ten times the remainder fits.
	for range AvgPxDigits {
		left *= 10
		dst = append(dst, '0'+byte(left/lots))
		left %= lots
	}
	return dst
}

// CancelReject is one OrderCancelReject (35=9).
type CancelReject struct {
	OrderID     market.OrderID // 0 = "NONE", where ClaimID is 0 too
	ClaimID     market.ClaimID // of a claim, instead of OrderID
	ClOrdID     []byte
	OrigClOrdID []byte
	Status      byte
	Amend       bool // answers a G, not an F
	Reason      int  // CxlRejReason
	Text        []byte
	At          int64
}

// AppendBody appends the reject's body without "37=" and without the last SOH.
func (r *CancelReject) AppendBody(dst []byte) []byte {
	switch {
	case r.ClaimID != 0:
		dst = market.AppendClaimID(dst, r.ClaimID)
	case r.OrderID != 0:
		dst = strconv.AppendUint(dst, uint64(r.OrderID), 10)
	default:
		dst = append(dst, "NONE"...)
	}
	dst = append(append(dst, "\x0111="...), r.ClOrdID...)
	dst = append(append(dst, "\x0141="...), r.OrigClOrdID...)
	dst = append(append(dst, "\x0139="...), r.Status)
	to := byte('1')
	if r.Amend {
		to = '2'
	}
	dst = append(append(dst, "\x01434="...), to)
	dst = strconv.AppendInt(append(dst, "\x01102="...), int64(r.Reason), 10)
	dst = AppendTime(append(dst, "\x0160="...), r.At)
	return append(append(dst, "\x0158="...), r.Text...)
}

// MassCancelReport is one OrderMassCancelReport (35=r).
type MassCancelReport struct {
	ID       []byte // OrderID (37)
	ClOrdID  []byte
	Kind     byte   // MassCancelRequestType (530), as requested
	Symbol   string // "" = all
	Side     market.Side
	Rejected int // MassCancelRejectReason; -1 = done
	Orders   int64
	At       int64
	Text     []byte
}

// AppendBody appends the report's body without "37=" and without the last SOH.
func (r *MassCancelReport) AppendBody(dst []byte) []byte {
	dst = append(dst, r.ID...)
	dst = append(append(dst, "\x0111="...), r.ClOrdID...)
	dst = append(append(dst, "\x01530="...), r.Kind)
	if r.Rejected >= 0 {
		dst = append(dst, "\x01531=0"...)
		dst = strconv.AppendInt(append(dst, "\x01532="...), int64(r.Rejected), 10)
	} else {
		dst = append(append(dst, "\x01531="...), r.Kind)
		dst = strconv.AppendInt(append(dst, "\x01533="...), r.Orders, 10)
	}
	if r.Symbol != "" {
		dst = append(append(dst, "\x0155="...), r.Symbol...)
	}
	if r.Side.Valid() {
		dst = append(append(dst, "\x0154="...), '0'+byte(r.Side))
	}
	dst = AppendTime(append(dst, "\x0160="...), r.At)
	if len(r.Text) > 0 {
		dst = append(append(dst, "\x0158="...), r.Text...)
	}
	return dst
}

// AppendReason appends the text of a refusal by the engine: its reason, then the limit
// and the value of the event.
func AppendReason(dst []byte, in *market.Instrument, e *event.Event) []byte {
	reason := event.Reason(e.Code)
	dst = append(dst, reason.String()...)
	price := func(dst []byte, name string) []byte {
		return in.AppendPrice(append(append(dst, name...), ' '), e.Price)
	}
	qty := func(dst []byte, name string) []byte {
		return in.AppendQty(append(append(dst, name...), ' '), e.Qty)
	}
	switch reason {
	case event.ReasonMaxQty, event.ReasonMinQty:
		dst = qty(dst, ": OrderQty (38)")
		dst = in.AppendQty(append(dst, ", the limit is "...), market.Qty(e.Aux))
	case event.ReasonMaxPrice:
		dst = price(dst, ": Price (44)")
		dst = in.AppendPrice(append(dst, ", the limit is "...), market.Price(e.Aux))
	case event.ReasonPriceBand:
		dst = price(dst, ": Price (44)")
		dst = in.AppendPrice(append(dst, ", the band ends at "...), market.Price(e.Aux))
	case event.ReasonMaxNotional:
		dst = price(dst, ": Price (44)")
		dst = qty(dst, ", OrderQty (38)")
		dst = in.AppendTickLots(append(dst, ", the limit of their product is "...), market.Uint128{Lo: uint64(e.Aux)})
	case event.ReasonMaxOpenOrders, event.ReasonBookFull:
		dst = strconv.AppendInt(append(dst, ": the limit is "...), e.Aux, 10)
	case event.ReasonInvalidPrice, event.ReasonPostOnly, event.ReasonLevelFull:
		dst = price(dst, ": Price (44)")
	case event.ReasonMinQtyUnfillable:
		dst = in.AppendQty(append(dst, ": MinQty (110): can trade at once: "...), market.Qty(e.Aux))
	case event.ReasonInvalidQty, event.ReasonFOKUnfillable, event.ReasonInvalidDisplay:
		dst = qty(dst, ": OrderQty (38)")
	}
	return dst
}

// OrdRejOf returns the OrdRejReason (103) of a refusal by the engine.
func OrdRejOf(reason event.Reason) int {
	switch reason {
	case event.ReasonUnknownInstrument:
		return OrdRejUnknown
	case event.ReasonHalted:
		return ordRejClosed
	case event.ReasonAuction:
		return OrdRejUnsupported
	case event.ReasonKilled, event.ReasonUnknownParticipant, event.ReasonPostOnly, event.ReasonFOKUnfillable, event.ReasonMinQtyUnfillable:
		return OrdRejBroker
	case event.ReasonInvalidExpiry:
		return ordRejTooLate
	case event.ReasonMaxQty, event.ReasonMaxNotional, event.ReasonMaxOpenOrders, event.ReasonPriceBand, event.ReasonMaxPrice,
		event.ReasonBookFull, event.ReasonLevelFull:
		return ordRejExceedsLimit
	case event.ReasonDuplicateOrder:
		return OrdRejDuplicate
	case event.ReasonInvalidQty, event.ReasonMinQty, event.ReasonInvalidDisplay:
		return ordRejQuantity
	case event.ReasonInvalidPrice, event.ReasonInvalidStop, event.ReasonInvalidType, event.ReasonInvalidTIF, event.ReasonInvalidSide, event.ReasonInvalidCombination, event.ReasonNotMatched:
		return OrdRejUnsupported
	}
	return OrdRejOther
}
