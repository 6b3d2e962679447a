package httpgw

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go/base58"

	"blockdesk/desk"
	"blockdesk/httpgw/dvp"
	"blockdesk/httpgw/gatewaytest"
	"blockdesk/httpgw/terms"
	"blockdesk/httpgw/wire"
	"blockdesk/persist/kv/kvtest"
	"blockdesk/settle/access"
)

// TestHandshake: both answers, byte for byte, and the calls of the handshake.
func TestHandshake(t *testing.T) {
	rig := newDvPRig(t)
	for body, want := range map[string]string{
		challengeBody: `{"ok":true,"pubkey":"` + taker + `","nonce":"` + nonceText + `","expires_at":"2026-11-20T12:01:04.123Z"}`,
		issueBody: `{"ok":true,"access_token":"` + secret + `","token_type":"Bearer","expires_in":604800,` +
			`"expires_at":"2026-11-27T12:00:04.123Z","pubkey":"` + taker + `"}`,
		strings.Replace(challengeBody, "}", `,"nonce":null,"signature":null}`, 1): `{"ok":true,"pubkey":"` + taker +
			`","nonce":"` + nonceText + `","expires_at":"2026-11-20T12:01:04.123Z"}`,
	} {
		got := rig.post(t, terms.PathHandshake, body)
		status := 200
		if body == issueBody {
			status = 201
		}
		if got.status != status || string(got.body) != want {
			t.Errorf("%s: status %d: %s\nwant %s", body, got.status, got.body, want)
		}
		if got.header.Get("Cache-Control") != "no-store" || got.header.Get("ETag") != "" || got.header.Get("Content-Type") != wire.JSONType {
			t.Errorf("headers %v", got.header)
		}
	}
	proof := [64]byte(bytes.Repeat([]byte{9}, 64))
	inBase64 := strings.Replace(issueBody, proofText, base64.StdEncoding.EncodeToString(proof[:]), 1)
	rig.post(t, terms.PathHandshake, inBase64)
	want := issueCall{takerKey(), nonceText, proof, [16]byte{10: 0xff, 0xff, 192, 0, 2, 1}}
	for i, call := range rig.keys.issues {
		if call != want {
			t.Errorf("call %d: %+v, want %+v", i, call, want)
		}
	}
	if len(rig.keys.issues) != 2 {
		t.Errorf("%d calls", len(rig.keys.issues))
	}
}

