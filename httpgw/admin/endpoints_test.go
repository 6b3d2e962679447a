package admin

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"blockdesk/desk"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/httpgw/gatewaytest"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

const (
	annToken = "ann's token, 256 bits of chance"
	bobToken = "bob's token, 256 bits of chance"
)

// operatorRig is the operators' endpoints with a desk that grants everything.
type operatorRig struct {
	desk    *gatewaytest.ScriptedDesk
	now     int64
	backups []string
	failing error // of Backup
	mux     *http.ServeMux
	op      *endpoints
}

func newOperatorRig(t testing.TB) *operatorRig {
	t.Helper()
	rig := &operatorRig{now: gatewaytest.ViewTime, desk: &gatewaytest.ScriptedDesk{Current: gatewaytest.FixedView()}, mux: http.NewServeMux()}
	rig.desk.Result = func(r rfq.Request) (*desk.Result, error) {
		return &desk.Result{Ticket: rig.desk.Current.Tickets[0]}, nil
	}
	o := rig.options(t)
	if err := o.validate(); err != nil {
		t.Fatal(err)
	}
	rig.op = newEndpoints(o, wire.NewRequestIDs(), slog.New(slog.DiscardHandler))
	rig.op.register(rig.mux)
	return rig
}

func (rig *operatorRig) options(t testing.TB) Operations {
	return Operations{
		Desk: rig.desk, Instruments: gatewaytest.NewBooks(t).Set, Now: func() int64 { return rig.now },
		Operators: []Operator{
			{ID: 1, Name: "ann", TokenSHA256: sha256.Sum256([]byte(annToken))},
			{ID: 2, Name: "bob", TokenSHA256: sha256.Sum256([]byte(bobToken))},
		},
		Backup: func(_ context.Context, to string) error {
			rig.backups = append(rig.backups, to)
			return rig.failing
		},
	}
}

// send sends a request with a token; more headers come in pairs.
func (rig *operatorRig) send(method, target, body, token string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	rig.mux.ServeHTTP(w, r)
	return w
}

