package main

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gagliardetto/solana-go/base58"

	"blockdesk/service/config"
)

const oneToken = `{"token_id":"K18e997c54c02cd15","pubkey":"4uQe","state":"revoked","issued_at":"2030-01-02T03:04:05.678Z",` +
	`"expires_at":"2030-01-09T03:04:05.678Z","revoked_at":"2030-01-03T00:00:00Z","revoked_by":"ann"}`

// TestTokenCommands: what each sends to the admin address, and what it prints.
func TestTokenCommands(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args         []string
		sent, answer string
		want         []string
	}{
		"list": {
			[]string{"list"},
			"GET /desk/tokens? ",
			`{"ok":true,"tokens":[` + oneToken + `,{"token_id":"K2","pubkey":"8opH","state":"valid","issued_at":"2030-01-02T03:04:05Z","expires_at":"2030-01-09T03:04:05Z","revoked_at":null,"revoked_by":null}],"next":"K2"}`,
			[]string{
				"TOKEN", "K18e997c54c02cd15  revoked  4uQe    2030-01-02 03:04:05Z  2030-01-09 03:04:05Z  2030-01-03 00:00:00Z  ann\n",
				"K2", "valid    8opH    2030-01-02 03:04:05Z  2030-01-09 03:04:05Z  -                     -\n", "more: --after K2\n",
			},
		},
		"list the rest": {
			[]string{"list", "--all", "--after", "K2&x", "--limit", "7"},
			"GET /desk/tokens?after=K2%26x&all=true&limit=7 ",
			`{"ok":true,"tokens":[],"next":null}`,
			[]string{"no tokens\n"},
		},
		"list as JSON": {
			[]string{"list", "--json"},
			"GET /desk/tokens? ", `{"ok":true,"tokens":[` + oneToken + `]}`,
			[]string{`"token_id": "K18e997c54c02cd15"`, `"revoked_by": "ann"`},
		},
		"revoke": {
			[]string{"revoke", "K18e997c54c02cd15"},
			"POST /desk/tokens/K18e997c54c02cd15/revoke {}",
			`{"ok":true,"token":` + oneToken + `}`,
			[]string{"K18e997c54c02cd15  revoked"},
		},
		"revoke one that is not there": {
			[]string{"revoke", "K0000000000000001"},
			"POST /desk/tokens/K0000000000000001/revoke {}",
			`{"ok":false,"code":"UNKNOWN_TOKEN","error":"No token has this token_id.","request_id":"7"}`,
			[]string{"UNKNOWN_TOKEN: No token has this token_id. [request 7]"},
		},
		"revoke what is no id":   {[]string{"revoke", "../locks"}, "", "", []string{"no token_id"}},
		"revoke by the secret":   {[]string{"revoke", "dvp_secret"}, "", "", []string{"no token_id"}},
		"revoke nothing":         {[]string{"revoke"}, "", "", []string{"accepts 1 arg"}},
		"no command of this one": {[]string{"issue"}, "", "", []string{"unknown command"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sent := ""
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				sent = fmt.Sprintf("%s %s %s", r.Method, r.RequestURI, body)
				if r.Header.Get("Authorization") != "Bearer the operator's" {
					t.Errorf("headers %v", r.Header)
				}
				if strings.Contains(c.answer, `"ok":false`) {
					w.WriteHeader(http.StatusNotFound)
				}
				io.WriteString(w, c.answer)
			}))
			defer server.Close()
			var out bytes.Buffer
			cmd := root()
			cmd.SetArgs(append([]string{"token", "--admin", server.URL, "--operator-token", "the operator's", "--data", t.TempDir()}, c.args...))
			cmd.SetOut(&out)
			if err := cmd.ExecuteContext(t.Context()); err != nil {
				fmt.Fprintln(&out, err)
			}
			for _, word := range c.want {
				if !strings.Contains(out.String(), word) {
					t.Errorf("does not say %q:\n%s", word, &out)
				}
			}
			if sent != c.sent || strings.Contains(out.String(), "dvp_secret") {
				t.Errorf("sent %q, want %q; said %s", sent, c.sent, &out)
			}
		})
	}
}

// TestTokenOverACrash: a client gets a token by the handshake, an operator sees and
// revokes it, and so it stays.
func TestTokenOverACrash(t *testing.T) {
	t.Parallel()
	s := startProgram(t, testConfig(t, deskConfig))
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	key := base58.Encode(public)
	handshake := func(more string) (map[string]any, reply) {
		t.Helper()
		r := post(t, s.Addresses.Base+"/api/v1/dvp/handshake", "", `{"pubkey":"`+key+`"`+more+`}`)
		var fields map[string]any
		if err := json.Unmarshal([]byte(r.body), &fields); err != nil {
			t.Fatal(err)
		}
		return fields, r
	}
	prove := func() (map[string]any, reply) {
		t.Helper()
		challenge, _ := handshake("")
		nonce, _ := challenge["nonce"].(string)
		signature := base64.StdEncoding.EncodeToString(ed25519.Sign(private, []byte(nonce)))
		return handshake(`,"nonce":"` + nonce + `","signature":"` + signature + `"`)
	}
	token, r := prove()
	secret, _ := token["access_token"].(string)
	if r.status != http.StatusCreated || secret == "" {
		t.Fatalf("handshake: %d %s", r.status, r.body)
	}
	admitted := func() bool {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), "POST", s.Addresses.Base+"/api/v1/dvp/submit", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+secret)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode != http.StatusForbidden
	}
	type item struct {
		ID        string `json:"token_id"`
		Key       string `json:"pubkey"`
		State     string `json:"state"`
		ExpiresAt string `json:"expires_at"`
		RevokedBy string `json:"revoked_by"`
	}
	type answer struct{ Tokens []item }
	list := func() answer {
		t.Helper()
		var a answer
		text := cli(t, s, "token", "list", "--json")
		if err := json.Unmarshal([]byte(text), &a); err != nil || strings.Contains(text, secret) {
			t.Fatalf("%v: %s", err, text)
		}
		return a
	}
	a := list()
	if len(a.Tokens) != 1 || a.Tokens[0].Key != key || a.Tokens[0].State != "valid" || a.Tokens[0].ExpiresAt != token["expires_at"] || !admitted() {
		t.Fatalf("%+v for %s", a, r.body)
	}
	if out := cli(t, s, "token", "revoke", a.Tokens[0].ID); !strings.Contains(out, "revoked") {
		t.Errorf("revoked: %s", out)
	}
	if err := errors.Join(s.Kill(), s.Restart(t.Context())); err != nil {
		t.Fatal(err)
	}
	if k := list().Tokens; len(k) != 1 || k[0].State != "revoked" || k[0].RevokedBy != config.LocalOperator || admitted() {
		t.Errorf("after a crash: %+v", k)
	}
	if _, r := prove(); r.status != http.StatusTooManyRequests || r.fields.Code != "EMISSION_PAR_IP_TROP_RECENTE" {
		t.Errorf("a second one after the crash: %d %s", r.status, r.body)
	}
	cliRefused(t, s, []string{"UNKNOWN_TOKEN"}, "token", "revoke", "K0000000000000001")
}
