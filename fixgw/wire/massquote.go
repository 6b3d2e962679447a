package wire

import (
	"strconv"
	"time"

	"blockdesk/engine/event"
	"blockdesk/engine/quotes"
	"blockdesk/market"
)

// Fields of a MassQuote that FIX 4.4 does not have, outside its groups.
const (
	TagProtectionFills  = 5617 // trades of the set in the window; 0 = any
	TagProtectionQty    = 5618 // traded quantity of each instrument in the window; 0 = any
	TagProtectionMillis = 5619 // the window, milliseconds; 0 = no protection
	TagProtectionReset  = 9772 // MMProtectionReset: Y = the sets may quote again
)

// MassQuotePrefix is before the QuoteID of a MassQuote or QuoteCancel where a ClOrdID would
// be: see QuoteReqPrefix.
const MassQuotePrefix = "\x01M"

// Values of QuoteResponseLevel (301).
const (
	ResponseNone    = 0
	ResponseRefused = 1
	ResponseAll     = 2
)

// Values of QuoteRejectReason (300) and QuoteEntryRejectReason (368).
const (
	massQuoteUnknownSymbol = 1
	massQuoteClosed        = 2
	massQuoteLimit         = 3
	MassQuoteDuplicate     = 6
	massQuoteSpread        = 7
	massQuotePrice         = 8
	massQuoteNotAuthorized = 9
	MassQuoteOther         = 99
)

// MassQuoteEntry holds the raw values of one entry; nil = absent.
type MassQuoteEntry struct {
	set, number                        []byte
	symbol, currency                   []byte
	bid, offer, bidQty, offerQty, kind []byte
}

// MassQuoteRequest holds the raw values of a MassQuote (i) or QuoteCancel (Z); nil = absent.
// They alias the message.
type MassQuoteRequest struct {
	QuoteID                         []byte
	response, quoteType, cancelType []byte
	defBid, defOffer                []byte
	fills, qty, millis, reset       []byte
	selfTrade                       []byte // SelfTradeType (7928)
	Entries                         []MassQuoteEntry
	unsupported                     int  // a field that asks for what there is not; 0 = none
	cancel                          bool // a Z
	tooMany                         bool
}

// ScanMassQuote reads the fields of an i or Z that has passed the dictionary. Entries are
// appended to entries[:0].
func ScanMassQuote(frame []byte, cancel bool, entries []MassQuoteEntry) MassQuoteRequest {
	r := MassQuoteRequest{cancel: cancel, Entries: entries[:0]}
	var set []byte
	var last MassQuoteEntry // takes what is before the first entry
	at := &last
	EachField(frame, func(tag int, value []byte) {
		begins := tag == 299 && !cancel || tag == 55 && cancel
		if begins {
			if len(r.Entries) >= quotes.MaxEntries {
				r.tooMany = true
				return
			}
			r.Entries = append(r.Entries, MassQuoteEntry{set: set})
			at = &r.Entries[len(r.Entries)-1]
		}
		switch tag {
		case 302:
			set = value
		case 299:
			at.number = value
		case 55:
			at.symbol = value
		case 132:
			at.bid = value
		case 133:
			at.offer = value
		case 134:
			at.bidQty = value
		case 135:
			at.offerQty = value
		case 40:
			at.kind = value
		case 15:
			at.currency = value
		default:
			r.field(tag, value)
		}
	})
	return r
}

// field takes a field that is not of an entry.
func (r *MassQuoteRequest) field(tag int, value []byte) {
	switch tag {
	case 117:
		r.QuoteID = value
	case 301:
		r.response = value
	case 537:
		r.quoteType = value
	case 298:
		r.cancelType = value
	case 293:
		r.defBid = value
	case 294:
		r.defOffer = value
	case TagProtectionFills:
		r.fills = value
	case TagProtectionQty:
		r.qty = value
	case TagProtectionMillis:
		r.millis = value
	case TagProtectionReset:
		r.reset = value
	case TagSelfTrade:
		r.selfTrade = value
	case 62, 367, 188, 189, 190, 191, 192, 193, 336, 625, 631, 632, 633, 634, 642, 643, 893:
		if r.unsupported == 0 && (tag != 893 || string(value) != "Y") {
			r.unsupported = tag
		}
	}
}

