package fixgw

import (
	"strconv"

	"blockdesk/engine/book"
	"blockdesk/engine/event"
	"blockdesk/market"
)

// Values of ExecType (150). Fills are 'F': FIX 4.4 has no '1' and '2' here.
const (
	execNew       byte = '0'
	execCancelled byte = '4'
	execReplaced  byte = '5'
	execRejected  byte = '8'
	execExpired   byte = 'C'
	execRestated  byte = 'D'
	execTrade     byte = 'F'
	execStatus    byte = 'I'
)

// Tags that bodies begin with.
const (
	tagOrderID = 37
	tagMDReqID = 262

	tagSecurityReqID = 320
	tagStatusReqID   = 324
)

// avgPxDigits is how many digits an average price has beyond the instrument's,
// where it needs them.
const avgPxDigits = 6

// report is one ExecutionReport (35=8).
type report struct {
	order       *clientOrder
	in          *market.Instrument
	execID      []byte
	execType    byte
	clOrdID     []byte // nil = the order's
	origClOrdID []byte
	lastQty     market.Qty // 0 = no fill
	lastPx      market.Price
	at          int64 // TransactTime, Unix nanoseconds
	text        []byte
	ordRej      int // OrdRejReason; only when execType is execRejected
	restated    int // ExecRestatementReason; 0 = none
}

// appendBody appends the report's body without "37=" and without the last SOH:
// the form that outbox.send takes. The order of the fields is free in FIX.
func (r *report) appendBody(dst []byte) []byte {
	o := r.order
	dst = strconv.AppendUint(dst, uint64(o.id), 10)
	clOrdID := r.clOrdID
	if clOrdID == nil {
		clOrdID = []byte(o.clOrdID)
	}
	dst = append(append(dst, "\x0111="...), clOrdID...)
	if r.origClOrdID != nil {
		dst = append(append(dst, "\x0141="...), r.origClOrdID...)
	}
	dst = append(append(dst, "\x0117="...), r.execID...)
	dst = append(append(dst, "\x01150="...), r.execType)
	dst = append(append(dst, "\x0139="...), o.status)
	dst = append(append(dst, "\x0155="...), r.in.Symbol...)
	dst = append(append(dst, "\x0154="...), '0'+byte(o.side))
	dst = r.in.AppendQty(append(dst, "\x0138="...), o.total)
	if c := ordTypeOf(o.typ); c != 0 {
		dst = append(append(dst, "\x0140="...), c)
	}
	if o.price > 0 {
		dst = r.in.AppendPrice(append(dst, "\x0144="...), o.price)
	}
	if c := tifOf(o.tif); c != 0 {
		dst = append(append(dst, "\x0159="...), c)
	}
	if r.lastQty > 0 {
		dst = r.in.AppendQty(append(dst, "\x0132="...), r.lastQty)
		dst = r.in.AppendPrice(append(dst, "\x0131="...), r.lastPx)
	}
	leaves := o.leaves
	if !o.live() {
		leaves = 0
	}
	dst = r.in.AppendQty(append(dst, "\x01151="...), leaves)
	dst = r.in.AppendQty(append(dst, "\x0114="...), o.cum)
	dst = appendAvgPx(append(dst, "\x016="...), r.in, o.notional, o.cum)
	dst = appendTime(append(dst, "\x0160="...), r.at)
	if len(r.text) > 0 {
		dst = append(append(dst, "\x0158="...), r.text...)
	}
	if r.execType == execRejected {
		dst = strconv.AppendInt(append(dst, "\x01103="...), int64(r.ordRej), 10)
	}
	if r.restated != 0 {
		dst = strconv.AppendInt(append(dst, "\x01378="...), int64(r.restated), 10)
	}
	return dst
}

func ordTypeOf(t book.Type) byte {
	switch t {
	case book.Market:
		return '1'
	case book.Limit:
		return '2'
	case book.Stop:
		return '3'
	case book.StopLimit:
		return '4'
	}
	return 0
}

func tifOf(t book.TIF) byte {
	switch t {
	case book.Day:
		return '0'
	case book.GTC:
		return '1'
	case book.IOC:
		return '3'
	case book.FOK:
		return '4'
	case book.GTD:
		return '6'
	}
	return 0
}

