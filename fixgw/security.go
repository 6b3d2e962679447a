package fixgw

import (
	"fmt"
	"strconv"

	"blockdesk/fixgw/wire"
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
// has it, in the form of AppendTerms.

// listFragment is how many instruments one SecurityList has at most: some 250 bytes
// each.
const listFragment = 50

// Values of SecurityRequestResult (560).
const (
	listValid   = 0
	listInvalid = 1 // or unsupported
	listNone    = 2 // no instrument found
)

// securityList handles an x: one instrument by its Symbol, or all.
func (s *blotter) securityList(frame []byte) *wire.Reject {
	r := wire.ScanSecurityRequest(frame)
	if err := r.CheckID("SecurityReqID (320)"); err != nil {
		return err
	}
	if string(r.Subscription) == "2" {
		return nil
	}
	set := s.gateway.instruments
	const bySymbol, all = "0", "4"
	switch string(r.Kind) {
	case all:
		if set.Len() == 0 {
			break
		}
		for from := 0; from < set.Len(); from += listFragment {
			s.sendList(&r, set, from, min(from+listFragment, set.Len()), set.Len())
		}
		return nil
	case bySymbol:
		if in := set.Lookup(r.Symbol); in != nil {
			s.sendList(&r, set, int(in.ID), int(in.ID)+1, 1)
			return nil
		}
		if len(r.Symbol) > 0 {
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
func (s *blotter) sendList(r *wire.SecurityRequest, set *market.Instruments, from, to, total int) {
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
		b = wire.AppendInstrument(b, in)
		b = wire.AppendSizes(b, in)
		b = wire.AppendTerms(append(b, "\x0158="...), in)
	}
	s.out.scratch = b
	s.sendType("y", wire.TagSecurityReqID, b, false)
}

func (s *blotter) refuseList(r *wire.SecurityRequest, result int64) {
	s.gateway.rejects.Add(1)
	s.out.scratch = s.beginList(r, result)
	s.sendType("y", wire.TagSecurityReqID, s.out.scratch, false)
}

func (s *blotter) beginList(r *wire.SecurityRequest, result int64) []byte {
	b := wire.AppendText(s.out.scratch[:0], string(r.ID))
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
func (s *blotter) securityDefinition(frame []byte) *wire.Reject {
	r := wire.ScanSecurityRequest(frame)
	if err := r.CheckID("SecurityReqID (320)"); err != nil {
		return err
	}
	in := s.gateway.instruments.Lookup(r.Symbol)
	const identity = "0"
	switch {
	case string(r.Kind) != identity:
		s.refuseDefinition(&r, definitionRejected, fmt.Sprintf("%s: SecurityRequestType (321) %.20q: only 0; SecurityListRequest (x) lists all", wire.CodeUnsupported, r.Kind))
	case r.Symbol == nil:
		s.refuseDefinition(&r, definitionRejected, wire.CodeMissingField+": Symbol (55)")
	case in == nil:
		s.refuseDefinition(&r, definitionNoMatch, wire.SymbolText(s.gateway.instruments, r.Symbol))
	default:
		b := wire.AppendInstrument(s.beginDefinition(&r, definitionAccepted), in)
		b = wire.AppendTerms(append(b, "\x0158="...), in)
		s.out.scratch = wire.AppendSizes(b, in)
		s.sendType("d", wire.TagSecurityReqID, s.out.scratch, false)
	}
	return nil
}

func (s *blotter) refuseDefinition(r *wire.SecurityRequest, response byte, text string) {
	s.gateway.rejects.Add(1)
	b := s.beginDefinition(r, response)
	if len(r.Symbol) > 0 {
		b = wire.AppendText(append(b, "\x0155="...), string(r.Symbol))
	}
	s.out.scratch = wire.AppendText(append(b, "\x0158="...), text)
	s.sendType("d", wire.TagSecurityReqID, s.out.scratch, false)
}

func (s *blotter) beginDefinition(r *wire.SecurityRequest, response byte) []byte {
	b := wire.AppendText(s.out.scratch[:0], string(r.ID))
	b = s.gateway.localID(append(b, "\x01322="...))
	return append(append(b, "\x01323="...), response)
}