// TestWrongHandshakes: each member in each invalid form, and each error of the
// handshake; none of its texts is published.
func TestWrongHandshakes(t *testing.T) {
	zeros, wide := strings.Repeat("1", 64), strings.Repeat("A", 512)
	for _, c := range []struct {
		body, from, to string
		status         int
		code           string
		reason, field  string
	}{
		{"", "", "", 400, wire.CodeInvalidJSON, "empty_body", ""},
		{"{}", "", "", 400, wire.CodeMissingField, "", "pubkey"},
		{challengeBody, taker, "", 400, wire.CodeInvalidField, "empty", "pubkey"},
		{challengeBody, taker, taker[3:], 400, wire.CodeInvalidField, "not_a_key", "pubkey"},
		{challengeBody, taker, strings.Repeat("1", 32), 400, wire.CodeInvalidField, "not_a_key", "pubkey"},
		{challengeBody, taker, "1" + taker[1:], 400, wire.CodeInvalidField, "not_a_key", "pubkey"},
		{challengeBody, taker, strings.Repeat("z", 44), 400, wire.CodeInvalidField, "not_a_key", "pubkey"},
		{challengeBody, taker, strings.Repeat("z", 45), 400, wire.CodeInvalidField, "too_long", "pubkey"},
		{challengeBody, `"` + taker + `"`, "7", 400, wire.CodeInvalidField, "wrong_type", "pubkey"},
		{challengeBody, "}", `,"nonce":"` + nonceText + `"}`, 400, wire.CodeMissingField, "", "signature"},
		{challengeBody, "}", `,"signature":"` + proofText + `"}`, 400, wire.CodeMissingField, "", "nonce"},
		{challengeBody, "}", `,"nonce":""}`, 400, wire.CodeInvalidField, "empty", "nonce"},
		{challengeBody, "}", `,"x":1}`, 400, wire.CodeInvalidField, "unknown_field", "x"},
		{issueBody, nonceText, wide + "A", 400, wire.CodeInvalidField, "too_long", "nonce"},
		{issueBody, proofText, zeros, 400, wire.CodeInvalidField, "not_a_signature", "signature"},
		{issueBody, proofText, proofText[1:], 400, wire.CodeInvalidField, "not_a_signature", "signature"},
		{issueBody, proofText, base64.StdEncoding.EncodeToString(make([]byte, 64)), 400, wire.CodeInvalidField, "not_a_signature", "signature"},
		{issueBody, proofText, strings.Repeat("_", 86) + "==", 400, wire.CodeInvalidField, "not_a_signature", "signature"},
		{issueBody, proofText, strings.Repeat("/", 86), 400, wire.CodeInvalidField, "not_a_signature", "signature"},
		{issueBody, proofText, strings.Repeat("A", 85) + "B==", 400, wire.CodeInvalidField, "not_a_signature", "signature"},
		{issueBody, proofText, strings.Repeat("A", 84) + `\n\nAA`, 400, wire.CodeInvalidField, "not_a_signature", "signature"},
		{issueBody, proofText, strings.Repeat("z", 89), 400, wire.CodeInvalidField, "too_long", "signature"},
	} {
		rig := newDvPRig(t)
		rig.refusedAs(t, terms.PathHandshake, strings.Replace(c.body, c.from, c.to, 1), c.status, c.code, c.reason, c.field)
		if len(rig.keys.issues) != 0 {
			t.Errorf("%s: the handshake was asked", c.body)
		}
	}
	rig := newDvPRig(t)
	if got := rig.post(t, terms.PathHandshake, strings.Replace(issueBody, nonceText, wide, 1)); got.status != 201 || rig.keys.issues[0].nonce != wide {
		t.Errorf("the longest nonce: status %d: %s", got.status, got.body)
	}
	for _, c := range []struct {
		err           error
		status        int
		code          string
		reason, field string
		retry         string
	}{
		{desk.ErrBadKey, 400, wire.CodeInvalidField, "not_a_key", "pubkey", ""},
		{desk.ErrBadNonce, 400, wire.CodeInvalidField, "bad_nonce", "nonce", ""},
		{desk.ErrBadProof, 400, wire.CodeInvalidField, "bad_signature", "signature", ""},
		{&desk.TooSoon{RetryAfter: 59*time.Minute + 1}, 429, wire.CodeTokenTooSoon, "issuance", "", "3541"},
		{&desk.TooSoon{}, 429, wire.CodeTokenTooSoon, "issuance", "", "1"},
		{desk.ErrTokensFull, 503, wire.CodeOverloaded, "tokens_full", "", "600"},
		{errors.New("disk of host-7"), 500, wire.CodeInternal, "", "", ""},
	} {
		rig.keys.failing = fmt.Errorf("wrapped: %w", c.err)
		got := rig.refusedAs(t, terms.PathHandshake, issueBody, c.status, c.code, c.reason, c.field)
		if got.header.Get("Retry-After") != c.retry || bytes.Contains(got.body, []byte("wrapped")) || bytes.Contains(got.body, []byte("host-7")) {
			t.Errorf("%v: %v: %s", c.err, got.header, got.body)
		}
	}
	rig.keys.failing = desk.ErrBadKey
	rig.refusedAs(t, terms.PathHandshake, challengeBody, 400, wire.CodeInvalidField, "not_a_key", "pubkey")
	without := newDvPRig(t, func(d *Dependencies, _ *Options) { d.Handshake = nil })
	for _, body := range []string{challengeBody, issueBody} {
		if got := without.refusedAs(t, terms.PathHandshake, body, 503, wire.CodeChainUnavailable, "", ""); got.header.Get("Retry-After") != "10" {
			t.Errorf("without a handshake: %v", got.header)
		}
	}
	without.refusedAs(t, terms.PathHandshake, "{}", 400, wire.CodeMissingField, "", "pubkey")
}

// TestHandshakeTerms: the published terms; limits that are off are null.
func TestHandshakeTerms(t *testing.T) {
	b := gatewaytest.NewBooks(t)
	deps, _ := dvpDependencies()
	for _, none := range []bool{false, true} {
		o := testOptions(b)
		o.NoLimits, o.DvP, o.Handshake, o.URLs.Base = none, wire.Window{PerMinute: 7}, wire.Rate{PerMinute: 20, Burst: 5}, "https://desk.example/"
		g := start(t, o, b, deps)
		resp, body := gatewaytest.Do(t, g.BaseAddr(), "GET", terms.PathHandshake, "")
		limits := `{"handshake":{"per_ip":20,"window_s":60,"burst":5},"build_submit":{"per_ip":7,"window_s":60,"burst":null}}`
		if none {
			limits = `{"handshake":null,"build_submit":null}`
		}
		for _, member := range []string{
			`{"ok":true,"protocol":"svc_dvp_handshake_v1","steps":[{"step":1,`, `"algorithm":"ed25519"`,
			`{"step":4,"action":"ask for the token","method":"POST","url":"https://desk.example` + terms.PathHandshake + `","sends":["pubkey","nonce","signature"],"status":201,`,
			`"encodings":{"pubkey":"base58","nonce":"base64","signature":"base58 or base64"}`, `"nonce_ttl_s":60`,
			`"token":{"type":"Bearer","lifetime_s":604800,"issuance":{"per_ip":1,"window_s":3600}}`, `"limits":` + limits + `}`,
		} {
			if !bytes.Contains(body, []byte(member)) {
				t.Errorf("no %s in %s", member, body)
			}
		}
		etag := resp.Header.Get("ETag")
		if again, _ := gatewaytest.Do(t, g.BaseAddr(), "GET", terms.PathHandshake, "If-None-Match: "+etag+"\r\n"); resp.StatusCode != 200 || again.StatusCode != 304 {
			t.Errorf("status %d, again %d", resp.StatusCode, again.StatusCode)
		}
		if resp, _ := gatewaytest.Do(t, g.APIAddr(), "GET", terms.PathHandshake, ""); resp.StatusCode != 404 {
			t.Errorf("on the api address: status %d", resp.StatusCode)
		}
	}
}