// TestOperatorCommands: the request to the desk of each body, with its operator.
func TestOperatorCommands(t *testing.T) {
	only := func(r market.Rail) market.Rails { return market.Rails(0).With(r) }
	const future = "2026-11-20T13:00:00Z"
	expires := parseTime(t, future)
	for _, c := range []struct {
		path, body string
		want       rfq.Request
	}{
		{
			"/desk/tickets", `{"pair":"SLUSD/USDC","label":"a","tranches":["250","1000.5"]}`,
			&rfq.PostTicket{Label: "a", Priority: DefaultPriority, Capacities: []market.USD{250 * gatewaytest.Dollar, 1000*gatewaytest.Dollar + 500_000}},
		},
		{
			"/desk/tickets", `{"pair":"92C/SLUSD","label":"b","tranches":["250"],"rails":["SOL"],"priority":0,` +
				`"reference_price_usd":"0.000000001","expires_at":"` + future + `"}`,
			&rfq.PostTicket{
				Label: "b", Instrument: 1, Rails: only(market.RailSOL), Reference: 1, ExpiresAt: expires, Capacities: []market.USD{250 * gatewaytest.Dollar},
			},
		},
		{
			"/desk/tickets/T11/amend", `{}`,
			&rfq.AmendTicket{Ticket: 11, Rails: only(market.RailUSDC), Priority: 10, Reference: 93_000_000_000},
		},
		{
			"/desk/tickets/T7/amend", `{"expires_at":"","priority":65535}`,
			&rfq.AmendTicket{Ticket: 7, Rails: market.AllRails, Priority: 65535},
		},
		{
			"/desk/tickets/T11/amend", `{"rails":["USDC","SOL"],"reference_price_usd":"","expires_at":"` + future + `"}`,
			&rfq.AmendTicket{Ticket: 11, Rails: market.AllRails, Priority: 10, ExpiresAt: expires},
		},
		{
			"/desk/tickets/T7/tranches", `{"tranche_id":"T7-2","capacity_usd":"300"}`,
			&rfq.SetTranche{Ticket: 7, Tranche: 2, Capacity: 300 * gatewaytest.Dollar},
		},
		{"/desk/tickets/T7/tranches", `{"capacity_usd":"300"}`, &rfq.SetTranche{Ticket: 7, Tranche: 3, Capacity: 300 * gatewaytest.Dollar}},
		{"/desk/tickets/T9/withdraw", `{}`, &rfq.WithdrawTicket{Ticket: 9}},
		{"/desk/locks", `{"locked":true,"reason":"drill"}`, &rfq.SetLock{Scope: rfq.LockAll, Locked: true, Reason: "drill"}},
		{"/desk/locks", `{"locked":false}`, &rfq.SetLock{Scope: rfq.LockAll}},
		{
			"/desk/locks", `{"pair":"92C/SLUSD","locked":true,"reason":"x"}`,
			&rfq.SetLock{Scope: rfq.LockPair, Instrument: 1, Locked: true, Reason: "x"},
		},
		{"/desk/locks", `{"rail":"SOL","locked":false,"reason":"x"}`, &rfq.SetLock{Scope: rfq.LockRail, Rail: market.RailSOL, Reason: "x"}},
		{"/desk/prices", `{"pair":"92C/SLUSD","price_usd":"1.5"}`, &rfq.SetAnchor{Instrument: 1, Price: 1_500_000_000, Source: rfq.OriginOperator}},
		{"/desk/prices", `{"rail":"SOL","price_usd":"150"}`, &rfq.SetRailPrice{Rail: market.RailSOL, Price: 150_000_000_000, MaxAge: 300e9, Source: rfq.OriginOperator}},
		{"/desk/prices", `{"rail":"SOL","price_usd":"150","max_age_s":0}`, &rfq.SetRailPrice{Rail: market.RailSOL, Price: 150_000_000_000, Source: rfq.OriginOperator}},
		{"/desk/prices", `{"rail":"SOL","price_usd":"150","max_age_s":604800}`, &rfq.SetRailPrice{
			Rail: market.RailSOL, Price: 150_000_000_000, MaxAge: 604_800e9, Source: rfq.OriginOperator,
		}},
		{"/desk/inventory", `{"pair":"92C/SLUSD","inventory":"2.000000001"}`, &rfq.SetInventory{Instrument: 1, Atoms: 2_000_000_001}},
		{"/desk/inventory", `{"pair":"SLUSD/USDC","inventory":"0"}`, &rfq.SetInventory{}},
	} {
		rig := newOperatorRig(t)
		w := rig.send("POST", c.path, c.body, bobToken)
		if w.Code != 200 || !strings.HasPrefix(w.Body.String(), `{"ok":true,`) {
			t.Errorf("%s %s: %d %s", c.path, c.body, w.Code, w.Body)
			continue
		}
		c.want.Head().Operator = 2
		if got := rig.desk.Last(); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s %s: %+v, want %+v", c.path, c.body, got, c.want)
		}
	}
}

func parseTime(t testing.TB, text string) int64 {
	t.Helper()
	at, problem := (&deskEndpoints{now: func() int64 { return 0 }}).parseExpiry(text)
	if problem != nil {
		t.Fatal(problem.Text)
	}
	return at
}

