package admin

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"blockdesk/httpgw/gatewaytest"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// tokenLog is Tokens in memory.
type tokenLog struct {
	tokens []AccessToken
	asked  []string // calls
	err    error
}

func (l *tokenLog) Tokens(after string, limit int, ended bool) ([]AccessToken, error) {
	l.asked = append(l.asked, fmt.Sprintf("list %q %d %v", after, limit, ended))
	if after == "junk" {
		return nil, ErrUnknownToken
	}
	var out []AccessToken
	for _, t := range l.tokens {
		if t.ID > after && len(out) < limit {
			out = append(out, t)
		}
	}
	return out, l.err
}

func (l *tokenLog) Revoke(id, by string) (AccessToken, error) {
	l.asked = append(l.asked, "revoke "+id+" "+by)
	for i := range l.tokens {
		if t := &l.tokens[i]; t.ID == id {
			if t.RevokedAt == 0 {
				t.RevokedAt, t.RevokedBy = gatewaytest.ViewTime, by
			}
			return *t, l.err
		}
	}
	return AccessToken{}, errors.Join(ErrUnknownToken, l.err)
}

// newTokenRig returns the operators' endpoints with three tokens: expired, revoked and
// valid.
func newTokenRig(t testing.TB) (*operatorRig, *tokenLog) {
	t.Helper()
	return newTokenRigTo(t, io.Discard)
}

// newTokenRigTo is newTokenRig with a log.
func newTokenRigTo(t testing.TB, out io.Writer) (*operatorRig, *tokenLog) {
	t.Helper()
	log := &tokenLog{tokens: []AccessToken{
		{ID: "K1", Key: market.Address{1}, IssuedAt: gatewaytest.ViewTime - 9e9, ExpiresAt: gatewaytest.ViewTime},
		{ID: "K2", Key: market.Address{2}, IssuedAt: gatewaytest.ViewTime - 8e9, ExpiresAt: gatewaytest.ViewTime + 1, RevokedAt: gatewaytest.ViewTime - 7e9, RevokedBy: "bob"},
		{ID: "K3", Key: market.Address{3}, IssuedAt: gatewaytest.ViewTime - 6e9, ExpiresAt: gatewaytest.ViewTime + 1},
	}}
	rig := newOperatorRig(t)
	o := rig.options(t)
	o.Tokens = log
	rig.mux = http.NewServeMux()
	rig.op = newEndpoints(o, wire.NewRequestIDs(), slog.New(slog.NewTextHandler(out, nil)))
	rig.op.register(rig.mux)
	return rig, log
}

// TestOperatorTokens: the list, and the answer to a revocation.
func TestOperatorTokens(t *testing.T) {
	rig, log := newTokenRig(t)
	w := rig.send("GET", "/desk/tokens", "", annToken)
	const want = `{"ok":true,"tokens":[` +
		`{"token_id":"K1","pubkey":"4uQeVj5tqViQh7yWWGStvkEG1Zmhx6uasJtWCJziofM","state":"ended","issued_at":"2026-11-20T11:59:55.123Z","expires_at":"2026-11-20T12:00:04.123Z","revoked_at":null,"revoked_by":null},` +
		`{"token_id":"K2","pubkey":"8opHzTAnfzRpPEx21XtnrVTX28YQuCpAjcn1PczScKh","state":"revoked","issued_at":"2026-11-20T11:59:56.123Z","expires_at":"2026-11-20T12:00:04.123Z","revoked_at":"2026-11-20T11:59:57.123Z","revoked_by":"bob"},` +
		`{"token_id":"K3","pubkey":"CiDwVBFgWV9E5MvXWoLgnEgn2hK7rJikbvfWavzAQz3","state":"valid","issued_at":"2026-11-20T11:59:58.123Z","expires_at":"2026-11-20T12:00:04.123Z","revoked_at":null,"revoked_by":null}],"next":null}` + "\n"
	if w.Code != 200 || w.Body.String() != want || w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("list: %d %v\n got %s\nwant %s", w.Code, w.Header(), w.Body, want)
	}
	for range 2 { // the first time counts
		w := rig.send("POST", "/desk/tokens/K3/revoke", "{}", annToken, "Idempotency-Key", "k")
		if w.Code != 200 || !strings.Contains(w.Body.String(), `{"ok":true,"token":{"token_id":"K3",`) ||
			!strings.Contains(w.Body.String(), `"state":"revoked"`) || !strings.Contains(w.Body.String(), `"revoked_by":"ann"`) {
			t.Errorf("revoke: %d %s", w.Code, w.Body)
		}
	}
	if last := log.asked[len(log.asked)-1]; last != "revoke K3 ann" {
		t.Errorf("asked for %s", last)
	}
}