// appendAvgPx appends notional ÷ cum as a decimal price, rounded down: with the
// instrument's digits where that is exact, else with avgPxDigits more. "0" when
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
	// What is left over is below lots, so the low words alone give it.
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
	for range avgPxDigits {
		left *= 10
		dst = append(dst, '0'+byte(left/lots))
		left %= lots
	}
	return dst
}

// cancelReject is one OrderCancelReject (35=9).
type cancelReject struct {
	orderID     market.OrderID // 0 = "NONE"
	clOrdID     []byte
	origClOrdID []byte
	status      byte
	amend       bool // answers a G, not an F
	reason      int  // CxlRejReason
	text        []byte
	at          int64
}

// appendBody appends the reject's body in the form of outbox.send.
func (r *cancelReject) appendBody(dst []byte) []byte {
	dst = appendOrderID(dst, r.orderID)
	dst = append(append(dst, "\x0111="...), r.clOrdID...)
	dst = append(append(dst, "\x0141="...), r.origClOrdID...)
	dst = append(append(dst, "\x0139="...), r.status)
	to := byte('1')
	if r.amend {
		to = '2'
	}
	dst = append(append(dst, "\x01434="...), to)
	dst = strconv.AppendInt(append(dst, "\x01102="...), int64(r.reason), 10)
	dst = appendTime(append(dst, "\x0160="...), r.at)
	return append(append(dst, "\x0158="...), r.text...)
}

func appendOrderID(dst []byte, id market.OrderID) []byte {
	if id == 0 {
		return append(dst, "NONE"...)
	}
	return strconv.AppendUint(dst, uint64(id), 10)
}

// massReport is one OrderMassCancelReport (35=r).
type massReport struct {
	id       []byte // OrderID (37)
	clOrdID  []byte
	symbol   string // "" = all
	side     market.Side
	rejected int // MassCancelRejectReason; -1 = done
	orders   int64
	at       int64
	text     []byte
}

// appendBody appends the report's body in the form of outbox.send.
func (r *massReport) appendBody(dst []byte) []byte {
	kind := byte('7')
	if r.symbol != "" {
		kind = '1'
	}
	dst = append(dst, r.id...)
	dst = append(append(dst, "\x0111="...), r.clOrdID...)
	dst = append(append(dst, "\x01530="...), kind)
	if r.rejected >= 0 {
		dst = append(dst, "\x01531=0"...)
		dst = strconv.AppendInt(append(dst, "\x01532="...), int64(r.rejected), 10)
	} else {
		dst = append(append(dst, "\x01531="...), kind)
		dst = strconv.AppendInt(append(dst, "\x01533="...), r.orders, 10)
	}
	if r.symbol != "" {
		dst = append(append(dst, "\x0155="...), r.symbol...)
	}
	if r.side.Valid() {
		dst = append(append(dst, "\x0154="...), '0'+byte(r.side))
	}
	dst = appendTime(append(dst, "\x0160="...), r.at)
	if len(r.text) > 0 {
		dst = append(append(dst, "\x0158="...), r.text...)
	}
	return dst
}

// appendReason appends the text of a refusal by the engine: its word, then the
// rule and the value that the event names.
func appendReason(dst []byte, in *market.Instrument, e *event.Event) []byte {
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
	case event.ReasonInvalidQty, event.ReasonFOKUnfillable, event.ReasonInvalidDisplay:
		dst = qty(dst, ": OrderQty (38)")
	}
	return dst
}

// ordRejOf returns the OrdRejReason (103) of a refusal by the engine.
func ordRejOf(reason event.Reason) int {
	switch reason {
	case event.ReasonUnknownInstrument:
		return ordRejUnknown
	case event.ReasonHalted:
		return ordRejClosed
	case event.ReasonKilled, event.ReasonUnknownParticipant:
		return ordRejBroker
	case event.ReasonMaxQty, event.ReasonMaxNotional, event.ReasonMaxOpenOrders, event.ReasonPriceBand, event.ReasonMaxPrice:
		return ordRejExceedsLimit
	case event.ReasonDuplicateOrder:
		return ordRejDuplicate
	case event.ReasonInvalidQty, event.ReasonMinQty, event.ReasonInvalidDisplay:
		return ordRejQuantity
	case event.ReasonInvalidType, event.ReasonInvalidTIF, event.ReasonInvalidSide, event.ReasonInvalidCombination, event.ReasonNotMatched:
		return ordRejUnsupported
	}
	return ordRejOther
}