// Content is OrderRequest.Content for a mass quote.
func (r *MassQuoteRequest) Content() uint64 {
	h := content(0).add([]byte{'i'})
	if r.cancel {
		h = content(0).add([]byte{'Z'})
	}
	for _, value := range [...][]byte{r.response, r.cancelType, number(r.defBid), number(r.defOffer), r.fills, number(r.qty), r.millis, r.reset} {
		h = h.add(value)
	}
	if r.selfTrade != nil { // as in OrderRequest.Content
		h = h.add(r.selfTrade)
	}
	for i := range r.Entries {
		e := &r.Entries[i]
		for _, value := range [...][]byte{e.set, e.number, e.symbol, number(e.bid), number(e.offer), number(e.bidQty), number(e.offerQty)} {
			h = h.add(value)
		}
	}
	return h.sum()
}

// CheckID checks that the engine can carry the QuoteID.
func (r *MassQuoteRequest) CheckID() *Refusal {
	if len(r.QuoteID) == 0 || len(r.QuoteID) > MaxQuoteReqID || !IsPrintable(r.QuoteID) {
		return Refuse(MassQuoteOther, CodeInvalidField, "QuoteID (117) %.60q: must be 1 to %d printable ASCII characters", r.QuoteID, MaxQuoteReqID)
	}
	return nil
}

// Decode fills q, of which the caller sets Ref and FirstID, and STP where the message names
// none (0). Its entries are appended to q.Entries[:0]. The refusal's reason is a QuoteRejectReason.
func (r *MassQuoteRequest) Decode(set *market.Instruments, q *quotes.Mass) *Refusal {
	*q = quotes.Mass{Entries: q.Entries[:0], Response: ResponseAll, Cancel: r.cancel}
	if r.response != nil {
		if !oneOf(r.response, "012") {
			return Refuse(MassQuoteOther, CodeInvalidField, "QuoteResponseLevel (301) %.20q: must be 0, 1 or 2", r.response)
		}
		q.Response = r.response[0] - '0'
	}
	switch {
	case r.tooMany:
		return Refuse(massQuoteLimit, CodeInvalidField, "NoQuoteEntries (295): at most %d entries in a message", quotes.MaxEntries)
	case r.unsupported != 0:
		return Refuse(MassQuoteOther, CodeUnsupported, "tag %d: it changes a quote and is not supported", r.unsupported)
	case r.quoteType != nil && string(r.quoteType) != "1":
		return Refuse(MassQuoteOther, CodeUnsupported, "QuoteType (537) %.20q: must be 1 (tradeable)", r.quoteType)
	case r.cancel:
		return r.decodeCancel(set, q)
	case len(r.Entries) == 0:
		return Refuse(MassQuoteOther, CodeMissingField, "NoQuoteEntries (295)")
	}
	if refusal := r.decodeProtection(q); refusal != nil {
		return refusal
	}
	var refusal *Refusal
	if q.STP, refusal = parseSelfTrade(r.selfTrade, MassQuoteOther); refusal != nil {
		return refusal
	}
	for i := range r.Entries {
		if refusal := r.decodeEntry(&r.Entries[i], set, q); refusal != nil {
			return refusal
		}
	}
	return nil
}

// decodeCancel reads a Z: 298=1 the instruments of its entries, 298=4 all.
func (r *MassQuoteRequest) decodeCancel(set *market.Instruments, q *quotes.Mass) *Refusal {
	switch string(r.cancelType) {
	case "4":
		q.CancelAll, q.Cancel = true, false
		return nil
	case "1":
	default:
		return Refuse(MassQuoteOther, CodeUnsupported, "QuoteCancelType (298) %.20q: must be 1 (for the securities) or 4 (all)", r.cancelType)
	}
	for i := range r.Entries {
		in := set.Lookup(r.Entries[i].symbol)
		if in == nil {
			return RefuseSymbol(massQuoteUnknownSymbol, set, r.Entries[i].symbol)
		}
		q.Entries = append(q.Entries, quotes.Entry{Instrument: in.ID})
	}
	if len(q.Entries) == 0 {
		return Refuse(MassQuoteOther, CodeMissingField, "NoQuoteEntries (295)")
	}
	return nil
}

