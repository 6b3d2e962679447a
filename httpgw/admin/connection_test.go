package admin

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/httpgw/gatewaytest"
	"blockdesk/httpgw/wire"
	"blockdesk/internal/runtest"
	"blockdesk/market"
)

// TestAdminPaths: unknown paths get our error, and no path redirects or is repeated.
func TestAdminPaths(t *testing.T) {
	o := newOperatorRig(t).options(t)
	a := startAdmin(t, Options{Operate: &o})
	for _, c := range []struct {
		method, target string
		status         int
		code, path     string
	}{
		{"GET", "/", 404, wire.CodeUnknownRoute, "/"},
		{"GET", "/nothing", 404, wire.CodeUnknownRoute, "/nothing"},
		{"GET", "/debug/pprof?canary=1", 404, wire.CodeUnknownRoute, "/debug/pprof"},
		{"GET", "/debug//pprof/?canary=1", 404, wire.CodeUnknownRoute, "/debug//pprof/"},
		{"GET", "/desk//tickets?canary=1", 404, wire.CodeUnknownRoute, "/desk//tickets"},
		{"GET", "/desk/../metrics", 404, wire.CodeUnknownRoute, "/desk/../metrics"},
		{"GET", "/desk/%2e%2e/canary", 404, wire.CodeUnknownRoute, wire.HiddenPath},
		{"GET", "/%63anary", 404, wire.CodeUnknownRoute, wire.HiddenPath},
		{"GET", "/<canary>", 404, wire.CodeUnknownRoute, wire.HiddenPath},
		{"GET", "/desk/", 401, codeOperatorToken, ""},
		{"POST", "/metrics", 405, wire.CodeMethodNotAllowed, ""},
		{"DELETE", "/healthz", 405, wire.CodeMethodNotAllowed, ""},
		{"PUT", "/readyz", 405, wire.CodeMethodNotAllowed, ""},
	} {
		resp, body := gatewaytest.Do(t, a.Addr(), c.method, c.target, "Connection: close\r\n")
		e := gatewaytest.DecodeError(t, body)
		if resp.StatusCode != c.status || e.Code != c.code || e.Path != c.path || resp.Header.Get("Content-Type") != wire.JSONType {
			t.Errorf("%s %s: %d %v %s", c.method, c.target, resp.StatusCode, resp.Header, body)
		}
		if strings.Contains(string(body), "canary") || resp.Header.Get("Location") != "" {
			t.Errorf("%s %s: it comes back: %v %s", c.method, c.target, resp.Header, body)
		}
		if allow := resp.Header.Get("Allow"); (allow == "GET, HEAD") != (c.status == 405) {
			t.Errorf("%s %s: Allow: %s", c.method, c.target, allow)
		}
	}
}

// TestAdminSlowBody: a client without a token is refused at once whatever body it
// announces; others have the time of a body.
func TestAdminSlowBody(t *testing.T) {
	rig := newOperatorRig(t)
	guarded := &outerHandler{next: rig.mux, ids: wire.NewRequestIDs(), bodyTime: 50 * time.Millisecond}
	s := httptest.NewServer(guarded)
	defer s.Close()
	for name, c := range map[string]struct {
		headers string
		status  int
		code    string
	}{
		"no token": {"Content-Length: 1000\r\n", 401, codeOperatorToken},
		"a token":  {"Content-Length: 1000\r\nAuthorization: Bearer " + annToken + "\r\n", 408, wire.CodeRequestTimeout},
		"chunked":  {"Transfer-Encoding: chunked\r\nAuthorization: Bearer " + annToken + "\r\n", 408, wire.CodeRequestTimeout},
	} {
		conn, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(runtest.HangTimeout)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, "POST /desk/locks HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"+c.headers+"\r\n1"); err != nil {
			t.Fatal(err)
		}
		in := bufio.NewReader(conn)
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if e := gatewaytest.DecodeError(t, body); resp.StatusCode != c.status || e.Code != c.code {
			t.Errorf("%s: %d %s", name, resp.StatusCode, body)
		}
		if rest, err := io.ReadAll(in); err != nil || len(rest) > 0 {
			t.Errorf("%s: the connection is not closed: %q, %v", name, rest, err)
		}
	}
}

