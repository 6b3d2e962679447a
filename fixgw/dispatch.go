package fixgw

import (
	"fmt"

	"blockdesk/fixgw/wire"
)

// handle answers an application message whose form the dictionary allows.
func (g *Gateway) handle(s *session, msgType, frame []byte) *wire.Reject {
	if g.options.ReadOnly != nil && isLeadersPart(msgType) {
		g.rejects.Add(1)
		return wire.BusinessReject(wire.RejNotAvailable, wire.BusinessIDOf(frame), leaderText(g.options.ReadOnly()))
	}
	switch string(msgType) {
	case "D", "F", "G", "H", "q":
		r := wire.ScanOrderRequest(frame)
		if msgType[0] == 'D' && string(r.OrdType) == wire.OrdTypeQuoted {
			return s.orderQuoted(frame)
		}
		return s.handleOrder(msgType[0], &r)
	case "R":
		return s.quoteRequest(frame)
	case "AJ":
		return s.quoteResponse(frame)
	case "AE":
		return s.tradeReport(frame)
	case "V":
		return g.market.request(s, frame)
	case "x":
		return s.securityList(frame)
	case "c":
		return s.securityDefinition(frame)
	case "e":
		return g.statuses.request(s, frame)
	}
	g.rejects.Add(1)
	return wire.BusinessReject(wire.RejUnknownType, wire.BusinessIDOf(frame), fmt.Sprintf("%s: MsgType (35) %.4q", wire.CodeUnsupported, msgType))
}

// isLeadersPart reports whether only the leader can answer messages of a type:
// orders, quotes, payments, and what became of them.
func isLeadersPart(msgType []byte) bool {
	switch string(msgType) {
	case "D", "F", "G", "H", "q", "R", "AE", "AJ":
		return true
	}
	return false
}
