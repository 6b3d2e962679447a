package wire

import "blockdesk/market"

// Acceptance holds the raw values of a D with OrdType D, or of an AJ; nil =
// absent. They alias the message.
type Acceptance struct {
	ClOrdID, RespID    []byte
	QuoteID, RespType  []byte
	Symbol, side       []byte
	qty, cash          []byte
	price, offer, rail []byte
	tif                []byte
	security           []byte
	other              int  // a field that no order on a quote may have; 0 = none
	Response           bool // an AJ
}

// OrdTypeQuoted is the OrdType (40) of an order that takes a quote.
const OrdTypeQuoted = "D"

// Values of QuoteRespType (694).
const (
	RespHit  = "1"
	RespPass = "6"
)

// ScanAcceptance reads the fields of frame, which has passed the dictionary; response
// reports whether it is an AJ.
func ScanAcceptance(frame []byte, response bool) Acceptance {
	a := Acceptance{Response: response}
	readFields(frame, map[int]*[]byte{
		11: &a.ClOrdID, 693: &a.RespID, 117: &a.QuoteID, 694: &a.RespType,
		55: &a.Symbol, 54: &a.side, 38: &a.qty, 152: &a.cash, 44: &a.price, 133: &a.offer, 15: &a.rail,
		59: &a.tif, 48: &a.security,
	})
	EachField(frame, func(tag int, value []byte) {
		switch tag {
		case 18, 99, 110, 111, 126, 432, TagSelfTrade:
			a.other = tag
		default:
			if tag != 152 && unsupportedBy(tag, value) {
				a.other = tag
			}
		}
	})
	return a
}

// Key returns the name under which the request is kept.
func (a *Acceptance) Key() string {
	if a.Response {
		return QuoteRespPrefix + string(a.RespID)
	}
	return string(a.ClOrdID)
}

// Content is OrderRequest.Content of an acceptance. The quote determines all other fields.
func (a *Acceptance) Content() uint64 {
	return content(0).add([]byte("AJ")).add(a.QuoteID).add(a.RespType).sum()
}

// CheckID checks that the engine can carry the request's id.
func (a *Acceptance) CheckID() *Refusal {
	switch {
	case a.Response && (len(a.RespID) == 0 || len(a.RespID) > MaxQuoteReqID || !IsPrintable(a.RespID)):
		return Refuse(OrdRejOther, CodeInvalidField, "QuoteRespID (693) %.60q: must be 1 to %d printable ASCII characters", a.RespID, MaxQuoteReqID)
	case !a.Response && (len(a.ClOrdID) == 0 || len(a.ClOrdID) > MaxClOrdID || !IsPrintable(a.ClOrdID)):
		return Refuse(OrdRejOther, CodeInvalidField, "ClOrdID (11) %.60q: must be 1 to %d printable ASCII characters", a.ClOrdID, MaxClOrdID)
	}
	return nil
}

// Check compares the client's terms with the quote's.
func (a *Acceptance) Check(q *ClientQuote, in *market.Instrument) *Refusal {
	t := &q.Terms
	size := string(market.AppendDecimal(nil, t.Base, int(q.Digits)))
	price, offered := string(AppendUSDPrice(nil, t.Price)), string(appendOfferID(nil, t))
	switch {
	case a.Symbol == nil:
		return Refuse(OrdRejUnknown, CodeMissingField, "Symbol (55)")
	case string(a.Symbol) != in.Symbol:
		return differs("Symbol (55)", a.Symbol, in.Symbol)
	case a.security != nil && string(a.security) != offered:
		return differs("SecurityID (48)", a.security, offered)
	case a.side == nil && !a.Response:
		return Refuse(OrdRejOther, CodeMissingField, "Side (54)")
	case a.side != nil && string(a.side) != "1":
		return Refuse(OrdRejUnsupported, CodeUnsupported, "Side (54) %.20q: must be 1 (buy), the desk sells", a.side)
	case a.other != 0:
		return Refuse(OrdRejUnsupported, CodeUnsupported, "tag %d: not allowed in the acceptance of a quote", a.other)
	case a.tif != nil && string(a.tif) != "0" && string(a.tif) != "3" && string(a.tif) != "4":
		return Refuse(OrdRejUnsupported, CodeUnsupported, "TimeInForce (59) %.20q: a quote is taken whole and at once", a.tif)
	case a.qty == nil && a.cash == nil && !a.Response:
		return Refuse(ordRejQuantity, CodeMissingField, "OrderQty (38) or CashOrderQty (152)")
	case !isDecimal(a.qty, t.Base, int(q.Digits)):
		return differs("OrderQty (38)", a.qty, size)
	case !isDecimal(a.cash, uint64(t.Fill.USD()), market.USDDecimals):
		return differs("CashOrderQty (152)", a.cash, t.Fill.String())
	case !isDecimal(a.price, uint64(t.Price), market.USDPriceDecimals):
		return differs("Price (44)", a.price, price)
	case !isDecimal(a.offer, uint64(t.Price), market.USDPriceDecimals):
		return differs("OfferPx (133)", a.offer, price)
	case a.rail != nil && string(a.rail) != t.Rail.String():
		return differs("Currency (15)", a.rail, t.Rail.String())
	}
	return nil
}

// isDecimal reports whether text is absent or equal to value.
func isDecimal(text []byte, value uint64, decimals int) bool {
	if text == nil {
		return true
	}
	got, err := market.ParseDecimal(text, decimals)
	return err == nil && got == value
}

// differs is the refusal of a field that is not as in the quote.
func differs(field string, got []byte, want string) *Refusal {
	return Refuse(OrdRejOther, CodeInvalidField, "%s %.40q: the quote has %s", field, got, want)
}
