package wire

import (
	"bytes"
	"errors"
	"time"

	"blockdesk/engine"
	"blockdesk/engine/book"
	"blockdesk/market"
)

// MaxClOrdID is the longest ClOrdID (11), in bytes.
const MaxClOrdID = engine.MaxRef

// OrderRequest holds the raw values of a D, F, G, H or q; nil = absent. They alias
// the message.
type OrderRequest struct {
	ClOrdID, OrigClOrdID, OrderID []byte
	Symbol, Side                  []byte
	qty, maxFloor, minQty         []byte
	OrdType, price, stop          []byte
	tif, expireDate, expireTime   []byte
	execInst                      []byte
	MassType                      []byte
	quoteID                       []byte
	Account, currency             []byte
	selfTrade                     []byte // SelfTradeType (7928)
	onDisconnect                  []byte // CancelOrdersOnDisconnect (8013)
	massSession                   []byte // MassCancelSession (5620)
	// unsupported is a field that asks for an execution which the book does not have; 0 =
	// none.
	unsupported int
}

// ScanOrderRequest reads the fields of frame, which has passed the dictionary: each
// occurs once.
func ScanOrderRequest(frame []byte) (r OrderRequest) {
	for len(frame) > 0 {
		end := bytes.IndexByte(frame, SOH)
		if end < 0 {
			return r
		}
		tag, value := SplitField(frame[:end])
		frame = frame[end+1:]
		switch tag {
		case 11:
			r.ClOrdID = value
		case 41:
			r.OrigClOrdID = value
		case 37:
			r.OrderID = value
		case 55:
			r.Symbol = value
		case 54:
			r.Side = value
		case 38:
			r.qty = value
		case 111:
			r.maxFloor = value
		case 40:
			r.OrdType = value
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
			r.MassType = value
		case 117:
			r.quoteID = value
		case 110:
			r.minQty = value
		case 1:
			r.Account = value
		case 15:
			r.currency = value
		case TagSelfTrade:
			r.selfTrade = value
		case TagCancelOnDisconnect:
			r.onDisconnect = value
		case TagMassCancelSession:
			r.massSession = value
		default:
			if r.unsupported == 0 && unsupportedBy(tag, value) {
				r.unsupported = tag
			}
		}
	}
	return r
}

// unsupportedBy reports whether a field of an order asks for an execution that the book
// does not have: to ignore it would execute another order than the client's.
func unsupportedBy(tag int, value []byte) bool {
	switch tag {
	case 152, // CashOrderQty
		168,                          // EffectiveTime
		210,                          // MaxShow
		211, 835, 836, 837, 838, 840, // pegs
		388, 389, 841, 842, 843, 844, 846, // discretion
		386,           // trading sessions
		529,           // OrderRestrictions
		544,           // CashMargin
		847, 848, 849: // TargetStrategy
		return true
	case 423: // PriceType: 2 = per unit
		return string(value) != "2"
	case 854: // QtyType: 0 = units
		return string(value) != "0"
	}
	return false
}

// checkInstructions refuses what would change an execution and is not supported.
func (r *OrderRequest) checkInstructions(in *market.Instrument) *Refusal {
	switch {
	case r.unsupported != 0:
		return Refuse(OrdRejUnsupported, CodeUnsupported, "tag %d: it changes the execution of an order and is not supported", r.unsupported)
	case r.currency != nil && string(r.currency) != in.Quote:
		return Refuse(OrdRejUnsupported, CodeUnsupported, "Currency (15) %.20q: prices of %s are in %s", r.currency, in.Symbol, in.Quote)
	case len(r.Account) > MaxAccount || !IsPrintable(r.Account):
		return Refuse(OrdRejOther, CodeInvalidField, "Account (1) %.60q: must be 1 to %d printable ASCII characters", r.Account, MaxAccount)
	}
	return nil
}

// MaxAccount is the longest Account (1), in bytes.
const MaxAccount = 64

// IsPrintable reports whether text is printable ASCII.
func IsPrintable(text []byte) bool {
	for _, c := range text {
		if c < ' ' || c > '~' {
			return false
		}
	}
	return true
}

// CheckClOrdID checks that the engine can carry the ClOrdID.
func (r *OrderRequest) CheckClOrdID() *Refusal {
	if len(r.ClOrdID) == 0 || len(r.ClOrdID) > MaxClOrdID || !IsPrintable(r.ClOrdID) {
		return Refuse(OrdRejOther, CodeInvalidField, "ClOrdID (11) %.60q: must be 1 to %d printable ASCII characters", r.ClOrdID, MaxClOrdID)
	}
	return nil
}

