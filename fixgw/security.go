package fixgw

import (
	"fmt"
	"strconv"

	"blockdesk/market"
)

// What may be traded: x → y for some or all instruments, c → d for one. The set
// is that of the configuration, and does not change while we run: a subscription
// to the list gets what a request gets, and there is nothing to end.
//
// An instrument is said by Symbol, SecurityDesc and Currency, the unit of its
// prices; Product is OTHER and SecurityType NONE, since FIX 4.4 has none for
// token pairs and FOR would make Currency that of the quantity. RoundLot is the
// lot and MinTradeVol the least quantity. FIX 4.4 has no field for the tick: Text
// has it, in the form of appendTerms.

// listFragment is how many instruments one SecurityList has at most: some 250 bytes
// each.
const listFragment = 50

// MaxRequestID is the longest SecurityReqID (320) and SecurityStatusReqID (324), in
// bytes.
const MaxRequestID = 64

// securityRequest holds the raw values of an x, c or e; nil = absent. They alias
// the message.
type securityRequest struct {
	id           []byte // SecurityReqID (320) or SecurityStatusReqID (324)
	kind         []byte // SecurityListRequestType (559) or SecurityRequestType (321)
	symbol       []byte
	subscription []byte
}

// scanSecurity reads the fields of frame, which the dictionary has let through.
// Symbol comes before what repeats, and so does everything else that is read.
func scanSecurity(frame []byte) (r securityRequest) {
	eachField(frame, func(tag int, value []byte) {
		switch tag {
		case 320, 324:
			r.id = value
		case 559, 321:
			r.kind = value
		case 55:
			r.symbol = value
		case 263:
			r.subscription = value
		}
	})
	return r
}

// checkID holds the request's id to what we give back.
func (r *securityRequest) checkID(field string) *reject {
	if len(r.id) <= MaxRequestID {
		return nil
	}
	return businessReject(rejOther, r.id[:MaxRequestID], fmt.Sprintf("%s: %s: at most %d bytes", codeInvalidField, field, MaxRequestID))
}

// Values of SecurityRequestResult (560).
const (
	listValid   = 0
	listInvalid = 1 // or unsupported
	listNone    = 2 // no instrument found
)

// securityList handles an x: one instrument by its Symbol, or all.
func (s *session) securityList(frame []byte) *reject {
	r := scanSecurity(frame)
	if err := r.checkID("SecurityReqID (320)"); err != nil {
		return err
	}
	if string(r.subscription) == "2" {
		return nil
	}
	set := s.gateway.instruments
	const bySymbol, all = "0", "4"
	switch string(r.kind) {
	case all:
		if set.Len() == 0 {
			break
		}
		for from := 0; from < set.Len(); from += listFragment {
			s.sendList(&r, set, from, min(from+listFragment, set.Len()), set.Len())
		}
		return nil
	case bySymbol:
		if in := set.Lookup(r.symbol); in != nil {
			s.sendList(&r, set, int(in.ID), int(in.ID)+1, 1)
			return nil
		}
		if len(r.symbol) > 0 {
			break
		}
		s.refuseList(&r, listInvalid)
		return nil
	default:
		s.refuseList(&r, listInvalid)
		return nil
	}
	s.refuseList(&r, listNone)
	return nil
}

// sendList sends the instruments from..to-1 as one fragment of a list of total.
func (s *session) sendList(r *securityRequest, set *market.Instruments, from, to, total int) {
	b := s.beginList(r, listValid)
	b = strconv.AppendInt(append(b, "\x01393="...), int64(total), 10)
	last := byte('N')
	if to == set.Len() || to-from == total {
		last = 'Y'
	}
	b = append(append(b, "\x01893="...), last)
	b = strconv.AppendInt(append(b, "\x01146="...), int64(to-from), 10)
	for id := from; id < to; id++ {
		in := set.Get(market.InstrumentID(id))
		b = appendInstrument(b, in)
		b = appendSizes(b, in)
		b = appendTerms(append(b, "\x0158="...), in)
	}
	s.out.scratch = b
	s.sendType("y", tagSecurityReqID, b, false)
}