// decodeProtection reads the fields of the protection but its quantity, which depends on the
// instrument.
func (r *MassQuoteRequest) decodeProtection(q *quotes.Mass) *Refusal {
	if r.reset != nil {
		if !oneOf(r.reset, "YN") {
			return Refuse(MassQuoteOther, CodeInvalidField, "MMProtectionReset (9772) %.20q: must be Y or N", r.reset)
		}
		q.Reset = r.reset[0] == 'Y'
	}
	if r.millis == nil {
		if r.fills != nil || r.qty != nil {
			return Refuse(MassQuoteOther, CodeMissingField, "ProtectionMillis (5619): with ProtectionFills (5617) or ProtectionQty (5618)")
		}
		return nil
	}
	q.Protect = true
	const longest = uint64(quotes.MaxWindow) / uint64(time.Millisecond)
	millis, err := strconv.ParseUint(string(r.millis), 10, 64)
	if err != nil || millis > longest {
		return Refuse(MassQuoteOther, CodeInvalidField, "ProtectionMillis (5619) %.20q: must be 0 to %d", r.millis, longest)
	}
	q.Window = int64(millis) * int64(time.Millisecond)
	if r.fills != nil {
		fills, err := strconv.ParseUint(string(r.fills), 10, 32)
		if err != nil {
			return Refuse(MassQuoteOther, CodeInvalidField, "ProtectionFills (5617) %.20q: must be a whole number", r.fills)
		}
		q.MaxFills = uint32(fills)
	}
	return nil
}

// decodeEntry appends one entry to q.
func (r *MassQuoteRequest) decodeEntry(from *MassQuoteEntry, set *market.Instruments, q *quotes.Mass) (refusal *Refusal) {
	var e quotes.Entry
	if e.Set, refusal = quoteNumber("QuoteSetID (302)", from.set); refusal != nil {
		return refusal
	}
	if e.Number, refusal = quoteNumber("QuoteEntryID (299)", from.number); refusal != nil {
		return refusal
	}
	in := set.Lookup(from.symbol)
	switch {
	case from.symbol == nil:
		return Refuse(massQuoteUnknownSymbol, CodeMissingField, "Symbol (55) of entry %d", e.Number)
	case in == nil:
		return RefuseSymbol(massQuoteUnknownSymbol, set, from.symbol)
	case from.kind != nil && string(from.kind) != "2":
		return Refuse(MassQuoteOther, CodeUnsupported, "OrdType (40) %.20q: a quote is a limit order, 2", from.kind)
	case from.currency != nil && string(from.currency) != in.Quote:
		return Refuse(MassQuoteOther, CodeUnsupported, "Currency (15) %.20q: prices of %s are in %s", from.currency, in.Symbol, in.Quote)
	}
	e.Instrument = in.ID
	if e.BidPrice, e.BidQty, refusal = quoteSide(in, "BidPx (132)", from.bid, "BidSize (134)", from.bidQty, r.defBid); refusal != nil {
		return refusal
	}
	if e.AskPrice, e.AskQty, refusal = quoteSide(in, "OfferPx (133)", from.offer, "OfferSize (135)", from.offerQty, r.defOffer); refusal != nil {
		return refusal
	}
	if len(number(r.qty)) > 0 {
		if e.MaxQty, refusal = parseQty(in, "ProtectionQty (5618)", r.qty); refusal != nil {
			refusal.Reason = MassQuoteOther
			return refusal
		}
	}
	q.Entries = append(q.Entries, e)
	return nil
}

// quoteNumber reads the id of a set or an entry, which is a number: it is in the journal, and
// an answer after a crash has it.
func quoteNumber(field string, text []byte) (uint16, *Refusal) {
	n, err := strconv.ParseUint(string(text), 10, 16)
	if err != nil || n == 0 || len(text) > 5 {
		return 0, Refuse(MassQuoteOther, CodeInvalidField, "%s %.20q: must be a number, 1 to 65535", field, text)
	}
	return uint16(n), nil
}

// quoteSide reads one side of an entry: no price, or quantity 0, is no quote. size is the
// entry's own, otherwise that of the message.
func quoteSide(in *market.Instrument, priceField string, price []byte, sizeField string, size, otherwise []byte) (p market.Price, q market.Qty, refusal *Refusal) {
	own := size != nil
	if !own {
		size = otherwise
	}
	empty := size != nil && len(number(size)) == 0
	if empty || price == nil && !own {
		return 0, 0, nil
	}
	if q, refusal = parseQty(in, sizeField, size); refusal != nil {
		refusal.Reason = MassQuoteOther
		return 0, 0, refusal
	}
	if p, refusal = parsePrice(in, priceField, price, true); refusal != nil {
		refusal.Reason = massQuotePrice
	}
	return p, q, refusal
}

