package httpgw

import (
	"strings"
	"testing"

	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
)

// TestRefusalsAreTotal: every reason that the desk may give has its status, code
// and sentence, and its own word.
func TestRefusalsAreTotal(t *testing.T) {
	unknown := event.Reason(0xffff).String()
	for reason := event.ReasonUnknownTicket; reason < event.ReasonUnknownTicket+100; reason++ {
		if _, known := refusals[reason]; known == (reason.String() == unknown) {
			t.Errorf("reason %d %s: in the table: %v", reason, reason, known)
		}
	}
	id := requestID([]byte("01234567-0123456789"))
	for reason := range refusals {
		p := refusal(&rfq.Outcome{Reason: reason})
		if e := decodeError(t, p.append(nil, &id)); e.Reason != reason.String() || p.status < 400 || p.status > 503 || !strings.HasSuffix(p.text, ".") {
			t.Errorf("reason %s: %+v", reason, p)
		}
		if (p.status == 503) != (p.retryS > 0) {
			t.Errorf("reason %s: status %d, Retry-After %d", reason, p.status, p.retryS)
		}
	}
	if p := refusal(&rfq.Outcome{Reason: 0xfff}); p.status != 409 || p.code != codeRefused {
		t.Errorf("a reason of tomorrow: %+v", p)
	}
}
