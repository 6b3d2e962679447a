package operator

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A request whose outcome is not known is sent again under the same key, and not
// for ever; another refusal is final.
func TestOperatorSendsAgain(t *testing.T) {
	for name, c := range map[string]struct {
		unknown int // answers before the last one
		status  int
		body    string
		sent    int
		err     string
	}{
		"at once":    {0, 200, `{"ok":true}`, 1, ""},
		"second":     {1, 200, `{"ok":true}`, 2, ""},
		"never":      {9, 200, `{"ok":true}`, tries, "outcome_unknown"},
		"refused":    {0, 409, `{"ok":false,"code":"X","reason":"busy","error":"No.","request_id":"7"}`, 1, "X (busy): No. [request 7]"},
		"no service": {0, 502, `<html>`, 1, "502"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var keys []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				keys = append(keys, r.Header.Get("Idempotency-Key"))
				if len(keys) <= c.unknown {
					w.WriteHeader(http.StatusServiceUnavailable)
					w.Write([]byte(`{"ok":false,"code":"OVERLOADED","reason":"outcome_unknown","error":"Again.","request_id":"6"}`))
					return
				}
				w.WriteHeader(c.status)
				w.Write([]byte(c.body))
			}))
			defer server.Close()
			client := &Client{URL: server.URL, Token: "t", HTTP: server.Client()}
			answer, err := client.Do(context.Background(), "/desk/locks", struct{}{})
			if c.err == "" && (err != nil || string(answer) != c.body) || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("%s, %v", answer, err)
			}
			if len(keys) != c.sent || keys[0] == "" || strings.Count(strings.Join(keys, " "), keys[0]) != c.sent {
				t.Errorf("sent %d times with keys %v", len(keys), keys)
			}
		})
	}
}