// QuoteRefusal is an entry of a mass quote that the engine has refused.
type QuoteRefusal struct {
	Set, Number uint16
	Instrument  market.InstrumentID
	Reason      event.Reason
}

// entryReason returns the QuoteEntryRejectReason of a refusal by the engine.
func entryReason(reason event.Reason) int {
	switch reason {
	case event.ReasonUnknownInstrument:
		return massQuoteUnknownSymbol
	case event.ReasonHalted, event.ReasonAuction:
		return massQuoteClosed
	case event.ReasonMaxQty, event.ReasonMinQty, event.ReasonMaxNotional, event.ReasonMaxOpenOrders, event.ReasonBookFull,
		event.ReasonLevelFull, event.ReasonQuoteSets:
		return massQuoteLimit
	case event.ReasonInvalidSpread:
		return massQuoteSpread
	case event.ReasonInvalidPrice, event.ReasonMaxPrice, event.ReasonPriceBand:
		return massQuotePrice
	case event.ReasonKilled, event.ReasonUnknownParticipant, event.ReasonNotMatched:
		return massQuoteNotAuthorized
	}
	return MassQuoteOther
}

// MassQuoteAck is one MassQuoteAcknowledgement (35=b).
type MassQuoteAck struct {
	QuoteID  []byte
	Cancels  uint16 // Code of event.MassQuoted
	Response uint8
	Accepted int64          // entries
	Refused  []QuoteRefusal // by the engine
	Refusal  *Refusal       // of the whole message by the gateway; nil = none
}

// AppendBody appends the acknowledgement's body without "117=" and without the last SOH. It
// has the refused entries only.
func (a *MassQuoteAck) AppendBody(dst []byte, set *market.Instruments) []byte {
	const accepted, rejected = 0, 5
	status := accepted
	switch {
	case a.Refusal != nil || a.Accepted == 0 && len(a.Refused) > 0:
		status = rejected
	case a.Cancels != 0:
		status = int(a.Cancels) // 1 and 4 are those of QuoteStatus
	}
	dst = AppendText(dst, string(a.QuoteID))
	dst = strconv.AppendInt(append(dst, "\x01297="...), int64(status), 10)
	switch {
	case a.Refusal != nil:
		dst = strconv.AppendInt(append(dst, "\x01300="...), int64(a.Refusal.Reason), 10)
	case status == rejected:
		dst = strconv.AppendInt(append(dst, "\x01300="...), int64(entryReason(a.Refused[0].Reason)), 10)
	}
	dst = strconv.AppendInt(append(dst, "\x01301="...), int64(a.Response), 10)
	switch {
	case a.Refusal != nil:
		return AppendText(append(dst, "\x0158="...), a.Refusal.Text)
	case len(a.Refused) == 0:
		return dst
	}
	first := &a.Refused[0]
	dst = append(append(dst, "\x0158="...), first.Reason.String()...)
	dst = strconv.AppendInt(append(dst, ": QuoteEntryID (299) "...), int64(first.Number), 10)
	dst = strconv.AppendInt(append(dst, " of QuoteSetID (302) "...), int64(first.Set), 10)
	return a.appendSets(dst, set)
}

// appendSets appends the refused entries by their sets.
func (a *MassQuoteAck) appendSets(dst []byte, set *market.Instruments) []byte {
	sets := 0
	for i := range a.Refused {
		if i == 0 || a.Refused[i].Set != a.Refused[i-1].Set {
			sets++
		}
	}
	dst = strconv.AppendInt(append(dst, "\x01296="...), int64(sets), 10)
	for rest := a.Refused; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].Set == rest[0].Set {
			n++
		}
		dst = strconv.AppendInt(append(dst, "\x01302="...), int64(rest[0].Set), 10)
		dst = strconv.AppendInt(append(dst, "\x01295="...), int64(n), 10)
		for _, e := range rest[:n] {
			dst = strconv.AppendInt(append(dst, "\x01299="...), int64(e.Number), 10)
			if in := set.Get(e.Instrument); in != nil {
				dst = append(append(dst, "\x0155="...), in.Symbol...)
			}
			dst = strconv.AppendInt(append(dst, "\x01368="...), int64(entryReason(e.Reason)), 10)
		}
		rest = rest[n:]
	}
	return dst
}