// TestOperatorTokenPages: the query parameters, at the limit and one above it.
func TestOperatorTokenPages(t *testing.T) {
	for _, c := range []struct {
		query, asked, next string
		status             int
		field              string
	}{
		{"", `list "" 101 false`, `"next":null`, 200, ""},
		{"?all=false&after=", `list "" 101 false`, `"next":null`, 200, ""},
		{"?all=true&limit=3", `list "" 4 true`, `"next":null`, 200, ""},
		{"?limit=2", `list "" 3 false`, `"next":"K2"`, 200, ""},
		{"?limit=1&after=K2", `list "K2" 2 false`, `"next":null`, 200, ""},
		{"?after=K3", `list "K3" 101 false`, `"tokens":[],"next":null`, 200, ""},
		{"?limit=500", `list "" 501 false`, `"next":null`, 200, ""},
		{"?limit=501", "", "", 400, "limit"},
		{"?limit=0", "", "", 400, "limit"},
		{"?limit=x", "", "", 400, "limit"},
		{"?limit=1&limit=2", "", "", 400, "limit"},
		{"?all=yes", "", "", 400, "all"},
		{"?all=true&all=true", "", "", 400, "all"},
		{"?after=junk", `list "junk" 101 false`, "", 400, "after"},
		{"?after=K1&after=K2", "", "", 400, "after"},
	} {
		rig, log := newTokenRig(t)
		w := rig.send("GET", "/desk/tokens"+c.query, "", annToken)
		if asked := strings.Join(log.asked, ", "); w.Code != c.status || asked != c.asked || !strings.Contains(w.Body.String(), c.next) {
			t.Errorf("%q: %d, asked %s: %s", c.query, w.Code, asked, w.Body)
		}
		if c.status != 200 && gatewaytest.DecodeError(t, w.Body.Bytes()).Field != c.field {
			t.Errorf("%q: %s", c.query, w.Body)
		}
	}
}

// TestOperatorTokenRefusals: refused requests revoke nothing and publish nothing
// internal.
func TestOperatorTokenRefusals(t *testing.T) {
	long := strings.Repeat("k", wire.MaxIdempotencyKey+1)
	for _, c := range []struct {
		method, path, body string
		headers            []string
		token              string
		status             int
		code               string
	}{
		{"POST", "/desk/tokens/K9/revoke", "{}", nil, annToken, 404, codeUnknownToken},
		{"POST", "/desk/tokens/K3/revoke", `{"why":"x"}`, nil, annToken, 400, wire.CodeInvalidField},
		{"POST", "/desk/tokens/K3/revoke", "", nil, annToken, 400, wire.CodeInvalidJSON},
		{"POST", "/desk/tokens/K3/revoke", "{}", []string{"Idempotency-Key", long}, annToken, 400, wire.CodeInvalidField},
		{"POST", "/desk/tokens/K3/revoke", "{}", nil, "", 401, codeOperatorToken},
		{"GET", "/desk/tokens", "", nil, "not a token of anybody", 401, codeOperatorToken},
		{"GET", "/desk/tokens/K3/revoke", "", nil, annToken, 405, wire.CodeMethodNotAllowed},
		{"POST", "/desk/tokens", "{}", nil, annToken, 405, wire.CodeMethodNotAllowed},
		{"GET", "/desk/tokens/K3", "", nil, annToken, 404, wire.CodeUnknownRoute},
	} {
		rig, log := newTokenRig(t)
		w := rig.send(c.method, c.path, c.body, c.token, c.headers...)
		if e := gatewaytest.DecodeError(t, w.Body.Bytes()); w.Code != c.status || e.Code != c.code {
			t.Errorf("%s %s %s: %d %s", c.method, c.path, c.body, w.Code, w.Body)
		}
		if log.tokens[2].RevokedAt != 0 {
			t.Errorf("%s %s %s revokes", c.method, c.path, c.body)
		}
	}
	for _, path := range []string{"/desk/tokens", "/desk/tokens/K3/revoke"} {
		var written bytes.Buffer
		rig, log := newTokenRigTo(t, &written)
		log.err = errors.New("the disk is on fire")
		method, body := "POST", "{}"
		if path == "/desk/tokens" {
			method, body = "GET", ""
		}
		w := rig.send(method, path, body, annToken)
		if e := gatewaytest.DecodeError(t, w.Body.Bytes()); w.Code != 500 || e.Code != wire.CodeInternal || strings.Contains(w.Body.String(), "fire") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
		if !strings.Contains(written.String(), "fire") {
			t.Errorf("%s: the log does not say why: %s", path, &written)
		}
	}
}

// TestOperatorWithoutTokens: without Tokens the routes do not exist.
func TestOperatorWithoutTokens(t *testing.T) {
	rig := newOperatorRig(t)
	for path, method := range map[string]string{"/desk/tokens": "GET", "/desk/tokens/K3/revoke": "POST"} {
		w := rig.send(method, path, "{}", annToken)
		if e := gatewaytest.DecodeError(t, w.Body.Bytes()); w.Code != 404 || e.Code != wire.CodeUnknownRoute {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}
