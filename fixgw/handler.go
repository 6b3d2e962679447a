package fixgw

import (
	"fmt"

	"blockdesk/fixgw/orders"
	"blockdesk/fixgw/reports"
	"blockdesk/fixgw/rfq"
	"blockdesk/fixgw/session"
	"blockdesk/fixgw/wire"
	"blockdesk/internal/ratelimit"
)

// handler is the session.Handler of one session: it passes each message to the package that
// answers it.
type handler struct {
	*session.Session
	gateway  *Gateway
	requests *reports.Session
	orders   *orders.Session
	quotes   *rfq.Session
	rebuilds ratelimit.Bucket // AF, AD and AN; guarded by the session's lock
}

func (g *Gateway) newHandler(s *session.Session) session.Handler {
	h := &handler{Session: s, gateway: g, requests: g.requests.NewSession(s)}
	h.quotes = g.quoteEntry.NewSession(h.requests, g.quoting)
	h.orders = g.orderEntry.NewSession(h.requests, g.ordering, h.quotes)
	return h
}

// handlerOf returns the handler of a session.
func handlerOf(s *session.Session) *handler { return s.Handler.(*handler) }

// Message implements session.Handler.
func (h *handler) Message(msgType, frame []byte) *wire.Reject {
	g := h.gateway
	if g.options.Leadership.Follower() && needsLeader(msgType) {
		h.CountReject()
		return wire.BusinessReject(wire.RejNotAvailable, wire.BusinessIDOf(frame), session.LeaderText(g.options.Leadership.Leader()))
	}
	switch string(msgType) {
	case "D", "F", "G", "H", "q":
		r := wire.ScanOrderRequest(frame)
		if msgType[0] == 'D' && string(r.OrdType) == wire.OrdTypeQuoted {
			return h.quotes.OrderQuoted(frame)
		}
		_, reject := h.orders.Request(msgType[0], &r, false)
		return reject
	case "R":
		return h.quotes.QuoteRequest(frame)
	case "AJ":
		return h.quotes.QuoteResponse(frame)
	case "E":
		return h.orders.OrderList(frame)
	case "K", "L", "M":
		h.CountReject()
		return wire.BusinessReject(wire.RejUnknownType, wire.BusinessIDOf(frame),
			wire.CodeUnsupported+": a list is executed at once; its orders are changed, cancelled and asked for one by one (G, F, H)")
	case "i", "Z":
		return h.orders.MassQuote(frame, msgType[0] == 'Z')
	case "AE":
		return g.payments.Report(h.quotes, frame)
	case "AF", "AD", "AN":
		return h.rebuild(msgType, frame)
	case "V":
		return g.market.Request(h.Session, frame)
	case "x":
		return g.securities.List(h.Session, frame)
	case "c":
		return g.securities.Define(h.Session, frame)
	case "e":
		return g.statuses.Request(h.Session, frame)
	case "g":
		return g.statuses.SessionRequest(h.Session, frame)
	}
	h.CountReject()
	return wire.BusinessReject(wire.RejUnknownType, wire.BusinessIDOf(frame), fmt.Sprintf("%s: MsgType (35) %.4q", wire.CodeUnsupported, msgType))
}

// OrderRequest implements session.Handler.
func (h *handler) OrderRequest(msgType byte, r *wire.OrderRequest, alone bool) (enqueued bool, reject *wire.Reject) {
	return h.orders.Request(msgType, r, alone)
}

// RunInline implements session.Handler.
func (h *handler) RunInline() { h.gateway.engine.RunInline(h.gateway.step) }

// LogonFlagsChanged implements session.Handler.
func (h *handler) LogonFlagsChanged() { h.gateway.reporter.Copies.Update(h.requests) }

// LoggedOut implements session.Handler.
func (h *handler) LoggedOut() {
	h.gateway.market.Drop(h.Session)
	h.gateway.statuses.Drop(h.Session)
}

// CancelOrders implements session.Handler.
func (h *handler) CancelOrders() { h.gateway.canceller.Cancel(h.orders) }

// needsLeader reports whether only the leader answers messages of this type: orders,
// quotes, payments, and their status and history.
func needsLeader(msgType []byte) bool {
	switch string(msgType) {
	case "D", "F", "G", "H", "q", "R", "AE", "AJ", "AF", "AD", "AN", "i", "Z", "E":
		return true
	}
	return false
}
