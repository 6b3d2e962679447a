package terms

import (
	"strings"
	"testing"

	"blockdesk/engine/event"
	"blockdesk/httpgw/gatewaytest"
	"blockdesk/httpgw/wire"
)

// TestRefusalsAreTotal: every reason of the desk has its status, code and sentence.
func TestRefusalsAreTotal(t *testing.T) {
	unknown := event.Reason(0xffff).String()
	for reason := event.ReasonUnknownTicket; reason < event.ReasonUnknownTicket+100; reason++ {
		if _, known := refusals[reason]; known == (reason.String() == unknown) {
			t.Errorf("reason %d %s: in the table: %v", reason, reason, known)
		}
	}
	id := wire.RequestID([]byte("01234567-0123456789"))
	for reason := range refusals {
		p := Refusal(reason)
		if e := gatewaytest.DecodeError(t, p.Append(nil, &id)); e.Reason != reason.String() || p.Status < 400 || p.Status > 503 || !strings.HasSuffix(p.Text, ".") {
			t.Errorf("reason %s: %+v", reason, p)
		}
		if (p.Status == 503) != (p.RetryS > 0) {
			t.Errorf("reason %s: status %d, Retry-After %d", reason, p.Status, p.RetryS)
		}
	}
	if p := Refusal(0xfff); p.Status != 409 || p.Code != wire.CodeRefused {
		t.Errorf("a reason of tomorrow: %+v", p)
	}
}
