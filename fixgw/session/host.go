package session

import (
	"sync/atomic"

	"github.com/quickfixgo/quickfix"

	"blockdesk/fixgw/wire"
)

// host is what all sessions and connections of a Server share: the options, the rules, the
// counters, and the error that ends the service.
type host struct {
	options   Options
	rates     rates
	profile   profile
	validator quickfix.Validator
	stopping  atomic.Bool
	failed    chan error // capacity 1: the first error of a store
	counters
}

// counters count since the start.
type counters struct {
	In, Out, Rejects, RateLimited, Kicks, RefusedLogons atomic.Uint64
}

// Fail ends the service with the first error of a store. Any goroutine.
func (h *host) Fail(err error) {
	select {
	case h.failed <- err:
	default:
	}
}

// FirstError returns the channel of Fail's first error.
func (h *host) FirstError() <-chan error { return h.failed }

// UnavailableText returns the text that refuses a request which the node cannot serve now.
func (h *host) UnavailableText(why string) string {
	return h.LeaderTextOr(wire.CodeReadOnly + ": " + why)
}

// logoutText returns the Logout's text when the service stops.
func (h *host) logoutText() string { return h.LeaderTextOr(stoppingText) }

// LeaderTextOr returns a text that names the leader where this node has lost the leadership,
// else text.
func (h *host) LeaderTextOr(text string) string {
	if l := h.options.Leadership; l.LostLeadership() {
		return LeaderText(l.Leader())
	}
	return text
}
