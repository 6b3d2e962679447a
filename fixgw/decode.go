package fixgw

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"blockdesk/engine"
	"blockdesk/engine/book"
	"blockdesk/market"
)

// MaxClOrdID is the longest ClOrdID (11), in bytes.
const MaxClOrdID = engine.MaxRef

// Codes at the front of Text (58), beside the words of event.Reason.
const (
	codeUnknownSymbol = "UNKNOWN_SYMBOL"
	codeUnknownOrder  = "UNKNOWN_ORDER"
	// No market data or status is subscribed to under that id.
	codeUnknownSubscription = "UNKNOWN_SUBSCRIPTION"
	codeTooLate             = "TOO_LATE"
	codeRateLimited         = "RATE_LIMITED"
	codeOverloaded          = "OVERLOADED"
	codeReadOnly            = "READ_ONLY"
	codeUnsupported         = "UNSUPPORTED"
)

// Values of OrdRejReason (103) and CxlRejReason (102) that we use.
const (
	ordRejBroker       = 0
	ordRejUnknown      = 1
	ordRejClosed       = 2
	ordRejExceedsLimit = 3
	ordRejUnknownOrder = 5
	ordRejDuplicate    = 6
	ordRejUnsupported  = 11
	ordRejQuantity     = 13
	ordRejOther        = 99

	cxlRejTooLate      = 0
	cxlRejUnknownOrder = 1
	cxlRejOther        = 99
)

// refusal is why a request is not passed on to the engine.
type refusal struct {
	text   string // begins with the code
	reason int    // OrdRejReason; CxlRejReason is made from it
}

func refuse(reason int, code, format string, args ...any) *refusal {
	return &refusal{text: code + ": " + fmt.Sprintf(format, args...), reason: reason}
}

// request holds the raw values of a D, F, G, H or q; nil = absent. They alias
// the message.
type request struct {
	clOrdID, origClOrdID, orderID []byte
	symbol, side                  []byte
	qty, maxFloor                 []byte
	ordType, price, stop          []byte
	tif, expireDate, expireTime   []byte
	execInst                      []byte
	massType                      []byte
	quoteID                       []byte
}

// scanRequest reads the fields of frame, which the dictionary has let through:
// none of them twice.
func scanRequest(frame []byte) (r request) {
	for len(frame) > 0 {
		end := bytes.IndexByte(frame, soh)
		if end < 0 {
			return r
		}
		tag, value := splitField(frame[:end])
		frame = frame[end+1:]
		switch tag {
		case 11:
			r.clOrdID = value
		case 41:
			r.origClOrdID = value
		case 37:
			r.orderID = value
		case 55:
			r.symbol = value
		case 54:
			r.side = value
		case 38:
			r.qty = value
		case 111:
			r.maxFloor = value
		case 40:
			r.ordType = value
		case 44:
			r.price = value
		case 99:
			r.stop = value
		case 59:
			r.tif = value
		case 432:
			r.expireDate = value
		case 126:
			r.expireTime = value
		case 18:
			r.execInst = value
		case 530:
			r.massType = value
		case 117:
			r.quoteID = value
		}
	}
	return r
}

// checkClOrdID holds the id to what the engine carries.
func (r *request) checkClOrdID() *refusal {
	if len(r.clOrdID) == 0 || len(r.clOrdID) > MaxClOrdID {
		return refuse(ordRejOther, codeInvalidField, "ClOrdID (11) %.60q: must be 1 to %d bytes", r.clOrdID, MaxClOrdID)
	}
	return nil
}

func (r *request) instrument(set *market.Instruments) (*market.Instrument, *refusal) {
	if in := set.Lookup(r.symbol); in != nil {
		return in, nil
	}
	if r.symbol == nil {
		return nil, refuse(ordRejUnknown, codeMissingField, "Symbol (55)")
	}
	return nil, refuseSymbol(ordRejUnknown, set, r.symbol)
}

func (r *request) parseSide() (market.Side, *refusal) {
	switch string(r.side) {
	case "1":
		return market.Buy, nil
	case "2":
		return market.Sell, nil
	}
	return 0, refuse(ordRejUnsupported, codeInvalidField, "Side (54) %.20q: must be 1 (buy) or 2 (sell)", r.side)
}

