package wire

// MaxRequestID is the longest SecurityReqID (320), SecurityStatusReqID (324) and
// TradSesReqID (335), in bytes.
const MaxRequestID = 64

// Values of BusinessRejectReason (380).
const (
	RejOther         = 0
	RejUnknownID     = 1
	RejUnknownType   = 3
	RejNotAvailable  = 4
	RejConditional   = 5 // a field is missing that this request needs
	rejNotAuthorized = 6
)

// Reject is a BusinessMessageReject (35=j). nil = the message was taken; a refusal is
// answered otherwise.
type Reject struct {
	Reason int    // BusinessRejectReason (380)
	RefID  string // BusinessRejectRefID (379): the id of the message; "" = it has none
	Text   string // Text (58)
}

// BusinessReject returns a reject; bytes of refID and text that are not printable ASCII
// become '?'.
func BusinessReject(reason int, refID []byte, text string) *Reject {
	return &Reject{Reason: reason, RefID: string(AppendText(nil, string(refID))), Text: string(AppendText(nil, text))}
}

// businessID returns the field that a BusinessMessageReject names a message by (379); 0 =
// it has none.
func businessID(msgType string) int {
	switch msgType {
	case "D", "F", "G", "H", "q", "s", "t", "u", "AB", "AC":
		return 11 // ClOrdID
	case "E", "K", "L", "M":
		return 66 // ListID
	case "S", "Z", "i":
		return 117 // QuoteID
	case "R":
		return 131 // QuoteReqID
	case "V":
		return TagMDReqID
	case "c", "v", "x", "z":
		return TagSecurityReqID
	case "e":
		return TagStatusReqID
	case "g":
		return TagTradSesReqID
	case "AD":
		return 568 // TradeRequestID
	case "AE":
		return 571 // TradeReportID
	case "AF":
		return 584 // MassStatusReqID
	case "a":
		return 649 // QuoteStatusReqID
	case "AJ":
		return 693 // QuoteRespID
	}
	return 0
}

// BusinessIDOf returns the id that a BusinessMessageReject names the message by, cut to
// MaxRequestID; nil = it has none.
func BusinessIDOf(frame []byte) (id []byte) {
	tag := businessID(MsgType(frame))
	if tag == 0 {
		return nil
	}
	EachField(frame, func(t int, value []byte) {
		if t == tag {
			id = value[:min(len(value), MaxRequestID)]
		}
	})
	return id
}
