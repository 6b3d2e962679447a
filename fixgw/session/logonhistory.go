package session

import (
	"sync"
	"time"

	"blockdesk/fixgw/wire"
)

// logonHistory is the last logon and the last refusal, for Status.
type logonHistory struct {
	mu             sync.Mutex
	logon, refusal int64 // Unix nanoseconds
	reason         string
}

func (h *logonHistory) loggedOn(at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.logon = at.UnixNano()
}

func (h *logonHistory) refused(at time.Time, why error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.refusal, h.reason = at.UnixNano(), string(wire.AppendText(nil, why.Error()))
}