// TestOperatorRefusals: invalid requests do not reach the desk.
func TestOperatorRefusals(t *testing.T) {
	long := strings.Repeat("x", rfq.MaxText+1)
	many := `"250"` + strings.Repeat(`,"250"`, rfq.MaxTranches)
	const ticketHead = `{"pair":"SLUSD/USDC","label":"a","tranches":["250"]`
	for _, c := range []struct {
		path, body  string
		status      int
		code, field string
	}{
		{"/desk/tickets", ``, 400, wire.CodeInvalidJSON, ""},
		{"/desk/tickets", `[]`, 400, wire.CodeInvalidJSON, ""},
		{"/desk/tickets", ticketHead, 400, wire.CodeInvalidJSON, ""},
		{"/desk/tickets", ticketHead + `} {}`, 400, wire.CodeInvalidJSON, ""},
		{"/desk/tickets", ticketHead + `,"label ":"x"}`, 400, wire.CodeInvalidField, ""},
		{"/desk/tickets", ticketHead + `,"priority":"7"}`, 400, wire.CodeInvalidField, "priority"},
		{"/desk/tickets", ticketHead + `,"priority":65536}`, 400, wire.CodeInvalidField, "priority"},
		{"/desk/tickets", ticketHead + `,"priority":-1}`, 400, wire.CodeInvalidField, "priority"},
		{"/desk/tickets", ticketHead + `,"rails":["USDC","USDC"]}`, 400, wire.CodeInvalidField, "rails"},
		{"/desk/tickets", ticketHead + `,"rails":"USDC"}`, 400, wire.CodeInvalidField, "rails"},
		{"/desk/tickets", ticketHead + `,"reference_price_usd":"0"}`, 400, wire.CodeInvalidField, "reference_price_usd"},
		{"/desk/tickets", ticketHead + `,"reference_price_usd":1}`, 400, wire.CodeInvalidField, "reference_price_usd"},
		{"/desk/tickets", ticketHead + `,"expires_at":"2026-11-20T12:00:00Z"}`, 400, wire.CodeInvalidField, "expires_at"},
		{"/desk/tickets", ticketHead + `,"expires_at":"9999-01-01T00:00:00Z"}`, 400, wire.CodeInvalidField, "expires_at"},
		{"/desk/tickets", ticketHead + `,"expires_at":"tomorrow"}`, 400, wire.CodeInvalidField, "expires_at"},
		{"/desk/tickets", `{"label":"a","tranches":["250"]}`, 400, wire.CodeMissingField, "pair"},
		{"/desk/tickets", `{"pair":"A/B","label":"a","tranches":["250"]}`, 400, wire.CodeUnknownSymbol, "pair"},
		{"/desk/tickets", `{"pair":"SLUSD/USDC","label":"","tranches":["250"]}`, 400, wire.CodeInvalidField, "label"},
		{"/desk/tickets", `{"pair":"SLUSD/USDC","label":"` + long + `","tranches":["250"]}`, 400, wire.CodeInvalidField, "label"},
		{"/desk/tickets", `{"pair":"SLUSD/USDC","label":"é","tranches":["250"]}`, 400, wire.CodeInvalidField, "label"},
		{"/desk/tickets", `{"pair":"SLUSD/USDC","label":"a"}`, 400, wire.CodeInvalidField, "tranches"},
		{"/desk/tickets", `{"pair":"SLUSD/USDC","label":"a","tranches":[` + many + `]}`, 400, wire.CodeInvalidField, "tranches"},
		{"/desk/tickets", `{"pair":"SLUSD/USDC","label":"a","tranches":["249.999999"]}`, 400, wire.CodeInvalidField, "tranches[0]"},
		{"/desk/tickets", `{"pair":"SLUSD/USDC","label":"a","tranches":["250.0000001"]}`, 400, wire.CodeInvalidField, "tranches[0]"},
		{"/desk/tickets/T99/withdraw", `{}`, 404, wire.CodeUnknownTicket, "order_id"},
		{"/desk/tickets/7/withdraw", `{}`, 404, wire.CodeUnknownTicket, "order_id"},
		{"/desk/tickets/T7/withdraw", `{"why":"x"}`, 400, wire.CodeInvalidField, "why"},
		{"/desk/tickets/T7/tranches", `{"tranche_id":"T7-3","capacity_usd":"250"}`, 400, wire.CodeInvalidField, "tranche_id"},
		{"/desk/tickets/T7/tranches", `{"tranche_id":"T8-1","capacity_usd":"250"}`, 400, wire.CodeInvalidField, "tranche_id"},
		{"/desk/tickets/T7/tranches", `{"tranche_id":"T7-1"}`, 400, wire.CodeInvalidField, "capacity_usd"},
		{"/desk/tickets/T7/amend", `{"rails":["x"]}`, 400, wire.CodeInvalidField, "rails"},
		{"/desk/locks", `{"reason":"x"}`, 400, wire.CodeMissingField, "locked"},
		{"/desk/locks", `{"locked":true}`, 400, wire.CodeMissingField, "reason"},
		{"/desk/locks", `{"locked":true,"reason":"` + long + `"}`, 400, wire.CodeInvalidField, "reason"},
		{"/desk/locks", `{"locked":false,"reason":"a\nb"}`, 400, wire.CodeInvalidField, "reason"},
		{"/desk/locks", `{"locked":false,"pair":"SLUSD/USDC","rail":"SOL"}`, 400, wire.CodeInvalidField, "rail"},
		{"/desk/locks", `{"locked":false,"rail":"sol"}`, 400, wire.CodeInvalidField, "rail"},
		{"/desk/prices", `{"pair":"SLUSD/USDC"}`, 400, wire.CodeMissingField, "price_usd"},
		{"/desk/prices", `{"price_usd":"1"}`, 400, wire.CodeMissingField, "pair"},
		{"/desk/prices", `{"pair":"SLUSD/USDC","price_usd":"1000000000.000000001"}`, 400, wire.CodeInvalidField, "price_usd"},
		{"/desk/prices", `{"pair":"SLUSD/USDC","price_usd":"1","max_age_s":5}`, 400, wire.CodeInvalidField, "max_age_s"},
		{"/desk/prices", `{"pair":"SLUSD/USDC","rail":"SOL","price_usd":"1"}`, 400, wire.CodeInvalidField, "rail"},
		{"/desk/prices", `{"rail":"USDC","price_usd":"1"}`, 400, wire.CodeInvalidField, "rail"},
		{"/desk/prices", `{"rail":"SOL","price_usd":"1","max_age_s":604801}`, 400, wire.CodeInvalidField, "max_age_s"},
		{"/desk/inventory", `{"pair":"SLUSD/USDC"}`, 400, wire.CodeMissingField, "inventory"},
		{"/desk/inventory", `{"pair":"SLUSD/USDC","inventory":"0.0000001"}`, 400, wire.CodeInvalidField, "inventory"},
		{"/desk/backup", `{"to":"here"}`, 400, wire.CodeInvalidField, "to"},
		{"/desk/nothing", `{}`, 404, wire.CodeUnknownRoute, ""},
		{"/desk/", `{}`, 404, wire.CodeUnknownRoute, ""},
	} {
		rig := newOperatorRig(t)
		w := rig.send("POST", c.path, c.body, annToken)
		e := gatewaytest.DecodeError(t, w.Body.Bytes())
		if w.Code != c.status || e.Code != c.code || e.Field != c.field {
			t.Errorf("%s %s: %d %s", c.path, c.body, w.Code, w.Body)
		}
		if rig.desk.Last() != nil || len(rig.backups) > 0 {
			t.Errorf("%s %s reached the desk", c.path, c.body)
		}
	}
	rig := newOperatorRig(t)
	if w := rig.send("PUT", "/desk/locks", "{}", annToken); w.Code != 405 || w.Header().Get("Allow") != "GET, HEAD, POST" {
		t.Errorf("PUT: %d %v %s", w.Code, w.Header(), w.Body)
	}
	if w := rig.send("POST", "/desk/locks", `{"locked":false}`, annToken, "Content-Type", "text/plain"); w.Code != 200 {
		t.Errorf("of two content types the first counts: %d %s", w.Code, w.Body)
	}
	r := httptest.NewRequest("POST", "/desk/locks", strings.NewReader(`{"locked":false}`))
	r.Header.Set("Authorization", "Bearer "+annToken)
	w := httptest.NewRecorder()
	if rig.mux.ServeHTTP(w, r); w.Code != 415 {
		t.Errorf("no content type: %d %s", w.Code, w.Body)
	}
}

