package httpgw

import (
	"strings"

	"github.com/valyala/fasthttp"
)

// Leader is the node that serves writes: what the others tell clients. The zero
// value is none that is known.
type Leader struct {
	ID string // in the group's configuration
	// Addresses as clients reach them, without a slash at the end: URLs of http,
	// https, ws or wss, and host:port of FIX. An empty one is not known.
	Base, API, WS, FIX string
}

const (
	// MaxCloseReason is the longest reason of a WebSocket's close, in bytes (RFC
	// 6455, section 5.5).
	MaxCloseReason = 123
)

// url is the leader's address of a surface, "" where it is not known or is no
// address that a header can carry. socket: for a WebSocket, else for HTTP, whatever
// the two are configured as.
func (l *Leader) url(on surface, socket bool) string {
	address := map[surface]string{onBase: l.Base, onAPI: l.API, onWS: l.WS}[on]
	scheme, host, _ := strings.Cut(address, "://")
	if host == "" || !isTarget([]byte("/"+host)) {
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

// closeReason is why a WebSocket is closed: the code, and where to go on.
func (l *Leader) closeReason(on surface) string {
	to := l.url(on, true)
	if reason := codeLeaderChanged + ": " + to + pathWebSocket; to != "" && len(reason) <= MaxCloseReason {
		return reason
	}
	return codeLeaderChanged
}

// elsewhere is the answer of a node that does not lead to a request for the
// leader: 307, where that one's address of the surface is known, with the path and
// the query as they came, else 503. It never names another host than the
// configured one.
func elsewhere(l Leader, on surface, rawTarget []byte) *problem {
	p := &problem{status: fasthttp.StatusServiceUnavailable, code: codeLeaderChanged, retryS: retryLeaderS}
	to := l.url(on, false)
	if to == "" {
		p.text = "This node does not lead, and no leader is known. Try again in a moment."
		return p
	}
	if !isTarget(rawTarget) {
		return unknownRoute(nil)
	}
	p.status, p.location = fasthttp.StatusTemporaryRedirect, to+string(rawTarget)
	p.text = "Another node leads. Send the same request, with the same Idempotency-Key, where Location says."
	p.leader = leaderMember(l.ID, to)
	return p
}

// elsewhere says where a route is answered, nil where it is here: what only the
// leader can answer is not, on a follower and once this node is deposed.
func (d *door) elsewhere(r *route, path, query []byte) *problem {
	o := &d.g.opts
	switch {
	case o.ReadOnly != nil && (r.leader || r.facts):
		return elsewhere(o.ReadOnly(), d.on, joinTarget(path, query))
	case !r.leader:
		return nil
	}
	if o.Deposed != nil {
		if l, over := o.Deposed(); over {
			return elsewhere(l, d.on, joinTarget(path, query))
		}
	}
	if o.Barrier != nil && r.post == nil && o.Barrier() != nil {
		var l Leader
		if o.Deposed != nil {
			l, _ = o.Deposed()
		}
		return elsewhere(l, d.on, joinTarget(path, query))
	}
	return nil
}

// deposed returns what a request gets in the place of bad. Where the service ended
// under it because another node leads, or could not answer since it does, what came
// of it is not known: other than on a single node the engine's last commands may be
// in the log, and the next leader answers for them.
func (d *door) deposed(bad *problem) *problem {
	if bad == nil || bad.status < fasthttp.StatusInternalServerError || d.g.opts.Deposed == nil {
		return bad
	}
	l, over := d.g.opts.Deposed()
	if !over && !bad.ending {
		return bad
	}
	p := outcomeUnknown(l, d.on)
	p.cause = bad.cause
	return p
}

// outcomeUnknown is the answer to a request that was under way when this node
// stopped to lead: neither a refusal nor an acknowledgement.
func outcomeUnknown(l Leader, on surface) *problem {
	p := &problem{
		status: fasthttp.StatusServiceUnavailable, code: codeLeaderChanged, reason: "outcome_unknown", retryS: retryLeaderS,
		text: "Another node leads now; the outcome is unknown. Ask again with the same Idempotency-Key.",
	}
	if to := l.url(on, false); to != "" {
		p.leader = leaderMember(l.ID, to)
	}
	return p
}
