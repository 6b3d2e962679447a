package fixgw

import (
	"fmt"

	"blockdesk/fixgw/session"
	"blockdesk/fixgw/wire"
)

// Message implements session.Handler.
func (s *blotter) Message(msgType, frame []byte) *wire.Reject {
	g := s.gateway
	if g.options.Leadership.Follower() && needsLeader(msgType) {
		g.Rejects.Add(1)
		return wire.BusinessReject(wire.RejNotAvailable, wire.BusinessIDOf(frame), session.LeaderText(g.options.Leadership.Leader()))
	}
	switch string(msgType) {
	case "D", "F", "G", "H", "q":
		r := wire.ScanOrderRequest(frame)
		if msgType[0] == 'D' && string(r.OrdType) == wire.OrdTypeQuoted {
			return s.desk.orderQuoted(frame)
		}
		return s.handleOrder(msgType[0], &r)
	case "R":
		return s.desk.quoteRequest(frame)
	case "AJ":
		return s.desk.quoteResponse(frame)
	case "i", "Z":
		return s.quoter.request(frame, msgType[0] == 'Z')
	case "AE":
		return s.desk.tradeReport(frame)
	case "AF", "AD", "AN":
		return s.rebuild(msgType, frame)
	case "V":
		return g.market.Request(s.Session, frame)
	case "x":
		return g.securities.List(s.Session, frame)
	case "c":
		return g.securities.Define(s.Session, frame)
	case "e":
		return g.statuses.Request(s.Session, frame)
	case "g":
		return g.statuses.SessionRequest(s.Session, frame)
	}
	g.Rejects.Add(1)
	return wire.BusinessReject(wire.RejUnknownType, wire.BusinessIDOf(frame), fmt.Sprintf("%s: MsgType (35) %.4q", wire.CodeUnsupported, msgType))
}

// OrderRequest implements session.Handler.
func (s *blotter) OrderRequest(msgType byte, r *wire.OrderRequest, alone bool) (placed bool, reject *wire.Reject) {
	s.alone = alone
	reject = s.handleOrder(msgType, r)
	placed, s.alone, s.placed = s.placed, false, false
	return placed, reject
}

// RunInline implements session.Handler.
func (s *blotter) RunInline() { s.gateway.engine.RunInline(s.gateway.reporter.step) }

// LogonFlagsChanged implements session.Handler.
func (s *blotter) LogonFlagsChanged() { s.gateway.copies.follow(s) }

// LoggedOut implements session.Handler.
func (s *blotter) LoggedOut() {
	s.gateway.market.Drop(s.Session)
	s.gateway.statuses.Drop(s.Session)
}

// CancelOrders implements session.Handler.
func (s *blotter) CancelOrders() { s.gateway.canceller.add(s) }

// needsLeader reports whether only the leader answers messages of this type: orders,
// quotes, payments, and their status and history.
func needsLeader(msgType []byte) bool {
	switch string(msgType) {
	case "D", "F", "G", "H", "q", "R", "AE", "AJ", "AF", "AD", "AN", "i", "Z":
		return true
	}
	return false
}