// Instrument returns the instrument that Symbol names.
func (r *OrderRequest) Instrument(set *market.Instruments) (*market.Instrument, *Refusal) {
	if in := set.Lookup(r.Symbol); in != nil {
		return in, nil
	}
	if r.Symbol == nil {
		return nil, Refuse(OrdRejUnknown, CodeMissingField, "Symbol (55)")
	}
	return nil, RefuseSymbol(OrdRejUnknown, set, r.Symbol)
}

// ParseSide reads Side.
func (r *OrderRequest) ParseSide() (market.Side, *Refusal) {
	switch string(r.Side) {
	case "1":
		return market.Buy, nil
	case "2":
		return market.Sell, nil
	}
	return 0, Refuse(OrdRejUnsupported, CodeInvalidField, "Side (54) %.20q: must be 1 (buy) or 2 (sell)", r.Side)
}

// DecodeNew makes the engine's order of a D; the caller sets ID and Participant, and STP where
// the order names none (0). now gives the end of a day order.
func (r *OrderRequest) DecodeNew(set *market.Instruments, now time.Time) (o book.Order, in *market.Instrument, refusal *Refusal) {
	if in, refusal = r.Instrument(set); refusal != nil {
		return o, nil, refusal
	}
	if o.Side, refusal = r.ParseSide(); refusal != nil {
		return o, in, refusal
	}
	if r.quoteID != nil {
		return o, in, Refuse(OrdRejUnsupported, CodeUnsupported, "QuoteID (117): only with OrdType (40) D, previously quoted")
	}
	if refusal = r.checkInstructions(in); refusal != nil {
		return o, in, refusal
	}
	if refusal = r.decodeType(&o, in); refusal != nil {
		return o, in, refusal
	}
	if refusal = r.decodeQty(&o, in); refusal != nil {
		return o, in, refusal
	}
	if refusal = r.decodeTIF(&o, now); refusal != nil {
		return o, in, refusal
	}
	for _, inst := range bytes.Fields(r.execInst) {
		if string(inst) != "6" {
			return o, in, Refuse(OrdRejUnsupported, CodeUnsupported, "ExecInst (18) %.20q: only 6 (post-only)", r.execInst)
		}
		o.Flags |= book.FlagPostOnly
	}
	if o.STP, refusal = parseSelfTrade(r.selfTrade, OrdRejUnsupported); refusal != nil {
		return o, in, refusal
	}
	return o, in, r.decodeMinQty(&o, in)
}

// decodeMinQty reads MinQty. A FOK order trades whole, so it needs no minimum.
func (r *OrderRequest) decodeMinQty(o *book.Order, in *market.Instrument) *Refusal {
	if r.minQty == nil {
		return nil
	}
	least, refusal := parseQty(in, "MinQty (110)", r.minQty)
	switch {
	case refusal != nil:
		return refusal
	case least > o.Qty:
		return Refuse(ordRejQuantity, CodeInvalidField, "MinQty (110) %.40q: above OrderQty (38)", r.minQty)
	case o.TIF == book.FOK:
		return nil
	case o.TIF != book.IOC || o.Type != book.Limit && o.Type != book.Market:
		return Refuse(OrdRejUnsupported, CodeUnsupported, "MinQty (110): only with TimeInForce (59) 3 (IOC) or 4 (FOK), and in market orders")
	case r.maxFloor != nil:
		return Refuse(OrdRejUnsupported, CodeUnsupported, "MaxFloor (111): not in an order that never rests")
	}
	o.Flags, o.Display = o.Flags|book.FlagMinQty, least
	return nil
}

func (r *OrderRequest) decodeType(o *book.Order, in *market.Instrument) *Refusal {
	switch string(r.OrdType) {
	case "1":
		o.Type = book.Market
	case "2":
		o.Type = book.Limit
	case "3":
		o.Type = book.Stop
	case "4":
		o.Type = book.StopLimit
	default:
		return Refuse(OrdRejUnsupported, CodeUnsupported, "OrdType (40) %.20q: must be 1 (market), 2 (limit), 3 (stop) or 4 (stop limit)", r.OrdType)
	}
	return r.decodePrices(o, in)
}

// decodePrices reads Price and StopPx as o.Type requires them.
func (r *OrderRequest) decodePrices(o *book.Order, in *market.Instrument) (refusal *Refusal) {
	limited := o.Type == book.Limit || o.Type == book.StopLimit
	if o.Price, refusal = parsePrice(in, "Price (44)", r.price, limited); refusal != nil {
		return refusal
	}
	stop := o.Type == book.Stop || o.Type == book.StopLimit
	o.Stop, refusal = parsePrice(in, "StopPx (99)", r.stop, stop)
	return refusal
}

