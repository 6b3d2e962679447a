package operate

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"blockdesk/e2e/programtest"
)

// blockdesk health fails where a service is not ready or does not answer, and prints
// the two apart by the exit code.
func TestHealthCommand(t *testing.T) {
	ready := atomic.Bool{}
	ready.Store(true)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" && !ready.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		answer := `{"ok":true}`
		switch {
		case r.URL.Path == "/readyz" && ready.Load():
			answer = `{"ok":true,"checks":[{"name":"journal","ok":true},{"name":"chain","ok":false,"error":"no node answers"}]}`
		case r.URL.Path == "/readyz":
			answer = `{"ok":false,"checks":[{"name":"journal","ok":false,"error":"read-only"}]}`
		}
		if _, err := w.Write([]byte(answer)); err != nil {
			t.Error(err)
		}
	}))
	defer s.Close()
	run := func(args ...string) (code int, out string) {
		t.Helper()
		return programtest.EndsWith(t, append([]string{"health", "--admin", s.URL, "--within", "4m"}, args...)...)
	}
	expect := func(code int, out string, args ...string) {
		t.Helper()
		if got, text := run(args...); got != code || text != out {
			t.Errorf("health %s ends with %d and prints\n%s\nwant %d and\n%s", args, got, text, code, out)
		}
	}
	expect(0, "ready\n  journal  ok\n  chain    no node answers\n")
	expect(0, "ready\n", "--live")
	expect(0, `{"ok":true}`, "--live", "--json")
	ready.Store(false)
	expect(1, `{"ok":false,"checks":[{"name":"journal","ok":false,"error":"read-only"}]}`, "--json")
	if code, out := run(); code != 1 || !strings.HasPrefix(out, "not ready\n  journal  read-only\n") {
		t.Errorf("of one that is not ready: %d %s", code, out)
	}
	s.Close()
	if code, _ := run(); code != 3 {
		t.Errorf("of none: %d", code)
	}
}