// TestOperatorToken: valid tokens pass, and each wrong one costs ten requests.
func TestOperatorToken(t *testing.T) {
	rig := newOperatorRig(t)
	for _, token := range []string{annToken, bobToken} {
		if w := rig.send("GET", "/desk/tickets", "", token); w.Code != 200 {
			t.Errorf("%q: %d %s", token, w.Code, w.Body)
		}
	}
	for _, c := range []struct{ header, reason string }{
		{"", "missing"},
		{"Bearer", "missing"},
		{"Bearer short", "missing"},
		{annToken, "missing"},
		{"Basic " + annToken, "missing"},
		{"Bearer " + annToken + " ", "unknown"},
		{"Bearer  " + annToken, "unknown"},
		{"Bearer " + strings.ToUpper(annToken), "unknown"},
	} {
		rig := newOperatorRig(t)
		w := rig.send("POST", "/desk/locks", `{"locked":false}`, "", "Authorization", c.header)
		e := gatewaytest.DecodeError(t, w.Body.Bytes())
		if w.Code != 401 || e.Code != codeOperatorToken || e.Reason != c.reason || w.Header().Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("%q: %d %v %s", c.header, w.Code, w.Header(), w.Body)
		}
		if rig.desk.Last() != nil {
			t.Errorf("%q reached the desk", c.header)
		}
	}
	rig = newOperatorRig(t)
	now := int64(0)
	rig.op.limit = operatorLimit(func() int64 { return now })
	for i := range operatorBurst / wrongTokenCost {
		if w := rig.send("GET", "/desk/tickets", "", "not a token of anybody"); w.Code != 401 {
			t.Fatalf("guess %d: %d %s", i, w.Code, w.Body)
		}
	}
	for _, token := range []string{"not a token of anybody", annToken} {
		w := rig.send("GET", "/desk/tickets", "", token)
		if e := gatewaytest.DecodeError(t, w.Body.Bytes()); w.Code != 429 || e.Code != wire.CodeRateLimited || w.Header().Get("Retry-After") != "1" {
			t.Errorf("after the guesses: %d %v %s", w.Code, w.Header(), w.Body)
		}
	}
	now = int64(1e9)
	if w := rig.send("GET", "/desk/tickets", "", annToken); w.Code != 200 {
		t.Errorf("a second later: %d %s", w.Code, w.Body)
	}
}

