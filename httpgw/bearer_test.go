package httpgw

import (
	"fmt"
	"strings"
	"testing"

	"blockdesk/httpgw/dvp"
	"blockdesk/httpgw/gatewaytest"
	"blockdesk/httpgw/terms"
	"blockdesk/httpgw/wire"
)

// TestBearer: every form of the Authorization header, and what the refusals reveal.
func TestBearer(t *testing.T) {
	rig := newDvPRig(t)
	for _, c := range []struct{ lines, reason string }{
		{bearer, ""},
		{"authorization: bearer " + secret, ""},
		{"AUTHORIZATION: BEARER   " + secret, ""},
		{"Authorization:\t Bearer " + secret + " \t", ""},
		{"X: y", "token_missing"},
		{"Authorization:", "token_missing"},
		{"Authorization:   ", "token_missing"},
		{"Proxy-Authorization: Bearer " + secret, "token_missing"},
		{"Cookie: access_token=" + secret, "token_missing"},
		{"Authorization: Bearer", "token_malformed"},
		{"Authorization: " + secret, "token_malformed"},
		{"Authorization: Bearer" + secret, "token_malformed"},
		{"Authorization: Basic " + secret, "token_malformed"},
		{"Authorization: Bearer\t" + secret, "token_malformed"},
		{"Authorization: Bearer " + secret + " " + secret, "token_malformed"},
		{"Authorization: Bearer " + secret + ", Bearer " + secret, "token_malformed"},
		{"Authorization: Bearer =" + secret, "token_malformed"},
		{"Authorization: Bearer ==", "token_malformed"},
		{"Authorization: Bearer \"" + secret + "\"", "token_malformed"},
		{"Authorization: Bearer caf\xc3\xa9", "token_malformed"},
		{"Authorization: Bearer " + strings.Repeat("x", dvp.MaxToken+1), "token_malformed"},
		{"Authorization: Bearer " + strings.Repeat("x", 8000), "token_malformed"},
		{bearer + "\r\n" + bearer, "token_malformed"},
		{bearer + "\r\nauthorization:", "token_malformed"},
		{"Authorization: Bearer " + strings.Repeat("x", dvp.MaxToken), "token_unknown"},
		{"Authorization: Bearer " + secret + "=", "token_unknown"},
		{"Authorization: Bearer " + strings.ToUpper(secret), "token_unknown"},
		{"Authorization: Bearer " + secret[:len(secret)-1], "token_unknown"},
		{"Authorization: Bearer -._~+/x==", "token_unknown"},
	} {
		for path, body := range map[string]string{terms.PathBuild: buildBody, terms.PathSubmit: submitBody} {
			got := rig.post(t, path, body, c.lines)
			if c.reason == "" {
				if got.status != 200 || got.header.Get("WWW-Authenticate") != "" {
					t.Errorf("%.80q: status %d: %s", c.lines, got.status, got.body)
				}
				continue
			}
			e := gatewaytest.DecodeError(t, got.body)
			challenge := `Bearer realm="dvp"`
			if c.reason != "token_missing" {
				challenge += `, error="invalid_token"`
			}
			if got.status != 403 || e.Code != wire.CodeTokenRefused || e.Reason != c.reason || e.Field != "" ||
				got.header.Get("WWW-Authenticate") != challenge || got.header.Get("Cache-Control") != "no-store" {
				t.Errorf("%.80q: status %d %v: %s, want %s", c.lines, got.status, got.header, got.body, c.reason)
			}
		}
	}
	without := newDvPRig(t, func(d *Dependencies, _ *Options) { d.Handshake = nil })
	if got := without.post(t, terms.PathBuild, buildBody, bearer); got.status != 403 || gatewaytest.DecodeError(t, got.body).Reason != "token_unknown" {
		t.Errorf("without a handshake: status %d: %s", got.status, got.body)
	}
}

// TestBearerComesBeforeTheBody: a client without a token learns nothing about its body
// or headers, and a trailer is not a header.
func TestBearerComesBeforeTheBody(t *testing.T) {
	rig := newDvPRig(t)
	for _, raw := range []string{
		postText(terms.PathBuild, "{"), postText(terms.PathBuild, strings.Repeat("x", wire.DefaultMaxBodyBytes)),
		strings.Replace(postText(terms.PathSubmit, submitBody), "application/json", "text/plain", 1),
		postText(terms.PathSubmit, submitBody, "Content-Encoding: gzip"), postText(terms.PathBuild, buildBody, "Idempotency-Key:"),
	} {
		got := do(t, rig.handlers[0], raw)
		if e := gatewaytest.DecodeError(t, got.body); got.status != 403 || e.Code != wire.CodeTokenRefused {
			t.Errorf("%.120q: status %d: %s", raw, got.status, got.body)
		}
	}
	b := gatewaytest.NewBooks(t)
	deps, _ := dvpDependencies()
	g := start(t, testOptions(b), b, deps)
	chunked := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n%s\r\n\r\n",
		terms.PathBuild, len(buildBody), buildBody, bearer)
	if codes := statusesOf(talk(t, g.BaseAddr(), chunked, true)); codes != "400" {
		t.Errorf("a token in a trailer: %s", codes)
	}
	expect := strings.Replace(postText(terms.PathBuild, buildBody, "Expect: 100-continue"), "application/json", "text/plain", 1)
	if codes := statusesOf(talk(t, g.BaseAddr(), expect, true)); codes != "100 403" {
		t.Errorf("with Expect: %s", codes)
	}
}
