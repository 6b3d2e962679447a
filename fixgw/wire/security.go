package wire

import (
	"fmt"

	"blockdesk/market"
)

// SecurityRequest holds the raw values of an x, c, e or g; nil = absent. They alias
// the message.
type SecurityRequest struct {
	ID           []byte // SecurityReqID (320), SecurityStatusReqID (324) or TradSesReqID (335)
	Kind         []byte // SecurityListRequestType (559), SecurityRequestType (321) or TradingSessionID (336)
	Symbol       []byte
	Subscription []byte
}

// ScanSecurityRequest reads the fields of frame, which is valid by the dictionary. All of
// them come before repeating groups.
func ScanSecurityRequest(frame []byte) (r SecurityRequest) {
	readFields(frame, map[int]*[]byte{320: &r.ID, 324: &r.ID, 559: &r.Kind, 321: &r.Kind, 55: &r.Symbol, 263: &r.Subscription})
	return r
}

// ScanSessionRequest reads the fields of a g, as ScanSecurityRequest does.
func ScanSessionRequest(frame []byte) (r SecurityRequest) {
	readFields(frame, map[int]*[]byte{335: &r.ID, 336: &r.Kind, 263: &r.Subscription})
	return r
}

// CheckID checks that an answer can carry the request's id.
func (r *SecurityRequest) CheckID(field string) *Reject {
	if len(r.ID) <= MaxRequestID {
		return nil
	}
	return BusinessReject(RejOther, r.ID[:MaxRequestID], fmt.Sprintf("%s: %s: at most %d bytes", CodeInvalidField, field, MaxRequestID))
}

// AppendInstrument appends the fields that identify an instrument.
func AppendInstrument(dst []byte, in *market.Instrument) []byte {
	dst = append(append(dst, "\x0155="...), in.Symbol...)
	dst = append(dst, "\x01460=12\x01167=NONE\x01107="...)
	dst = append(append(append(dst, in.Base...), " priced in "...), in.Quote...)
	return append(append(dst, "\x0115="...), in.Quote...)
}

// AppendSizes appends RoundLot and MinTradeVol, in base units.
func AppendSizes(dst []byte, in *market.Instrument) []byte {
	dst = in.AppendQty(append(dst, "\x01561="...), 1)
	return in.AppendQty(append(dst, "\x01562="...), in.MinQty)
}

// AppendTerms appends the terms of an instrument that FIX 4.4 has no fields for,
// by the names of the REST surface and always in this order:
//
//	tick_size=0.0001 lot_size=0.01 min_qty=0.01 max_qty=1000.00 max_price=9.0000 book_source=matched
//
// Prices are in quote units per base unit, quantities in base units. An order on
// an instrument that is not matched is refused.
func AppendTerms(dst []byte, in *market.Instrument) []byte {
	dst = in.AppendPrice(append(dst, "tick_size="...), 1)
	dst = in.AppendQty(append(dst, " lot_size="...), 1)
	dst = in.AppendQty(append(dst, " min_qty="...), in.MinQty)
	dst = in.AppendQty(append(dst, " max_qty="...), in.MaxQty)
	dst = in.AppendPrice(append(dst, " max_price="...), in.MaxPrice)
	return append(append(dst, " book_source="...), in.Source.String()...)
}