// decodeNew makes the engine's order of a D. ID, Participant and STP are left to
// the caller. now decides the end of a day order.
func (r *request) decodeNew(set *market.Instruments, now time.Time) (o book.Order, in *market.Instrument, no *refusal) {
	if in, no = r.instrument(set); no != nil {
		return o, nil, no
	}
	if o.Side, no = r.parseSide(); no != nil {
		return o, in, no
	}
	if r.quoteID != nil {
		return o, in, refuse(ordRejUnsupported, codeUnsupported, "QuoteID (117): only with OrdType (40) D, previously quoted")
	}
	if no = r.decodeType(&o, in); no != nil {
		return o, in, no
	}
	if no = r.decodeQty(&o, in); no != nil {
		return o, in, no
	}
	if no = r.decodeTIF(&o, now); no != nil {
		return o, in, no
	}
	for _, inst := range bytes.Fields(r.execInst) {
		if string(inst) != "6" {
			return o, in, refuse(ordRejUnsupported, codeUnsupported, "ExecInst (18) %.20q: only 6 (post-only)", r.execInst)
		}
		o.Flags |= book.FlagPostOnly
	}
	return o, in, nil
}

func (r *request) decodeType(o *book.Order, in *market.Instrument) *refusal {
	switch string(r.ordType) {
	case "1":
		o.Type = book.Market
	case "2":
		o.Type = book.Limit
	case "3":
		o.Type = book.Stop
	case "4":
		o.Type = book.StopLimit
	default:
		return refuse(ordRejUnsupported, codeUnsupported, "OrdType (40) %.20q: must be 1 (market), 2 (limit), 3 (stop) or 4 (stop limit)", r.ordType)
	}
	return r.decodePrices(o, in)
}

// decodePrices reads Price and StopPx as o.Type wants them.
func (r *request) decodePrices(o *book.Order, in *market.Instrument) (no *refusal) {
	limited := o.Type == book.Limit || o.Type == book.StopLimit
	if o.Price, no = parsePrice(in, "Price (44)", r.price, limited); no != nil {
		return no
	}
	stop := o.Type == book.Stop || o.Type == book.StopLimit
	o.Stop, no = parsePrice(in, "StopPx (99)", r.stop, stop)
	return no
}

func parsePrice(in *market.Instrument, field string, text []byte, wanted bool) (market.Price, *refusal) {
	switch {
	case text == nil && !wanted:
		return 0, nil
	case text == nil:
		return 0, refuse(ordRejOther, codeMissingField, "%s: this OrdType (40) needs it", field)
	case !wanted:
		return 0, refuse(ordRejOther, codeInvalidField, "%s %.40q: this OrdType (40) has none", field, text)
	}
	p, err := in.ParsePrice(text)
	if errors.Is(err, market.ErrNotOnTick) {
		return 0, refuse(ordRejOther, codeInvalidField, "%s %.40q: not a multiple of the tick %s", field, text, in.AppendPrice(nil, 1))
	}
	if err != nil {
		return 0, refuse(ordRejOther, codeInvalidField, "%s %.40q: %s", field, text, err)
	}
	return p, nil
}

func parseQty(in *market.Instrument, field string, text []byte) (market.Qty, *refusal) {
	if text == nil {
		return 0, refuse(ordRejQuantity, codeMissingField, "%s", field)
	}
	q, err := in.ParseQty(text)
	if errors.Is(err, market.ErrNotOnLot) {
		return 0, refuse(ordRejQuantity, codeInvalidField, "%s %.40q: not a multiple of the lot %s", field, text, in.AppendQty(nil, 1))
	}
	if err != nil {
		return 0, refuse(ordRejQuantity, codeInvalidField, "%s %.40q: %s", field, text, err)
	}
	return q, nil
}

// decodeQty reads OrderQty and MaxFloor. A MaxFloor that is not below OrderQty
// hides nothing.
func (r *request) decodeQty(o *book.Order, in *market.Instrument) (no *refusal) {
	if o.Qty, no = parseQty(in, "OrderQty (38)", r.qty); no != nil {
		return no
	}
	if r.maxFloor == nil {
		return nil
	}
	if o.Display, no = parseQty(in, "MaxFloor (111)", r.maxFloor); no != nil {
		return no
	}
	if o.Display >= o.Qty {
		o.Display = 0
	}
	return nil
}