// TestHandshakeForReal: a client with a key gets a token from the real settlement,
// builds with it, and gets no second one within the hour with any key.
func TestHandshakeForReal(t *testing.T) {
	if dvp.NonceLifetime != access.NonceTTL || dvp.TokenLifetime != access.TokenLifetime || dvp.TokenWindow != access.IssueWindow || access.Protocol != "svc_dvp_handshake_v1" {
		t.Error("the terms are not what the settlement keeps to")
	}
	keeper, err := access.Open(access.Options{}, kvtest.New())
	if err != nil {
		t.Fatal(err)
	}
	deps, rig := dvpDependencies()
	deps.Handshake = keeper
	rig.testWriter = newWriterOf(t, deps)
	sign := func(name string, mend func(string) string) reply {
		t.Helper()
		seed := sha256.Sum256([]byte(name))
		private := ed25519.NewKeyFromSeed(seed[:])
		pubkey := base58.Encode(private.Public().(ed25519.PublicKey))
		var c struct{ Nonce string }
		asked := rig.post(t, terms.PathHandshake, `{"pubkey":"`+pubkey+`"}`)
		if err := json.Unmarshal(asked.body, &c); err != nil || asked.status != 200 {
			t.Fatalf("status %d %v: %s", asked.status, err, asked.body)
		}
		proof := base58.Encode(ed25519.Sign(private, []byte(mend(c.Nonce))))
		return rig.post(t, terms.PathHandshake, fmt.Sprintf(`{"pubkey":%q,"nonce":%q,"signature":%q}`, pubkey, c.Nonce, proof))
	}
	same := func(nonce string) string { return nonce }
	// The nonce's bytes are not what is to be signed, its text is.
	bad := sign("ann", func(nonce string) string {
		raw, err := base64.StdEncoding.DecodeString(nonce)
		if err != nil {
			t.Error(err)
		}
		return string(raw)
	})
	if e := gatewaytest.DecodeError(t, bad.body); bad.status != 400 || e.Reason != "bad_signature" {
		t.Fatalf("status %d: %s", bad.status, bad.body)
	}
	var token struct {
		Secret    string    `json:"access_token"`
		Seconds   int       `json:"expires_in"`
		ExpiresAt time.Time `json:"expires_at"`
		Pubkey    string
	}
	got := sign("ann", same)
	if err := json.Unmarshal(got.body, &token); err != nil || got.status != 201 {
		t.Fatalf("a failed proof has used up the hour: status %d %v: %s", got.status, err, got.body)
	}
	if left := time.Until(token.ExpiresAt).Seconds() - float64(token.Seconds); left < -60 || left > 1 {
		t.Errorf("expires_in and expires_at are %f s apart", left)
	}
	for _, name := range []string{"ann", "bob"} {
		again := sign(name, same)
		e := gatewaytest.DecodeError(t, again.body)
		if again.status != 429 || e.Code != wire.CodeTokenTooSoon || len(again.header.Get("Retry-After")) != 4 {
			t.Errorf("a second token for %s: status %d %v: %s", name, again.status, again.header, again.body)
		}
	}
	body := strings.Replace(buildBody, taker, token.Pubkey, 1)
	if got := rig.post(t, terms.PathBuild, body, "Authorization: Bearer "+token.Secret); got.status != 200 {
		t.Errorf("with the token: status %d: %s", got.status, got.body)
	}
	if got := rig.post(t, terms.PathBuild, buildBody, "Authorization: Bearer "+token.Secret); got.status != 403 {
		t.Errorf("for another taker: status %d: %s", got.status, got.body)
	}
}
