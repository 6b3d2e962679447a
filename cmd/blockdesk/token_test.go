package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
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
		"revoke what is no id":   {[]string{"revoke", "../locks"}, "", "", []string{"not a token_id"}},
		"revoke by the secret":   {[]string{"revoke", "dvp_secret"}, "", "", []string{"not a token_id"}},
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
