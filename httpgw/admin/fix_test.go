package admin

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"blockdesk/engine/rfq"
	"blockdesk/httpgw/gatewaytest"
	"blockdesk/httpgw/wire"
)

// fakeFIX is FIX in memory.
type fakeFIX struct {
	sessions     []FIXSession
	participants FIXParticipants
	asked        []string // calls
	err          error
}

func (r *fakeFIX) Sessions() []FIXSession        { return r.sessions }
func (r *fakeFIX) Participants() FIXParticipants { return r.participants }

func (r *fakeFIX) ResetSequence(compID string, force bool) error {
	r.asked = append(r.asked, fmt.Sprintf("reset %s %v", compID, force))
	return r.err
}

func (r *fakeFIX) Kick(compID, text string) error {
	r.asked = append(r.asked, fmt.Sprintf("kick %s %q", compID, text))
	return r.err
}

func (r *fakeFIX) Announce(compID, text string) (int, error) {
	r.asked = append(r.asked, fmt.Sprintf("announce %q %q", compID, text))
	return 3, r.err
}

// newFIXRig returns the operators' endpoints with two sessions and no desk.
func newFIXRig(t testing.TB) (*operatorRig, *fakeFIX) {
	t.Helper()
	fake := &fakeFIX{
		participants: FIXParticipants{File: "p.yaml", LoadedAt: gatewaytest.ViewTime, Refused: "it is empty"},
		sessions: []FIXSession{
			{
				CompID: "MM1", Participant: "mm", Number: 1, LoggedOn: true, Since: gatewaytest.ViewTime, LastLogon: gatewaytest.ViewTime, Remote: "127.0.0.1:9",
				NextIn: 5, NextOut: 7, LiveOrders: 2, PendingRequests: 1, WaitingBytes: 300, RateRefusals: 4, CancelOnDisconnect: true,
			},
			{CompID: "TK1", Participant: "tk", Number: 2, Removed: true, NextIn: 1, NextOut: 1, LastRefusal: gatewaytest.ViewTime, Refusal: "LOGON_REFUSED: no"},
		},
	}
	rig := newOperatorRig(t)
	o := rig.options(t)
	o.Desk, o.FIX = nil, fake
	if err := o.validate(); err != nil {
		t.Fatal(err)
	}
	rig.mux = http.NewServeMux()
	rig.op = newEndpoints(o, wire.NewRequestIDs(), slog.New(slog.DiscardHandler))
	rig.op.register(rig.mux)
	return rig, fake
}

func TestOperatorFIXSessions(t *testing.T) {
	rig, _ := newFIXRig(t)
	w := rig.send("GET", "/desk/fix/sessions", "", annToken)
	const at = `"2026-11-20T12:00:04.123Z"`
	const want = `{"ok":true,"participants":{"file":"p.yaml","loaded_at":` + at + `,"refused":"it is empty"},"sessions":[` +
		`{"comp_id":"MM1","participant":"mm","session":1,"state":"logged_on","logged_on_since":` + at + `,"remote":"127.0.0.1:9",` +
		`"next_in":5,"next_out":7,"live_orders":2,"pending_requests":1,"bytes_waiting":300,"rate_refusals":4,` +
		`"cancel_on_disconnect":true,"drop_copy":false,"custom_fields":false,"last_logon":` + at + `,"last_refusal":null,"refusal":null},` +
		`{"comp_id":"TK1","participant":"tk","session":2,"state":"removed","logged_on_since":null,"remote":null,` +
		`"next_in":1,"next_out":1,"live_orders":0,"pending_requests":0,"bytes_waiting":0,"rate_refusals":0,` +
		`"cancel_on_disconnect":false,"drop_copy":false,"custom_fields":false,"last_logon":null,"last_refusal":` + at + `,"refusal":"LOGON_REFUSED: no"}]}` + "\n"
	if w.Code != 200 || w.Body.String() != want {
		t.Errorf("%d\n got %s\nwant %s", w.Code, w.Body, want)
	}
	if w := rig.send("GET", "/desk/fix/sessions", "", ""); w.Code != http.StatusUnauthorized {
		t.Errorf("without a token: %d", w.Code)
	}
	if w := rig.send("GET", "/desk/tickets", "", annToken); w.Code != http.StatusNotFound {
		t.Errorf("tickets without a desk: %d", w.Code)
	}
}