func parsePrice(in *market.Instrument, field string, text []byte, wanted bool) (market.Price, *Refusal) {
	switch {
	case text == nil && !wanted:
		return 0, nil
	case text == nil:
		return 0, Refuse(OrdRejUnsupported, CodeMissingField, "%s: required by this OrdType (40)", field)
	case !wanted:
		return 0, Refuse(OrdRejUnsupported, CodeInvalidField, "%s %.40q: not allowed with this OrdType (40)", field, text)
	}
	p, err := in.ParsePrice(text)
	if errors.Is(err, market.ErrNotOnTick) {
		return 0, Refuse(OrdRejUnsupported, CodeInvalidField, "%s %.40q: not a multiple of the tick %s", field, text, in.AppendPrice(nil, 1))
	}
	if err != nil {
		return 0, Refuse(OrdRejUnsupported, CodeInvalidField, "%s %.40q: %s", field, text, err)
	}
	return p, nil
}

func parseQty(in *market.Instrument, field string, text []byte) (market.Qty, *Refusal) {
	if text == nil {
		return 0, Refuse(ordRejQuantity, CodeMissingField, "%s", field)
	}
	q, err := in.ParseQty(text)
	if errors.Is(err, market.ErrNotOnLot) {
		return 0, Refuse(ordRejQuantity, CodeInvalidField, "%s %.40q: not a multiple of the lot %s", field, text, in.AppendQty(nil, 1))
	}
	if err != nil {
		return 0, Refuse(ordRejQuantity, CodeInvalidField, "%s %.40q: %s", field, text, err)
	}
	return q, nil
}

// decodeQty reads OrderQty and MaxFloor. A MaxFloor of OrderQty or more hides nothing.
func (r *OrderRequest) decodeQty(o *book.Order, in *market.Instrument) (refusal *Refusal) {
	if o.Qty, refusal = parseQty(in, "OrderQty (38)", r.qty); refusal != nil {
		return refusal
	}
	if r.maxFloor == nil {
		return nil
	}
	if o.Display, refusal = parseQty(in, "MaxFloor (111)", r.maxFloor); refusal != nil {
		return refusal
	}
	if o.Display >= o.Qty {
		o.Display = 0
	}
	return nil
}

// decodeTIF reads TimeInForce; absent means Day, as FIX 4.4 says. A market order never
// rests, so only FOK makes a difference to it.
func (r *OrderRequest) decodeTIF(o *book.Order, now time.Time) (refusal *Refusal) {
	if r.tif != nil && len(r.tif) != 1 {
		return Refuse(OrdRejUnsupported, CodeUnsupported, "TimeInForce (59) %.20q: must be one character", r.tif)
	}
	word := byte('0')
	if r.tif != nil {
		word = r.tif[0]
	}
	if word != '6' && (r.expireDate != nil || r.expireTime != nil) {
		return Refuse(OrdRejOther, CodeInvalidField, "ExpireTime (126), ExpireDate (432): only with TimeInForce (59) 6")
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
		o.ExpireAt, refusal = r.parseExpiry()
	default:
		return Refuse(OrdRejUnsupported, CodeUnsupported, "TimeInForce (59) %.20q: must be 0 (day), 1 (GTC), 3 (IOC), 4 (FOK) or 6 (GTD)", r.tif)
	}
	if o.Type == book.Market && (o.TIF == book.Day || o.TIF == book.GTC) {
		o.TIF, o.ExpireAt = book.IOC, 0
	}
	return refusal
}