// decodeTIF reads TimeInForce; FIX 4.4: absent means Day. A market order never
// rests, so that only FOK changes what it does.
func (r *request) decodeTIF(o *book.Order, now time.Time) (no *refusal) {
	if r.tif != nil && len(r.tif) != 1 {
		return refuse(ordRejUnsupported, codeUnsupported, "TimeInForce (59) %.20q", r.tif)
	}
	word := byte('0')
	if r.tif != nil {
		word = r.tif[0]
	}
	if word != '6' && (r.expireDate != nil || r.expireTime != nil) {
		return refuse(ordRejOther, codeInvalidField, "ExpireTime (126), ExpireDate (432): only with TimeInForce (59) 6")
	}
	switch word {
	case '0':
		o.TIF = book.Day
		o.ExpireAt = now.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour).UnixNano()
	case '1':
		o.TIF = book.GTC
	case '3':
		o.TIF = book.IOC
	case '4':
		o.TIF = book.FOK
	case '6':
		o.TIF = book.GTD
		o.ExpireAt, no = r.parseExpiry()
	default:
		return refuse(ordRejUnsupported, codeUnsupported, "TimeInForce (59) %.20q: must be 0 (day), 1 (GTC), 3 (IOC), 4 (FOK) or 6 (GTD)", r.tif)
	}
	if o.Type == book.Market && (o.TIF == book.Day || o.TIF == book.GTC) {
		o.TIF, o.ExpireAt = book.IOC, 0
	}
	return no
}

// parseExpiry returns ExpireTime, or the end of the UTC day ExpireDate.
func (r *request) parseExpiry() (int64, *refusal) {
	if r.expireTime != nil {
		if at, ok := parseTimestamp(r.expireTime); ok {
			return at, nil
		}
		return 0, refuse(ordRejOther, codeInvalidField, "ExpireTime (126) %.40q: must be YYYYMMDD-HH:MM:SS[.sss]", r.expireTime)
	}
	if r.expireDate == nil {
		return 0, refuse(ordRejOther, codeMissingField, "ExpireTime (126) or ExpireDate (432): TimeInForce (59) 6 needs one")
	}
	if at, ok := parseDate(r.expireDate); ok {
		return at + int64(24*time.Hour), nil
	}
	return 0, refuse(ordRejOther, codeInvalidField, "ExpireDate (432) %.20q: must be YYYYMMDD", r.expireDate)
}

// parseDate reads YYYYMMDD, in the years 2000 to 2199, as Unix nanoseconds.
func parseDate(text []byte) (int64, bool) {
	year, ok1 := digits(text, 0, 4)
	month, ok2 := digits(text, 4, 6)
	day, ok3 := digits(text, 6, 8)
	if !ok1 || !ok2 || !ok3 || len(text) != 8 || year < 2000 || year > 2199 {
		return 0, false
	}
	t := time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
	if t.Month() != time.Month(month) || t.Day() != day {
		return 0, false // 31 February
	}
	return t.UnixNano(), true
}

// parseTimestamp reads a UTCTimestamp with 0, 3, 6 or 9 fractional digits as
// Unix nanoseconds.
func parseTimestamp(text []byte) (int64, bool) {
	if len(text) < 17 || text[8] != '-' || text[11] != ':' || text[14] != ':' {
		return 0, false
	}
	date, ok := parseDate(text[:8])
	hour, ok1 := digits(text, 9, 11)
	minute, ok2 := digits(text, 12, 14)
	second, ok3 := digits(text, 15, 17)
	if !ok || !ok1 || !ok2 || !ok3 || hour > 23 || minute > 59 || second > 59 {
		return 0, false
	}
	at := date + int64(hour*3600+minute*60+second)*int64(time.Second)
	switch len(text) {
	case 17:
		return at, true
	case 21, 24, 27:
	default:
		return 0, false
	}
	fraction, ok := digits(text, 18, len(text))
	if !ok || text[17] != '.' {
		return 0, false
	}
	for range 27 - len(text) {
		fraction *= 10
	}
	return at + int64(fraction), true
}

// digits reads text[from:to] as a number.
func digits(text []byte, from, to int) (n int, ok bool) {
	if len(text) < to {
		return 0, false
	}
	for _, c := range text[from:to] {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int(c-'0')
	}
	return n, true
}
