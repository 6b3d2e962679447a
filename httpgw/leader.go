package httpgw

import (
	"strings"

	"github.com/valyala/fasthttp"

	"blockdesk/httpgw/wire"
	"blockdesk/persist/leadership"
)

// MaxCloseReason is the longest reason of a WebSocket's close, in bytes (RFC 6455,
// section 5.5).
const MaxCloseReason = 123

// urlOf returns the leader's address of a surface, "" where it is not known or is no
// address that a header can carry. socket: for a WebSocket, else for HTTP, whatever
// the two are configured as.
func urlOf(l leadership.Leader, on wire.Surface, socket bool) string {
	address := map[wire.Surface]string{wire.OnBase: l.Base, wire.OnAPI: l.API, wire.OnWS: l.WS}[on]
	scheme, host, _ := strings.Cut(address, "://")
	if host == "" || !wire.IsSafeTarget([]byte("/"+host)) {
		return ""
	}
	for _, known := range [...]struct{ web, socket string }{{"http", "ws"}, {"https", "wss"}} {
		switch {
		case scheme != known.web && scheme != known.socket:
		case socket:
			return known.socket + "://" + host
		default:
			return known.web + "://" + host
		}
	}
	return ""
}

// closeReason returns why a WebSocket is closed: the code, and where to go on.
func closeReason(l leadership.Leader, on wire.Surface) string {
	to := urlOf(l, on, true)
	if reason := wire.CodeLeaderChanged + ": " + to + pathWebSocket; to != "" && len(reason) <= MaxCloseReason {
		return reason
	}
	return wire.CodeLeaderChanged
}

// elsewhere is the answer of a node that does not lead to a request for the
// leader: 307, where that one's address of the surface is known, with the path and
// the query as they came, else 503. It never names another host than the
// configured one.
func redirectToLeader(l leadership.Leader, on wire.Surface, rawTarget []byte) *wire.Problem {
	p := &wire.Problem{Status: fasthttp.StatusServiceUnavailable, Code: wire.CodeLeaderChanged, RetryS: wire.RetryLeaderS}
	to := urlOf(l, on, false)
	if to == "" {
		p.Text = "This node does not lead, and no leader is known. Try again in a moment."
		return p
	}
	if !wire.IsSafeTarget(rawTarget) {
		return wire.UnknownRoute(nil)
	}
	p.Status, p.Location = fasthttp.StatusTemporaryRedirect, to+string(rawTarget)
	p.Text = "Another node leads. Send the same request, with the same Idempotency-Key, where Location says."
	p.Leader = wire.LeaderMember(l.ID, to)
	return p
}

// elsewhere says where a route is answered, nil where it is here: what only the
// leader can answer is not, on a follower and once this node is deposed.
func (d *handler) leaderRedirect(r *wire.Route, path, query []byte) *wire.Problem {
	l := d.g.opts.Leadership
	switch {
	case !r.LeaderOnly && (!r.NotOnFollower || !l.Follower()):
		return nil
	case !l.Follower() && !l.LostLeadership() && (r.Post != nil || l.Confirm() == nil):
		return nil
	}
	return redirectToLeader(l.Leader(), d.on, wire.JoinTarget(path, query))
}

// deposed returns what a request gets in the place of bad. Where the service ended
// under it because another node leads, or could not answer since it does, what came
// of it is not known: other than on a single node the engine's last commands may be
// in the log, and the next leader answers for them.
func (d *handler) replaceIfDeposed(bad *wire.Problem) *wire.Problem {
	l := d.g.opts.Leadership
	if bad == nil || bad.Status < fasthttp.StatusInternalServerError || l == nil || l.Follower() || !l.LostLeadership() && !bad.Stopping {
		return bad
	}
	p := outcomeUnknown(l.Leader(), d.on)
	p.Cause = bad.Cause
	return p
}

// outcomeUnknown is the answer to a request that was under way when this node
// stopped to lead: neither a refusal nor an acknowledgement.
func outcomeUnknown(l leadership.Leader, on wire.Surface) *wire.Problem {
	p := &wire.Problem{
		Status: fasthttp.StatusServiceUnavailable, Code: wire.CodeLeaderChanged, Reason: "outcome_unknown", RetryS: wire.RetryLeaderS,
		Text: "Another node leads now; the outcome is unknown. Ask again with the same Idempotency-Key.",
	}
	if to := urlOf(l, on, false); to != "" {
		p.Leader = wire.LeaderMember(l.ID, to)
	}
	return p
}