// parseExpiry returns ExpireTime, or the end of the UTC day ExpireDate.
func (r *OrderRequest) parseExpiry() (int64, *Refusal) {
	if r.expireTime != nil {
		if at, ok := parseTimestamp(r.expireTime); ok {
			return at, nil
		}
		return 0, Refuse(OrdRejOther, CodeInvalidField, "ExpireTime (126) %.40q: must be YYYYMMDD-HH:MM:SS[.sss]", r.expireTime)
	}
	if r.expireDate == nil {
		return 0, Refuse(OrdRejOther, CodeMissingField, "ExpireTime (126) or ExpireDate (432): TimeInForce (59) 6 needs one")
	}
	if at, ok := parseDate(r.expireDate); ok {
		return at + int64(24*time.Hour), nil
	}
	return 0, Refuse(OrdRejOther, CodeInvalidField, "ExpireDate (432) %.20q: must be YYYYMMDD", r.expireDate)
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

// AppendSymbol appends the request's Symbol (55), nothing if it has none: FIX has no
// empty fields.
func (r *OrderRequest) AppendSymbol(dst []byte) []byte {
	if len(r.Symbol) == 0 {
		return dst
	}
	return AppendText(append(dst, "\x0155="...), string(r.Symbol))
}

// SessionOnly reads MassCancelSession (5620) of a q.
func (r *OrderRequest) SessionOnly() (bool, *Refusal) {
	switch {
	case r.massSession == nil || string(r.massSession) == "N":
		return false, nil
	case string(r.massSession) == "Y":
		return true, nil
	}
	return false, Refuse(OrdRejOther, CodeInvalidField, "MassCancelSession (5620) %.20q: must be Y or N", r.massSession)
}

// MassKind returns MassCancelRequestType, or 7 (all) where it has no value of FIX 4.4.
func (r *OrderRequest) MassKind() byte {
	if oneOf(r.MassType, "1234567") {
		return r.MassType[0]
	}
	return '7'
}

// RefuseDuplicate refuses a request whose id is that of an earlier one with other content.
func RefuseDuplicate(reason int, field string, id []byte) *Refusal {
	return Refuse(reason, CodeDuplicate, "%s %.40q: an earlier request with this id had other content", field, id)
}

// TermsOf returns the terms of a new order.
func TermsOf(o *book.Order, account string) OrderTerms {
	t := OrderTerms{Stop: o.Stop, PostOnly: o.Flags&book.FlagPostOnly != 0, Account: account}
	if o.Flags&book.FlagMinQty != 0 {
		t.MinQty = o.Display
	} else {
		t.Display = o.Display
	}
	if o.TIF == book.GTD {
		t.ExpireAt = o.ExpireAt
	}
	return t
}

// AmendTarget is what a G needs of its order.
type AmendTarget struct {
	Type book.Type
	TIF  book.TIF
	OrderTerms
}

// DecodeAmend reads the fields that a G may change: OrderQty, Price, StopPx, TimeInForce with
// its expiry, MaxFloor. The others must be the order's, if they are there. now gives the end
// of a day order.
func (r *OrderRequest) DecodeAmend(o *book.Order, t *AmendTarget, in *market.Instrument, now time.Time) (refusal *Refusal) {
	if len(r.OrdType) != 1 || r.OrdType[0] != ordTypeOf(t.Type) {
		return Refuse(CxlRejOther, CodeUnsupported, "OrdType (40) %.20q: the order type cannot be changed", r.OrdType)
	}
	if refusal = r.checkInstructions(in); refusal != nil {
		return refusal
	}
	if refusal = r.checkUnchanged(t); refusal != nil {
		return refusal
	}
	o.Type = t.Type
	if refusal = r.decodePrices(o, in); refusal != nil {
		return refusal
	}
	if refusal = r.decodeQty(o, in); refusal != nil {
		return refusal
	}
	if r.maxFloor != nil && o.Display == 0 {
		o.Display = market.MaxQty
	}
	if refusal = r.decodeAmendTIF(o, t, now); refusal != nil {
		return refusal
	}
	o.Type = 0
	if o.TIF != 0 || o.Display != 0 {
		o.Flags |= book.FlagAmendTerms
	}
	return nil
}

// decodeAmendTIF reads TimeInForce and expiry. Without TimeInForce a new expiry is that of a GTD
// order; without expiry a GTD order keeps its own.
func (r *OrderRequest) decodeAmendTIF(o *book.Order, t *AmendTarget, now time.Time) (refusal *Refusal) {
	dated := r.expireDate != nil || r.expireTime != nil
	if r.tif == nil && !dated {
		return nil
	}
	wanted := *r
	if r.tif == nil {
		wanted.tif = []byte{tifOf(t.TIF)}
	}
	if t.TIF == book.GTD && string(wanted.tif) == "6" && !dated {
		return nil
	}
	if refusal = wanted.decodeTIF(o, now); refusal != nil {
		return refusal
	}
	if never := o.TIF == book.IOC || o.TIF == book.FOK; never && t.Type == book.Limit {
		return Refuse(CxlRejOther, CodeUnsupported, "TimeInForce (59) %.20q: an amend cannot make an order that rests immediate", r.tif)
	}
	return nil
}

// checkUnchanged refuses an amend of a field that an amend cannot change.
func (r *OrderRequest) checkUnchanged(t *AmendTarget) *Refusal {
	cannot := func(field string, value []byte) *Refusal {
		return Refuse(CxlRejOther, CodeUnsupported, "%s %.40q: an amend cannot change it", field, value)
	}
	if r.selfTrade != nil {
		return cannot("SelfTradeType (7928)", r.selfTrade)
	}
	if r.onDisconnect != nil {
		return cannot("CancelOrdersOnDisconnect (8013)", r.onDisconnect)
	}
	if r.execInst != nil && (string(r.execInst) != "6" || !t.PostOnly) {
		return cannot("ExecInst (18)", r.execInst)
	}
	if r.minQty != nil {
		return cannot("MinQty (110)", r.minQty)
	}
	if r.Account != nil && string(r.Account) != t.Account {
		return cannot("Account (1)", r.Account)
	}
	return nil
}
