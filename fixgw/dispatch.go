package fixgw

import (
	"fmt"

	"blockdesk/fixgw/wire"
)

// message implements handler.
func (s *blotter) message(msgType, frame []byte) *wire.Reject {
	g := s.gateway
	if g.options.Leadership.Follower() && isLeadersPart(msgType) {
		g.rejects.Add(1)
		return wire.BusinessReject(wire.RejNotAvailable, wire.BusinessIDOf(frame), leaderText(g.options.Leadership.Leader()))
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
		return g.market.request(s.session, frame)
	case "x":
		return s.securityList(frame)
	case "c":
		return s.securityDefinition(frame)
	case "e":
		return g.statuses.request(s.session, frame)
	}
	g.rejects.Add(1)
	return wire.BusinessReject(wire.RejUnknownType, wire.BusinessIDOf(frame), fmt.Sprintf("%s: MsgType (35) %.4q", wire.CodeUnsupported, msgType))
}

// request implements handler.
func (s *blotter) request(msgType byte, r *wire.OrderRequest, alone bool) (placed bool, no *wire.Reject) {
	s.alone = alone
	no = s.handleOrder(msgType, r)
	placed, s.alone, s.placed = s.placed, false, false
	return placed, no
}

// runInline implements handler.
func (s *blotter) runInline() { s.gateway.engine.RunInline(s.gateway.follower.step) }

// wished implements handler.
func (s *blotter) wished() { s.gateway.copies.follow(s) }

// loggedOut implements handler.
func (s *blotter) loggedOut() {
	s.gateway.market.drop(s.session)
	s.gateway.statuses.drop(s.session)
}

// cancelOrders implements handler.
func (s *blotter) cancelOrders() { s.gateway.sweeper.add(s) }

// isLeadersPart reports whether only the leader can answer messages of a type:
// orders, quotes, payments, and what became of them.
func isLeadersPart(msgType []byte) bool {
	switch string(msgType) {
	case "D", "F", "G", "H", "q", "R", "AE", "AJ":
		return true
	}
	return false
}