// TestOperatorGuesses: after the burst, ten seconds allow ten guesses.
func TestOperatorGuesses(t *testing.T) {
	rig := newOperatorRig(t)
	now := int64(0)
	rig.op.limit = operatorLimit(func() int64 { return now })
	looked := 0
	for ; now < 10e9; now += 20e6 {
		switch w := rig.send("GET", "/desk/tickets", "", "not a token of anybody"); w.Code {
		case 401:
			looked++
		case 429:
		default:
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	if most := operatorBurst/wrongTokenCost + 10; looked > most {
		t.Errorf("%d guesses were looked at in 10 s; want at most %d", looked, most)
	}
}

// TestOperatorBodies: bodies that encoding/json would accept silently are refused.
func TestOperatorBodies(t *testing.T) {
	for _, c := range []struct {
		body         string
		code, reason string
		field        string
	}{
		{`{"locked":true,"reason":"x","locked":false}`, wire.CodeInvalidField, "repeated", "locked"},
		{`{"locked":true,"reason":"x","lock\u0065d":false}`, wire.CodeInvalidField, "repeated", "locked"},
		{`{"LOCKED":false}`, wire.CodeInvalidField, "unknown_field", "LOCKED"},
		{`{"Locked":false,"locked":true,"reason":"x"}`, wire.CodeInvalidField, "unknown_field", "Locked"},
		{"{\"locked\":true,\"reason\":\"x\xff\"}", wire.CodeInvalidJSON, "", ""},
		{`null`, wire.CodeInvalidJSON, "", ""},
		{`{"locked":false,}`, wire.CodeInvalidJSON, "", ""},
		{`{"nothing":1,"locked":tru}`, wire.CodeInvalidJSON, "", ""},
		{`{"locked":false}]`, wire.CodeInvalidJSON, "", ""},
	} {
		rig := newOperatorRig(t)
		w := rig.send("POST", "/desk/locks", c.body, annToken)
		e := gatewaytest.DecodeError(t, w.Body.Bytes())
		if w.Code != 400 || e.Code != c.code || e.Reason != c.reason || e.Field != c.field {
			t.Errorf("%s: %d %s", c.body, w.Code, w.Body)
		}
		if rig.desk.Last() != nil {
			t.Errorf("%s reached the desk", c.body)
		}
	}
	for _, kind := range []string{"application/json; charset=latin1", "application/jsonx", ""} {
		rig := newOperatorRig(t)
		r := httptest.NewRequest("POST", "/desk/locks", strings.NewReader(`{"locked":false}`))
		r.Header.Set("Authorization", "bearer "+annToken) // a scheme has no case
		r.Header.Set("Content-Type", kind)
		w := httptest.NewRecorder()
		if rig.mux.ServeHTTP(w, r); w.Code != 415 {
			t.Errorf("%q: %d %s", kind, w.Code, w.Body)
		}
	}
}

// TestOperatorsOwnRefusals: an operator learns what is wrong with a value.
func TestOperatorsOwnRefusals(t *testing.T) {
	for reason := range operatorRefusals {
		rig := newOperatorRig(t)
		rig.desk.Result = func(rfq.Request) (*desk.Result, error) {
			return &desk.Result{Outcome: rfq.Outcome{Reason: reason}}, nil
		}
		w := rig.send("POST", "/desk/tickets/T7/withdraw", "{}", annToken)
		if e := gatewaytest.DecodeError(t, w.Body.Bytes()); w.Code != 400 || e.Code != wire.CodeInvalidField || e.Reason != reason.String() {
			t.Errorf("%s: %d %s", reason, w.Code, w.Body)
		}
	}
}

// TestTranchesAtOnce: two operators who add a tranche at the same time do not
// overwrite each other.
func TestTranchesAtOnce(t *testing.T) {
	rig := newOperatorRig(t)
	first := rig.desk.Current.Ticket(7)
	added := map[market.TrancheID]bool{}
	rig.desk.Result = func(r rfq.Request) (*desk.Result, error) {
		set := r.(*rfq.SetTranche)
		added[set.Tranche] = true
		v, k := *rig.desk.Current, *first
		k.Tranches = append(k.Tranches[:len(k.Tranches):len(k.Tranches)], make([]rfq.Tranche, len(added))...)
		v.Tickets = []*rfq.Ticket{&k}
		rig.desk.Current = &v
		return &desk.Result{Ticket: &k}, nil
	}
	var all sync.WaitGroup
	const operators = 8
	for range operators {
		all.Go(func() {
			if w := rig.send("POST", "/desk/tickets/T7/tranches", `{"capacity_usd":"300"}`, annToken); w.Code != 200 {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
	all.Wait()
	if len(added) != operators {
		t.Errorf("%d operators have added %d tranches: %v", operators, len(added), added)
	}
}