func (s *session) refuseList(r *securityRequest, result int64) {
	s.gateway.rejects.Add(1)
	s.out.scratch = s.beginList(r, result)
	s.sendType("y", tagSecurityReqID, s.out.scratch, false)
}

func (s *session) beginList(r *securityRequest, result int64) []byte {
	b := appendText(s.out.scratch[:0], string(r.id))
	b = s.gateway.localID(append(b, "\x01322="...))
	return strconv.AppendInt(append(b, "\x01560="...), result, 10)
}

// Values of SecurityResponseType (323).
const (
	definitionAccepted = '1'
	definitionRejected = '5'
	definitionNoMatch  = '6'
)

// securityDefinition handles a c: the terms of the instrument that it names.
func (s *session) securityDefinition(frame []byte) *reject {
	r := scanSecurity(frame)
	if err := r.checkID("SecurityReqID (320)"); err != nil {
		return err
	}
	in := s.gateway.instruments.Lookup(r.symbol)
	const identity = "0"
	switch {
	case string(r.kind) != identity:
		s.refuseDefinition(&r, definitionRejected, fmt.Sprintf("%s: SecurityRequestType (321) %.20q: only 0; SecurityListRequest (x) lists all", codeUnsupported, r.kind))
	case r.symbol == nil:
		s.refuseDefinition(&r, definitionRejected, codeMissingField+": Symbol (55)")
	case in == nil:
		s.refuseDefinition(&r, definitionNoMatch, symbolText(s.gateway.instruments, r.symbol))
	default:
		b := appendInstrument(s.beginDefinition(&r, definitionAccepted), in)
		b = appendTerms(append(b, "\x0158="...), in)
		s.out.scratch = appendSizes(b, in)
		s.sendType("d", tagSecurityReqID, s.out.scratch, false)
	}
	return nil
}

func (s *session) refuseDefinition(r *securityRequest, response byte, text string) {
	s.gateway.rejects.Add(1)
	b := s.beginDefinition(r, response)
	if len(r.symbol) > 0 {
		b = appendText(append(b, "\x0155="...), string(r.symbol))
	}
	s.out.scratch = appendText(append(b, "\x0158="...), text)
	s.sendType("d", tagSecurityReqID, s.out.scratch, false)
}

func (s *session) beginDefinition(r *securityRequest, response byte) []byte {
	b := appendText(s.out.scratch[:0], string(r.id))
	b = s.gateway.localID(append(b, "\x01322="...))
	return append(append(b, "\x01323="...), response)
}

// appendInstrument appends what says which instrument it is.
func appendInstrument(dst []byte, in *market.Instrument) []byte {
	dst = append(append(dst, "\x0155="...), in.Symbol...)
	dst = append(dst, "\x01460=12\x01167=NONE\x01107="...)
	dst = append(append(append(dst, in.Base...), " priced in "...), in.Quote...)
	return append(append(dst, "\x0115="...), in.Quote...)
}

// appendSizes appends RoundLot and MinTradeVol, in base units.
func appendSizes(dst []byte, in *market.Instrument) []byte {
	dst = in.AppendQty(append(dst, "\x01561="...), 1)
	return in.AppendQty(append(dst, "\x01562="...), in.MinQty)
}

// appendTerms appends the terms of an instrument that FIX 4.4 has no fields for,
// by the names of the REST surface and always in this order:
//
//	tick_size=0.0001 lot_size=0.01 min_qty=0.01 max_qty=1000.00 max_price=9.0000 book_source=matched
//
// Prices are in quote units per base unit, quantities in base units. An order on
// an instrument that is not matched is refused.
func appendTerms(dst []byte, in *market.Instrument) []byte {
	dst = in.AppendPrice(append(dst, "tick_size="...), 1)
	dst = in.AppendQty(append(dst, " lot_size="...), 1)
	dst = in.AppendQty(append(dst, " min_qty="...), in.MinQty)
	dst = in.AppendQty(append(dst, " max_qty="...), in.MaxQty)
	dst = in.AppendPrice(append(dst, " max_price="...), in.MaxPrice)
	return append(append(dst, " book_source="...), in.Source.String()...)
}
