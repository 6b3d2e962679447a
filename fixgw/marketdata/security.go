package marketdata

import (
	"fmt"
	"strconv"

	"blockdesk/fixgw/session"
	"blockdesk/fixgw/wire"
	"blockdesk/market"
)

// The set of instruments is that of the configuration, and does not change while the
// service runs: a subscription to the list gets the list once.
//
// An instrument has Symbol, SecurityDesc and Currency, the unit of its prices; Product is
// OTHER and SecurityType NONE, because FIX 4.4 has no type for token pairs and FOR would
// make Currency that of the quantity. RoundLot is the lot and MinTradeVol the least
// quantity. FIX 4.4 has no field for the tick: it is in Text, in the form of AppendTerms.

// listFragment is how many instruments one SecurityList has at most: some 250 bytes
// each.
const listFragment = 50

// Values of SecurityRequestResult (560).
const (
	listValid   = 0
	listInvalid = 1 // or unsupported
	listNone    = 2 // no instrument found
)

// Securities lists the instruments: x → y for one or all, c → d for one.
type Securities struct {
	Server      *session.Server
	Instruments *market.Instruments
	IDs         *wire.IDs
}

// List handles an x: one instrument by its Symbol, or all.
func (l *Securities) List(s *session.Session, frame []byte) *wire.Reject {
	r := wire.ScanSecurityRequest(frame)
	if err := r.CheckID("SecurityReqID (320)"); err != nil {
		return err
	}
	if string(r.Subscription) == "2" {
		return nil
	}
	const bySymbol, all = "0", "4"
	switch string(r.Kind) {
	case all:
		if l.Instruments.Len() == 0 {
			break
		}
		for from := 0; from < l.Instruments.Len(); from += listFragment {
			l.sendList(s, &r, from, min(from+listFragment, l.Instruments.Len()), l.Instruments.Len())
		}
		return nil
	case bySymbol:
		if in := l.Instruments.Lookup(r.Symbol); in != nil {
			l.sendList(s, &r, int(in.ID), int(in.ID)+1, 1)
			return nil
		}
		if len(r.Symbol) > 0 {
			break
		}
		l.refuseList(s, &r, listInvalid)
		return nil
	default:
		l.refuseList(s, &r, listInvalid)
		return nil
	}
	l.refuseList(s, &r, listNone)
	return nil
}

// sendList sends the instruments from..to-1 as one fragment of a list of total.
func (l *Securities) sendList(s *session.Session, r *wire.SecurityRequest, from, to, total int) {
	b := l.beginList(s, r, listValid)
	b = strconv.AppendInt(append(b, "\x01393="...), int64(total), 10)
	last := byte('N')
	if to == l.Instruments.Len() || to-from == total {
		last = 'Y'
	}
	b = append(append(b, "\x01893="...), last)
	b = strconv.AppendInt(append(b, "\x01146="...), int64(to-from), 10)
	for id := from; id < to; id++ {
		in := l.Instruments.Get(market.InstrumentID(id))
		b = wire.AppendInstrument(b, in)
		b = wire.AppendSizes(b, in)
		b = wire.AppendTerms(append(b, "\x0158="...), in)
	}
	s.Out.Scratch = b
	s.Send("y", wire.TagSecurityReqID, b, false)
}

func (l *Securities) refuseList(s *session.Session, r *wire.SecurityRequest, result int64) {
	l.Server.Rejects.Add(1)
	s.Out.Scratch = l.beginList(s, r, result)
	s.Send("y", wire.TagSecurityReqID, s.Out.Scratch, false)
}

func (l *Securities) beginList(s *session.Session, r *wire.SecurityRequest, result int64) []byte {
	b := wire.AppendText(s.Out.Scratch[:0], string(r.ID))
	b = l.IDs.Append(append(b, "\x01322="...))
	return strconv.AppendInt(append(b, "\x01560="...), result, 10)
}

// Values of SecurityResponseType (323).
const (
	definitionAccepted = '1'
	definitionRejected = '5'
	definitionNoMatch  = '6'
)

// Define handles a c: the terms of one instrument.
func (l *Securities) Define(s *session.Session, frame []byte) *wire.Reject {
	r := wire.ScanSecurityRequest(frame)
	if err := r.CheckID("SecurityReqID (320)"); err != nil {
		return err
	}
	in := l.Instruments.Lookup(r.Symbol)
	const identity = "0"
	switch {
	case string(r.Kind) != identity:
		l.refuseDefinition(s, &r, definitionRejected, fmt.Sprintf("%s: SecurityRequestType (321) %.20q: only 0; SecurityListRequest (x) lists all", wire.CodeUnsupported, r.Kind))
	case r.Symbol == nil:
		l.refuseDefinition(s, &r, definitionRejected, wire.CodeMissingField+": Symbol (55)")
	case in == nil:
		l.refuseDefinition(s, &r, definitionNoMatch, wire.SymbolText(l.Instruments, r.Symbol))
	default:
		b := wire.AppendInstrument(l.beginDefinition(s, &r, definitionAccepted), in)
		b = wire.AppendTerms(append(b, "\x0158="...), in)
		s.Out.Scratch = wire.AppendSizes(b, in)
		s.Send("d", wire.TagSecurityReqID, s.Out.Scratch, false)
	}
	return nil
}

func (l *Securities) refuseDefinition(s *session.Session, r *wire.SecurityRequest, response byte, text string) {
	l.Server.Rejects.Add(1)
	b := l.beginDefinition(s, r, response)
	if len(r.Symbol) > 0 {
		b = wire.AppendText(append(b, "\x0155="...), string(r.Symbol))
	}
	s.Out.Scratch = wire.AppendText(append(b, "\x0158="...), text)
	s.Send("d", wire.TagSecurityReqID, s.Out.Scratch, false)
}

func (l *Securities) beginDefinition(s *session.Session, r *wire.SecurityRequest, response byte) []byte {
	b := wire.AppendText(s.Out.Scratch[:0], string(r.ID))
	b = l.IDs.Append(append(b, "\x01322="...))
	return append(append(b, "\x01323="...), response)
}
