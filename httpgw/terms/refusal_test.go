package terms

import (
	"fmt"
	"strings"
	"testing"

	"blockdesk/desk"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
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
		waits := p.Status == 503 || reason == event.ReasonUnprovenLimit || reason == event.ReasonUnprovenShare
		if waits != (p.RetryS > 0) {
			t.Errorf("reason %s: status %d, Retry-After %d", reason, p.Status, p.RetryS)
		}
	}
	if p := Refusal(0xfff); p.Status != 409 || p.Code != wire.CodeRefused {
		t.Errorf("a reason of tomorrow: %+v", p)
	}
}

// TestUnprovenRefusals: a client learns the limit and when to try again.
func TestUnprovenRefusals(t *testing.T) {
	policy := &rfq.Policy{ClaimTTL: 120e9, UnprovenTTL: 45e9, Grace: 30e9}
	for reason, code := range map[event.Reason]string{
		event.ReasonUnprovenLimit: wire.CodeRefused, event.ReasonUnprovenShare: wire.CodeCapacityExhausted,
	} {
		p := RefusalOf(&rfq.Outcome{Reason: reason, Limit: 25_000_500_000}, policy)
		if p.Status != 409 || p.Code != code || p.RetryS != 75 || !strings.Contains(p.Text, "25000.500000 USD") || !strings.Contains(p.Text, "wallet_signature") {
			t.Errorf("%s: %+v", reason, p)
		}
	}
	if p := RefusalOf(&rfq.Outcome{Reason: event.ReasonUnprovenLimit, Limit: -1}, &rfq.Policy{}); p.RetryS != retryUnprovenS || !strings.Contains(p.Text, " 0.000000 USD") {
		t.Errorf("%+v", p)
	}
	if p := RefusalOf(&rfq.Outcome{Reason: event.ReasonLocked, Limit: 7}, policy); p.RetryS != 0 || strings.Contains(p.Text, "USD") {
		t.Errorf("%+v", p)
	}
}

// TestDeskProblems: a request that the desk did not take has a status, a code and a time to
// wait, however its error is wrapped; only an error without a name is internal.
func TestDeskProblems(t *testing.T) {
	for _, test := range []struct {
		err          error
		code, reason string
		status       int
		waits        bool
	}{
		{fmt.Errorf("desk: %w", rfq.FitFormat1(&rfq.SetAnchor{Withdrawn: true})), wire.CodeReadOnly, "upgrade_not_finalized", 503, true},
		{fmt.Errorf("desk: %w", desk.ErrReadOnly), wire.CodeReadOnly, "", 503, true},
		{desk.ErrStopped, wire.CodeOverloaded, "stopping", 503, true},
		{desk.ErrBusy, wire.CodeOverloaded, "busy", 503, true},
		{desk.ErrTimeout, wire.CodeOverloaded, "outcome_unknown", 503, true},
		{desk.ErrConflict, wire.CodeIdempotencyConflict, "", 409, false},
		{fmt.Errorf("another error"), wire.CodeInternal, "", 500, false},
	} {
		p := DeskProblem(test.err)
		if p.Status != test.status || p.Code != test.code || p.Reason != test.reason || test.waits != (p.RetryS > 0) || (p.Cause != nil) != (p.Status == 500) {
			t.Errorf("%v: %+v", test.err, p)
		}
	}
}
