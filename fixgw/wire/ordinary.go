package wire

import "bytes"

// requestKinds is a set of messages that may be ordinary.
type requestKinds uint8

const (
	kindNew    requestKinds = 1 << 0 // D
	kindCancel requestKinds = 1 << 1 // F
	kindAmend  requestKinds = 1 << 2 // G
	kindStatus requestKinds = 1 << 3 // H
	kindMass   requestKinds = 1 << 4 // q

	kindChange = kindCancel | kindAmend
	kindOrder  = kindNew | kindAmend
)

// Ordinary is a request that a session only has to count: one of D F G H q, with no
// header field but the four that every message needs, and no body field but those that
// Scan knows, each once, in a form that the dictionary certainly allows. It aliases the
// message.
type Ordinary struct {
	OrderRequest
	MsgType     byte   // D F G H q
	Seq         uint64 // MsgSeqNum (34)
	SendingTime int64  // Unix nanoseconds
	kind        requestKinds
}

func kindOf(msgType []byte) requestKinds {
	if len(msgType) != 1 {
		return 0
	}
	switch msgType[0] {
	case 'D':
		return kindNew
	case 'F':
		return kindCancel
	case 'G':
		return kindAmend
	case 'H':
		return kindStatus
	case 'q':
		return kindMass
	}
	return 0
}

// Fields that Scan has seen: the header's, and those of the body that may be required.
const (
	seenSeq uint32 = 1 << iota
	seenSender
	seenSendingTime
	seenTarget
	seenClOrdID
	seenOrigClOrdID
	seenSide
	seenTransactTime
	seenOrdType
	seenMassType
	seenHandlInst
	seenAccount

	seenHeader = seenSeq | seenSender | seenSendingTime | seenTarget
)

// ordinaryBegin begins an ordinary message; BodyLength follows.
var ordinaryBegin = []byte("8=FIX.4.4\x019=")

// Scan reads a frame that ScanFrame has accepted, and reports whether it is an ordinary
// request from sender to target.
func (x *Ordinary) Scan(frame []byte, sender, target string) bool {
	*x = Ordinary{}
	if !bytes.HasPrefix(frame, ordinaryBegin) {
		return false
	}
	rest := frame[len(ordinaryBegin):]
	rest = rest[bytes.IndexByte(rest, SOH)+1:]
	end := bytes.IndexByte(rest, SOH)
	if end < 3 || string(rest[:3]) != "35=" {
		return false
	}
	if x.kind = kindOf(rest[3:end]); x.kind == 0 {
		return false
	}
	x.MsgType = rest[3]
	rest = rest[end+1 : len(rest)-trailerSize]
	seen := uint32(0)
	for len(rest) > 0 {
		end := bytes.IndexByte(rest, SOH)
		tag, value := SplitField(rest[:end])
		if len(value) == 0 {
			return false
		}
		rest = rest[end+1:]
		var bit uint32
		var ok bool
		if seen&seenHeader != seenHeader {
			bit, ok = x.header(tag, value, sender, target)
		} else {
			bit, ok = x.body(tag, value)
		}
		if !ok || seen&bit != 0 {
			return false
		}
		seen |= bit
	}
	needs := x.needs()
	return seen&needs == needs
}

// needs returns the fields that the dictionary requires.
func (x *Ordinary) needs() uint32 {
	const side, at = seenHeader | seenClOrdID | seenSide, seenTransactTime
	switch x.kind {
	case kindNew:
		return side | at | seenOrdType
	case kindCancel:
		return side | at | seenOrigClOrdID
	case kindAmend:
		return side | at | seenOrigClOrdID | seenOrdType
	case kindStatus:
		return side
	default:
		return seenHeader | seenClOrdID | seenMassType | at
	}
}

// header takes one of the four fields of the header.
func (x *Ordinary) header(tag int, value []byte, sender, target string) (bit uint32, ok bool) {
	switch tag {
	case 34:
		seq, err := ParseSeq(value)
		x.Seq = seq
		return seenSeq, err == nil
	case 49:
		return seenSender, string(value) == sender
	case 52:
		x.SendingTime, ok = parseTimestamp(value)
		return seenSendingTime, ok
	case 56:
		return seenTarget, string(value) == target
	}
	return 0, false
}

// body takes a field of the body. A field without a bit occurs once if its value was nil
// before.
func (x *Ordinary) body(tag int, value []byte) (bit uint32, ok bool) {
	switch tag {
	case 11:
		x.ClOrdID = value
		return seenClOrdID, true
	case 41:
		x.OrigClOrdID = value
		return seenOrigClOrdID, x.kind&kindChange != 0
	case 54:
		x.Side = value
		return seenSide, oneOf(value, "12")
	case 60:
		_, ok = parseTimestamp(value)
		return seenTransactTime, ok && x.kind != kindStatus
	case 40:
		x.OrdType = value
		return seenOrdType, oneOf(value, "1234") && x.kind&kindOrder != 0
	case 530:
		x.MassType = value
		return seenMassType, oneOf(value, "17") && x.kind == kindMass
	case 21: // HandlInst
		return seenHandlInst, oneOf(value, "123") && x.kind&kindOrder != 0
	case 1:
		x.Account = value
		return seenAccount, x.kind&(kindOrder|kindCancel) != 0
	case 55:
		return 0, once(&x.Symbol, value)
	case 37:
		return 0, x.kind&(kindChange|kindStatus) != 0 && once(&x.OrderID, value)
	case 38:
		return 0, x.kind&(kindOrder|kindCancel) != 0 && isAmount(value) && once(&x.qty, value)
	case 59:
		return 0, x.kind&kindOrder != 0 && oneOf(value, "01346") && once(&x.tif, value)
	case 44:
		return 0, x.kind&kindOrder != 0 && isAmount(value) && once(&x.price, value)
	case 99:
		return 0, x.kind&kindOrder != 0 && isAmount(value) && once(&x.stop, value)
	case 111:
		return 0, x.kind&kindOrder != 0 && isAmount(value) && once(&x.maxFloor, value)
	case 110:
		return 0, x.kind&kindOrder != 0 && isAmount(value) && once(&x.minQty, value)
	case 18:
		return 0, x.kind&kindOrder != 0 && oneOf(value, "6") && once(&x.execInst, value)
	case TagSelfTrade:
		return 0, x.kind == kindNew && oneOf(value, "NOBD") && once(&x.selfTrade, value)
	case 432:
		return 0, x.kind&kindOrder != 0 && once(&x.expireDate, value)
	case 126:
		_, ok = parseTimestamp(value)
		return 0, x.kind&kindOrder != 0 && ok && once(&x.expireTime, value)
	}
	return 0, false
}

func once(field *[]byte, value []byte) bool {
	first := *field == nil
	*field = value
	return first
}

// isAmount reports whether value is digits with at most one point among them.
func isAmount(value []byte) bool {
	points := 0
	for _, c := range value {
		switch {
		case c == '.':
			points++
		case c < '0' || c > '9':
			return false
		}
	}
	return points <= 1 && len(value) > points && len(value) <= maxAmount
}

// maxAmount is the longest ordinary number, in bytes.
const maxAmount = 32