// TestOperatorFIXCommands: the call of each body, and each refusal.
func TestOperatorFIXCommands(t *testing.T) {
	rig, fake := newFIXRig(t)
	for _, c := range []struct {
		path, body string
		err        error
		status     int
		asked      string
		answer     string
	}{
		{"/desk/fix/sessions/MM1/reset", `{}`, nil, 200, "reset MM1 false", `{"ok":true,"comp_id":"MM1"}`},
		{"/desk/fix/sessions/MM1/reset", `{"force":true}`, nil, 200, "reset MM1 true", `{"ok":true,"comp_id":"MM1"}`},
		{"/desk/fix/sessions/MM1/reset", `{}`, ErrFIXLoggedOn, 409, "reset MM1 false", `"code":"SESSION_STATE"`},
		{"/desk/fix/sessions/XX/reset", `{}`, ErrFIXUnknownSession, 404, "reset XX false", `"code":"UNKNOWN_SESSION"`},
		{"/desk/fix/sessions/MM1/kick", `{"text":"bye"}`, nil, 200, `kick MM1 "bye"`, `{"ok":true,"comp_id":"MM1"}`},
		{"/desk/fix/sessions/MM1/kick", `{"text":"bye"}`, ErrFIXNotLoggedOn, 409, `kick MM1 "bye"`, `"reason":"not_logged_on"`},
		{"/desk/fix/sessions/MM1/kick", `{}`, ErrFIXText, 400, `kick MM1 ""`, `"field":"text"`},
		{"/desk/fix/announce", `{"text":"18:00"}`, nil, 200, `announce "" "18:00"`, `{"ok":true,"sessions":3}`},
		{"/desk/fix/announce", `{"text":"18:00","comp_id":"TK1"}`, nil, 200, `announce "TK1" "18:00"`, `{"ok":true,"sessions":3}`},
		{"/desk/fix/announce", `{"text":"18:00"}`, errors.New("no disk"), 500, `announce "" "18:00"`, `"code":"INTERNAL`},
	} {
		fake.asked, fake.err = nil, c.err
		w := rig.send("POST", c.path, c.body, annToken)
		if w.Code != c.status || strings.Join(fake.asked, "; ") != c.asked || !strings.Contains(w.Body.String(), c.answer) || strings.Contains(w.Body.String(), "no disk") {
			t.Errorf("%s %s: asked %v, answered %d %s", c.path, c.body, fake.asked, w.Code, w.Body)
		}
	}
	fake.asked = nil
	for _, c := range []struct{ path, body string }{
		{"/desk/fix/announce", `{"txt":"x"}`},
		{"/desk/fix/announce", `[]`},
		{"/desk/fix/sessions/MM1/reset", `{"force":"yes"}`},
	} {
		if w := rig.send("POST", c.path, c.body, annToken); w.Code != http.StatusBadRequest || fake.asked != nil {
			t.Errorf("%s %s: %d, asked %v", c.path, c.body, w.Code, fake.asked)
		}
	}
}

// TestOperatorFIXKeys: a command runs once per key, another body is refused, and a
// refusal does not use up the key.
func TestOperatorFIXKeys(t *testing.T) {
	rig, fake := newFIXRig(t)
	announce := func(text, key, token string) (int, string, string) {
		w := rig.send("POST", "/desk/fix/announce", `{"text":"`+text+`"}`, token, "Idempotency-Key", key)
		return w.Code, w.Body.String(), w.Header().Get(string(wire.ReplayedHeader))
	}
	fake.err = ErrFIXText
	announce("a", "k", annToken)
	fake.asked, fake.err = nil, nil
	for i, replayed := range []string{"", "true"} {
		if status, body, again := announce("a", "k", annToken); status != 200 || body != `{"ok":true,"sessions":3}`+"\n" || again != replayed {
			t.Errorf("time %d: %d %s, replayed %q", i, status, body, again)
		}
	}
	if status, body, _ := announce("b", "k", annToken); status != 409 || !strings.Contains(body, wire.CodeIdempotencyConflict) {
		t.Errorf("another body: %d %s", status, body)
	}
	announce("a", "k", bobToken) // keys are each operator's own
	if len(fake.asked) != 2 {
		t.Errorf("asked %v", fake.asked)
	}
}

// TestFIXKeysAreBounded: at the limit, one above it, and after their lifetime.
func TestFIXKeysAreBounded(t *testing.T) {
	k := &fixKeys{byID: make(map[[16]byte]*fixKey)}
	key := func(i int) rfq.IdempotencyKey { return rfq.IdempotencyKey{ID: [16]byte{byte(i), byte(i >> 8), 1}} }
	for i := range MaxFIXKeys {
		k.keep(key(i), i, 0)
	}
	if got, err := k.find(key(0), 1); got != 0 || err != nil {
		t.Errorf("the oldest of as many as there may be: %v, %v", got, err)
	}
	k.keep(key(MaxFIXKeys), MaxFIXKeys, 0)
	if got, _ := k.find(key(0), 1); got != nil || len(k.byID) != MaxFIXKeys || len(k.ring) != MaxFIXKeys {
		t.Errorf("one past the limit: %v, %d, %d", got, len(k.byID), len(k.ring))
	}
	if got, _ := k.find(key(MaxFIXKeys), fixKeyLife); got != nil {
		t.Errorf("after its life: %v", got)
	}
}