// TestOperatorKeys: an Idempotency-Key belongs to an operator, a path and a body.
func TestOperatorKeys(t *testing.T) {
	rig := newOperatorRig(t)
	key := func(token, path, body string, keys ...string) rfq.IdempotencyKey {
		t.Helper()
		var headers []string
		for _, k := range keys {
			headers = append(headers, "Idempotency-Key", k)
		}
		if w := rig.send("POST", path, body, token, headers...); w.Code != 200 {
			t.Fatalf("%s: %d %s", path, w.Code, w.Body)
		}
		return rig.desk.Last().Head().Key
	}
	first := key(annToken, "/desk/tickets/T7/withdraw", "{}", "k")
	if none := key(annToken, "/desk/tickets/T7/withdraw", "{}"); first == (rfq.IdempotencyKey{}) || none != (rfq.IdempotencyKey{}) {
		t.Errorf("keys %v and %v", first, none)
	}
	if again := key(annToken, "/desk/tickets/T7/withdraw", "{}", "k"); again != first {
		t.Error("the same request has another key")
	}
	for name, other := range map[string]rfq.IdempotencyKey{
		"another path": key(annToken, "/desk/tickets/T8/withdraw", "{}", "k"),
		"another body": key(annToken, "/desk/tickets/T7/withdraw", "{ }", "k"),
	} {
		if other.ID != first.ID || other.Body == first.Body {
			t.Errorf("%s: %v, first %v", name, other, first)
		}
	}
	if other := key(bobToken, "/desk/tickets/T7/withdraw", "{}", "k"); other.ID == first.ID {
		t.Error("two operators share a key")
	}
	for name, headers := range map[string][]string{
		"two": {"Idempotency-Key", "a", "Idempotency-Key", "b"}, "empty": {"Idempotency-Key", ""},
		"long": {"Idempotency-Key", strings.Repeat("k", wire.MaxIdempotencyKey+1)},
	} {
		if w := rig.send("POST", "/desk/locks", `{"locked":false}`, annToken, headers...); w.Code != 400 {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	rig.desk.Result = func(rfq.Request) (*desk.Result, error) {
		return &desk.Result{Ticket: rig.desk.Current.Tickets[0], Replayed: true}, nil
	}
	w := rig.send("POST", "/desk/tickets/T7/withdraw", "{}", annToken, "Idempotency-Key", "k")
	if w.Header().Get("Idempotency-Replayed") != "true" {
		t.Errorf("replayed: %v", w.Header())
	}
}

// TestOperatorDeskSaysNo: a refusal and each error of the desk.
func TestOperatorDeskSaysNo(t *testing.T) {
	for _, c := range []struct {
		result *desk.Result
		err    error
		status int
		code   string
		reason string
	}{
		{&desk.Result{Outcome: rfq.Outcome{Reason: event.ReasonCapacityExhausted}}, nil, 409, wire.CodeCapacityExhausted, "capacity_exhausted"},
		{&desk.Result{Outcome: rfq.Outcome{Reason: event.ReasonUnknownOperator}}, nil, 403, wire.CodeRefused, "unknown_operator"},
		{nil, desk.ErrConflict, 409, wire.CodeIdempotencyConflict, ""},
		{nil, desk.ErrReadOnly, 503, wire.CodeReadOnly, ""},
		{nil, desk.ErrTimeout, 503, wire.CodeOverloaded, "outcome_unknown"},
		{nil, errors.New("the store is on fire"), 500, wire.CodeInternal, ""},
	} {
		rig := newOperatorRig(t)
		rig.desk.Result = func(rfq.Request) (*desk.Result, error) { return c.result, c.err }
		w := rig.send("POST", "/desk/tickets/T7/withdraw", "{}", annToken)
		if e := gatewaytest.DecodeError(t, w.Body.Bytes()); w.Code != c.status || e.Code != c.code || e.Reason != c.reason {
			t.Errorf("%v %v: %d %s", c.result, c.err, w.Code, w.Body)
		}
		if strings.Contains(w.Body.String(), "fire") {
			t.Error("an inner error went out")
		}
	}
}

// TestOperatorReads pins what the lists say.
func TestOperatorReads(t *testing.T) {
	rig := newOperatorRig(t)
	read := func(path string) string {
		t.Helper()
		w := rig.send("GET", path, "", annToken)
		if w.Code != 200 || w.Header().Get("Cache-Control") != "no-store" || w.Header().Get("X-Request-Id") == "" {
			t.Fatalf("%s: %d %v %s", path, w.Code, w.Header(), w.Body)
		}
		return w.Body.String()
	}
	for path, want := range map[string][]string{
		"/desk/tickets": {
			`{"ok":true,"seq":4711,"tickets":[{"order_id":"T7","ticket_label":"spring block","pair":"SLUSD/USDC","state":"open","rails":["USDC","SOL"],"priority":10,"reference_price_usd":null,` +
				`"tranches":[{"tranche_id":"T7-1","capacity_usd":"250000.000000","available_usd":"200.000000","reserved_usd":"0.000000","filled_usd":"249800.000000"},`,
			`"posted_by":"ann","seq":4007},{"order_id":"T8",`, `"reference_price_usd":"93.000000000"`, `"expires_at":null`,
		},
		"/desk/locks": {
			`{"name":"global","locked":false,"since":"`, `{"name":"rail:SOL","locked":true,"since":"`, `"by":"ann","reason":"drill"}`,
		},
		"/desk/prices": {
			`{"pair":"SLUSD/USDC","price_source":"book","price_usd":"1.000000000","set_at":"`, `"max_age_s":3600,"stale":false,` +
				`"corridor_bps":300,"min_price_usd":"0.970000000","max_price_usd":"1.030000000","source":"operator"}`,
			`{"rail":"SOL","price_usd":"151.230000000",`,
		},
		"/desk/inventory": {
			`{"pair":"SLUSD/USDC","inventory":"5000000.000000","free":"4998749.999999","reserved":"250.000000","sold":"1000.000001"}`,
			`{"pair":"92C/SLUSD","inventory":"0.000000001","free":"0.000000000","reserved":"0.000000002","sold":"0.000000000"}`,
		},
	} {
		got := read(path)
		for _, part := range want {
			if !strings.Contains(got, part) {
				t.Errorf("%s has no %s:\n%s", path, part, got)
			}
		}
		if !json.Valid([]byte(got)) {
			t.Errorf("%s: %s", path, got)
		}
	}
	rig.now = gatewaytest.ViewTime + 3600e9
	if got := read("/desk/prices"); strings.Count(got, `"stale":true`) != 2 {
		t.Errorf("an hour later: %s", got)
	}
}

// TestOperatorBackup: backups do not overlap, and the cause of a failure is not
// published.
func TestOperatorBackup(t *testing.T) {
	rig := newOperatorRig(t)
	if w := rig.send("POST", "/desk/backup", `{"to":"/a/b"}`, annToken); w.Code != 200 || len(rig.backups) != 1 || rig.backups[0] != "/a/b" {
		t.Errorf("%d %s, %v", w.Code, w.Body, rig.backups)
	}
	rig.failing = errors.New("the disk is on fire")
	w := rig.send("POST", "/desk/backup", `{"to":"/a/b"}`, annToken)
	if e := gatewaytest.DecodeError(t, w.Body.Bytes()); w.Code != 500 || e.Reason != "backup_failed" || strings.Contains(w.Body.String(), "fire") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	for _, c := range []struct {
		err    error
		status int
		want   string
	}{{ErrBackupDisk, 503, "disk_critical"}, {ErrBackupFolder, 400, "empty or missing folder"}} {
		rig.failing = errors.Join(errors.New("somewhere"), c.err)
		if w := rig.send("POST", "/desk/backup", `{"to":"/a/b"}`, annToken); w.Code != c.status || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%v: %d %s", c.err, w.Code, w.Body)
		}
	}
	rig.op.backup <- struct{}{}
	w = rig.send("POST", "/desk/backup", `{"to":"/a/b"}`, annToken)
	if e := gatewaytest.DecodeError(t, w.Body.Bytes()); w.Code != 409 || e.Reason != "backup_running" {
		t.Errorf("a second one: %d %s", w.Code, w.Body)
	}
}

// TestOperateOptions: the admin does not start without operators.
func TestOperateOptions(t *testing.T) {
	for name, spoil := range map[string]func(*Operations){
		"desk":        func(o *Operations) { o.Desk, o.Money = nil, &ledger{} },
		"instruments": func(o *Operations) { o.Instruments = nil },
		"backup":      func(o *Operations) { o.Backup = nil },
		"no operator": func(o *Operations) { o.Operators = nil },
		"id":          func(o *Operations) { o.Operators[1].ID = 0 },
		"name":        func(o *Operations) { o.Operators[1].Name = "" },
		"token":       func(o *Operations) { o.Operators[1].TokenSHA256 = [32]byte{} },
	} {
		o := newOperatorRig(t).options(t)
		spoil(&o)
		if _, err := New(Options{Addr: "127.0.0.1:0", Operate: &o}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	o := newOperatorRig(t).options(t)
	a := startAdmin(t, Options{Operate: &o})
	resp, body := gatewaytest.Do(t, a.Addr(), "GET", "/desk/locks", "Connection: close\r\nAuthorization: Bearer "+annToken+"\r\n")
	if resp.StatusCode != 200 {
		t.Errorf("over a socket: %d %s", resp.StatusCode, body)
	}
	large := strings.Repeat(" ", wire.DefaultMaxBodyBytes+1)
	r, err := http.NewRequest("POST", "http://"+a.Addr().String()+"/desk/locks", strings.NewReader(large))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+annToken)
	r.Header.Set("Content-Type", "application/json")
	defer http.DefaultClient.CloseIdleConnections()
	if resp, err = http.DefaultClient.Do(r); err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 413 {
		t.Errorf("a large body: %d", resp.StatusCode)
	}
}

// Whatever an operator sends, the answer is JSON, and what reaches the desk can
// be encoded.
func FuzzOperate(f *testing.F) {
	f.Add("/desk/tickets", `{"pair":"SLUSD/USDC","label":"a","tranches":["250"],"rails":["SOL"],"priority":1,"expires_at":"2030-01-01T00:00:00Z"}`)
	f.Add("/desk/tickets/T7/tranches", `{"tranche_id":"T7-1","capacity_usd":"1e3"}`)
	f.Add("/desk/locks", `{"locked":true,"reason":"\u0000","rail":"SOL"}`)
	f.Add("/desk/prices", `{"rail":"SOL","price_usd":"150","max_age_s":9223372036854775807}`)
	f.Add("/desk/inventory", `{"pair":"92C/SLUSD","inventory":"18446744073709551615"}`)
	rig := newOperatorRig(f)
	rig.op.limit = operatorLimit(func() int64 { return 0 })
	var broken error
	rig.desk.Result = func(r rfq.Request) (*desk.Result, error) {
		if _, err := rfq.DecodeRequest(rfq.AppendRequest(nil, r)); err != nil {
			broken = err
		}
		return &desk.Result{Ticket: rig.desk.Current.Tickets[0]}, nil
	}
	f.Fuzz(func(t *testing.T, path, body string) {
		if !strings.HasPrefix(path, "/desk/") || strings.ContainsAny(path, " ?#%\\\x7f") || strings.Contains(path, "//") {
			return
		}
		for i := range len(path) {
			if path[i] < ' ' || path[i] > '~' {
				return
			}
		}
		rig.op.limit = operatorLimit(func() int64 { return 0 })
		w := rig.send("POST", path, body, annToken)
		if w.Code == 301 || w.Code == 307 { // the mux cleans dots out of paths; outerHandler comes before it
			return
		}
		if !json.Valid(w.Body.Bytes()) {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		if broken != nil {
			t.Error(broken)
		}
	})
}
