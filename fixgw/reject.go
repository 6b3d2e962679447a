package fixgw

// Values of BusinessRejectReason (380).
const (
	rejOther         = 0
	rejUnknownID     = 1
	rejUnknownType   = 3
	rejNotAvailable  = 4
	rejConditional   = 5 // a field is missing that this request needs
	rejNotAuthorized = 6
)

// reject is a BusinessMessageReject (35=j). nil = the message was taken, and answered
// otherwise where it is refused.
type reject struct {
	reason int    // BusinessRejectReason (380)
	refID  string // BusinessRejectRefID (379): the id of the message; "" = it has none
	text   string // Text (58)
}

func businessReject(reason int, refID []byte, text string) *reject {
	return &reject{reason: reason, refID: string(appendText(nil, string(refID))), text: string(appendText(nil, text))}
}

// businessID returns the field of a message that a BusinessMessageReject names
// it by (379); 0 = it has none.
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
		return tagMDReqID
	case "c", "v", "x", "z":
		return tagSecurityReqID
	case "e":
		return tagStatusReqID
	case "g":
		return 335 // TradSesReqID
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

// businessIDOf returns what a BusinessMessageReject names the message by, cut to
// MaxRequestID; nil where there is nothing.
func businessIDOf(frame []byte) (id []byte) {
	tag := businessID(msgType(frame))
	if tag == 0 {
		return nil
	}
	eachField(frame, func(t int, value []byte) {
		if t == tag {
			id = value[:min(len(value), MaxRequestID)]
		}
	})
	return id
}
