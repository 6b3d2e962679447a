package httpgw

import (
	"strings"

	"github.com/valyala/fasthttp"

	"blockdesk/httpgw/wire"
	"blockdesk/persist/leadership"
)

// MaxCloseReason is the longest reason of a WebSocket close frame, in bytes (RFC 6455,
// section 5.5).
const MaxCloseReason = 123

// urlOf returns the leader's URL of a surface, or "" if it is unknown or not safe in a
// header. It changes the scheme to ws or wss if socket is true, else to http or https.
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

// closeReason returns the reason of a WebSocket close frame: the code, and the leader's
// URL if it is known and fits.
func closeReason(l leadership.Leader, on wire.Surface) string {
	to := urlOf(l, on, true)
	if reason := wire.CodeLeaderChanged + ": " + to + pathWebSocket; to != "" && len(reason) <= MaxCloseReason {
		return reason
	}
	return wire.CodeLeaderChanged
}

// redirectToLeader is the answer of a node that does not lead: 307 to the leader's
// address of the surface with the unchanged path and query, or 503 if it is unknown. The
// host is always a configured one.
func redirectToLeader(l leadership.Leader, on wire.Surface, rawTarget []byte) *wire.Problem {
	p := &wire.Problem{Status: fasthttp.StatusServiceUnavailable, Code: wire.CodeLeaderChanged, RetryS: wire.RetryLeaderS}
	to := urlOf(l, on, false)
	if to == "" {
		p.Text = "This node does not lead, and the leader is unknown. Try again in a moment."
		return p
	}
	if !wire.IsSafeTarget(rawTarget) {
		return wire.UnknownRoute(nil)
	}
	p.Status, p.Location = fasthttp.StatusTemporaryRedirect, to+string(rawTarget)
	p.Text = "Another node leads. Send the same request with the same Idempotency-Key to the URL in Location."
	p.Leader = wire.LeaderMember(l.ID, to)
	return p
}

// leaderRedirect returns the redirect of a route that this node cannot answer, because
// it is a follower or has been deposed; nil if it can.
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

// replaceIfDeposed replaces an internal error by outcome_unknown if this node lost
// leadership during the request. The engine's last commands may be in the raft log, so
// only the next leader knows the outcome.
func (d *handler) replaceIfDeposed(bad *wire.Problem) *wire.Problem {
	l := d.g.opts.Leadership
	if bad == nil || bad.Status < fasthttp.StatusInternalServerError || l == nil || l.Follower() || !l.LostLeadership() && !bad.Stopping {
		return bad
	}
	p := outcomeUnknown(l.Leader(), d.on)
	p.Cause = bad.Cause
	return p
}

// outcomeUnknown is the answer to a request that was in progress when this node lost
// leadership. It neither refuses nor acknowledges.
func outcomeUnknown(l leadership.Leader, on wire.Surface) *wire.Problem {
	p := &wire.Problem{
		Status: fasthttp.StatusServiceUnavailable, Code: wire.CodeLeaderChanged, Reason: "outcome_unknown", RetryS: wire.RetryLeaderS,
		Text: "Another node leads now, and the outcome is unknown. Repeat the request with the same Idempotency-Key.",
	}
	if to := urlOf(l, on, false); to != "" {
		p.Leader = wire.LeaderMember(l.ID, to)
	}
	return p
}
